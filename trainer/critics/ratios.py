"""Stage 1: the critic reads hidden information and learns from whole episodes which turns count.

Departures from the published code: an episode's score is the sum of its turns' means, the header is
outside a turn and its end token inside, and the reference reads hidden information as well. What
the code does instead are the options `credit` and `reference_reads_hidden`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from sweet.types import Episode, PreferencePair, TaskRow
from trainer.candidates import Candidate
from trainer.encoding import Trunk
from trainer.fit import FitSettings, Report
from trainer.learner import Learner
from trainer.losses import Credit, critic_loss
from trainer.whole import (
    candidate_tree,
    episode_logps,
    fit_pairs,
    read_episode,
    read_pairs,
    token_logps,
)


@dataclass(frozen=True, slots=True)
class CriticSettings:
    """What the critic reads and how its loss is made; see docs/sweet-rl.md for the sources."""

    beta: float = 1.0
    nll_coefficient: float = 0.01
    credit: Credit = "turn_mean"
    reads_hidden: bool = True
    reference_reads_hidden: bool = True


@dataclass(frozen=True, slots=True)
class Critic:
    """What a turn was worth: the mean log-ratio of its tokens to the critic's starting point.

    Their sum where the settings' `credit` is "turn_sum".
    """

    learner: Learner
    style: str
    settings: CriticSettings

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
        reads_hidden = self.settings.reads_hidden
        sides = read_pairs(self.learner, self.style, pairs, rows, reads_hidden=reads_hidden)
        loss = partial(
            critic_loss,
            beta=self.settings.beta,
            nll_coefficient=self.settings.nll_coefficient,
            credit=self.settings.credit,
        )
        return fit_pairs(self.learner, sides, loss, settings, checkpoint=checkpoint, report=report)

    def scores(
        self, row: TaskRow, episode: Episode, candidates: Sequence[Sequence[Candidate]]
    ) -> list[list[float]] | None:
        """The score of each candidate of each turn; None where the episode is too long to read."""
        trained = self._logps(row, episode, candidates, at_start=False)
        start = self._logps(row, episode, candidates, at_start=True)
        if trained is None or start is None:
            return None
        values = iter(self._turn(t - s) for t, s in zip(trained, start, strict=True))
        return [[next(values) for _ in turn] for turn in candidates]

    def advantages(
        self, rows: Mapping[str, TaskRow], episodes: Sequence[Episode]
    ) -> list[dict[int, float] | None]:
        """The advantage of each logged turn of each episode; None for one too long to read."""
        after = [self._read(rows[e.task_id], e, at_start=False) for e in episodes]
        before = [self._read(rows[e.task_id], e, at_start=True) for e in episodes]
        fits = [i for i in range(len(episodes)) if after[i] and before[i]]
        trained = token_logps(self.learner, [t for i in fits if (t := after[i])])
        with self.learner.at_start():
            start = token_logps(self.learner, [t for i in fits if (t := before[i])])
        found: list[dict[int, float] | None] = [None] * len(episodes)
        for i, new, old in zip(fits, trained, start, strict=True):
            spans = [(t.spans if (t := side[i]) else ()) for side in (after, before)]
            found[i] = {
                turn.index: self._turn(new[slice(*a)] - old[slice(*b)])
                for turn, a, b in zip(episodes[i].turns, *spans, strict=True)
            }
        return found

    def _turn(self, ratios: torch.Tensor) -> float:
        """What a turn's log-ratios come to."""
        return float(ratios.sum() if self.settings.credit == "turn_sum" else ratios.mean())

    def _logps(
        self,
        row: TaskRow,
        episode: Episode,
        candidates: Sequence[Sequence[Candidate]],
        *,
        at_start: bool,
    ) -> list[torch.Tensor] | None:
        """Token log-probabilities of every candidate, before (`at_start`) or after training."""
        trunk = self._read(row, episode, at_start=at_start)
        if trunk is None:
            return None
        tree = candidate_tree(self.learner, trunk, candidates)
        if tree is None:
            return None
        with torch.no_grad():
            if not at_start:
                return episode_logps(self.learner, tree)
            with self.learner.at_start():
                return episode_logps(self.learner, tree)

    def _read(self, row: TaskRow, episode: Episode, *, at_start: bool) -> Trunk | None:
        """The episode as the critic, or its reference, reads it."""
        settings = self.settings
        reads = settings.reads_hidden and (not at_start or settings.reference_reads_hidden)
        return read_episode(self.learner, self.style, row, episode, reads_hidden=reads)
