"""Tiny language models with random weights, of several architectures, with LoRA and without."""

from __future__ import annotations

import random
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

VOCABULARY = 61
KINDS: dict[str, tuple[Any, Any]] = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    "mistral": (MistralConfig, MistralForCausalLM),
}


def network(kind: str = "llama", *, lora: bool | str = False, seed: int = 0, **changes: Any) -> Any:
    """A model whose weights are large enough that every token matters to every later one.

    `lora` may name the one kind of layer that is adapted.
    """
    torch.manual_seed(seed)
    config, model = KINDS[kind]
    shape = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 128,
        "initializer_range": 0.3,
        "pad_token_id": 0,
    }
    made = model(config(**{**shape, **changes}))
    if lora:
        target: Any = [lora] if isinstance(lora, str) else "all-linear"
        adapter = LoraConfig(r=4, target_modules=target, init_lora_weights=False)
        made = get_peft_model(made, adapter)
    return made


def draw_ids(length: int, rng: random.Random) -> list[int]:
    """Random tokens."""
    return [rng.randrange(VOCABULARY) for _ in range(length)]
