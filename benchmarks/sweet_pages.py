"""SWEET-RL against its baselines on web pages: what `docs/results.md` reports of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import sweet
from benchmarks.comparison import Comparison
from benchmarks.sweet import GRIDS, MEANS, SUMS, Plan, grid
from sweet.types import TaskKind

MORE: dict[str, tuple[dict[str, Any], ...]] = {
    "rft": grid(policy_lr=(3e-4, 1e-2), policy_epochs=(4, 8)),
    "mtdpo": (
        *grid(policy_beta=(1.0, 3.0), policy_nll=(0.3,)),
        *grid(policy_beta=(3.0,), policy_nll=(1.0, 3.0)),
    ),
    "sweet": tuple(
        {**credit, "critic_nll": nll, "critic_epochs": epochs, "policy_least": 256,
         "policy_epochs": 1}
        for credit, nll, epochs in ((SUMS, 5.0, 1), (SUMS, 1.0, 1), (MEANS, 5.0, 1), (SUMS, 5.0, 2))
    ),
}  # fmt: skip
"""Beside the settings tried on functions, of which those at an edge did best: four more each.

A critic that saw every pair once prefers going on to a hasty answer at nearly every turn of what
it was not trained for; one that saw them four times does no longer.
"""

PLAN = Plan(
    kind=TaskKind.FRONTEND,
    out=Path("build/sweet-pages"),
    methods=("rft", "mtdpo", "sweet"),
    sizes=(),
    grids={method: GRIDS[method] + more for method, more in MORE.items()},
    test_n=500,
)
"""Without what only explains the result on functions: a page is some ten times as long as they."""


def run(plan: Plan = PLAN) -> list[Comparison]:
    """SWEET's reward on test tasks against every other method's, in percent; takes hours."""
    return sweet.run(plan)
