"""One sandbox for the tests that need not have their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluators.backend import BackendEvaluator
from evaluators.sandbox import Level, Sandbox
from evaluators.sandbox.levels import LAYERS
from evaluators.sandbox.pool import _try


def offered_levels() -> list[Level]:
    """The levels with walls that this machine has, by trying."""
    walled = (Level.FULL, Level.KERNEL)
    return [v for v in walled if all(_try(v).get(name, (False,))[0] for name in LAYERS[v])]


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox.start(workers=2, allow_unsafe_exec=True) as started:
        yield started


@pytest.fixture(scope="session")
def fixed(sandbox: Sandbox) -> Iterator[BackendEvaluator]:
    evaluator = BackendEvaluator(sandbox)
    yield evaluator
    evaluator.close()


@pytest.fixture(scope="session")
def compat(sandbox: Sandbox) -> Iterator[BackendEvaluator]:
    evaluator = BackendEvaluator(sandbox, "compat")
    yield evaluator
    evaluator.close()
