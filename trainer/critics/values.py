"""The critic with a value head, the paper's ablation: a number after each turn, no log-ratio.

The head reads the last token of a turn, which has read the turn. The sum over an episode's turns is
trained on the same pairs of episodes as the other critic, with hidden information. A candidate's
score is the value after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from sweet.types import Episode, PreferencePair, TaskRow
from trainer.candidates import Candidate
from trainer.encoding import turn_map
from trainer.fit import FitSettings, Report
from trainer.learner import Learner
from trainer.losses import Metrics, value_head_loss
from trainer.memory import Passes
from trainer.packing import padded
from trainer.whole import (
    candidate_tree,
    episode_ends,
    fit_sides,
    parts,
    read_episode,
    read_pairs,
)


@dataclass(frozen=True, slots=True)
class ValueCritic:
    """What a turn was worth: the value head's output after it. The learner must have a head."""

    learner: Learner
    style: str
    beta: float = 1.0

    def fit(
        self,
        pairs: Sequence[PreferencePair],
        rows: Mapping[str, TaskRow],
        settings: FitSettings,
        *,
        checkpoint: Path,
        report: Report,
    ) -> list[dict[str, float]]:
        """Each epoch's mean numbers, after learning from pairs of episodes.

        Raises: TrainingError, also where hidden information is missing or no pair fits the model.
        """
        sides = read_pairs(self.learner, self.style, pairs, rows, reads_hidden=True)

        def loss_of(numbers: Sequence[int]) -> tuple[torch.Tensor, Metrics]:
            trunks = [*(sides[i].chosen for i in numbers), *(sides[i].rejected for i in numbers)]
            values = token_values(self.learner, [trunk.ids for trunk in trunks])
            turns = turn_map(trunks).to(values.device)
            n = len(numbers)
            return value_head_loss(values[:n], turns[:n], values[n:], turns[n:], beta=self.beta)

        return fit_sides(
            self.learner, sides, loss_of, settings, checkpoint=checkpoint, report=report
        )

    def scores(
        self, row: TaskRow, episode: Episode, candidates: Sequence[Sequence[Candidate]]
    ) -> list[list[float]] | None:
        """The value after each candidate of each turn; None where the episode is too long."""
        trunk = read_episode(self.learner, self.style, row, episode, reads_hidden=True)
        if trunk is None:
            return None
        tree = candidate_tree(self.learner, trunk, candidates)
        if tree is None:
            return None
        assert self.learner.head is not None
        with torch.no_grad():
            ends = episode_ends(self.learner, tree)
            values = iter([float(self.learner.head(end.float())) for end in ends])
        return [[next(values) for _ in turn] for turn in candidates]

    def advantages(
        self, rows: Mapping[str, TaskRow], episodes: Sequence[Episode]
    ) -> list[dict[int, float] | None]:
        """The value after each logged turn of each episode; None for one too long to read."""
        trunks = [
            read_episode(self.learner, self.style, rows[e.task_id], e, reads_hidden=True)
            for e in episodes
        ]
        read = [trunk for trunk in trunks if trunk]
        ends = [[end - 1 for _, end in trunk.spans] for trunk in read]
        values = iter(self._values_at([trunk.ids for trunk in read], ends))
        return [
            {turn.index: v for turn, v in zip(episode.turns, next(values), strict=True)}
            if trunk
            else None
            for episode, trunk in zip(episodes, trunks, strict=True)
        ]

    def _values_at(
        self, rows: Sequence[Sequence[int]], columns: Sequence[Sequence[int]]
    ) -> list[list[float]]:
        """The values at some columns of each row. Raises: TrainingError without enough memory."""
        found: dict[int, list[float]] = {}

        def read(pass_tokens: int) -> None:
            left = [i for i in range(len(rows)) if i not in found]
            for part in parts([len(rows[i]) for i in left], pass_tokens):
                some = [left[i] for i in part]
                values = token_values(self.learner, [rows[i] for i in some])
                found.update({i: values[n, columns[i]].tolist() for n, i in enumerate(some)})

        with torch.no_grad():
            Passes(self.learner.pass_tokens).run(read)
        return [found[i] for i in range(len(rows))]


def token_values(learner: Learner, rows: Sequence[Sequence[int]]) -> torch.Tensor:
    """The head's output at every token, (B, T) float32, padded on the right."""
    assert learner.head is not None
    ids, _ = padded(rows, learner.model.device)
    # As in sequence_logps: what is padded on the right is seen by nobody.
    out = learner.model(ids, use_cache=False, output_hidden_states=True, logits_to_keep=1)
    return learner.head(out.hidden_states[-1].float()).squeeze(-1)
