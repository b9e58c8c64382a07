"""What a round's version and its parent reached on the same validation tasks, from its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluators.figures import Figure
from sweet.types import TaskKind

OUTCOMES = {
    TaskKind.BACKEND: ("success_rate", "success_ci95"),
    TaskKind.FRONTEND: ("reward", "reward_ci95"),
}
"""By what versions are compared, with its interval: names among the figures of a side."""
OUTCOME = {TaskKind.BACKEND: "success", TaskKind.FRONTEND: "reward"}
"""The same in a word."""
OUTCOME_FORM = {TaskKind.BACKEND: ".1%", TaskKind.FRONTEND: ".3f"}
"""How it is written in plain text."""


@dataclass(frozen=True, slots=True)
class Validation:
    """`parent` and `child`: the share of functions that succeed, the mean reward of web pages.

    `gain` is child minus parent on the tasks where both were scored. The evaluator is "" where
    nothing was scored, or by a round of before it was recorded.
    """

    kind: TaskKind
    evaluator: str
    parent: Figure
    child: Figure
    gain: Figure


def validation(settings: Mapping[str, object], figures: Mapping[str, Any] | None) -> Validation:
    """The figures that a round recorded, with its settings; unknown ones where it has none."""
    kind = TaskKind(str(settings.get("tasks", TaskKind.BACKEND)))
    found = figures or {}
    child = found.get("child") or {}
    return Validation(
        kind,
        str(child.get("evaluator") or ""),
        outcome(kind, found.get("parent") or {}),
        outcome(kind, child),
        _figure(found, "gain", "gain_ci95", "compared"),
    )


def outcome(kind: TaskKind, side: Mapping[str, Any]) -> Figure:
    """The success rate or the mean reward among a version's figures."""
    return _figure(side, *OUTCOMES[kind], "n")


def _figure(values: Mapping[str, Any], value: str, interval: str, n: str) -> Figure:
    low, high = values.get(interval) or (None, None)
    return Figure(values.get(value), low, high, values.get(n) or 0)
