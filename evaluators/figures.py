"""Figures with their uncertainty. Pure: numbers in, numbers out."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from statistics import fmean

Z95 = 1.959963984540054  # two-sided 95 % of the normal distribution


def wilson_interval(successes: int, n: int, z: float = Z95) -> tuple[float, float]:
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
    resamples: int = 2000,
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
