"""Whole dialogues in padded batches: what the critic, multi-turn DPO and fine-tuning train on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence

from sweet.errors import TrainingError
from sweet.types import Episode, Observation, PreferencePair, TaskRow, Turn
from trainer.candidates import Candidate
from trainer.encoding import (
    Trunk,
    candidate_ids,
    critic_prompt,
    encode_turns,
    policy_prompt,
    turn_map,
)
from trainer.fit import FitSettings, Report, fit
from trainer.learner import Learner
from trainer.losses import Metrics, Tokens
from trainer.memory import Passes
from trainer.pairs import hidden_of
from trainer.tree import EpisodeTree, sequence_logps, tree_ends, tree_logps

PairLoss = Callable[[Tokens, Tokens], tuple[torch.Tensor, Metrics]]


class Sides(NamedTuple):
    """The two dialogues of a pair, and how much the pair counts."""

    chosen: Trunk
    rejected: Trunk
    weight: float = 1.0


def read_turns(
    learner: Learner,
    style: str,
    row: TaskRow,
    observation: Observation,
    turns: Sequence[Turn],
    *,
    reads_hidden: bool,
) -> Trunk | None:
    """A dialogue as the critic (`reads_hidden`) or the policy reads it; None where it is too long.

    Raises: TrainingError.
    """
    if reads_hidden:
        hidden = hidden_of({row.task.id: row}, [row.task.id])[row.task.id]
        prompt = critic_prompt(row.task.kind, style, hidden)
    else:
        prompt = policy_prompt(row.task.kind, style)
    trunk = encode_turns(learner.tokenizer, observation, turns, prompt)
    return trunk if len(trunk.ids) <= learner.context_tokens else None


def read_episode(
    learner: Learner, style: str, row: TaskRow, episode: Episode, *, reads_hidden: bool
) -> Trunk | None:
    """A logged episode, read as `read_turns` does."""
    observation = Observation(row.task.kind, row.task.description, turns_left=episode.max_turns)
    return read_turns(learner, style, row, observation, episode.turns, reads_hidden=reads_hidden)


def read_pairs(
    learner: Learner,
    style: str,
    pairs: Sequence[PreferencePair],
    rows: Mapping[str, TaskRow],
    *,
    reads_hidden: bool,
) -> list[Sides]:
    """The two sides of each pair of episodes that the model can read, by `read_turns`.

    Raises: TrainingError where it can read none.
    """
    read = partial(read_turns, learner, style, reads_hidden=reads_hidden)
    both = [
        (
            read(rows[p.task_id], p.observation, p.chosen),
            read(rows[p.task_id], p.observation, p.rejected),
            p.weight,
        )
        for p in pairs
    ]
    sides = [Sides(one, other, weight) for one, other, weight in both if one and other]
    if not sides:
        raise TrainingError(too_long(len(pairs), "pairs", learner))
    return sides


def fit_pairs(
    learner: Learner,
    pairs: Sequence[Sides],
    loss: PairLoss,
    settings: FitSettings,
    *,
    checkpoint: Path,
    report: Report,
) -> list[dict[str, float]]:
    """Each epoch's mean numbers, after training on (chosen, rejected) dialogues."""
    trunks = [side for pair in pairs for side in (pair.chosen, pair.rejected)]
    reference = token_logps(learner, trunks)

    def loss_of(numbers: Sequence[int]) -> tuple[torch.Tensor, Metrics]:
        rows = [*(2 * i for i in numbers), *(2 * i + 1 for i in numbers)]
        both = _tokens(learner, [trunks[i] for i in rows], [reference[i] for i in rows])
        return loss(*_halves(both, len(numbers)))

    return fit_sides(learner, pairs, loss_of, settings, checkpoint=checkpoint, report=report)


def fit_sides(
    learner: Learner,
    pairs: Sequence[Sides],
    loss_of: Callable[[Sequence[int]], tuple[torch.Tensor, Metrics]],
    settings: FitSettings,
    *,
    checkpoint: Path,
    report: Report,
) -> list[dict[str, float]]:
    """Each epoch's mean numbers, after training on pairs; `loss_of` is told some by number."""

    def backward(batch: Sequence[int], pass_tokens: int) -> dict[str, float]:
        total: Counter[str] = Counter()
        for weight in sorted({pairs[i].weight for i in batch}):
            alike = [i for i in batch if pairs[i].weight == weight]
            lengths = [2 * max(len(pairs[i].chosen.ids), len(pairs[i].rejected.ids)) for i in alike]
            for part in parts(lengths, pass_tokens):
                value, metrics = loss_of([alike[i] for i in part])
                share = len(part) / len(batch)
                (value * share * weight).backward()
                total.update({"loss": float(value.detach()) * share * weight})
                total.update({name: float(v) * share for name, v in metrics.items()})
        return dict(total)

    units = [[i] for i in range(len(pairs))]
    return fit(learner, units, backward, settings, checkpoint=checkpoint, report=report)


def fit_rows(
    learner: Learner,
    trunks: Sequence[Trunk],
    loss: Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, Metrics]],
    settings: FitSettings,
    *,
    checkpoint: Path,
    report: Report,
) -> list[dict[str, float]]:
    """Each epoch's mean numbers, after training on dialogues one by one."""

    def backward(batch: Sequence[int], pass_tokens: int) -> dict[str, float]:
        total = 0.0
        for part in parts([len(trunks[i].ids) for i in batch], pass_tokens):
            rows = [trunks[batch[i]] for i in part]
            logps = sequence_logps(learner.model, [row.ids for row in rows])
            value, _ = loss(logps, turn_map(rows).to(logps.device))
            (value * len(part) / len(batch)).backward()
            total += float(value.detach()) * len(part) / len(batch)
        return {"loss": total}

    units = [[i] for i in range(len(trunks))]
    return fit(learner, units, backward, settings, checkpoint=checkpoint, report=report)


def candidate_tree(
    learner: Learner, trunk: Trunk, candidates: Sequence[Sequence[Candidate]]
) -> EpisodeTree | None:
    """The candidates of each turn as branches of a dialogue; None where one is too long to read."""
    branches = [
        (start, candidate_ids(learner.tokenizer, trunk, c.said, ended=c.is_ended))
        for (start, _), turn in zip(trunk.spans, candidates, strict=True)
        for c in turn
    ]
    if any(start + len(ids) > learner.context_tokens for start, ids in branches):
        return None
    return EpisodeTree(trunk.ids, branches)


def token_logps(learner: Learner, trunks: Sequence[Trunk]) -> list[torch.Tensor]:
    """Token log-probabilities (T,) of whole dialogues under the model as it is now.

    Raises: TrainingError where memory can't hold one.
    """
    found: dict[int, torch.Tensor] = {}

    def read(pass_tokens: int) -> None:
        left = [i for i in range(len(trunks)) if i not in found]
        for part in parts([len(trunks[i].ids) for i in left], pass_tokens):
            some = [left[i] for i in part]
            logps = sequence_logps(learner.model, [trunks[i].ids for i in some])
            found.update({i: row[: len(trunks[i].ids)] for i, row in zip(some, logps, strict=True)})

    with torch.no_grad():
        Passes(learner.pass_tokens).run(read)
    return [found[i] for i in range(len(trunks))]


def episode_logps(learner: Learner, tree: EpisodeTree) -> list[torch.Tensor]:
    """`tree_logps`, in smaller passes where memory runs out. Raises: TrainingError."""
    passes = Passes(learner.pass_tokens)
    return passes.run(lambda tokens: tree_logps(learner.model, tree, pass_tokens=tokens))


def episode_ends(learner: Learner, tree: EpisodeTree) -> list[torch.Tensor]:
    """`tree_ends`, in smaller passes where memory runs out. Raises: TrainingError."""
    passes = Passes(learner.pass_tokens)
    return passes.run(lambda tokens: tree_ends(learner.model, tree, pass_tokens=tokens))


def too_long(count: int, what: str, learner: Learner) -> str:
    """Why nothing is left to train on."""
    return (
        f"None of the {count} {what} fits into the model's context of {learner.context_tokens} "
        "tokens. Choose a model with a longer context, or shorter episodes."
    )


def parts(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Indices in groups of like length, each padded to at most `tokens`; at least one a group."""
    group: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        if group and lengths[index] * (len(group) + 1) > tokens:
            yield group
            group = []
        group.append(index)
    if group:
        yield group


def _tokens(learner: Learner, trunks: Sequence[Trunk], reference: Sequence[torch.Tensor]) -> Tokens:
    logps = sequence_logps(learner.model, [trunk.ids for trunk in trunks])
    turns = turn_map(trunks).to(logps.device)
    return Tokens(logps, pad_sequence(list(reference), batch_first=True), turns)


def _halves(both: Tokens, n: int) -> tuple[Tokens, Tokens]:
    """The first `n` rows and the others."""
    fields = both.logps, both.ref_logps, both.turns
    return Tokens(*(t[:n] for t in fields)), Tokens(*(t[n:] for t in fields))
