"""Figures with their n and their interval → HTML. An unknown one reads "n/a"."""

from __future__ import annotations

from collections.abc import Callable

from evaluators.figures import Figure
from sweet.types import TaskKind
from ui.format import NA, points

Shows = Callable[[float], str]


def share(value: float) -> str:
    """A share of 1, in percent."""
    return f"{value:.1%}"


def similarity(value: float) -> str:
    """A similarity, at most 1."""
    return f"{value:.3f}".replace("-", "−")


def change(difference: float) -> str:
    """The difference of two similarities."""
    return f"{difference:+.3f}".replace("-", "−")


OUTCOME_SHOWS: dict[TaskKind, tuple[Shows, Shows]] = {
    TaskKind.BACKEND: (share, points),
    TaskKind.FRONTEND: (similarity, change),
}
"""How the outcome that versions are compared by is shown, and a difference of two."""


def figure(found: Figure, shows: Shows) -> str:
    """A figure with its n and its interval; n/a where it is unknown."""
    n = f'<span class="meta">n = {found.n:,}</span>'
    if found.value is None:
        return f"{NA} {n}" if found.n else NA
    return (
        f"<strong>{shows(found.value)}</strong> {n} "
        f'<span class="meta interval">{ends(found, shows)}</span>'
    )


def ends(found: Figure, shows: Shows) -> str:
    """The ends of a figure's interval."""
    if found.low is None or found.high is None:
        return f"[{NA}]"
    return f"[{shows(found.low)}, {shows(found.high)}]"
