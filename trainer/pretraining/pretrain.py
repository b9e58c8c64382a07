"""Makes the embedded model from nothing: tokenizer, a small Llama, demonstrations, safetensors.

Departures from the usual recipe, none tried alone: dialogues are made on the fly and never repeat;
Muon for the matrices and AdamW for the rest; a long decay, since numbers are copied exactly only
at low rates; mostly careful agents, and at the end the quality that the shipped policy should have.
Notes and answers weigh more than questions, and numbers that nobody told have no weight.
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
from trainer.pretraining.attention import register
from trainer.pretraining.demonstrations import (
    CAREFUL,
    HASTY,
    MEDIUM,
    Style,
    demonstrate,
    dialogue,
    random_spec,
)
from trainer.pretraining.tokenizer import build_tokenizer

ASKING, EXACT = 1.0, 3.0  # weights in the loss
LEARN = ((CAREFUL, 0.70), (MEDIUM, 0.20), (HASTY, 0.10))
SHIP = ((CAREFUL, 0.15), (MEDIUM, 0.35), (HASTY, 0.50))
"""How the demonstrations' agents ask: to learn from, and at last as the shipped one should."""
COPY = ((CAREFUL, 1.0),)
"""Beside the last: notes and answers alone are learned from them, so that copying stays exact while
what is asked gets worse."""


@dataclass(frozen=True, slots=True)
class PretrainSettings:
    """The size of the model and of the run."""

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
    seed: int = 0
    checkpoint_every: int = 100


@dataclass(slots=True)
class Batch:
    """Token ids (B, T) and each token's weight in the loss (B, T), 0 where nothing is trained."""

    ids: torch.Tensor
    weights: torch.Tensor


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
            attn_implementation=register(),
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
    targets, weights = batch.ids[:, 1:].to(device), batch.weights[:, 1:].to(device)
    trained = weights > 0
    with torch.autocast(device.type, torch.bfloat16):
        hidden = model.model(batch.ids[:, :-1].to(device)).last_hidden_state
        logits = model.lm_head(hidden[trained]).float()
    each = F.cross_entropy(logits, targets[trained], reduction="none")
    loss = (each * weights[trained]).sum() / weights.sum()
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
        is_last = four * 4 >= settings.steps * (1 - settings.ship)
        mixes = [
            (COPY if rng.random() < settings.copying else SHIP) if is_last else LEARN
            for _ in range(4 * settings.dialogues)
        ]
        rows = [_row(tokenizer, mix, settings, rng) for mix in mixes]
        rows.sort(key=lambda row: len(row[0]))
        size = settings.dialogues
        groups = [rows[i : i + size] for i in range(0, len(rows), size)]
        rng.shuffle(groups)
        for group in groups[first % 4 if four == first // 4 else 0 :]:
            yield _pad(group, tokenizer.pad_token_id)


Row = tuple[list[int], list[float]]
"""Token ids of a dialogue and their weights in the loss."""


def _row(
    tokenizer: PreTrainedTokenizerFast,
    mix: tuple[tuple[Style, float], ...],
    settings: PretrainSettings,
    rng: random.Random,
) -> Row:
    """One dialogue. With the reference in front the person's words are trained too."""
    spec = random_spec(rng)
    (style,) = rng.choices([s for s, _ in mix], [w for _, w in mix])
    made = demonstrate(spec, style, rng)
    if rng.random() >= settings.with_reference:
        ids, trained = encode(tokenizer, made.messages)
    else:
        ids, _ = encode(tokenizer, [Message("reference", reference(spec)), *made.messages])
        start = ids.index(tokenizer.convert_tokens_to_ids("<agent>"))
        trained = [i > start for i in range(len(ids))]
    weights = _weights(tokenizer, ids, trained, 0.0 if mix is COPY else ASKING)
    for line in made.guesses:
        _leave_out(tokenizer, line, ids, weights)
    return ids, weights


def _weights(
    tokenizer: PreTrainedTokenizerFast, ids: list[int], trained: list[bool], asking: float
) -> list[float]:
    """What must be right, the notes and the answer, weighs more than how a question is put."""
    words = tokenizer.convert_ids_to_tokens(ids)
    weights, weight, answering = [], asking, False
    for word, is_trained in zip(words, trained, strict=True):
        answering = (answering or word == "WANT") and word != "<end>"
        if answering or word == "Noted":
            weight = EXACT
        elif word[0].isupper():  # the question after a note
            weight = asking
        weights.append(weight if is_trained else 0.0)
    return weights


def _leave_out(
    tokenizer: PreTrainedTokenizerFast, line: str, ids: list[int], weights: list[float]
) -> None:
    """Give the number of a guessed line no weight: there is nothing in it to learn."""
    name, _, _ = line.partition(" = ")
    whole = tokenizer(line, add_special_tokens=False)["input_ids"]
    start = len(tokenizer(f"{name} =", add_special_tokens=False)["input_ids"])
    for at in range(len(ids) - len(whole), -1, -1):
        if ids[at : at + len(whole)] == whole:
            weights[at + start : at + len(whole)] = [0.0] * (len(whole) - start)
            return


def encode(
    tokenizer: PreTrainedTokenizerFast, messages: list[Message]
) -> tuple[list[int], list[bool]]:
    """Token ids of a dialogue, and which are the agent's (its end token included)."""
    out: Any = tokenizer.apply_chat_template(
        [{"role": m.role, "content": m.content} for m in messages],
        return_dict=True,
        return_assistant_tokens_mask=True,
    )
    return out["input_ids"], [bool(m) for m in out["assistant_masks"]]


def _pad(rows: list[Row], pad: int) -> Batch:
    """Rows padded on the right to a multiple of 32, so that few shapes occur."""
    width = -(-max(len(ids) for ids, _ in rows) // 32) * 32
    ids = torch.tensor([i + [pad] * (width - len(i)) for i, _ in rows])
    weights = torch.tensor([w + [0.0] * (width - len(w)) for _, w in rows])
    return Batch(ids, weights)


@torch.no_grad()
def measure(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, n: int = 48) -> dict:
    """Greedy figures on validation tasks where every detail was asked for.

    `answers_right`: answers equal to the demonstration's token by token; `messages_right`: all
    agent messages but the questions' wording, i.e. the notes of what was heard.
    """
    rng = random.Random("validation")
    rows: list[Row] = []
    while len(rows) < n:
        spec = draw_spec(rng.choice(families()), rng)
        if split_of(spec) == "validation":
            ids, trained = encode(tokenizer, dialogue(spec, CAREFUL, rng))
            rows.append((ids, [float(t) for t in trained]))
    batch = _pad(rows, tokenizer.pad_token_id)
    model.eval()
    best = model(batch.ids[:, :-1].to(model.device)).logits.argmax(-1).cpu()
    right = best == batch.ids[:, 1:]
    answers, notes = [], []
    marks = tokenizer.convert_tokens_to_ids(["WANT", "Noted"])
    for ids, ok, weights in zip(batch.ids, right, batch.weights[:, 1:], strict=True):
        trained = weights > 0
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
