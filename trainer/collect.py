"""The first stage: which episodes a round learns from, and what people preferred in them.

All that people may still change (grades, likes, forks) is settled here and kept in the stage's
result: a round that is resumed learns from what it began with.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

from sweet.errors import TrainingError
from sweet.rollout import assignments
from sweet.services import BatchPlan, Services
from sweet.store import Fork, LoggedEpisode
from sweet.types import (
    Episode,
    EpisodeFilter,
    PairSource,
    PreferencePair,
    StopReason,
    TaskKind,
    TaskRow,
)
from trainer.opinions import grade, graded, is_accepted, turn_pair, turn_pairs, with_accepted
from trainer.pairs import reward_of, source_of
from trainer.settings import Algorithm, RoundSettings
from trainer.simulate import play
from trainer.workbench import Result, Workbench

HELD_OUT = ("validation", "test", "families")
"""Splits that are for measuring: nothing is ever learned from them."""
NO_HIDDEN = "no hidden information"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a round learns from: episodes with their outcome, each task with what the critic reads.

    `accepted` are the episodes whose artifact serves as hidden information, by task; `turns` are
    the pairs of turns that people made.
    """

    episodes: tuple[LoggedEpisode, ...]
    left_out: Counter[str]
    accepted: dict[str, Episode]
    turns: list[PreferencePair]


def collect(bench: Workbench) -> Result:
    """The episodes to learn from: the log's, as the settings filter them, and fresh ones.

    Raises: TrainingError where none is left, saying what was left out and why.
    """
    fresh, is_cut = _fresh(bench) if bench.settings.fresh_tasks else ([], False)
    logged = logged_episodes(bench.services, bench.settings, {e.id for e in fresh})
    given = [*logged, *(_whole(bench, episode) for episode in fresh)]
    chosen = choose(bench.settings, given, bench.services.store.iter_forks())
    if not chosen.episodes:
        raise TrainingError(why_none(chosen.left_out))
    episodes = [one.episode for one in chosen.episodes]
    rewards = [reward_of(episode) for episode in episodes]
    return {
        "chosen": len(episodes),
        "fresh": len(fresh),
        "tasks": len({episode.task_id for episode in episodes}),
        "success_rate": sum(reward >= 1 for reward in rewards) / len(rewards),
        "by_source": dict(Counter(source_of(episode) for episode in episodes)),
        "by_collaborator": dict(Counter(episode.collaborator for episode in episodes)),
        "by_policy": dict(Counter(episode.policy_id for episode in episodes)),
        "left_out": dict(chosen.left_out),
        "data_hash": _hash(episodes, chosen.turns),
        "episodes": [episode.id for episode in episodes],
        "grades": {e.id: reward_of(e) for e in episodes if source_of(e) is PairSource.HUMAN},
        "accepted": {task_id: episode.id for task_id, episode in chosen.accepted.items()},
        "turns": [[*pair.episode_ids, pair.chosen[0].index] for pair in chosen.turns],
        **({"ended_early": True} if is_cut else {}),
    }


def choose(
    settings: RoundSettings, given: Sequence[LoggedEpisode], forks: Iterable[Fork]
) -> Chosen:
    """What a round with these settings learns from, among the episodes given."""
    people = settings.human_pairs > 0
    accepted = {one.row.task.id: one.episode for one in given if people and is_accepted(one)}
    judged = [_judged(one, accepted) if people else one for one in given]
    reasons = [_unfit(one, settings.kind.reads_hidden) for one in judged]
    fit = tuple(one for one, why in zip(judged, reasons, strict=True) if not why)
    used = {one.row.task.id for one in fit}
    learnable = [one for one in given if not _unlearnable(one.row)]
    return Chosen(
        fit,
        Counter(why for why in reasons if why),
        {task_id: episode for task_id, episode in accepted.items() if task_id in used},
        turn_pairs(learnable, forks) if people else [],
    )


def chosen_episodes(bench: Workbench) -> tuple[list[Episode], dict[str, TaskRow]]:
    """The collected episodes in their order, and the tasks by id, those of `chosen_turns` too.

    An accepted artifact is the hidden information of its task here, and nowhere else.
    """
    store, found = bench.services.store, bench.result("collect")
    episodes = [store.episode(id) for id in found["episodes"]]
    grades = found["grades"]
    episodes = [graded(e, grades[e.id]) if e.id in grades else e for e in episodes]
    tasks = {e.task_id for e in episodes} | {store.episode(id).task_id for id, *_ in found["turns"]}
    rows = {id: store.task_row(id) for id in tasks}
    for task_id, episode_id in found["accepted"].items():
        rows[task_id] = with_accepted(rows[task_id], store.episode(episode_id))
    return episodes, rows


def chosen_turns(bench: Workbench) -> list[PreferencePair]:
    """The collected pairs of turns that people made."""
    store = bench.services.store
    pairs = []
    for chosen_id, rejected_id, index in bench.result("collect")["turns"]:
        chosen, rejected = store.episode(chosen_id), store.episode(rejected_id)
        pairs.append(turn_pair(store.task_row(chosen.task_id), chosen, rejected, index))
    return pairs


def logged_episodes(
    services: Services, settings: RoundSettings, without: Collection[str] = ()
) -> list[LoggedEpisode]:
    """The log's episodes that the settings ask for, without some ids."""
    if not settings.use_log:
        return []
    wanted = EpisodeFilter(
        task_set=settings.from_tasks,
        policy_id=settings.from_policy,
        collaborator=settings.from_collaborator,
        since=settings.since,
        until=settings.until,
    )
    found = services.store.iter_episodes(wanted)
    return [one for one in found if one.episode.id not in without]


def fresh_rows(services: Services, settings: RoundSettings) -> list[TaskRow]:
    """The tasks of the new episodes, drawn by the round's seed. Raises: SweetError."""
    if not settings.fresh_tasks:
        return []
    rows = services.task_rows(settings.fresh_set)
    if rows and rows[0].task.split in HELD_OUT:
        raise TrainingError(
            f"{settings.fresh_set} is for measuring; nothing is learned from it. Choose a set to "
            "train on with --fresh-set, such as mini-backend/train."
        )
    return random.Random(settings.seed).sample(rows, min(settings.fresh_tasks, len(rows)))


def _fresh(bench: Workbench) -> tuple[list[Episode], bool]:
    """New episodes of the round's own tasks, several a task, in the log.

    And whether they are fewer than was planned, because the stage was asked to end.
    """
    settings, services = bench.settings, bench.services
    rows = fresh_rows(services, settings)
    todo = list(assignments(rows, len(rows) * settings.fresh_per_task, settings.seed))
    policy = services.policy(settings.policy)
    plan = BatchPlan(
        settings.fresh_set,
        policy.id,
        len(todo),
        concurrency=settings.concurrency,
        seed=settings.seed,
    )
    batch_id = services.store.start_batch(f"round {bench.id}", asdict(plan), len(todo))
    begun = services.store.round(bench.id).created_at
    episodes = play(
        bench,
        services.store,
        policy,
        todo,
        EpisodeFilter(policy_id=policy.id, since=begun),
        progress=partial(bench.at, "collect"),
        batch_id=batch_id,
        stage="collect",
    )
    return episodes, len(episodes) < len(todo)


def _whole(bench: Workbench, episode: Episode) -> LoggedEpisode:
    return LoggedEpisode(bench.services.store.task_row(episode.task_id), episode)


def _judged(one: LoggedEpisode, accepted: Mapping[str, Episode]) -> LoggedEpisode:
    """The episode with what a person's grade makes of it and of its task."""
    value = grade(one)
    episode = one.episode if value is None else graded(one.episode, value)
    reference = accepted.get(one.row.task.id)
    row = one.row if reference is None else with_accepted(one.row, reference)
    return replace(one, row=row, episode=episode)


def _unfit(one: LoggedEpisode, needs_hidden: bool) -> str:
    """Why an episode can't be learned from; empty where it can."""
    episode = one.episode
    if why := _unlearnable(one.row):
        return why
    if episode.stop_reason is None:
        return "still in progress"
    if episode.stop_reason is StopReason.REPLACED and episode.reward is None:
        return "replaced by an edit or a retry"
    if needs_hidden and one.row.hidden is None:
        return NO_HIDDEN
    if episode.reward is None or not episode.turns:
        return "no reward" if grade(one) is None else "only graded by a person"
    return ""


def _unlearnable(row: TaskRow) -> str:
    """Why nothing can be learned from a task; empty where something can."""
    if row.task.split in HELD_OUT:
        return "task held out for measuring"
    return "" if row.task.kind is TaskKind.BACKEND else "web page"


def why_none(left_out: Counter[str]) -> str:
    """Why there is no episode to learn from, and what to do about it."""
    if not left_out:
        return (
            "Too few episodes: there is none that the filter lets through. Collaborate, simulate "
            "some with `python -m sweet rollout`, or set --fresh-tasks."
        )
    listed = ", ".join(f"{n} {why}" for why, n in left_out.most_common())
    advice = "Set --fresh-tasks to simulate new ones."
    if left_out[NO_HIDDEN]:
        advice = (
            f"Train without it (--algorithm {Algorithm.NO_HIDDEN}), grade a result of an own task "
            f"as good so that it serves as such, or: {advice}"
        )
    return f"There is no episode to learn from. Left out: {listed}. {advice}"


def _hash(episodes: Sequence[Episode], turns: Sequence[PreferencePair]) -> str:
    """What was learned from, in 16 letters: tasks, messages, replies, rewards, preferences."""
    said: list[object] = [
        [e.task_id, e.seed, [[t.action.raw, t.reply] for t in e.turns], reward_of(e)]
        for e in episodes
    ]
    said += [[p.task_id, p.chosen[0].action.raw, p.rejected[0].action.raw] for p in turns]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]
