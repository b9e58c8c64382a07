"""What the model that draws learns from, and how far it is.

A page is mostly a copy of the one before: what is changed, and the note that says so, weighs more
than what stays. What nobody could know weighs little, or nothing.
"""

from __future__ import annotations

import random
from difflib import SequenceMatcher

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from sweet.tasks.mini_drawing import draw_page
from sweet.tasks.mini_frontend import split_of
from sweet.tasks.mini_pages import HEAD, render
from sweet.tasks.mini_topics import topics
from sweet.types import Message
from trainer.pretraining.page_demonstrations import (
    HASTY,
    MEDIUM,
    PATIENT,
    Basis,
    PageTask,
    demonstrate,
    random_task,
)
from trainer.pretraining.rows import Row, encode, pad_rows

SETTINGS = {
    "context_tokens": 3072, "dialogues": 8, "steps": 4000, "lr_matrices": 0.01, "lr_rest": 1.5e-3,
    "transfer": True,
}  # fmt: skip

KEPT, CHANGED, GUESSED = 1.0, 3.0, 1.0  # weights in the loss
HEARD = 0.3  # the person's words, where the page that is wanted was shown
LEARN = ((PATIENT, 0.75), (MEDIUM, 0.15), (HASTY, 0.10))
SHIP = ((PATIENT, 0.15), (MEDIUM, 0.35), (HASTY, 0.50))
"""How the demonstrations' agents work: to learn from, and at last as the shipped one should."""
COPY = ((PATIENT, 1.0),)
"""Beside the last: notes and pages alone are learned from them, and not when to answer."""
MIXES = {"learn": LEARN, "ship": SHIP, "copy": COPY}


def row(
    tokenizer: PreTrainedTokenizerFast, phase: str, with_reference: float, rng: random.Random
) -> Row:
    """One dialogue. With the reference in front the person's words are trained too."""
    task, mix = random_task(rng), MIXES[phase]
    (style,) = rng.choices([s for s, _ in mix], [w for _, w in mix])
    made = demonstrate(task, style, rng)
    shown = rng.random() < with_reference
    before = [Message("reference", render(task.page))] if shown else []
    ids, trained = encode(tokenizer, [*before, *made.messages])
    weights = _weights(tokenizer, ids, trained, made.bases, decides=phase != "copy")
    if shown:
        start = trained.index(True)
        weights[start:] = [w or HEARD * (not t) for w, t in zip(weights, trained, strict=True)][
            start:
        ]
    most = tokenizer.model_max_length
    return ids[:most], weights[:most]


def _weights(
    tokenizer: PreTrainedTokenizerFast,
    ids: list[int],
    trained: list[bool],
    bases: list[Basis],
    *,
    decides: bool,
) -> list[float]:
    """Each token's weight. `decides`: whether it is learned when to answer."""
    page_token = _page_token(tokenizer)
    mark = tokenizer.convert_tokens_to_ids("WANT")
    weights, before = [0.0] * len(ids), list[int]()
    for (start, end), basis in zip(_spans(trained), bases, strict=True):
        at = ids.index(page_token, start)
        answer = ids.index(mark, start, at) - 1 if mark in ids[start:at] else at
        weights[start:answer] = [CHANGED * (basis != "luck")] * (answer - start)
        weights[answer : at + 1] = [KEPT * decides] * (at + 1 - answer)
        page = ids[at + 1 : end]
        weights[at + 1 : end] = _page_weights(page, before, basis)
        before = page
    return weights


def _page_weights(page: list[int], before: list[int], basis: Basis) -> list[float]:
    """Weights of a page's tokens, by what stood on the page before."""
    if basis == "luck":
        return [0.0] * len(page)
    weights = [GUESSED if basis == "guess" else CHANGED] * len(page)
    for match in SequenceMatcher(None, before, page, autojunk=False).get_matching_blocks():
        weights[match.b : match.b + match.size] = [KEPT] * match.size
    return weights


def _spans(trained: list[bool]) -> list[tuple[int, int]]:
    """Where each message of the agent begins and ends."""
    edges = [i for i, (a, b) in enumerate(zip([False, *trained], [*trained, False], strict=True))
             if a != b]  # fmt: skip
    return list(zip(edges[::2], edges[1::2], strict=True))


def _page_token(tokenizer: PreTrainedTokenizerFast) -> int:
    """The token that a page begins with, after what the agent says."""
    found: int = tokenizer.convert_tokens_to_ids(f'\n{HEAD}<body class="')
    return found


@torch.no_grad()
def figures(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, n: int = 32) -> dict:
    """Greedy figures on validation tasks with a patient agent, over pages that rest on no guess.

    `notes_right`: notes of what was heard, and `pages_right`: pages, right token by token.
    """
    rng = random.Random("validation")
    rows: list[Row] = []
    bases: list[list[Basis]] = []
    while len(rows) < n:
        topic = rng.choice(topics())
        page = draw_page(topic, rng)
        if split_of(page) == "validation":
            made = demonstrate(PageTask(topic, page), PATIENT, rng)
            ids, trained = encode(tokenizer, made.messages)
            rows.append((ids, [float(t) for t in trained]))
            bases.append(made.bases)
    model.eval()
    notes: list[bool] = []
    pages: list[bool] = []
    for at in range(0, n, 8):
        batch = pad_rows(rows[at : at + 8], tokenizer.pad_token_id)
        best = model(batch.ids[:, :-1].to(model.device)).logits.argmax(-1).cpu()
        right = torch.cat([torch.ones(len(best), 1).bool(), best == batch.ids[:, 1:]], 1)
        for number, some in enumerate(bases[at : at + 8]):
            spans = _spans([w > 0 for w in batch.weights[number].tolist()])
            for (start, end), basis in zip(spans, some, strict=True):
                if basis == "told":
                    begin = batch.ids[number].tolist().index(_page_token(tokenizer), start)
                    notes.append(bool(right[number, start:begin].all()))
                    pages.append(bool(right[number, begin + 1 : end].all()))
    return {"notes_right": sum(notes) / len(notes), "pages_right": sum(pages) / len(pages)}
