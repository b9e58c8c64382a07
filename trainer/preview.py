"""What a round would learn from, chosen by the code that the round itself runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from evaluators.figures import Figure
from sweet.errors import SweetError
from sweet.services import Services
from sweet.types import PairLevel, PreferencePair, Task, TaskKind
from trainer.collect import (
    Chosen,
    check_enough,
    choose,
    fresh_rows,
    logged_episodes,
    outcome_of,
)
from trainer.pairing import whole_pairs
from trainer.people import by_source
from trainer.settings import RoundSettings
from trainer.workbench import check_start


@dataclass(frozen=True, slots=True)
class Preview:
    """What a round would learn from if it began now."""

    kind: TaskKind
    episodes: int
    tasks: int
    pairs: int  # of episodes
    turn_pairs: int  # that people made; the critic's own come later
    outcome: Figure  # the rate of success; of web pages the mean reward
    by_source: Mapping[str, int]  # task sets: mini-backend/train
    by_collaborator: Mapping[str, int]
    by_policy: Mapping[str, int]
    pairs_by_source: Mapping[str, int]  # outcome, human, vote, imported
    turn_pairs_by_source: Mapping[str, int]  # human, vote, imported
    left_out: Mapping[str, int]  # episodes, by reason
    people_left_out: Mapping[str, int]  # pairs that people made, by reason
    fresh: int  # episodes that will be simulated first
    problem: str = ""  # why such a round would end at once; empty where nothing is in its way


def preview(services: Services, settings: RoundSettings) -> Preview:
    """What the log has for a round with these settings, and what stands in its way.

    What a round still has to simulate is not known: with fresh episodes ahead, too little in the
    log is no problem.
    """
    chosen = choose(services.store, settings, logged_episodes(services, settings))
    pairs: list[PreferencePair] = []
    fresh, problem = 0, ""
    try:
        check_start(services, settings)
        fresh = len(fresh_rows(services, settings)) * settings.fresh_per_task
        check_enough(settings, chosen)
        pairs = _whole_pairs(chosen, settings)
    except SweetError as e:
        problem = "" if fresh else str(e)
    episodes = [one.episode for one in chosen.episodes]
    turns = by_source(chosen.people.pairs, PairLevel.TURN)
    return Preview(
        kind=settings.task_kind,
        episodes=len(episodes),
        tasks=len({episode.task_id for episode in episodes}),
        pairs=len(pairs),
        turn_pairs=sum(turns.values()),
        outcome=outcome_of(chosen, settings),
        by_source=dict(Counter(_set_of(one.row.task) for one in chosen.episodes)),
        by_collaborator=dict(Counter(episode.collaborator for episode in episodes)),
        by_policy=dict(Counter(episode.policy_id for episode in episodes)),
        pairs_by_source=by_source(pairs, PairLevel.TRAJECTORY),
        turn_pairs_by_source=turns,
        left_out=dict(chosen.left_out),
        people_left_out=dict(chosen.people.left_out),
        fresh=fresh,
        problem=problem,
    )


def usable_since(services: Services, settings: RoundSettings, since: str) -> set[str]:
    """The ids of the log's episodes from a moment on that such a round would learn from."""
    later = replace(settings, use_log=True, since=max(since, settings.since))
    chosen = choose(services.store, later, logged_episodes(services, later))
    return {one.episode.id for one in chosen.episodes}


def _whole_pairs(chosen: Chosen, settings: RoundSettings) -> list[PreferencePair]:
    """Pairs of episodes where the algorithm makes some. Raises: TrainingError where none is."""
    if PairLevel.TRAJECTORY not in settings.kind.pair_levels:
        return []
    rows = {one.row.task.id: one.row for one in chosen.episodes}
    episodes = [one.episode for one in chosen.episodes]
    return whole_pairs(settings, episodes, rows, chosen.people.pairs)


def _set_of(task: Task) -> str:
    return task.source if task.source == task.split else f"{task.source}/{task.split}"
