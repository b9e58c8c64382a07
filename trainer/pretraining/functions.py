"""What the model that writes functions learns from, and how far it is.

Notes and answers weigh more than questions, and numbers that nobody told have no weight.
"""

from __future__ import annotations

import random

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from sweet.tasks.mini_backend import draw_spec, reference, split_of
from sweet.tasks.mini_families import families
from sweet.types import Message
from trainer.pretraining.demonstrations import (
    CAREFUL,
    DITHERING,
    HASTY,
    MEDIUM,
    RAMBLING,
    RASH,
    demonstrate,
    dialogue,
    random_spec,
)
from trainer.pretraining.rows import Row, encode, pad_rows

ASKING, EXACT = 1.0, 3.0  # weights in the loss
LEARN = ((CAREFUL, 0.70), (MEDIUM, 0.20), (HASTY, 0.10))
SHIP = ((CAREFUL, 0.10), (DITHERING, 0.50), (RAMBLING, 0.25), (RASH, 0.15))
"""How the demonstrations' agents ask: to learn from, and at last as the shipped one should.

That one wastes turns and runs out of them, so that there is something to learn about each."""
COPY = ((CAREFUL, 1.0),)
"""Beside the last: notes and answers alone are learned from them, so that copying stays exact while
what is asked gets worse."""
MIXES = {"learn": LEARN, "ship": SHIP, "copy": COPY}


def row(
    tokenizer: PreTrainedTokenizerFast,
    phase: str,
    with_reference: float,
    rng: random.Random,
) -> Row:
    """One dialogue. With the reference in front the person's words are trained too."""
    spec, mix = random_spec(rng), MIXES[phase]
    (style,) = rng.choices([s for s, _ in mix], [w for _, w in mix])
    made = demonstrate(spec, style, rng)
    if rng.random() >= with_reference:
        ids, trained = encode(tokenizer, made.messages)
    else:
        ids, _ = encode(tokenizer, [Message("reference", reference(spec)), *made.messages])
        start = ids.index(tokenizer.convert_tokens_to_ids("<agent>"))
        trained = [i > start for i in range(len(ids))]
    weights = _weights(tokenizer, ids, trained, 0.0 if phase == "copy" else ASKING)
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


@torch.no_grad()
def figures(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, n: int = 48) -> dict:
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
    batch = pad_rows(rows, tokenizer.pad_token_id)
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
