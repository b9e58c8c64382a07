"""Work in passes of so many tokens: smaller ones where memory runs out, then a clear end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from sweet.errors import TrainingError

LEAST_TOKENS = 64  # of a pass; a memory that can't hold them can't train
T = TypeVar("T")


class Passes:
    """How many tokens a pass may have; fewer once memory was exhausted."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    def run(self, work: Callable[[int], T]) -> T:
        """What `work` gives, told how many tokens a pass may have.

        It is asked again with half as many where memory runs out. Raises: TrainingError where
        that are too few.
        """
        while True:
            try:
                return work(self.tokens)
            except (torch.OutOfMemoryError, MemoryError, RuntimeError) as e:
                if not no_memory(e):
                    raise
                self._shrink(e)
            if torch.cuda.is_available():  # only now nothing holds on to the failed pass
                torch.cuda.empty_cache()

    def _shrink(self, error: BaseException) -> None:
        if self.tokens // 2 < LEAST_TOKENS:
            raise TrainingError(
                f"There is not enough memory, even with {self.tokens} tokens at a time. Choose a "
                "smaller model, a lower rank, or shorter episodes. "
                f"({str(error).splitlines()[0] if str(error) else type(error).__name__})"
            ) from error
        self.tokens //= 2


def no_memory(error: BaseException) -> bool:
    """Whether an error says that memory was exhausted."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    said = str(error)
    return isinstance(error, RuntimeError) and (
        "not enough memory" in said or "out of memory" in said
    )
