"""The first stage: which episodes a round learns from."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from sweet.errors import TrainingError
from sweet.rollout import assignments
from sweet.services import BatchPlan
from sweet.store import LoggedEpisode
from sweet.types import Episode, EpisodeFilter, StopReason, TaskKind, TaskRow
from trainer.pairs import reward_of
from trainer.settings import Algorithm
from trainer.simulate import play
from trainer.workbench import Result, Workbench

HELD_OUT = ("validation", "test", "families")
"""Splits that are for measuring: nothing is ever learned from them."""
NO_HIDDEN = "no hidden information"


def collect(bench: Workbench) -> Result:
    """The episodes to learn from: the log's, as the settings filter them, and fresh ones.

    Raises: TrainingError where none is left, saying what was left out and why.
    """
    fresh = _fresh(bench) if bench.settings.fresh_tasks else []
    logged = _logged(bench, {e.id for e in fresh}) if bench.settings.use_log else []
    given = [*logged, *(_whole(bench, episode) for episode in fresh)]
    reasons = [_unfit(one, bench.settings.kind.reads_hidden) for one in given]
    left_out = Counter(why for why in reasons if why)
    chosen = [one for one, why in zip(given, reasons, strict=True) if not why]
    if not chosen:
        raise TrainingError(_why_none(left_out))
    rewards = [reward_of(one.episode) for one in chosen]
    return {
        "chosen": len(chosen),
        "fresh": len(fresh),
        "tasks": len({one.row.task.id for one in chosen}),
        "success_rate": sum(reward >= 1 for reward in rewards) / len(rewards),
        "by_collaborator": dict(Counter(one.episode.collaborator for one in chosen)),
        "by_policy": dict(Counter(one.episode.policy_id for one in chosen)),
        "left_out": dict(left_out),
        "data_hash": _hash([one.episode for one in chosen]),
        "episodes": [one.episode.id for one in chosen],
    }


def chosen_episodes(bench: Workbench) -> tuple[list[Episode], dict[str, TaskRow]]:
    """The collected episodes in their order, and their tasks by id."""
    store = bench.services.store
    episodes = [store.episode(id) for id in bench.result("collect")["episodes"]]
    return episodes, {id: store.task_row(id) for id in {e.task_id for e in episodes}}


def _logged(bench: Workbench, without: set[str]) -> list[LoggedEpisode]:
    settings = bench.settings
    wanted = EpisodeFilter(
        task_set=settings.from_tasks,
        policy_id=settings.from_policy,
        collaborator=settings.from_collaborator,
        since=settings.since,
        until=settings.until,
    )
    found = bench.services.store.iter_episodes(wanted)
    return [one for one in found if one.episode.id not in without]


def _fresh(bench: Workbench) -> list[Episode]:
    """New episodes of tasks drawn by the round's seed, several a task, in the log."""
    settings, services = bench.settings, bench.services
    rows = services.task_rows(settings.fresh_set)
    if rows and rows[0].task.split in HELD_OUT:
        raise TrainingError(
            f"{settings.fresh_set} is for measuring; nothing is learned from it. Choose a set to "
            "train on with --fresh-set, such as mini-backend/train."
        )
    rows = random.Random(settings.seed).sample(rows, min(settings.fresh_tasks, len(rows)))
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
    return play(
        bench,
        services.store,
        policy,
        todo,
        EpisodeFilter(policy_id=policy.id, since=begun),
        progress=partial(bench.at, "collect"),
        batch_id=batch_id,
    )


def _whole(bench: Workbench, episode: Episode) -> LoggedEpisode:
    return LoggedEpisode(bench.services.store.task_row(episode.task_id), episode)


def _unfit(one: LoggedEpisode, needs_hidden: bool) -> str:
    """Why an episode can't be learned from; empty where it can."""
    episode, task = one.episode, one.row.task
    if task.split in HELD_OUT:
        return "task held out for measuring"
    if task.kind is not TaskKind.BACKEND:
        return "web page"
    if episode.stop_reason is None:
        return "still in progress"
    if episode.stop_reason is StopReason.REPLACED:
        return "replaced by an edit or a retry"
    if needs_hidden and one.row.hidden is None:
        return NO_HIDDEN
    if episode.reward is None or not episode.turns:
        return "no reward"
    return ""


def _why_none(left_out: Counter[str]) -> str:
    if not left_out:
        return (
            "Too few episodes: there is none that the filter lets through. Collaborate, simulate "
            "some with `python -m sweet rollout`, or set --fresh-tasks."
        )
    listed = ", ".join(f"{n} {why}" for why, n in left_out.most_common())
    advice = "Set --fresh-tasks to simulate new ones."
    if left_out[NO_HIDDEN]:
        advice = f"Train without it (--algorithm {Algorithm.NO_HIDDEN}), or: {advice}"
    return f"There is no episode to learn from. Left out: {listed}. {advice}"


def _hash(episodes: Sequence[Episode]) -> str:
    """What was learned from, in 16 letters: tasks, messages, replies, rewards."""
    said = [
        [e.task_id, e.seed, [[t.action.raw, t.reply] for t in e.turns], reward_of(e)]
        for e in episodes
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]
