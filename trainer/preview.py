"""What a round would learn from, chosen by the code that the round itself runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sweet.errors import SweetError, TrainingError
from sweet.services import Services
from sweet.types import PreferencePair, Task
from trainer.collect import Chosen, choose, fresh_rows, logged_episodes, why_none
from trainer.pairs import episode_pairs, reward_of
from trainer.settings import RoundSettings
from trainer.workbench import check_start


@dataclass(frozen=True, slots=True)
class Preview:
    """What a round would learn from if it began now."""

    episodes: int
    tasks: int
    pairs: int
    success_rate: float | None
    by_source: Mapping[str, int]  # task sets: mini-backend/train
    by_collaborator: Mapping[str, int]
    by_policy: Mapping[str, int]
    pairs_by_source: Mapping[str, int]  # outcome, human
    left_out: Mapping[str, int]  # reasons
    fresh: int  # episodes that will be simulated first
    problem: str = ""  # why such a round would end at once; empty where nothing is in its way


def preview(services: Services, settings: RoundSettings) -> Preview:
    """What the log has for a round with these settings, and what stands in its way.

    What a round still has to simulate is not known: with fresh episodes ahead, too little in the
    log is no problem.
    """
    store = services.store
    chosen = choose(settings, logged_episodes(services, settings), store.iter_forks())
    pairs: list[PreferencePair] = []
    fresh, problem = 0, ""
    try:
        check_start(services, settings)
        fresh = len(fresh_rows(services, settings)) * settings.fresh_per_task
        pairs = _pairs(chosen, settings)
    except SweetError as e:
        problem = "" if fresh else str(e)
    episodes = [one.episode for one in chosen.episodes]
    rewards = [reward_of(episode) for episode in episodes]
    return Preview(
        episodes=len(episodes),
        tasks=len({episode.task_id for episode in episodes}),
        pairs=len(pairs),
        success_rate=sum(r >= 1 for r in rewards) / len(rewards) if rewards else None,
        by_source=dict(Counter(_set_of(one.row.task) for one in chosen.episodes)),
        by_collaborator=dict(Counter(episode.collaborator for episode in episodes)),
        by_policy=dict(Counter(episode.policy_id for episode in episodes)),
        pairs_by_source=dict(Counter(str(pair.source) for pair in pairs)),
        left_out=dict(chosen.left_out),
        fresh=fresh,
        problem=problem,
    )


def usable_since(services: Services, settings: RoundSettings, since: str) -> set[str]:
    """The ids of the log's episodes from a moment on that such a round would learn from."""
    later = replace(settings, use_log=True, since=max(since, settings.since))
    chosen = choose(later, logged_episodes(services, later), ())
    return {one.episode.id for one in chosen.episodes}


def _pairs(chosen: Chosen, settings: RoundSettings) -> list[PreferencePair]:
    """Pairs of episodes where the algorithm makes some. Raises: TrainingError where none is."""
    if not chosen.episodes:
        raise TrainingError(why_none(chosen.left_out))
    if "pairs" not in settings.kind.stages:
        return []
    rows = {one.row.task.id: one.row for one in chosen.episodes}
    return episode_pairs([one.episode for one in chosen.episodes], rows)


def _set_of(task: Task) -> str:
    return task.source if task.source == task.split else f"{task.source}/{task.split}"
