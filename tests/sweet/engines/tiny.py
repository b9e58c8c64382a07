"""Tiny models with random weights, in the shapes that the engine must handle."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from sweet.engines.local import LocalEngine
from sweet.types import Completion, Message, Sampling

SPECIALS = ["<pad>", "<bos>", "<end>", "<system>", "<user>", "<agent>", "<ref>"]
VOCABULARY = len(SPECIALS) + 256
CONTEXT = 256
TEMPLATE = (
    "<bos>{% for m in messages %}"
    "{{ {'system': '<system>', 'user': '<user>', 'assistant': '<agent>', 'reference': '<ref>'}"
    "[m['role']] + m['content'] + '<end>' }}{% endfor %}"
    "{% if add_generation_prompt %}<agent>{% endif %}"
)


def tokenizer(template: str | None = TEMPLATE) -> PreTrainedTokenizerFast:
    """One token a byte, so that a character can take several."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {t: i for i, t in enumerate(SPECIALS + letters)}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<bos>", eos_token="<end>"
    )
    fast.add_special_tokens({"additional_special_tokens": SPECIALS[3:]})
    fast.chat_template = template
    return fast


def save(network: Any, folder: Path, template: str | None = TEMPLATE) -> Path:
    """A model folder as transformers writes it."""
    network.generation_config.eos_token_id = SPECIALS.index("<end>")
    network.save_pretrained(folder)
    tokenizer(template).save_pretrained(folder)
    return folder


def llama(seed: int = 0, **changes: Any) -> LlamaForCausalLM:
    """A Llama of some ten thousand parameters whose answers vary with what it reads."""
    torch.manual_seed(seed)
    shape = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": CONTEXT,
        "initializer_range": 0.3,
    }
    return LlamaForCausalLM(LlamaConfig(**{**shape, **changes}))


def say(text: str) -> list[Message]:
    """A prompt of one message."""
    return [Message("user", text)]


def ask(engine: LocalEngine, text: str, **settings: Any) -> Completion:
    """One completion, alone."""
    return asyncio.run(engine.complete(say(text), sampling(**settings)))


async def ask_all(
    engine: LocalEngine, requests: Sequence[tuple[str, Sampling]], **kwargs: Any
) -> list[Any]:
    """Completions and exceptions of requests made at once, in their order."""
    calls = [engine.complete(say(text), s, **kwargs) for text, s in requests]
    return await asyncio.gather(*calls, return_exceptions=True)


def sampling(**settings: Any) -> Sampling:
    """Short answers unless told otherwise."""
    return Sampling(**{"max_tokens": 24, "seed": 7, **settings})
