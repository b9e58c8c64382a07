"""Next tokens from logits, each row with its own settings and its own dice."""

from __future__ import annotations

from typing import Any

from sweet.engines.generation import Row
from sweet.errors import PolicyError

Tensor = Any
NUCLEUS = 64  # tokens looked at first; sorting the whole vocabulary takes a sixth of a step


def draw(logits: Tensor, strands: list[list[Row]]) -> None:
    """Push each row's next token. `logits` (strands, vocabulary): the rows of one share them.

    A token is found by one uniform number in the cumulated probabilities, in the vocabulary's
    order: rounding differences between batches can only matter at a boundary.
    """
    if logits.device.type == "mps":  # has no float64
        logits = logits.cpu()
    logits = logits.double()
    best, greedy = logits.max(dim=-1)
    broken, chosen = (~best.isfinite()).tolist(), greedy.tolist()
    rows = [(at, row) for at, strand in enumerate(strands) for row in strand]
    sampled = [(at, row) for at, row in rows if row.request.sampling.temperature > 0]
    tokens = _sample(logits - best.unsqueeze(1), sampled) if sampled else {}
    for at, row in rows:
        if broken[at]:
            row.fail(PolicyError("The model gave no usable probabilities (NaN or infinity)."))
        else:
            row.push(tokens.get(row, chosen[at]))


def _sample(logits: Tensor, rows: list[tuple[int, Row]]) -> dict[Row, int]:
    """Tokens for rows of temperature above 0, each with its place in `logits` (largest: 0)."""
    asked = [(at, row.request.sampling) for at, row in rows]
    kinds = {
        kind: n
        for n, kind in enumerate(dict.fromkeys((at, s.temperature, s.top_p) for at, s in asked))
    }
    places, temperatures, top_ps = (list(column) for column in zip(*kinds, strict=True))
    weights = (logits[places] / logits.new_tensor(temperatures).unsqueeze(1)).exp()
    if min(top_ps) < 1:
        weights = _nucleus(weights, logits.new_tensor(top_ps).unsqueeze(1))
    cumulated = weights.cumsum(dim=-1)[[kinds[at, s.temperature, s.top_p] for at, s in asked]]
    dice = logits.new_tensor([row.uniform() for _, row in rows]).unsqueeze(1)
    passed = (cumulated <= dice * cumulated[:, -1:]).sum(dim=-1)
    tokens = passed.clamp(max=logits.shape[1] - 1).tolist()
    return {row: token for (_, row), token in zip(rows, tokens, strict=True)}


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
