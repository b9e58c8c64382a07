"""SWEET-RL against its baselines on web pages: what `docs/results.md` reports of them."""

from __future__ import annotations

from pathlib import Path

from benchmarks import sweet
from benchmarks.comparison import Comparison
from benchmarks.sweet import Plan
from sweet.types import TaskKind

PLAN = Plan(
    kind=TaskKind.FRONTEND,
    out=Path("build/sweet-pages"),
    methods=("rft", "mtdpo", "sweet"),
    sizes=(),
    test_n=500,
)
"""Without what only explains the result on functions: a page is some ten times as long as they."""


def run(plan: Plan = PLAN) -> list[Comparison]:
    """SWEET's reward on test tasks against every other method's, in percent; takes hours."""
    return sweet.run(plan)
