from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.figures import (
    Figure,
    bootstrap_interval,
    mean,
    paired_difference,
    rate,
    wilson_interval,
)


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


def test_a_figure_of_nothing_is_unknown_and_of_one_has_no_interval() -> None:
    assert rate(0, 0) == mean([]) == Figure(None, None, None, 0)
    assert mean([3.0]) == Figure(3.0, None, None, 1)


def test_a_rate_has_the_interval_of_wilson() -> None:
    figure = rate(3, 10)
    assert (figure.value, figure.n) == (0.3, 10)
    assert (figure.low, figure.high) == wilson_interval(3, 10)


def test_a_mean_s_interval_is_that_of_the_bootstrap_and_does_not_change() -> None:
    values = [float(n % 7) for n in range(60)]
    figure = mean(values)
    assert figure == mean(values)
    assert figure.low is not None
    slow = bootstrap_interval(values)
    assert figure.low == pytest.approx(slow[0], abs=0.06)
    assert figure.high == pytest.approx(slow[1], abs=0.06)


def test_a_mean_of_much_is_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [float(n % 2) for n in range(500)]
    whole = mean(values)
    monkeypatch.setattr("evaluators.figures._AT_ONCE", 1000)
    assert mean(values) == whole


def test_a_paired_difference_is_over_the_cases_both_have() -> None:
    figure = paired_difference([1.0, 1.0, None, 0.0], [0.0, 1.0, 1.0, None])
    assert (figure.value, figure.n) == (0.5, 2)
    assert paired_difference([None], [1.0]).value is None


def test_pairing_finds_a_small_difference_that_unpaired_means_hide() -> None:
    base = [float(n) for n in range(100)]
    figure = paired_difference([value + 0.5 + 0.1 * (value % 3) for value in base], base)
    assert figure.low is not None
    assert figure.low > 0.5
