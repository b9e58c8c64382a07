"""What several files of this folder stand on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sweet.cli import main
from sweet.store import EpisodeStore
from tests.sweet.store.samples import TASK_ROW, task_row

Run = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command with `--json`: its exit code, its value, its stderr."""

    def command(*words: object) -> tuple[int, Any, str]:
        code = main([*map(str, words), "--json"])
        out, err = capsys.readouterr()
        return code, json.loads(out) if out else None, err

    return command


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EpisodeStore]:
    """A log with two tasks."""
    with EpisodeStore.open(tmp_path / "one" / "sweet.db") as opened:
        opened.add_tasks([TASK_ROW, task_row(2, split="train")])
        yield opened


@pytest.fixture
def other(tmp_path: Path) -> Iterator[EpisodeStore]:
    """Another log, empty."""
    with EpisodeStore.open(tmp_path / "two" / "sweet.db") as opened:
        yield opened
