"""One forward pass for an episode: its trunk once, every turn's candidates branching off it.

    trunk    ─ task ─ turn 1 ─ reply ─ turn 2 ─ reply ─ turn 3 …
                     ├ candidate        ├ candidate
                     └ candidate        └ candidate

A branch is a position and the tokens that follow `trunk[:position]`. The trunk's keys and values
are computed once; branches read them and add their own, so each different token is computed once.
The first token of a branch is predicted by the trunk, the others by the branch itself; positions
go on from the branching point. Serves reference log-probabilities, the critics' scores, and the
policy's update. Works for causal language models of transformers that keep keys and values for
every token (Llama, Qwen and their like), with and without LoRA, in any attention implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

from sweet.errors import TrainingError
from trainer.packing import Branches, Packed, Row, batches, groups, padded

# Tokens in one forward pass. On CPU more saves no time and costs memory.
PASS_TOKENS = {"cpu": 1024}
OTHER_PASS_TOKENS = 16_384
# What a pass costs by itself, in tokens: padding up to that is better than another pass.
PASS_COST = {"cpu": 32}
OTHER_PASS_COST = 1024
# Tokens of a turn's branches that share a row: they read the trunk's keys and values together.
# More of them see too little of each other: that is computed, then masked.
ROW_TOKENS = 256
# The attentions that take a mask of their own for every token, which a shared row needs.
MASKED_ATTENTION = ("sdpa", "eager")

Loss = Callable[[Sequence[int], Sequence[torch.Tensor]], torch.Tensor]
"""The loss of some turns, from the indices of their branches and each one's log-probabilities."""


@dataclass(frozen=True, slots=True)
class EpisodeTree:
    """An episode's tokens and what branches off them: (position, tokens after trunk[:position]).

    Raises: TrainingError for a branch that is empty or not on the trunk.
    """

    trunk_ids: Sequence[int]
    branches: Branches

    def __post_init__(self) -> None:
        for number, (position, ids) in enumerate(self.branches):
            if not 1 <= position <= len(self.trunk_ids):
                raise TrainingError(
                    f"Branch {number} is at position {position}; it must be from 1 to the "
                    f"trunk's length, {len(self.trunk_ids)}."
                )
            if not ids:
                raise TrainingError(f"Branch {number} has no tokens; it needs at least one.")

    @property
    def tokens(self) -> int:
        """How many tokens are computed: each different one once."""
        read = max((position for position, _ in self.branches), default=0)
        return read + sum(len(ids) - 1 for _, ids in self.branches)


def tree_logps(
    model: Any, tree: EpisodeTree, *, pass_tokens: int | None = None
) -> list[torch.Tensor]:
    """The log-probability of every token of every branch: a (T,) float32 tensor a branch.

    In the graph, trunk included, unless gradients are off. `pass_tokens` bounds the tokens of one
    forward pass; by default it fits the device. Raises: TrainingError.
    """
    return _each_branch(_Trunk.branch_logps, model, tree, pass_tokens)


def tree_ends(
    model: Any, tree: EpisodeTree, *, pass_tokens: int | None = None
) -> list[torch.Tensor]:
    """The model's last hidden state at the last token of every branch: a (size,) tensor a branch.

    `pass_tokens` as for `tree_logps`. Raises: TrainingError.
    """
    return _each_branch(_Trunk.branch_ends, model, tree, pass_tokens)


def _each_branch(
    read: Callable[..., dict[int, torch.Tensor]],
    model: Any,
    tree: EpisodeTree,
    pass_tokens: int | None,
) -> list[torch.Tensor]:
    """What `read` makes of every branch, in their order, a group of them a pass."""
    if not tree.branches:
        return []
    pass_tokens = pass_tokens or default_pass_tokens(model)
    trunk = _Trunk.read(model, tree)
    found: dict[int, torch.Tensor] = {}
    for group in groups(tree.branches, pass_tokens, _row_tokens(model, pass_tokens)):
        found |= read(trunk, model, tree, group, pass_tokens)
    return [found[i] for i in range(len(tree.branches))]


def tree_backward(
    model: Any, tree: EpisodeTree, loss: Loss, *, pass_tokens: int | None = None
) -> float:
    """The sum of `loss` over the episode's turns; its gradient is added to the parameters'.

    `loss` is called with all branches of one or more turns (positions) at a time, so that only
    their activations are held; what flows into the trunk is collected and sent through it once.
    Raises: TrainingError.
    """
    if not tree.branches:
        return 0.0
    pass_tokens = pass_tokens or default_pass_tokens(model)
    grown = _Trunk.read(model, tree)
    cut = grown.cut()
    total = 0.0
    for group in groups(tree.branches, pass_tokens, _row_tokens(model, pass_tokens)):
        logps = cut.branch_logps(model, tree, group, pass_tokens)
        part = loss(list(logps), list(logps.values()))
        part.backward()
        total += float(part.detach())
    pairs = zip(grown.tensors(), cut.tensors(), strict=True)
    reached = [(whole, leaf.grad) for whole, leaf in pairs if leaf.grad is not None]
    torch.autograd.backward([w for w, _ in reached], [g for _, g in reached])
    return total


def sequence_logps(model: Any, rows: Sequence[Sequence[int]]) -> torch.Tensor:
    """Token log-probabilities of whole sequences, (B, T) float32, padded on the right.

    Column t is the token t given all before it; column 0, which nothing predicts, is 0, and so is
    padding. Raises: TrainingError for an empty batch or row.
    """
    if not rows or not all(rows):
        raise TrainingError("Log-probabilities need at least one sequence, and no empty one.")
    ids, mask = padded(rows, model.device)
    # Causal attention: what is padded on the right is seen by nobody, so no mask is needed.
    logits = model(ids, use_cache=False).logits[:, :-1]
    return F.pad(picked_logps(logits, ids[:, 1:]), (1, 0)).masked_fill(~mask, 0.0)


@dataclass(frozen=True, slots=True)
class _Trunk:
    """What branches need of a trunk.

    Each layer's keys and values (1, heads, T, size), and the log-probabilities (P, V) of what may
    follow each of P branching points.
    """

    layers: list[tuple[torch.Tensor, torch.Tensor]]
    next_logps: torch.Tensor
    row_of: dict[int, int]

    @classmethod
    def read(cls, model: Any, tree: EpisodeTree) -> _Trunk:
        """The trunk up to its last branching point."""
        _check(model, tree)
        positions = sorted({position for position, _ in tree.branches})
        ids = torch.tensor([list(tree.trunk_ids[: positions[-1]])], device=model.device)
        cache = DynamicCache()  # without a config: no layer forgets what left its window
        keep = torch.tensor(positions, device=model.device) - 1
        logits = model(ids, past_key_values=cache, use_cache=True, logits_to_keep=keep).logits[0]
        layers = [(layer.keys, layer.values) for layer in cache.layers]
        rows = {position: row for row, position in enumerate(positions)}
        return cls(layers, logits.float().log_softmax(-1), rows)

    def cut(self) -> _Trunk:
        """The same values as leaves of a graph of their own."""
        leaves = [t.detach().requires_grad_(t.requires_grad) for t in self.tensors()]
        layers = list(zip(leaves[1::2], leaves[2::2], strict=True))
        return _Trunk(layers, leaves[0], self.row_of)

    def tensors(self) -> list[torch.Tensor]:
        """Everything a gradient can come back through."""
        return [self.next_logps, *(tensor for layer in self.layers for tensor in layer)]

    def branch_logps(
        self, model: Any, tree: EpisodeTree, group: Sequence[Row], pass_tokens: int
    ) -> dict[int, torch.Tensor]:
        """Log-probabilities (T,) of the branches in `group`, by index."""
        found: dict[int, torch.Tensor] = {}
        for batch in batches(group, pass_tokens, _pass_cost(model)):
            packed = Packed.of(tree.branches, batch, model.device, ends=False)
            firsts = [tree.branches[i] for i in packed.places]
            rows = [self.row_of[position] for position, _ in firsts]
            first = self.next_logps[rows, [ids[0] for _, ids in firsts]].unbind()
            if not packed.ids.numel():
                found |= {i: f.unsqueeze(0) for i, f in zip(packed.places, first, strict=True)}
                continue
            rest = picked_logps(self._continue(model, packed).logits, packed.targets)
            found |= {
                i: torch.cat([f.unsqueeze(0), rest[place]])
                for (i, place), f in zip(packed.places.items(), first, strict=True)
            }
        return found

    def branch_ends(
        self, model: Any, tree: EpisodeTree, group: Sequence[Row], pass_tokens: int
    ) -> dict[int, torch.Tensor]:
        """The last hidden state at the end of the branches in `group`, by index."""
        found: dict[int, torch.Tensor] = {}
        for batch in batches(group, pass_tokens, _pass_cost(model)):
            packed = Packed.of(tree.branches, batch, model.device, ends=True)
            options = {"output_hidden_states": True, "logits_to_keep": 1}
            hidden = self._continue(model, packed, **options).hidden_states[-1]
            found |= {i: hidden[place][-1] for i, place in packed.places.items()}
        return found

    def _continue(self, model: Any, packed: Packed, **options: Any) -> Any:
        """What the model gives for rows that go on from their own branching points."""
        past = int(packed.starts.max())
        cache = Cache(layers=[_Shared(k[:, :, :past], v[:, :, :past]) for k, v in self.layers])
        return model(
            packed.ids,
            attention_mask=packed.mask(past, self.layers[0][0].dtype),
            position_ids=packed.positions,
            past_key_values=cache,
            use_cache=True,
            **options,
        )


class _Shared(DynamicLayer):
    """A cache layer whose one row of keys and values is read by every row of a batch.

    It is never written to, so one trunk serves many passes, and the graph stays whole.
    """

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        super().__init__()
        self.lazy_initialization(keys, values)
        self.keys, self.values = keys, values

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The trunk's keys and values with the branches' own after them, (B, heads, T, size)."""
        rows = len(key_states)
        keys, values = (t.expand(rows, -1, -1, -1) for t in (self.keys, self.values))
        return torch.cat([keys, key_states], -2), torch.cat([values, value_states], -2)


def picked_logps(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """The log-softmax of logits (B, T, V) at ids (B, T), in float32 whatever the dtype."""
    losses = F.cross_entropy(logits.float().flatten(0, 1), ids.flatten(), reduction="none")
    return -losses.view_as(ids)


def default_pass_tokens(model: Any) -> int:
    """How many tokens a forward pass of a model may have, which follows from its device."""
    return PASS_TOKENS.get(model.device.type, OTHER_PASS_TOKENS)


def _pass_cost(model: Any) -> int:
    return PASS_COST.get(model.device.type, OTHER_PASS_COST)


def _row_tokens(model: Any, pass_tokens: int) -> int:
    """How long a shared row may be; 0 where the model's attention knows no mask for one."""
    attention = model.config.get_text_config()._attn_implementation
    return min(ROW_TOKENS, pass_tokens) if attention in MASKED_ATTENTION else 0


def _check(model: Any, tree: EpisodeTree) -> None:
    """Nothing, if the model's keys and values can be shared. Raises: TrainingError."""
    if model.training and getattr(model, "is_gradient_checkpointing", False):
        raise TrainingError(
            "Gradient checkpointing throws keys and values away, which the branches of an episode "
            "share. Turn it off: model.gradient_checkpointing_disable()."
        )
    config = model.config.get_text_config()
    layer_types = getattr(config, "layer_types", None)
    if strange := set(layer_types or []) - {"full_attention", "sliding_attention"}:
        raise TrainingError(
            f"{config.model_type} has layers of type {', '.join(sorted(strange))}, which keep no "
            "keys and values for every token. Choose a model with attention in every layer."
        )
    slides = layer_types is None or "sliding_attention" in layer_types
    window = getattr(config, "sliding_window", None) if slides else None
    longest = len(tree.trunk_ids) + max(len(ids) for _, ids in tree.branches)
    if window and longest > window:
        raise TrainingError(
            f"The episode has up to {longest} tokens, but {config.model_type} looks back only "
            f"{window}. Choose a model without a sliding window, or shorter episodes."
        )
