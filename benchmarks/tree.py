"""An episode's candidates: one trunk with branches, against one padded batch a turn.

Scoring: 16 candidates a turn, without gradients. Training: 8, forward and backward, each side in
its lean form (backward turn by turn). Both sides must give the same log-probabilities. Seconds
are CPU seconds of one thread: other work on the machine disturbs them less.
"""

from __future__ import annotations

import ctypes
import gc
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.comparison import Comparison
from trainer.packing import padded
from trainer.tree import EpisodeTree, picked_logps, tree_backward, tree_logps

SECONDS = 5.0  # of the other side at least, a figure
CANDIDATES = {"scoring": 16, "training": 8}
VOCABULARY = 2048
TOLERANCE = 1e-4  # of a log-probability


@dataclass(frozen=True, slots=True)
class Shape:
    """An episode in tokens: before the first turn, of a message (on average), of a reply."""

    name: str
    turns: int
    prompt: int
    message: int
    reply: int


SHAPES = (
    Shape("6 short turns", 6, 40, 14, 24),
    Shape("7 turns of 50 tokens after a system prompt of 300", 7, 320, 50, 50),
    Shape("10 turns of 120 tokens", 10, 220, 120, 120),
)


def run() -> list[Comparison]:
    """Every shape, scoring and training: candidate tokens a second, and peak memory."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model = _model()
        warm_up = episode(SHAPES[0], 2)
        for side in (_shared_trunk, separate_passes):
            side(model, warm_up, True)
        return [
            comparison
            for shape in SHAPES
            for mode in CANDIDATES
            for comparison in _compare(model, shape, mode)
        ]
    finally:
        torch.set_num_threads(threads)


def _model() -> Any:
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=256,
            intermediate_size=704,
            num_hidden_layers=6,
            num_attention_heads=8,
            num_key_value_heads=8,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
        )
    )


def episode(shape: Shape, candidates: int) -> EpisodeTree:
    """A random episode of that shape; candidates are up to a quarter longer or shorter."""
    rng = random.Random(0)

    def ids(length: float) -> list[int]:
        return [rng.randrange(VOCABULARY) for _ in range(round(length))]

    trunk, branches = ids(shape.prompt), []
    for _ in range(shape.turns):
        lengths = [shape.message * rng.uniform(0.75, 1.25) for _ in range(candidates)]
        branches += [(len(trunk), ids(length)) for length in lengths]
        trunk += ids(shape.message + shape.reply)
    return EpisodeTree(trunk, branches)


def separate_passes(model: Any, tree: EpisodeTree, train: bool) -> list[torch.Tensor]:
    """The other way: a turn's candidates as one padded batch, each row with the whole prefix."""
    found: list[torch.Tensor] = []
    for at, turn in groupby(tree.branches, key=lambda branch: branch[0]):
        candidates = [ids for _, ids in turn]
        ids, _ = padded([[*tree.trunk_ids[:at], *c] for c in candidates], model.device)
        keep = torch.arange(at - 1, ids.shape[1] - 1)
        logits = model(ids, use_cache=False, logits_to_keep=keep).logits
        rows = zip(picked_logps(logits, ids[:, at:]), candidates, strict=True)
        logps = [row[: len(c)] for row, c in rows]
        if train:
            _loss(range(len(logps)), logps).backward()
        found += [row.detach() for row in logps]
    return found


def _shared_trunk(model: Any, tree: EpisodeTree, train: bool) -> list[torch.Tensor]:
    if not train:
        return tree_logps(model, tree)
    found: dict[int, torch.Tensor] = {}

    def loss(indices: Sequence[int], logps: Sequence[torch.Tensor]) -> torch.Tensor:
        found.update({i: row.detach() for i, row in zip(indices, logps, strict=True)})
        return _loss(indices, logps)

    tree_backward(model, tree, loss)
    return [found[i] for i in range(len(tree.branches))]


def _loss(indices: Sequence[int], logps: Sequence[torch.Tensor]) -> torch.Tensor:
    signed = [row.sum() * (-1) ** i for i, row in zip(indices, logps, strict=True)]
    return torch.stack(signed).sum()


def _compare(model: Any, shape: Shape, mode: str) -> list[Comparison]:
    tree, train = episode(shape, CANDIDATES[mode]), mode == "training"
    sides: dict[str, Callable[[], list[torch.Tensor]]] = {
        "ours": lambda: _shared_trunk(model, tree, train),
        "theirs": lambda: separate_passes(model, tree, train),
    }
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    peaks: dict[str, float | None] = {}
    results: dict[str, list[torch.Tensor]] = {}
    with torch.set_grad_enabled(train):
        while sum(seconds["theirs"]) < SECONDS:  # in turns: both sides meet the same machine
            for side, work in sides.items():
                model.zero_grad()
                _reset_peak()
                before = _memory("VmRSS")
                start = time.process_time()
                results[side] = work()
                seconds[side].append(time.process_time() - start)
                after = _memory("VmHWM")
                peaks[side] = after - before if after is not None and before is not None else None
    difference = max(
        float((a - b).abs().max()) for a, b in zip(results["ours"], results["theirs"], strict=True)
    )
    if difference > TOLERANCE:
        raise AssertionError(f"{shape.name}, {mode}: the sides differ by {difference:.1e}")
    return _comparisons(shape, mode, tree, seconds, peaks, difference)


def _comparisons(
    shape: Shape,
    mode: str,
    tree: EpisodeTree,
    seconds: dict[str, list[float]],
    peaks: dict[str, float | None],
    difference: float,
) -> list[Comparison]:
    ours, theirs = (statistics.median(seconds[side]) for side in ("ours", "theirs"))
    scored = sum(len(ids) for _, ids in tree.branches)
    computed = sum(at + len(ids) for at, ids in tree.branches)
    conditions = (
        f"{CANDIDATES[mode]} candidates a turn; computed {tree.tokens:,} tokens against "
        f"{computed:,} ({computed / tree.tokens:.1f}x); {ours:.2f} CPU s against {theirs:.2f}; "
        f"largest difference of a log-probability {difference:.0e}; Llama of 5M parameters, "
        f"float32, one CPU thread, load {os.getloadavg()[0]:.1f}"
    )
    name = f"tree, {mode}, {shape.name}"
    found = [Comparison(f"{name}, tokens/s", scored / ours, scored / theirs, conditions)]
    if peaks["ours"] is not None and peaks["theirs"] is not None:
        note = "peak above what the process held before; less is better"
        found.append(Comparison(f"{name}, peak MB", peaks["ours"], peaks["theirs"], note))
    return found


def _reset_peak() -> None:
    """Give free memory back, and let the kernel count the peak anew; does nothing off Linux."""
    gc.collect()
    if Path("/proc/self/clear_refs").exists():
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")


def _memory(field: str) -> float | None:
    """A line of this process's memory figures in MB; None off Linux."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines[field].split()[0]) / 1024
