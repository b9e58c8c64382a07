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
from trainer.memory import Passes

ENDED_EARLY = "ended_early"

Backward = Callable[[Sequence[int], int], dict[str, float]]
"""Adds the gradient of the mean loss of some examples, in passes of at most so many tokens, and
gives the loss and its metrics as numbers."""
Report = Callable[[int, int, Mapping[str, float]], object]
"""Told after each update: its number from 1, how many there will be, its numbers. Where it answers
True, training ends there with the weights so far."""


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
    passes = Passes(learner.pass_tokens)
    epochs = _restore(checkpoint, weights, optimizer)
    while len(epochs) < settings.epochs and not was_cut_short(epochs):
        updates = list(_updates(units, settings, epoch := len(epochs)))
        numbers: list[dict[str, float]] = []
        is_over = False
        while len(numbers) < len(updates) and not is_over:
            batch = updates[len(numbers)]
            numbers.append(_update(backward, batch, weights, optimizer, settings, passes))
            done = epoch * len(updates) + len(numbers)
            is_over = report(done, settings.epochs * len(updates), numbers[-1]) is True
        means = {name: sum(n[name] for n in numbers) / len(numbers) for name in numbers[0]}
        if is_over and done < settings.epochs * len(updates):
            means[ENDED_EARLY] = True
        epochs.append(means)
        _save(checkpoint, weights, optimizer, epochs)
    return epochs


def was_cut_short(epochs: Sequence[Mapping[str, float]]) -> bool:
    """Whether training ended within or after the last of these epochs because that was asked."""
    return bool(epochs) and ENDED_EARLY in epochs[-1]


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
    passes: Passes,
) -> dict[str, float]:
    """One step of the optimiser. Raises: TrainingError before a step that would spoil weights."""

    def gradients(pass_tokens: int) -> dict[str, float]:
        optimizer.zero_grad()
        return backward(batch, pass_tokens)

    numbers = passes.run(gradients)
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
