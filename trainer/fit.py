"""Models with a LoRA adapter to train, and the one training loop that every stage uses.

A model starts where its policy is: at a copy of the parent's adapter, or at a fresh one, which
changes nothing yet. Its reference is that start. Reference log-probabilities are computed once,
before the first update, so no second model is held. Nothing is random in a forward pass (no
dropout), so the first update finds a margin of 0.

The loop writes a checkpoint after each epoch. An epoch's order depends on the seed and its number
alone: a run that was killed ends with the same numbers as one that was not.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from sweet.engines import EMBEDDED_DIR
from sweet.errors import TrainingError, boundary
from sweet.settings import EMBEDDED_MODEL

START = "start"  # the parent's adapter, kept beside the trained one
TRAINED = "default"
LEAST_TOKENS = 64  # of a pass; a memory that can't hold them can't train
PASS_TOKENS = {"cpu": 2048}  # as in tree.py: on CPU more saves no time
OTHER_PASS_TOKENS = 16_384

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


@dataclass(frozen=True, slots=True)
class Learner:
    """A model with an adapter to train, its tokenizer, and the adapter it started from."""

    model: Any
    tokenizer: Any
    has_parent: bool

    @property
    def context_tokens(self) -> int:
        """The longest dialogue the model can read."""
        config = self.model.config.get_text_config()
        return getattr(config, "max_position_embeddings", None) or 2**31

    @property
    def pass_tokens(self) -> int:
        """How many tokens a forward pass may have."""
        return PASS_TOKENS.get(self.model.device.type, OTHER_PASS_TOKENS)

    @contextmanager
    def at_start(self) -> Iterator[None]:
        """The model as it was before training."""
        if not self.has_parent:
            with self.model.disable_adapter():
                yield
            return
        self.model.set_adapter(START, inference_mode=True)
        try:
            yield
        finally:
            self.model.set_adapter(TRAINED)

    def save(self, folder: Path) -> Path:
        """The trained adapter as a PEFT folder: whole or not at all."""
        aside = folder.with_name(folder.name + ".new")
        shutil.rmtree(aside, ignore_errors=True)
        self.model.save_pretrained(aside, selected_adapters=[TRAINED])
        shutil.rmtree(folder, ignore_errors=True)
        aside.rename(folder)
        return folder


def model_source(base_model: str) -> str:
    """What transformers loads for a policy's base model."""
    return str(EMBEDDED_DIR) if base_model == EMBEDDED_MODEL else base_model


def load_learner(
    source: str,
    parent: str | None,
    *,
    rank: int,
    seed: int,
    device: str = "auto",
    trained: Path | None = None,
) -> Learner:
    """The model at `source` with LoRA on all linear layers, starting from the adapter `parent`.

    `trained` is an adapter that training already gave, to be used instead of a new one.
    Raises: TrainingError where something can't be loaded.
    """
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # a round has its own
    device = device if device != "auto" else ("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(seed)
    with boundary(TrainingError, f"The model {source} could not be loaded for training"):
        tokenizer = AutoTokenizer.from_pretrained(source)
        dtype = torch.float32 if device == "cpu" else torch.bfloat16
        base = AutoModelForCausalLM.from_pretrained(source, dtype=dtype).to(device)
        begin = str(trained) if trained else parent
        if begin:
            model = PeftModel.from_pretrained(base, begin, is_trainable=True)
        else:
            lora = LoraConfig(
                r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM"
            )
            model = get_peft_model(base, lora)
        if parent:
            model.load_adapter(parent, START)
        model.set_adapter(TRAINED)
    return Learner(model.eval(), tokenizer, bool(parent))


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
    weights = [p for p in learner.model.parameters() if p.requires_grad]
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
