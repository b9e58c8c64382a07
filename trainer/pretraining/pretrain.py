"""Makes an embedded model from nothing: tokenizer, a small Llama, demonstrations, safetensors.

Departures from the usual recipe, none tried alone: dialogues are made on the fly and never repeat;
Muon for the matrices and AdamW for the rest; a long decay, since numbers are copied exactly only
at low rates; mostly careful agents, and at the end the quality that the shipped policy should have.
What a model learns from is a course of its own: `functions` and `pages`.
A run stopped at any point goes on from its last checkpoint, with the same batches.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F
from tqdm import tqdm
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from sweet.engines import EMBEDDED_DIR
from sweet.errors import ConfigError
from sweet.types import TaskKind
from trainer.pretraining import functions, page_tokenizer, pages, tokenizer
from trainer.pretraining.processes import Process, join_processes
from trainer.pretraining.rows import Batch, Row, pad_rows
from trainer.pretraining.transfer import take_layers


@dataclass(frozen=True, slots=True)
class Course:
    """What a model learns: its tokenizer, its dialogues as rows, and how far it is.

    `settings` are those of its full run that differ from the usual ones.
    """

    build_tokenizer: Callable[[int], PreTrainedTokenizerFast]
    row: Callable[[PreTrainedTokenizerFast, str, float, random.Random], Row]
    figures: Callable[[LlamaForCausalLM, PreTrainedTokenizerFast], dict[str, float]]
    settings: Mapping[str, int | float] = field(default_factory=dict)


COURSES = {
    TaskKind.BACKEND.value: Course(tokenizer.build_tokenizer, functions.row, functions.figures),
    TaskKind.FRONTEND.value: Course(
        page_tokenizer.build_tokenizer, pages.row, pages.figures, pages.SETTINGS
    ),
}


@dataclass(frozen=True, slots=True)
class PretrainSettings:
    """The size of the model and of the run."""

    kind: str = TaskKind.BACKEND.value  # the tasks that the model is for
    hidden: int = 160
    layers: int = 5
    heads: int = 5
    mlp: int = 432
    context_tokens: int = 1024
    steps: int = 6900
    dialogues: int = 16  # a step
    warmup: int = 100
    decay: float = 0.67  # the last part of the run
    ship: float = 0.12  # the last part, in which the agent asks as the shipped one should
    copying: float = 0.5  # of the dialogues of that part
    with_reference: float = 0.2  # dialogues that show the reference: critic and simulator
    lr_matrices: float = 0.02
    lr_rest: float = 3e-3
    transfer: bool = False  # begin with the layers of the embedded model that writes functions
    seed: int = 0
    checkpoint_every: int = 100

    @property
    def course(self) -> Course:
        """What the model learns."""
        return COURSES[self.kind]


def settings_for(kind: str, **given: float) -> PretrainSettings:
    """The settings of a full run for that kind of tasks, with those given in their place.

    Raises: ConfigError for an unknown kind.
    """
    if kind not in COURSES:
        raise ConfigError(f"--kind is {kind!r}; it must be one of {', '.join(COURSES)}.")
    values: dict[str, Any] = {**COURSES[kind].settings, **given}
    return PretrainSettings(kind=kind, **values)


def pretrain(
    out: Path, settings: PretrainSettings, *, device: str = "cpu", stop_after: int | None = None
) -> Path:
    """The folder `out` with model, tokenizer and training log; goes on where a run stopped.

    `stop_after` ends this call after so many steps of its own, to be continued later.
    """
    process = join_processes()
    out.mkdir(parents=True, exist_ok=True)
    with process.first():
        tokenizer = _tokenizer(out, settings)
    torch.manual_seed(settings.seed)
    model = build_model(tokenizer, settings)
    if settings.transfer:
        take_layers(model, tokenizer, EMBEDDED_DIR, settings.seed)
    model.to(device)
    optimizers = _optimizers(model, settings)
    first = _restore(out, model, optimizers)
    last = min(settings.steps, first + stop_after) if stop_after else settings.steps
    bar = tqdm(range(first, last), initial=first, total=settings.steps, desc="pretrain")
    batches = _batches(tokenizer, settings, first)
    for step in bar:
        loss = _update(model, optimizers, next(batches), _rate(step, settings), process)
        done = step + 1
        if process.leads and (done % settings.checkpoint_every == 0 or done == last):
            _checkpoint(out, model, optimizers, done)
            reached = settings.course.figures(model, tokenizer)
            figures = {"step": done, "loss": loss, **reached}
            with (out / "log.jsonl").open("a") as log:
                log.write(json.dumps(figures) + "\n")
            bar.set_postfix({name: f"{value:.2f}" for name, value in reached.items()})
    if process.leads:
        (out / "settings.json").write_text(json.dumps(asdict(settings), indent=2) + "\n")
        model.save_pretrained(out)
    return out


def _tokenizer(out: Path, settings: PretrainSettings) -> PreTrainedTokenizerFast:
    """The run's tokenizer: the one it began with, where it goes on."""
    if not (out / "tokenizer.json").exists():
        settings.course.build_tokenizer(settings.context_tokens).save_pretrained(out)
    return PreTrainedTokenizerFast.from_pretrained(out)


def build_model(tokenizer: PreTrainedTokenizerFast, settings: PretrainSettings) -> LlamaForCausalLM:
    """A Llama with random weights in float32."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=settings.hidden,
            num_hidden_layers=settings.layers,
            num_attention_heads=settings.heads,
            num_key_value_heads=settings.heads,
            intermediate_size=settings.mlp,
            max_position_embeddings=settings.context_tokens,
            tie_word_embeddings=True,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def _optimizers(model: LlamaForCausalLM, settings: PretrainSettings) -> list[torch.optim.Optimizer]:
    matrices = [p for p in model.model.layers.parameters() if p.ndim == 2]
    rest = [p for p in model.parameters() if not any(p is m for m in matrices)]
    muon = torch.optim.Muon(matrices, lr=settings.lr_matrices, weight_decay=0.0)
    adamw = torch.optim.AdamW(rest, lr=settings.lr_rest, weight_decay=0.0, betas=(0.9, 0.95))
    for optimizer in (muon, adamw):
        for group in optimizer.param_groups:
            group["peak_lr"] = group["lr"]
    return [muon, adamw]


def _rate(step: int, settings: PretrainSettings) -> float:
    """The learning rate's factor: warm-up, constant, linear decay to a fiftieth."""
    if step < settings.warmup:
        return (step + 1) / settings.warmup
    start = settings.steps * (1 - settings.decay)
    if step < start:
        return 1.0
    return max(0.02, 1 - (step - start) / (settings.steps - start))


def _update(
    model: LlamaForCausalLM,
    optimizers: list[torch.optim.Optimizer],
    batch: Batch,
    rate: float,
    process: Process,
) -> float:
    model.train()
    device = model.device
    mine = process.share_of(len(batch.ids))
    ids, weights = batch.ids[mine].to(device), batch.weights[mine, 1:].to(device)
    trained = weights > 0
    with torch.autocast(device.type, torch.bfloat16):
        hidden = model.model(ids[:, :-1]).last_hidden_state
        logits = model.lm_head(hidden[trained]).float()
    each = F.cross_entropy(logits, ids[:, 1:][trained], reduction="none")
    loss = (each * weights[trained]).sum() / batch.weights[:, 1:].sum()
    loss.backward()
    loss = process.add_up(model.parameters(), loss.detach())
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak_lr"] * rate
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


def _batches(
    tokenizer: PreTrainedTokenizerFast, settings: PretrainSettings, first: int
) -> Iterator[Batch]:
    """Batches from step `first` on, made four at a time so that like lengths go together."""
    for four in range(first // 4, settings.steps // 4 + 1):
        rng = random.Random(f"{settings.seed}/{four}")
        is_last = four * 4 >= settings.steps * (1 - settings.ship)
        phases = [
            ("copy" if rng.random() < settings.copying else "ship") if is_last else "learn"
            for _ in range(4 * settings.dialogues)
        ]
        make = settings.course.row
        rows = [make(tokenizer, phase, settings.with_reference, rng) for phase in phases]
        rows.sort(key=lambda row: len(row[0]))
        size = settings.dialogues
        groups = [rows[i : i + size] for i in range(0, len(rows), size)]
        rng.shuffle(groups)
        for group in groups[first % 4 if four == first // 4 else 0 :]:
            yield pad_rows(group, tokenizer.pad_token_id)


def _checkpoint(
    out: Path, model: LlamaForCausalLM, optimizers: list[torch.optim.Optimizer], step: int
) -> None:
    aside = out / "state.new"
    state = {"step": step, "model": model.state_dict()}
    torch.save({**state, "optimizers": [o.state_dict() for o in optimizers]}, aside)
    aside.replace(out / "state.pt")


def _restore(out: Path, model: LlamaForCausalLM, optimizers: list[torch.optim.Optimizer]) -> int:
    """The step to go on from; 0 for a fresh run."""
    path = out / "state.pt"
    if not path.exists():
        return 0
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
        optimizer.load_state_dict(saved)
    return state["step"]
