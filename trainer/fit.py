"""The one training loop that every stage uses.

A model's reference is its own start. Reference log-probabilities are computed once, before the
first update, so no second model is held. Nothing is random in a forward pass (no dropout), so the
first update finds a margin of 0.

The loop writes a checkpoint after each epoch. An epoch's order depends on the seed and its number
alone: a run that was killed ends with the same numbers as one that was not.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from sweet.errors import TrainingError
from trainer.learner import Learner

LEAST_TOKENS = 64  # of a pass; a memory that can't hold them can't train

Backward = Callable[[Sequence[int], int], dict[str, float]]
"""Adds the gradient of the mean loss of some examples, in passes of at most so many tokens, and
gives the loss and its metrics as numbers."""
Report = Callable[[int, int, Mapping[str, float]], None]
"""Told after each update: its number from 1, how many there will be, its numbers."""


@dataclass(frozen=True, slots=True)
class FitSettings:
    """How a model is trained."""

    lr: float
    epochs: int
    batch: int  # examples an update
    seed: int = 0
    clip: float = 1.0  # of the gradient's norm; arXiv:2503.15478's code clips at 1 too


def fit(
    learner: Learner,
    units: Sequence[Sequence[int]],
    backward: Backward,
    settings: FitSettings,
    *,
    checkpoint: Path,
    report: Report,
) -> list[dict[str, float]]:
    """Each epoch's mean numbers, after training `learner` on `units`.

    A unit is the numbers of examples that go into the same update. The checkpoint is there to go
    on from; remove it once the trained adapter is saved. Raises: TrainingError where numbers are
    no numbers any more, or memory is too small.
    """
    weights = learner.weights
    optimizer = torch.optim.AdamW(weights, lr=settings.lr, weight_decay=0.0)
    passes = _Passes(learner)
    epochs = _restore(checkpoint, weights, optimizer)
    for epoch in range(len(epochs), settings.epochs):
        updates = list(_updates(units, settings, epoch))
        numbers = []
        for index, batch in enumerate(updates, start=1):
            numbers.append(_update(backward, batch, weights, optimizer, settings, passes))
            report(epoch * len(updates) + index, settings.epochs * len(updates), numbers[-1])
        epochs.append({name: sum(n[name] for n in numbers) / len(numbers) for name in numbers[0]})
        _save(checkpoint, weights, optimizer, epochs)
    return epochs


def no_memory(error: BaseException) -> bool:
    """Whether an error says that memory was exhausted."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "not enough memory" in str(error)


class _Passes:
    """How many tokens a pass may have; less when memory was exhausted."""

    def __init__(self, learner: Learner) -> None:
        self.tokens = learner.pass_tokens

    def shrink(self, error: BaseException) -> None:
        """Half as many from now on. Raises: TrainingError where that is too few."""
        self.tokens //= 2
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if self.tokens < LEAST_TOKENS:
            raise TrainingError(
                f"There is not enough memory to train, even with {2 * self.tokens} tokens at a "
                "time. Choose a smaller model, a lower rank, or shorter episodes. "
                f"({str(error).splitlines()[0] if str(error) else type(error).__name__})"
            ) from error


def _updates(
    units: Sequence[Sequence[int]], settings: FitSettings, epoch: int
) -> Iterator[list[int]]:
    """The examples of each update of an epoch: whole units, until there are `batch` or more."""
    order = list(units)
    random.Random(f"{settings.seed}/{epoch}").shuffle(order)
    batch: list[int] = []
    for unit in order:
        batch += unit
        if len(batch) >= settings.batch:
            yield batch
            batch = []
    if batch:
        yield batch


def _update(
    backward: Backward,
    batch: Sequence[int],
    weights: Sequence[Any],
    optimizer: torch.optim.Optimizer,
    settings: FitSettings,
    passes: _Passes,
) -> dict[str, float]:
    """One step of the optimiser. Raises: TrainingError before a step that would spoil weights."""
    while True:
        optimizer.zero_grad()
        try:
            numbers = backward(batch, passes.tokens)
            break
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as e:
            if not no_memory(e):
                raise
            passes.shrink(e)
    norm = float(torch.nn.utils.clip_grad_norm_(weights, settings.clip))
    numbers = {**numbers, "gradient_norm": norm}
    if wrong := [name for name, value in numbers.items() if not abs(value) < float("inf")]:
        raise TrainingError(
            f"Training broke down: {', '.join(wrong)} is no number any more. Nothing of it is "
            f"kept. Lower the learning rate (it is {settings.lr:g})."
        )
    optimizer.step()
    return numbers


def _save(path: Path, weights: Sequence[Any], optimizer: Any, epochs: list[dict]) -> None:
    aside = path.with_suffix(".new")
    state = {"weights": list(weights), "optimizer": optimizer.state_dict(), "epochs": epochs}
    with aside.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


def _restore(path: Path, weights: Sequence[Any], optimizer: Any) -> list[dict[str, float]]:
    """The epochs that a checkpoint has behind it; none where there is no checkpoint."""
    if not path.exists():
        return []
    state = torch.load(path, map_location=weights[0].device, weights_only=True)
    with torch.no_grad():
        for weight, saved in zip(weights, state["weights"], strict=True):
            weight.copy_(saved)
    optimizer.load_state_dict(state["optimizer"])
    return state["epochs"]
