"""What files of several folders stand on."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweet.tasks import colbench
from tests.rows import ROWS


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    """`ROWS` in ColBench's shape."""
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(map(colbench.to_line, ROWS)), encoding="utf-8")
    return path


@pytest.fixture
def file_set(task_file: Path) -> str:
    """The task set that is that file."""
    return f"file:{task_file}"
