"""Figures with their uncertainty. Pure: numbers in, numbers out."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

Z95 = 1.959963984540054  # two-sided 95 % of the normal distribution
RESAMPLES = 2000
_AT_ONCE = 4_000_000  # draws held in memory


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its 95 % interval and how many observations it is of; unknown is None."""

    value: float | None
    low: float | None
    high: float | None
    n: int


NONE = Figure(None, None, None, 0)


def rate(successes: int, n: int) -> Figure:
    """A rate with its Wilson interval."""
    return Figure(successes / n, *wilson_interval(successes, n), n) if n else NONE


def mean(values: Sequence[float]) -> Figure:
    """A mean with its bootstrap interval; one value has no interval."""
    if len(values) < 2:
        return Figure(values[0], None, None, 1) if values else NONE
    low, high = np.percentile(_resampled_means(values), [2.5, 97.5])
    return Figure(fmean(values), float(low), float(high), len(values))


def paired_difference(first: Sequence[float | None], second: Sequence[float | None]) -> Figure:
    """The mean of first minus second, case by case; cases that one of them lacks are left out."""
    cases = zip(first, second, strict=True)
    return mean([a - b for a, b in cases if a is not None and b is not None])


def _resampled_means(values: Sequence[float]) -> np.ndarray:
    """The means of RESAMPLES samples drawn from the values; the same values, the same ones."""
    draw, given = np.random.default_rng(0), np.asarray(values, dtype=float)
    step = max(1, _AT_ONCE // len(given))
    sizes = [min(step, RESAMPLES - begin) for begin in range(0, RESAMPLES, step)]
    return np.concatenate(
        [given[draw.integers(len(given), size=(size, len(given)))].mean(1) for size in sizes]
    )


def wilson_interval(successes: float, n: int, z: float = Z95) -> tuple[float, float]:
    """The score interval of a rate, sensible for few trials and near 0 and 1.

    Raises: ValueError where there are no trials, or more successes than trials.

    Source: Wilson 1927.
    """
    if n <= 0 or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} trials give no rate")
    p, z2 = successes / n, z * z
    centre = p + z2 / (2 * n)
    margin = z * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    low, high = (centre - margin) / (1 + z2 / n), (centre + margin) / (1 + z2 / n)
    return (0.0 if successes == 0 else low), (1.0 if successes == n else high)


def bootstrap_interval(
    values: Sequence[float],
    statistic: Callable[[Sequence[float]], float] = fmean,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[float, float]:
    """The percentile bootstrap interval of a statistic of `values`; the same seed, the same one.

    Raises: ValueError where there are no values.
    """
    if not values:
        raise ValueError("no values give no interval")
    draw = random.Random(seed)
    found = sorted(statistic(draw.choices(values, k=len(values))) for _ in range(resamples))
    tail = (1 - level) / 2 * (resamples - 1)
    return _at(found, tail), _at(found, resamples - 1 - tail)


def _at(ordered: Sequence[float], position: float) -> float:
    """The value at a fractional position, between its neighbours."""
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    share = position - below
    return ordered[below] * (1 - share) + ordered[above] * share
