"""Attention in blocks is torch's own attention, computed otherwise."""

import pytest
import torch
from torch.nn import functional as F

from trainer.pretraining.attention import BLOCK, causal_blocks


@pytest.mark.parametrize("length", [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_blocks_give_what_torch_gives_with_its_gradients(length):
    torch.manual_seed(length)
    q, k, v = inputs = [torch.randn(2, 3, length, 8, requires_grad=True) for _ in range(3)]
    ours, _ = causal_blocks(torch.nn.Module(), q, k, v, None, 8**-0.5)
    theirs = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
    assert torch.allclose(ours, theirs, atol=1e-5)
    weights = torch.randn_like(ours)
    gradients = [torch.autograd.grad((out * weights).sum(), inputs) for out in (ours, theirs)]
    assert all(torch.allclose(*pair, atol=1e-5) for pair in zip(*gradients, strict=True))


def test_a_mask_is_refused_and_not_ignored():
    one = torch.zeros(1, 1, 2, 4)
    with pytest.raises(ValueError, match="pad on the right"):
        causal_blocks(torch.nn.Module(), one, one, one, torch.ones(1, 1, 2, 2), 1.0)
