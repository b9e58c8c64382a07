"""What SWEET-RL is compared with: rejection fine-tuning and multi-turn DPO, on whole episodes.

Our own loop rather than TRL's trainers: docs/decisions.md says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from sweet.errors import TrainingError
from sweet.types import Episode, PreferencePair, TaskKind, TaskRow
from trainer.fit import FitSettings, Report
from trainer.learner import Learner
from trainer.losses import dpo_loss, nll_loss
from trainer.whole import fit_pairs, fit_rows, read_episode, read_pairs, too_long


def fit_whole_episodes(
    learner: Learner,
    style: str,
    pairs: Sequence[PreferencePair],
    rows: Mapping[str, TaskRow],
    settings: FitSettings,
    *,
    beta: float,
    nll_coefficient: float,
    checkpoint: Path,
    report: Report,
) -> list[dict[str, float]]:
    """Multi-turn DPO: each epoch's mean numbers, after learning from pairs of whole episodes.

    Source: arXiv:2503.15478, section 5. Raises: TrainingError.
    """
    sides = read_pairs(learner, style, pairs, rows, reads_hidden=False)
    loss = partial(dpo_loss, beta=beta, nll_coefficient=nll_coefficient)
    return fit_pairs(learner, sides, loss, settings, checkpoint=checkpoint, report=report)


def fit_successes(
    learner: Learner,
    style: str,
    episodes: Sequence[Episode],
    rows: Mapping[str, TaskRow],
    settings: FitSettings,
    *,
    checkpoint: Path,
    report: Report,
) -> list[dict[str, float]]:
    """Rejection fine-tuning: each epoch's mean numbers, after learning to repeat the successes.

    Source: arXiv:2503.15478, section 5. Raises: TrainingError, also where nothing succeeded.
    """
    good = successes(episodes, rows)
    if not good:
        raise TrainingError(
            f"None of {len(episodes)} episodes has reward 1 (of web pages: is better than another "
            "one of its task), so there is no success to repeat. Collect more episodes, or of "
            "easier tasks."
        )
    read = [read_episode(learner, style, rows[e.task_id], e, reads_hidden=False) for e in good]
    trunks = [trunk for trunk in read if trunk]
    if not trunks:
        raise TrainingError(too_long(len(good), "episodes", learner))
    return fit_rows(learner, trunks, nll_loss, settings, checkpoint=checkpoint, report=report)


def successes(episodes: Sequence[Episode], rows: Mapping[str, TaskRow]) -> list[Episode]:
    """The episodes worth repeating.

    Those with reward 1; of a web page, which is right by degrees, the best of the task's episodes
    where they differ.
    """
    scored = [(e, e.reward.value) for e in episodes if e.reward is not None and e.turns]
    best: dict[str, float] = {}
    worst: dict[str, float] = {}
    for episode, reward in scored:
        id = episode.task_id
        best[id] = max(best.get(id, reward), reward)
        worst[id] = min(worst.get(id, reward), reward)

    def is_good(episode: Episode, reward: float) -> bool:
        id = episode.task_id
        is_whole = rows[id].task.kind is TaskKind.BACKEND
        return reward >= 1 if is_whole else reward == best[id] > worst[id]

    return [episode for episode, reward in scored if is_good(episode, reward)]
