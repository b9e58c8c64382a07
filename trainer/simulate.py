"""Simulated episodes within a round: what a killed round had finished is not played again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from sweet.errors import StoreError, TrainingError
from sweet.policy import EnginePolicy
from sweet.rollout import Assignment, Rollout
from sweet.store import EpisodeStore
from sweet.types import Episode, EpisodeFilter, StopReason
from trainer.workbench import Workbench

ASK_S = 0.5  # how soon it is seen that a stage is to end with what it has


def play(
    bench: Workbench,
    store: EpisodeStore,
    policy: EnginePolicy,
    todo: Sequence[Assignment],
    wanted: EpisodeFilter,
    *,
    stage: str,
    batch_id: str | None = None,
) -> list[Episode]:
    """The finished episode of each assignment, in their order, those that failed included.

    `wanted` finds the ones that were played already. Where `stage` is asked to end with what it
    has, it is those that were over by then. Raises: TrainingError where one could not even begin.
    """
    done = finished(store, wanted)
    left = [assignment for assignment in todo if _key(assignment) not in done]
    known = len(todo) - len(left)
    bench.at(stage, known, len(todo))

    def progress(played: int) -> None:
        bench.at(stage, known + played, len(todo))

    if left:
        done |= asyncio.run(_played(bench, store, policy, left, progress, batch_id, stage))
    return [done[_key(assignment)] for assignment in todo if _key(assignment) in done]


def finished(store: EpisodeStore, wanted: EpisodeFilter) -> dict[tuple[str, int], Episode]:
    """The episodes that `wanted` lets through and that came to their end, by task and seed.

    One that was stopped on the way, or was over but not scored when the round was killed or its
    stage ended early, is played again.
    """
    episodes = (one.episode for one in store.iter_episodes(wanted))
    return {(e.task_id, e.seed): e for e in episodes if _came_to_its_end(e)}


def _came_to_its_end(episode: Episode) -> bool:
    scored = episode.stop_reason in (StopReason.ANSWERED, StopReason.TURN_LIMIT)
    return episode.evaluation is not None if scored else episode.stop_reason is StopReason.FAILED


async def _played(
    bench: Workbench,
    store: EpisodeStore,
    policy: EnginePolicy,
    left: Sequence[Assignment],
    progress: Callable[[int], object],
    batch_id: str | None,
    stage: str,
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
    stop = asyncio.Event()
    asking = asyncio.create_task(_stop_when_asked(bench, stage, stop))
    try:
        async for outcome in rollout.run(left, concurrency=settings.concurrency, stop=stop):
            if outcome.episode is None:
                raise TrainingError(f"An episode could not be played: {outcome.error}")
            if not _came_to_its_end(outcome.episode):
                continue
            played[_key(outcome.assignment)] = outcome.episode
            progress(len(played))
    finally:
        asking.cancel()
    if len(played) < len(left) and not stop.is_set():
        raise TrainingError(
            f"The simulated episodes were stopped after {len(played)} of {len(left)}. Resume the "
            "round to play the others."
        )
    return played


async def _stop_when_asked(bench: Workbench, stage: str, stop: asyncio.Event) -> None:
    while not stop.is_set():
        with suppress(StoreError):  # a log that is busy now is asked again
            if await asyncio.to_thread(bench.is_to_end, stage):
                stop.set()
        await asyncio.sleep(ASK_S)


def _key(assignment: Assignment) -> tuple[str, int]:
    return assignment.row.task.id, assignment.seed
