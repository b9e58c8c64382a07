"""Dialogues as rows of token ids with each token's weight in the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast

from sweet.types import Message

Row = tuple[list[int], list[float]]
"""Token ids of a dialogue and their weights in the loss."""


@dataclass(slots=True)
class Batch:
    """Token ids (B, T) and each token's weight in the loss (B, T), 0 where nothing is trained."""

    ids: torch.Tensor
    weights: torch.Tensor


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


def pad_rows(rows: list[Row], pad: int) -> Batch:
    """Rows padded on the right to a multiple of 32, so that few shapes occur."""
    width = -(-max(len(ids) for ids, _ in rows) // 32) * 32
    ids = torch.tensor([i + [pad] * (width - len(i)) for i, _ in rows])
    weights = torch.tensor([w + [0.0] * (width - len(w)) for _, w in rows])
    return Batch(ids, weights)
