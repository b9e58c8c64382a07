from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.figures import bootstrap_interval, wilson_interval


def test_wilson_agrees_with_published_values() -> None:
    assert wilson_interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson_interval(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson_interval(300, 1000) == pytest.approx((0.2724, 0.3291), abs=1e-4)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_rate_and_stays_between_0_and_1(trial: tuple[int, int]) -> None:
    successes, n = trial
    low, high = wilson_interval(successes, n)
    assert 0 <= low <= successes / n <= high <= 1
    mirrored = wilson_interval(n - successes, n)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-12)


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (3, 2), (-1, 4)])
def test_wilson_refuses_what_is_no_rate(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="give no rate"):
        wilson_interval(successes, n)


def test_bootstrap_is_the_same_for_the_same_seed_and_holds_the_mean() -> None:
    values = [0.0, 1.0, 1.0, 0.0, 1.0, 0.5] * 20
    low, high = bootstrap_interval(values, seed=3)
    assert (low, high) == bootstrap_interval(values, seed=3)
    assert low < sum(values) / len(values) < high
    assert high - low < 0.3


def test_bootstrap_of_one_value_is_that_value_and_of_none_an_error() -> None:
    assert bootstrap_interval([2.5], resamples=10) == (2.5, 2.5)
    assert bootstrap_interval([1.0, 3.0], statistic=max, resamples=200)[1] == 3.0
    with pytest.raises(ValueError, match="no values"):
        bootstrap_interval([])
    assert math.isfinite(bootstrap_interval([1.0, 2.0])[0])
