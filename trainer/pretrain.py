"""Makes the embedded model from nothing: tokenizer, a small Llama, demonstrations, safetensors.

Departures from the usual recipe, each measured: dialogues are made on the fly and never repeat;
Muon for the matrices and AdamW for the rest; a long constant rate, then a decay in which the
agent's demonstrations turn from mostly careful to the quality that the shipped policy should have.
A run stopped at any point goes on from its last checkpoint, with the same batches.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F
from tqdm import tqdm
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from sweet.tasks.mini_backend import draw_spec, reference, split_of
from sweet.tasks.mini_families import families
from sweet.types import Message
from trainer.demonstrations import CAREFUL, HASTY, MEDIUM, Style, dialogue, random_spec
from trainer.tokenizer import build_tokenizer

LEARN = ((CAREFUL, 0.60), (MEDIUM, 0.25), (HASTY, 0.15))
SHIP = ((CAREFUL, 0.27), (MEDIUM, 0.38), (HASTY, 0.35))
"""How the agents of the demonstrations ask, while the rate is constant and while it decays."""


@dataclass(frozen=True, slots=True)
class PretrainSettings:
    """The size of the model and of the run."""

    hidden: int = 160
    layers: int = 5
    heads: int = 5
    mlp: int = 432
    context_tokens: int = 1024
    steps: int = 5000
    dialogues: int = 16  # a step
    warmup: int = 100
    decay: float = 0.3  # the last part of the run
    with_reference: float = 0.2  # dialogues that show the reference: critic and simulator
    lr_matrices: float = 0.02
    lr_rest: float = 3e-3
    seed: int = 0
    checkpoint_every: int = 100


@dataclass(slots=True)
class Batch:
    """Token ids (B, T) and labels (B, T), -100 where nothing is trained."""

    ids: torch.Tensor
    labels: torch.Tensor


def pretrain(
    out: Path, settings: PretrainSettings, *, device: str = "cpu", stop_after: int | None = None
) -> Path:
    """The folder `out` with model, tokenizer and training log; goes on where a run stopped.

    `stop_after` ends this call after so many steps of its own, to be continued later.
    """
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(out, settings)
    torch.manual_seed(settings.seed)
    model = build_model(tokenizer, settings).to(device)
    optimizers = _optimizers(model, settings)
    first = _restore(out, model, optimizers)
    last = min(settings.steps, first + stop_after) if stop_after else settings.steps
    bar = tqdm(range(first, last), initial=first, total=settings.steps, desc="pretrain")
    batches = _batches(tokenizer, settings, first)
    for step in bar:
        loss = _update(model, optimizers, next(batches), _rate(step, settings))
        done = step + 1
        if done % settings.checkpoint_every == 0 or done == last:
            _checkpoint(out, model, optimizers, done)
            figures = {"step": done, "loss": loss, **measure(model, tokenizer)}
            with (out / "log.jsonl").open("a") as log:
                log.write(json.dumps(figures) + "\n")
            bar.set_postfix(loss=f"{loss:.3f}", answers=f"{figures['answers_right']:.2f}")
    (out / "settings.json").write_text(json.dumps(asdict(settings), indent=2) + "\n")
    model.save_pretrained(out)
    return out


def _tokenizer(out: Path, settings: PretrainSettings) -> PreTrainedTokenizerFast:
    """The run's tokenizer: the one it began with, where it goes on."""
    if not (out / "tokenizer.json").exists():
        build_tokenizer(settings.context_tokens).save_pretrained(out)
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
    model: LlamaForCausalLM, optimizers: list[torch.optim.Optimizer], batch: Batch, rate: float
) -> float:
    model.train()
    device = model.device
    with torch.autocast(device.type, torch.bfloat16):
        logits = model(batch.ids[:, :-1].to(device)).logits
    targets = batch.labels[:, 1:].to(device)
    loss = F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
    loss.backward()
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
        mix = SHIP if four * 4 >= settings.steps * (1 - settings.decay) else LEARN
        rows = [_row(tokenizer, mix, settings, rng) for _ in range(4 * settings.dialogues)]
        rows.sort(key=lambda row: len(row[0]))
        size = settings.dialogues
        groups = [rows[i : i + size] for i in range(0, len(rows), size)]
        rng.shuffle(groups)
        for group in groups[first % 4 if four == first // 4 else 0 :]:
            yield _pad(group, tokenizer.pad_token_id)


def _row(
    tokenizer: PreTrainedTokenizerFast,
    mix: tuple[tuple[Style, float], ...],
    settings: PretrainSettings,
    rng: random.Random,
) -> tuple[list[int], list[int]]:
    """One dialogue as ids and labels.

    With the reference in front the person's words are trained as well: that is the simulator.
    """
    spec = random_spec(rng)
    (style,) = rng.choices([s for s, _ in mix], [w for _, w in mix])
    messages = dialogue(spec, style, rng)
    if rng.random() >= settings.with_reference:
        return encode(tokenizer, messages)
    ids, _ = encode(tokenizer, [Message("reference", reference(spec)), *messages])
    start = ids.index(tokenizer.convert_tokens_to_ids("<agent>"))
    return ids, [-100] * start + ids[start:]


def encode(
    tokenizer: PreTrainedTokenizerFast, messages: list[Message]
) -> tuple[list[int], list[int]]:
    """Token ids of a dialogue, and labels on the agent's tokens (its end token included)."""
    out: Any = tokenizer.apply_chat_template(
        [{"role": m.role, "content": m.content} for m in messages],
        return_dict=True,
        return_assistant_tokens_mask=True,
    )
    ids, mask = out["input_ids"], out["assistant_masks"]
    return ids, [i if m else -100 for i, m in zip(ids, mask, strict=True)]


def _pad(rows: list[tuple[list[int], list[int]]], pad: int) -> Batch:
    """Rows padded on the right to a multiple of 32, so that few shapes occur."""
    width = -(-max(len(ids) for ids, _ in rows) // 32) * 32
    ids = torch.tensor([i + [pad] * (width - len(i)) for i, _ in rows])
    labels = torch.tensor([la + [-100] * (width - len(la)) for _, la in rows])
    return Batch(ids, labels)


@torch.no_grad()
def measure(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, n: int = 48) -> dict:
    """Greedy figures on validation tasks where every detail was asked for.

    `answers_right`: answers equal to the demonstration's token by token; `messages_right`: all
    agent messages but the questions' wording, i.e. the notes of what was heard.
    """
    rng = random.Random("validation")
    rows: list[tuple[list[int], list[int]]] = []
    while len(rows) < n:
        spec = draw_spec(rng.choice(families()), rng)
        if split_of(spec) == "validation":
            rows.append(encode(tokenizer, dialogue(spec, CAREFUL, rng)))
    batch = _pad(rows, tokenizer.pad_token_id)
    model.eval()
    best = model(batch.ids[:, :-1].to(model.device)).logits.argmax(-1).cpu()
    right = best == batch.labels[:, 1:]
    answers, notes = [], []
    marks = tokenizer.convert_tokens_to_ids(["WANT", "Noted"])
    for ids, ok, labels in zip(batch.ids, right, batch.labels[:, 1:], strict=True):
        trained = labels != -100
        answer = int((ids == marks[0]).nonzero()[0]) + 3
        answers.append(bool((ok | ~trained)[answer:].all()))
        for note in (ids == marks[1]).nonzero()[:, 0].tolist():
            end = note + int((ids[note:] == tokenizer.convert_tokens_to_ids(".")).nonzero()[0])
            notes.append(bool(ok[note : end - 1].all()))
    return {
        "answers_right": sum(answers) / len(answers),
        "notes_right": sum(notes) / max(1, len(notes)),
    }


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
