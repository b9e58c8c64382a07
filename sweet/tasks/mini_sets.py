"""What ColBench-Mini's task sets share: splits by hash, and different rows drawn by seed."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Container, Iterator

from sweet.errors import TaskDataError
from sweet.types import HiddenInfo, Task, TaskKind, TaskRow

SPLITS = ("train", "validation", "test", "families")

Draw = Callable[[random.Random, Container[str]], tuple[str, HiddenInfo] | None]
"""A description with its hidden information; None where the draw is of no use, as when its
reference is among those drawn before."""


def split_by_hash(content: str) -> str:
    """The split that a combination of details belongs to: 5 % are test, 5 % validation."""
    bucket = int(hashlib.sha256(content.encode()).hexdigest(), 16) % 100
    return "test" if bucket < 5 else "validation" if bucket < 10 else "train"


def distinct_rows(
    source: str, kind: TaskKind, split: str, n: int, seed: int, draw: Draw
) -> Iterator[TaskRow]:
    """`n` tasks with different references, the same for the same seed.

    Raises: TaskDataError for an unknown split.
    """
    if split not in SPLITS:
        raise TaskDataError(f"Unknown split {split!r} of {source}; there are {', '.join(SPLITS)}.")
    rng = random.Random(f"{split}/{seed}")
    seen: set[str] = set()
    while len(seen) < n:
        drawn = draw(rng, seen)
        if drawn is None:
            continue
        text, hidden = drawn
        seen.add(hidden.reference)
        content = "\n".join((text, hidden.reference, *hidden.test_calls))
        digest = hashlib.sha256(content.encode()).hexdigest()[:12]  # wording counts too
        yield TaskRow(Task(f"{source}-{digest}", kind, text, split, source), hidden)
