"""Simulated episodes within a round: what a killed round had finished is not played again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from sweet.errors import TrainingError
from sweet.policy import EnginePolicy
from sweet.rollout import Assignment, Rollout
from sweet.store import EpisodeStore
from sweet.types import Episode, EpisodeFilter
from trainer.workbench import Workbench

Progress = Callable[[int, int], None]


def play(
    bench: Workbench,
    store: EpisodeStore,
    policy: EnginePolicy,
    todo: Sequence[Assignment],
    wanted: EpisodeFilter,
    *,
    progress: Progress,
    batch_id: str | None = None,
) -> list[Episode]:
    """The finished episode of each assignment, in their order, those that failed included.

    `wanted` finds the ones that were played already. Raises: TrainingError where one could not
    even begin.
    """
    done = finished(store, wanted)
    left = [assignment for assignment in todo if _key(assignment) not in done]
    known = len(todo) - len(left)
    progress(known, len(todo))

    def progress_of_all(played: int, _: int) -> None:
        progress(known + played, len(todo))

    if left:
        done |= asyncio.run(_played(bench, store, policy, left, progress_of_all, batch_id))
    return [done[_key(assignment)] for assignment in todo]


def finished(store: EpisodeStore, wanted: EpisodeFilter) -> dict[tuple[str, int], Episode]:
    """The episodes that `wanted` lets through and that are over, by task and seed."""
    episodes = (one.episode for one in store.iter_episodes(wanted))
    return {(e.task_id, e.seed): e for e in episodes if e.stop_reason is not None}


async def _played(
    bench: Workbench,
    store: EpisodeStore,
    policy: EnginePolicy,
    left: Sequence[Assignment],
    progress: Progress,
    batch_id: str | None,
) -> dict[tuple[str, int], Episode]:
    services, settings = bench.services, bench.settings
    evaluator = services.evaluator(left[0].row.task.kind)
    rollout = Rollout(
        store,
        policy,
        services.simulator_for,
        evaluator,
        services.settings.max_turns,
        batch_id,
    )
    played: dict[tuple[str, int], Episode] = {}
    async for outcome in rollout.run(left, concurrency=settings.concurrency):
        if outcome.episode is None:
            raise TrainingError(f"An episode could not be played: {outcome.error}")
        played[_key(outcome.assignment)] = outcome.episode
        progress(len(played), len(left))
    if len(played) < len(left):
        raise TrainingError(
            f"The simulated episodes were stopped after {len(played)} of {len(left)}. Resume the "
            "round to play the others."
        )
    return played


def _key(assignment: Assignment) -> tuple[str, int]:
    return assignment.row.task.id, assignment.seed
