"""Real ColBench rows, where they lie beside the repository: scores as published, and the truth."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluators.backend import BackendEvaluator
from evaluators.sandbox import Sandbox
from sweet.types import HiddenInfo

FOLDER = Path(os.environ.get("SWEET_COLBENCH") or Path(__file__).parents[3] / "shared" / "colbench")
pytestmark = pytest.mark.skipif(
    not (FOLDER / "reference_scores.jsonl").exists(),
    reason=f"no ColBench rows in {FOLDER} (SWEET_COLBENCH names another folder)",
)
RIGHT = {"identity", "fenced_python", "fenced_plain", "prose_unfenced", "helper"}
BUSY = 8


def read(name: str) -> list[dict]:
    return [json.loads(line) for line in (FOLDER / name).read_text().splitlines()]


@pytest.fixture(scope="module")
def tasks() -> list[HiddenInfo]:
    return [
        HiddenInfo(row["ground_truth"], tuple(row["test_cases"].values()))
        for row in read("backend_sample.jsonl")
    ]


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return read("reference_scores.jsonl")


def test_mode_compat_equals_the_published_score_on_every_row(tasks, rows, compat) -> None:
    found = list(compat.score_rows(tasks, rows))
    assert len(found) == len(rows) == 926
    differing = [
        (row["task_index"], row["variant"], row["reference_score"], ours["score"])
        for row, ours in zip(rows, found, strict=True)
        if ours["score"] != row["reference_score"]
    ]
    assert differing == []


def test_mode_fixed_tells_right_from_wrong_on_every_row(tasks, rows, fixed) -> None:
    found = list(fixed.score_rows(tasks, rows))
    scores: dict[str, set[float]] = {}
    for row, ours in zip(rows, found, strict=True):
        scores.setdefault(row["variant"], set()).add(ours["score"])
    assert {v: scores[v] for v in RIGHT} == {v: {1.0} for v in RIGHT}
    wrong = ("renamed", "syntax_error", "always_none")
    assert {v: scores[v] for v in wrong} == {v: {0.0} for v in wrong}


@pytest.fixture
def busy_machine() -> Iterator[None]:
    spin = "import os\nos.nice(5)\nwhile True: pass"
    processes = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(BUSY)]
    yield
    for process in processes:
        process.kill()
        process.wait()


def all_references(tasks: list[HiddenInfo]) -> list[float | None]:
    with Sandbox.start(allow_unsafe_exec=True) as sandbox:
        evaluator = BackendEvaluator(sandbox)
        rows = ({"task_index": i, "answer": t.reference} for i, t in enumerate(tasks))
        found = [row["score"] for row in evaluator.score_rows(tasks, rows)]
        evaluator.close()
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("time", [1, 2, 3])
def test_every_reference_scores_1_against_itself(time: int, tasks) -> None:
    assert all_references(tasks) == [1.0] * 100


def test_every_reference_scores_1_beside_busy_processes(tasks, busy_machine) -> None:
    assert all_references(tasks) == [1.0] * 100
