"""Stage 2: the policy learns from ranked candidates, one turn at a time, an episode in one pass.

Departure from the published code: the NLL term is on the chosen turn's own tokens alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch.nn.utils.rnn import pad_sequence

from sweet.errors import TrainingError
from sweet.types import Episode, TaskRow
from trainer.candidates import Candidate
from trainer.encoding import candidate_ids
from trainer.fit import FitSettings, Report, fit
from trainer.learner import Learner
from trainer.losses import Tokens, dpo_loss
from trainer.tree import EpisodeTree, tree_backward
from trainer.whole import episode_logps, read_episode

TurnPairs = Sequence[Sequence[tuple[Candidate, Candidate]]]
"""For each turn of an episode, its (chosen, rejected) candidates."""


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """How the policy's loss is made; see docs/sweet-rl.md for the sources."""

    beta: float = 0.1
    nll_coefficient: float = 0.01


@dataclass(frozen=True, slots=True)
class PairTree:
    """An episode with the candidates of its pairs as branches; a pair is two branch numbers.

    `weight` is how much each of its pairs counts.
    """

    tree: EpisodeTree
    pairs: tuple[tuple[int, int], ...]
    weight: float = 1.0


def pair_tree(
    learner: Learner,
    style: str,
    row: TaskRow,
    episode: Episode,
    turns: TurnPairs,
    weight: float = 1.0,
) -> PairTree | None:
    """The tree of an episode; None where it has no pair or is too long for the model."""
    trunk = read_episode(learner, style, row, episode, reads_hidden=False)
    if trunk is None:
        return None
    numbers: dict[tuple[int, Candidate], int] = {}
    pairs = []
    for (start, _), turn in zip(trunk.spans, turns, strict=True):
        for sides in turn:
            chosen, rejected = (numbers.setdefault((start, side), len(numbers)) for side in sides)
            pairs.append((chosen, rejected))
    branches = [
        (start, candidate_ids(learner.tokenizer, trunk, c.said, ended=c.is_ended))
        for start, c in numbers
    ]
    if any(start + len(ids) > learner.context_tokens for start, ids in branches):
        return None
    return PairTree(EpisodeTree(trunk.ids, branches), tuple(pairs), weight) if pairs else None


def fit_policy(
    learner: Learner,
    trees: Sequence[PairTree],
    loss_settings: PolicySettings,
    settings: FitSettings,
    *,
    checkpoint: Path,
    report: Report,
) -> list[dict[str, float]]:
    """Each epoch's mean numbers, after DPO on the pairs of `trees`.

    An update takes whole episodes, until it has `settings.batch` pairs or more.
    Raises: TrainingError, also where there is no pair.
    """
    if not trees:
        raise TrainingError(
            "No turn has two candidates with different scores, so there is nothing for the policy "
            "to learn. Collect more episodes, or train the critic longer."
        )
    with torch.no_grad():
        reference = [episode_logps(learner, t.tree) for t in trees]
    owner = [number for number, t in enumerate(trees) for _ in t.pairs]
    units: list[list[int]] = [[] for _ in trees]
    for pair, number in enumerate(owner):
        units[number].append(pair)

    def backward(batch: Sequence[int], pass_tokens: int) -> dict[str, float]:
        total: Counter[str] = Counter()
        for number in dict.fromkeys(owner[pair] for pair in batch):
            turn_loss = partial(
                _turn_loss, trees[number], reference[number], loss_settings, len(batch), total
            )
            tree_backward(learner.model, trees[number].tree, turn_loss, pass_tokens=pass_tokens)
        return dict(total)

    return fit(learner, units, backward, settings, checkpoint=checkpoint, report=report)


def _turn_loss(
    example: PairTree,
    reference: Sequence[torch.Tensor],
    settings: PolicySettings,
    batch_pairs: int,
    total: Counter[str],
    group: Sequence[int],
    logps: Sequence[torch.Tensor],
) -> torch.Tensor:
    """The share that some turns of an episode have in the loss of a batch."""
    found = dict(zip(group, logps, strict=True))
    pairs = [pair for pair in example.pairs if pair[0] in found]
    sides = [
        _side([found[pair[i]] for pair in pairs], [reference[pair[i]] for pair in pairs])
        for i in (0, 1)
    ]
    beta, nll = settings.beta, settings.nll_coefficient
    loss, metrics = dpo_loss(*sides, beta=beta, nll_coefficient=nll)
    share = len(pairs) / batch_pairs
    total.update({"loss": float(loss.detach()) * share * example.weight})
    total.update({name: float(value) * share for name, value in metrics.items()})
    return loss * share * example.weight


def _side(logps: Sequence[torch.Tensor], reference: Iterable[torch.Tensor]) -> Tokens:
    turns = [torch.ones_like(one, dtype=torch.long) for one in logps]
    padded = [pad_sequence(list(rows), batch_first=True) for rows in (logps, reference, turns)]
    return Tokens(*padded)
