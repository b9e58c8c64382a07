"""SWEET-RL against its baselines on web pages: what `docs/results.md` reports of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import sweet as functions
from benchmarks.comparison import Comparison
from benchmarks.sweet import Plan, grid
from sweet.types import TaskKind

MEANS_1, MEANS_5, SUMS, _ = (
    {**setting, "policy_nll": 10.0} for setting in functions.GRIDS["sweet"]
)
GRIDS: dict[str, tuple[dict[str, Any], ...]] = {
    "rft": (
        *functions.GRIDS["rft"],
        *grid(policy_lr=(1e-2,), policy_epochs=(4, 8)),
        *grid(policy_lr=(3e-3, 1e-2), policy_epochs=(16,)),
    ),
    "mtdpo": (
        *functions.GRIDS["mtdpo"],
        *grid(policy_beta=(1.0,), policy_nll=(0.3, 0.1)),
        *grid(policy_beta=(3.0,), policy_nll=(0.3, 0.1)),
    ),
    "sweet": (
        *(MEANS_1, MEANS_5, SUMS),
        *({**SUMS, "critic_epochs": epochs} for epochs in (1, 2)),
        *({**SUMS, "critic_epochs": 1, "policy_nll": nll} for nll in (3.0, 1.0, 30.0)),
    ),
}
"""Eight each: what was tried on functions, and more on the side where that did best on pages.

A critic that saw every pair once prefers going on to a hasty answer at nearly every turn of what
it was not trained for; one that saw them four times does no longer.
"""

PLAN = Plan(
    kind=TaskKind.FRONTEND,
    out=Path("build/sweet-pages"),
    methods=("rft", "mtdpo", "sweet"),
    sizes=(),
    goes_on=False,
    grids=GRIDS,
    test_n=500,
)
"""Without what only explains the result on functions: a page is some ten times as long as they."""


def run(plan: Plan = PLAN) -> list[Comparison]:
    """SWEET's reward on test tasks against every other method's, in percent; takes hours."""
    return functions.run(plan)
