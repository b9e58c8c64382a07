"""A Hugging Face causal language model from a folder or the hub, on a device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sweet.engines.generation import OutOfMemory
from sweet.errors import PolicyError, boundary
from sweet.loading import LOADING


def load(name: str | Path, device: Any, dtype: str) -> tuple[Any, Any]:
    """Tokenizer and network. Raises: PolicyError saying what is missing and what to do."""
    with LOADING:
        return _load(name, device, dtype)


def _load(name: str | Path, device: Any, dtype: str) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    is_folder = isinstance(name, Path) or str(name).startswith(("/", ".", "~"))
    path = Path(name).expanduser()
    if is_folder and not (path / "config.json").is_file():
        what = "has no config.json" if path.is_dir() else "does not exist"
        raise PolicyError(
            f"The model folder {name} {what}; it must be a folder as transformers' "
            "save_pretrained writes it."
        )
    source = str(path) if path.is_dir() else str(name)
    (logging.disable_progress_bar if path.is_dir() else logging.enable_progress_bar)()
    kind = dtype if dtype != "auto" else ("float32" if device.type == "cpu" else "auto")
    with boundary(PolicyError, f"The model {name} could not be loaded"), out_of_memory(1):
        tokenizer = AutoTokenizer.from_pretrained(source)
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            source,
            dtype=kind if kind == "auto" else getattr(torch, kind),
            output_loading_info=True,
        )
    network, report = loaded
    with boundary(PolicyError, f"The model {name} could not be put on {device}"), out_of_memory(1):
        network = network.to(device).eval()
    if report["missing_keys"]:
        some = ", ".join(sorted(report["missing_keys"])[:3])
        raise PolicyError(
            f"The model {name} lacks {len(report['missing_keys'])} of its weights ({some}, …); "
            "fetch its files again."
        )
    return tokenizer, network


def device_name(device: str) -> str:
    """A device of torch; "auto" is a GPU where there is one."""
    import torch

    if device != "auto":
        return device
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def end_ids(network: Any, tokenizer: Any) -> frozenset[int]:
    """The tokens that end a message."""
    ids = network.generation_config.eos_token_id
    listed = ids if isinstance(ids, list) else [ids]
    return frozenset(i for i in [*listed, tokenizer.eos_token_id] if i is not None)


@contextmanager
def out_of_memory(rows: int) -> Iterator[None]:
    """Name an exhausted memory as such: the scheduler then tries fewer rows."""
    import torch

    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as e:
        if isinstance(e, RuntimeError) and "memory" not in str(e):
            raise
        raise OutOfMemory(
            f"There was not enough memory for {rows} requests at once. Choose a smaller model, "
            f"a shorter context, or fewer at a time. ({str(e).splitlines()[0]})"
        ) from e
