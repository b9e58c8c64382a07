"""Figures of pairwise preferences: win rates, Bradley-Terry strengths, side bias, agreement.

Pure: numbers in, numbers out. A tie counts as half a win for each side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evaluators.figures import NONE, Z95, Figure, wilson_interval

MAX_UPDATES = 100  # of Newton's method, which needs about six


@dataclass(frozen=True, slots=True)
class Met:
    """How often the first of two won, tied and lost against the second."""

    wins: int = 0
    ties: int = 0
    losses: int = 0

    @property
    def n(self) -> int:
        """How often they met."""
        return self.wins + self.ties + self.losses

    @property
    def points(self) -> float:
        """Wins, with half of the ties."""
        return self.wins + self.ties / 2

    @property
    def win_rate(self) -> Figure:
        """The share of points; its Wilson interval is, with ties, a little too wide."""
        if not self.n:
            return NONE
        return Figure(self.points / self.n, *wilson_interval(self.points, self.n), self.n)

    def __add__(self, other: Met) -> Met:
        """Both together."""
        return Met(self.wins + other.wins, self.ties + other.ties, self.losses + other.losses)

    @property
    def turned(self) -> Met:
        """The same from the second's side."""
        return Met(self.losses, self.ties, self.wins)


Matrix = Mapping[tuple[str, str], Met]


def matrix(outcomes: Iterable[tuple[str, str, float]]) -> dict[tuple[str, str], Met]:
    """How each two met, in both orders, from (first, second, points of the first: 0, 0.5, 1)."""
    one_vote = {1.0: Met(wins=1), 0.5: Met(ties=1), 0.0: Met(losses=1)}
    found: dict[tuple[str, str], Met] = {}
    for first, second, points in outcomes:
        if first == second:
            continue  # a version against itself tells nothing about it
        met = one_vote[points]
        found[first, second] = found.get((first, second), Met()) + met
        found[second, first] = found.get((second, first), Met()) + met.turned
    return found


def win_rates(met: Matrix) -> dict[str, Figure]:
    """Each one's share of points against all others."""
    total: dict[str, Met] = {}
    for (first, _), pair in met.items():
        total[first] = total.get(first, Met()) + pair
    return {name: pair.win_rate for name, pair in total.items()}


def bradley_terry(met: Matrix, reference: str | None = None) -> dict[str, Figure]:
    """Each one's log-strength with its interval; `n` is how often it met others.

    Relative to the mean of all that have one, or to `reference`, which then is 0. Where the
    maximum of the likelihood is at infinity (some never lost a point to the others, or never met
    them) only the largest group within which it is finite has strengths; the others' are None.
    Intervals are Wald's, from the inverse of the information.

    Raises: ValueError where `reference` has met nobody.

    Source: Bradley and Terry 1952; Hunter 2004 for when a maximum exists.
    """
    played: dict[str, int] = {}
    for (first, _), pair in sorted(met.items()):
        played[first] = played.get(first, 0) + pair.n
    if reference is not None and reference not in played:
        raise ValueError(f"{reference!r} is not among {list(played)}")
    unknown = {name: Figure(None, None, None, n) for name, n in played.items()}
    names = _largest_group(played, met)
    if len(names) < 2 or (reference is not None and reference not in names):
        return unknown
    strengths, covariance = _fit(names, met)
    contrasts = np.eye(len(names)) - 1 / len(names)
    if reference is not None:
        contrasts = np.eye(len(names))
        contrasts[:, names.index(reference)] -= 1
    values = contrasts @ strengths
    variances = np.einsum("ij,jk,ik->i", contrasts, covariance, contrasts)
    return unknown | {
        name: _wald(float(value), math.sqrt(max(0.0, float(variance))), played[name])
        for name, value, variance in zip(names, values, variances, strict=True)
    }


def _wald(value: float, error: float, n: int) -> Figure:
    return Figure(value, value - Z95 * error, value + Z95 * error, n)


def _largest_group(played: Mapping[str, int], met: Matrix) -> list[str]:
    """The most names of which each is led to from every other by a chain of points."""
    beat: dict[str, set[str]] = {name: set() for name in played}
    beaten: dict[str, set[str]] = {name: set() for name in played}
    for (first, second), pair in met.items():
        if pair.points:
            beat[first].add(second)
            beaten[second].add(first)
    groups = (sorted(_reached(name, beat) & _reached(name, beaten)) for name in played)
    return max(groups, key=lambda group: (len(group), sum(map(played.__getitem__, group))),
               default=[])  # fmt: skip


def _reached(start: str, graph: Mapping[str, set[str]]) -> set[str]:
    seen, todo = {start}, [start]
    while todo:
        new = graph[todo.pop()] - seen
        seen |= new
        todo += new
    return seen


def _fit(names: Sequence[str], met: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """The log-strengths that sum to 0, and the pseudo-inverse of the information there."""
    at = {name: index for index, name in enumerate(names)}
    points, games = np.zeros((len(at), len(at))), np.zeros((len(at), len(at)))
    for (first, second), pair in met.items():
        if first in at and second in at:
            points[at[first], at[second]] = pair.points
            games[at[first], at[second]] = pair.n
    strengths = np.zeros(len(at))
    for _ in range(MAX_UPDATES):
        chance = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
        weight = games * chance * (1 - chance)
        information = np.diag(weight.sum(1)) - weight
        covariance = np.linalg.pinv(information, hermitian=True)
        step = covariance @ (points - games * chance).sum(1)
        strengths = strengths + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-10:
            break
    return strengths, covariance


def side_bias(left_wins: int, right_wins: int) -> Figure:
    """The share of decided votes that went to the left side; fair is 0.5."""
    return Met(wins=left_wins, losses=right_wins).win_rate


def agreement(pairs: Iterable[tuple[float, float]]) -> Figure:
    """How often two who judged the same comparison gave the same points."""
    same = [one == other for one, other in pairs]
    return Met(wins=sum(same), losses=len(same) - sum(same)).win_rate
