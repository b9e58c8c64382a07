"""Models to train, by a LoRA adapter or whole.

A model starts where its policy is: at a copy of the parent's adapter, or at a fresh one, which
changes nothing yet; where all weights are tuned, at the parent's weights, its adapter merged in.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from sweet.engines import EMBEDDED_DIRS
from sweet.errors import TrainingError, boundary
from trainer.tree import default_pass_tokens

START = "start"  # the parent's adapter, kept beside the trained one
TRAINED = "default"
HEAD_FILE = "value_head.safetensors"


def use_threads(number: int) -> None:
    """Compute on so many CPU threads from now on, whatever an engine in this process takes."""
    torch.set_num_threads(number)
    # A thread takes its number when it is first asked for: till then another thread's is valid.
    torch.get_num_threads()


@dataclass(frozen=True, slots=True)
class Learner:
    """A model to train, its tokenizer, and how to go back to where it started.

    `start` gives the model as it was, where all of it is tuned; with an adapter it is None.
    `head` gives a value for each token, where a critic has one.
    """

    model: Any
    tokenizer: Any
    has_parent: bool
    start: Callable[[], Any] | None = None
    head: torch.nn.Linear | None = None

    @property
    def context_tokens(self) -> int:
        """The longest dialogue the model can read."""
        config = self.model.config.get_text_config()
        return getattr(config, "max_position_embeddings", None) or 2**31

    @property
    def pass_tokens(self) -> int:
        """How many tokens a forward pass may have."""
        return default_pass_tokens(self.model)

    @property
    def weights(self) -> list[torch.nn.Parameter]:
        """What is trained."""
        head = self.head.parameters() if self.head is not None else ()
        return [*(p for p in self.model.parameters() if p.requires_grad), *head]

    @contextmanager
    def at_start(self) -> Iterator[None]:
        """The model as it was before training; where all of it is tuned, a second one is loaded."""
        if self.start is not None:
            start = self.start()
            _exchange(self.model, start)
            try:
                yield
            finally:
                _exchange(self.model, start)
            return
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
        """The trained adapter as a PEFT folder, or the model as its own: whole or not at all."""
        aside = folder.with_name(folder.name + ".new")
        shutil.rmtree(aside, ignore_errors=True)
        if self.start is None:
            self.model.save_pretrained(aside, selected_adapters=[TRAINED])
        else:
            self.model.save_pretrained(aside)
            self.tokenizer.save_pretrained(aside)
        if self.head is not None:
            save_file(self.head.state_dict(), aside / HEAD_FILE)
        shutil.rmtree(folder, ignore_errors=True)
        aside.rename(folder)
        return folder


def model_source(base_model: str) -> str:
    """What transformers loads for a policy's base model."""
    return str(EMBEDDED_DIRS.get(base_model, base_model))


def load_learner(
    source: str,
    parent: str | None,
    *,
    rank: int,
    seed: int,
    device: str = "auto",
    trained: Path | None = None,
    whole: bool = False,
    with_head: bool = False,
) -> Learner:
    """The model at `source`, starting from the adapter `parent`: LoRA on all linear layers.

    `whole` tunes all weights instead, in float32. `trained` is what training already gave, to be
    used instead of a new start. `with_head` puts a value head on it.
    Raises: TrainingError where something can't be loaded.
    """
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # a round has its own
    device = device if device != "auto" else ("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(seed)
    with boundary(TrainingError, f"The model {source} could not be loaded for training"):
        tokenizer = AutoTokenizer.from_pretrained(source)
        start = None
        if whole:
            start = cache(partial(_whole_model, source, parent, device))
            model = _whole_model(str(trained), None, device) if trained else start.__wrapped__()
        else:
            model = _with_adapter(source, parent, rank, device, trained)
        head = _value_head(model, trained) if with_head else None
    return Learner(model, tokenizer, bool(parent), start, head)


def _with_adapter(
    source: str, parent: str | None, rank: int, device: str, trained: Path | None
) -> Any:
    """A model with the adapter to train, a copy of its parent's or a fresh one."""
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import AutoModelForCausalLM

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
    return model.eval()


def _whole_model(source: str, parent: str | None, device: str) -> Any:
    """A model with the parent's adapter merged in, all of its weights to be trained.

    In float32: in 16 bits a small step would round to no step at all.
    """
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32).to(device)
    if parent:
        model = PeftModel.from_pretrained(model, parent).merge_and_unload()
    return model.requires_grad_(True).eval()


def _value_head(model: Any, trained: Path | None) -> torch.nn.Linear:
    """Hidden state → value. It begins at 0: no episode is worth more than another yet."""
    size = model.config.get_text_config().hidden_size
    # No bias: it would value an episode by its number of turns.
    head = torch.nn.Linear(size, 1, bias=False, device=model.device)
    torch.nn.init.zeros_(head.weight)
    if trained:
        head.load_state_dict(load_file(trained / HEAD_FILE))
    return head


def _exchange(one: Any, other: Any) -> None:
    """Swap the weights of two models of the same kind."""
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        a.data, b.data = b.data, a.data
