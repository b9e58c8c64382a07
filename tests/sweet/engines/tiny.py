"""Tiny models with random weights, in the shapes that the engine must handle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GPT2Config,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MistralConfig,
    PreTrainedTokenizerFast,
)

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


def other(name: str) -> Any:
    """Sliding windows, learned positions, or no keys and values at all."""
    sizes = {"vocab_size": VOCABULARY, "initializer_range": 0.3}
    shape = {
        **sizes,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": CONTEXT,
        "sliding_window": 16,
    }
    configs: dict[str, Callable[[], Any]] = {
        "mistral": lambda: MistralConfig(**shape),
        "gemma2": lambda: Gemma2Config(**shape, head_dim=8),
        "gpt2": lambda: GPT2Config(**sizes, n_embd=32, n_layer=2, n_head=4, n_positions=CONTEXT),
        "mamba": lambda: MambaConfig(**sizes, hidden_size=32, num_hidden_layers=2, state_size=8),
    }
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(configs[name]())


def _loaded(folder: Path, text: str) -> tuple[Any, torch.Tensor]:
    network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    turns = [{"role": "user", "content": text}]
    prompt = tokenizer().apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    ids = tokenizer()(prompt, add_special_tokens=False, return_tensors="pt")["input_ids"]
    return network, ids


def generate(folder: Path, text: str, tokens: int) -> str:
    """What transformers' own greedy `generate` says."""
    network, ids = _loaded(folder, text)
    said = network.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=tokens,
        do_sample=False,
        pad_token_id=0,
    )
    return tokenizer().decode(said[0, ids.shape[1] :], skip_special_tokens=True)


@torch.inference_mode()
def next_logits(folder: Path, text: str) -> torch.Tensor:
    """What transformers says of the first token."""
    network, ids = _loaded(folder, text)
    return network(ids).logits[0, -1]


def limit_rows(engine: LocalEngine, most: int) -> None:
    """An engine whose memory takes no more than `most` rows at once."""

    def tight(rows: int) -> None:
        if rows > most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    watch_rows(engine, tight)


def watch_rows(engine: LocalEngine, see: Callable[[int], None]) -> None:
    """An engine that tells before each pass how many rows the model computes."""
    load = engine._worker._load

    def load_watched() -> Any:
        model: Any = load()
        forward = model.network.forward

        def watched(ids: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            see(len(ids))
            return forward(ids, *args, **kwargs)

        model.network.forward = watched
        return model

    engine._worker._load = load_watched


def save_adapter(folder: Path, seed: int) -> Path:
    """A LoRA adapter on `llama()` with random weights, as PEFT writes it."""
    config = LoraConfig(r=4, target_modules=["q_proj", "v_proj", "down_proj"])
    adapted = get_peft_model(llama(), config)
    torch.manual_seed(seed)
    for name, weights in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weights, std=0.3)
    adapted.save_pretrained(folder)
    return folder


def merge(model: Path, adapter: str, folder: Path) -> Path:
    """The model with an adapter's weights added to its own."""
    base = AutoModelForCausalLM.from_pretrained(model)
    return save(PeftModel.from_pretrained(base, adapter).merge_and_unload(), folder)


def say(text: str) -> list[Message]:
    """A prompt of one message."""
    return [Message("user", text)]


def ask(engine: LocalEngine, text: str, adapter: str | None = None, **settings: Any) -> Completion:
    """One completion, alone."""
    return asyncio.run(engine.complete(say(text), sampling(**settings), adapter=adapter))


async def ask_all(
    engine: LocalEngine, requests: Sequence[tuple[str, Sampling]], **kwargs: Any
) -> list[Any]:
    """Completions and exceptions of requests made at once, in their order."""
    calls = [engine.complete(say(text), s, **kwargs) for text, s in requests]
    return await asyncio.gather(*calls, return_exceptions=True)


def sampling(**settings: Any) -> Sampling:
    """Short answers unless told otherwise."""
    return Sampling(**{"max_tokens": 24, "seed": 7, **settings})
