"""Next tokens from logits, each row with its own settings and its own dice."""

from __future__ import annotations

from typing import Any

from sweet.engines.generation import Row
from sweet.errors import PolicyError

Tensor = Any
NUCLEUS = 64  # tokens looked at first; sorting the whole vocabulary takes a sixth of a step


def draw(logits: Tensor, rows: list[Row]) -> None:
    """Push each row's next token. `logits` (rows, vocabulary).

    A token is found by one uniform number in the cumulated probabilities, in the vocabulary's
    order: rounding differences between batches can only matter at a boundary.
    """
    if logits.device.type == "mps":  # has no float64
        logits = logits.cpu()
    logits = logits.double()
    best, greedy = logits.max(dim=-1)
    broken = (~best.isfinite()).tolist()
    chosen = greedy.tolist()
    sampled = [i for i, row in enumerate(rows) if row.request.sampling.temperature > 0]
    if sampled:
        some = logits[sampled] - best[sampled].unsqueeze(1)
        tokens = _sample(some, [rows[i] for i in sampled])
        for i, token in zip(sampled, tokens, strict=True):
            chosen[i] = token
    for row, token, bad in zip(rows, chosen, broken, strict=True):
        if bad:
            row.fail(PolicyError("The model gave no usable probabilities (NaN or infinity)."))
        else:
            row.push(token)


def _sample(logits: Tensor, rows: list[Row]) -> list[int]:
    """Tokens for rows of temperature above 0. The largest logit of each row is 0."""
    settings = [row.request.sampling for row in rows]
    temperature = logits.new_tensor([s.temperature for s in settings]).unsqueeze(1)
    weights = (logits / temperature).exp()
    if any(s.top_p < 1 for s in settings):
        weights = _nucleus(weights, logits.new_tensor([s.top_p for s in settings]).unsqueeze(1))
    cumulated = weights.cumsum(dim=-1)
    dice = logits.new_tensor([row.uniform() for row in rows]).unsqueeze(1)
    passed = cumulated <= dice * cumulated[:, -1:]
    return passed.sum(dim=-1).clamp(max=logits.shape[1] - 1).tolist()


def _nucleus(weights: Tensor, top_p: Tensor) -> Tensor:
    """`weights` without the tail that comes after `top_p` of their sum. Nothing is cut at 1."""
    wanted = top_p * weights.sum(dim=-1, keepdim=True)
    ordered, reached = _largest(weights, min(NUCLEUS, weights.shape[1]))
    if not ((reached[:, -1:] >= wanted) | (top_p == 1)).all():
        ordered, reached = _largest(weights, weights.shape[1])
    kept = reached - ordered < wanted
    smallest = ordered.where(kept, ordered[:, :1]).min(dim=-1, keepdim=True).values
    smallest = smallest.where(top_p < 1, smallest.new_zeros(()))
    return weights.where(weights >= smallest, weights.new_zeros(()))


def _largest(weights: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The `n` largest of each row, the largest first, and their sums so far."""
    ordered = weights.topk(n, dim=-1).values
    return ordered, ordered.cumsum(dim=-1)
