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

Progress = Callable[[int, int], object]
ASK_S = 0.5  # how soon it is seen that a stage is to end with what it has


def play(
    bench: Workbench,
    store: EpisodeStore,
    policy: EnginePolicy,
    todo: Sequence[Assignment],
    wanted: EpisodeFilter,
    *,
    progress: Progress,
    batch_id: str | None = None,
    stage: str = "",
) -> list[Episode]:
    """The finished episode of each assignment, in their order, those that failed included.

    `wanted` finds the ones that were played already. Where `stage` is asked to end with what it
    has, it is those that were over by then. Raises: TrainingError where one could not even begin.
    """
    done = finished(store, wanted)
    left = [assignment for assignment in todo if _key(assignment) not in done]
    known = len(todo) - len(left)
    progress(known, len(todo))

    def progress_of_all(played: int, _: int) -> None:
        progress(known + played, len(todo))

    if left:
        played = _played(bench, store, policy, left, progress_of_all, batch_id, stage)
        done |= asyncio.run(played)
    return [done[_key(assignment)] for assignment in todo if _key(assignment) in done]


def finished(store: EpisodeStore, wanted: EpisodeFilter) -> dict[tuple[str, int], Episode]:
    """The episodes that `wanted` lets through and that were played to their end, by task and seed.

    One that was stopped on the way is played again.
    """
    episodes = (one.episode for one in store.iter_episodes(wanted))
    on_the_way = (None, StopReason.STOPPED)
    return {(e.task_id, e.seed): e for e in episodes if e.stop_reason not in on_the_way}


async def _played(
    bench: Workbench,
    store: EpisodeStore,
    policy: EnginePolicy,
    left: Sequence[Assignment],
    progress: Progress,
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
            if outcome.episode.stop_reason is StopReason.STOPPED:
                continue
            played[_key(outcome.assignment)] = outcome.episode
            progress(len(played), len(left))
    finally:
        asking.cancel()
    if len(played) < len(left) and not stop.is_set():
        raise TrainingError(
            f"The simulated episodes were stopped after {len(played)} of {len(left)}. Resume the "
            "round to play the others."
        )
    return played


async def _stop_when_asked(bench: Workbench, stage: str, stop: asyncio.Event) -> None:
    while stage and not stop.is_set():
        with suppress(StoreError):  # a log that is busy now is asked again
            if await asyncio.to_thread(bench.is_to_end, stage):
                stop.set()
        await asyncio.sleep(ASK_S)


def _key(assignment: Assignment) -> tuple[str, int]:
    return assignment.row.task.id, assignment.seed
