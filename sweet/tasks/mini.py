"""ColBench-Mini's task sets by name, whatever their kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sweet.errors import TaskDataError
from sweet.tasks import mini_backend, mini_frontend
from sweet.tasks.mini_sets import SPLITS
from sweet.types import TaskRow

Generate = Callable[[str, int, int], Iterator[TaskRow]]

GENERATORS: dict[str, Generate] = {
    mini_backend.SOURCE: mini_backend.generate,
    mini_frontend.SOURCE: mini_frontend.generate,
}
SETS = tuple(f"{source}/{split}" for source in GENERATORS for split in SPLITS)


def generate(name: str, n: int, seed: int) -> Iterator[TaskRow]:
    """`n` different tasks of the set `name`, the same for the same seed. Raises: TaskDataError."""
    if name not in SETS:
        raise TaskDataError(f"There is no ColBench-Mini set {name!r}; there are {', '.join(SETS)}.")
    source, split = name.split("/")
    return GENERATORS[source](split, n, seed)
