"""Many episodes at once. No episode waits for another, and a failed one is data, not a crash.

The seed of episode i is derived from the batch's seed and i alone: the same batch run again gives
the same episodes, whatever the concurrency and however far it comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from sweet.episode import EpisodeLog, run_episode, stop_episode
from sweet.errors import ConfigError, StoreError, SweetError, boundary
from sweet.seeds import derived_seed
from sweet.store.records import Batch, BatchState
from sweet.types import MAX_TURNS, Collaborator, Episode, Evaluator, Policy, TaskRow

STOP_POLL_S = 0.5


class RolloutLog(EpisodeLog, Protocol):
    """What many episodes need of the store."""

    def start_episode(
        self,
        task_id: str,
        policy_id: str,
        collaborator: str,
        seed: int,
        max_turns: int = MAX_TURNS,
        *,
        batch_id: str | None = None,
    ) -> Episode:
        """Log a new episode."""

    def batch(self, batch_id: str) -> Batch:
        """The batch, as far as it is."""

    def end_batch(self, batch_id: str, error: str | None = None) -> object:
        """Log that the batch is over."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """One episode to be run: its place in the batch, its task, its seed."""

    index: int
    row: TaskRow
    seed: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an assignment: its episode (which may have failed), or why there is none."""

    assignment: Assignment
    episode: Episode | None
    error: str | None = None


def assignments(rows: Sequence[TaskRow], n: int, seed: int) -> Iterator[Assignment]:
    """`n` episodes over the tasks in their order, and round again with other seeds."""
    if not rows:
        raise ConfigError("There is no task to roll out. Choose a task set that has some.")
    for index in range(n):
        yield Assignment(index, rows[index % len(rows)], derived_seed(seed, "episode", index))


@dataclass(frozen=True, slots=True)
class Rollout:
    """Who plays, who scores, and where it is logged."""

    log: RolloutLog
    policy: Policy
    collaborator: Callable[[TaskRow], Collaborator]
    evaluator: Evaluator | None
    max_turns: int = MAX_TURNS
    batch_id: str | None = None

    async def run(
        self,
        todo: Iterable[Assignment],
        *,
        concurrency: int = 8,
        stop: asyncio.Event | None = None,
    ) -> AsyncIterator[Outcome]:
        """Each outcome as it comes, not in order.

        `stop`, or a stop of the batch in the log, ends the running episodes as STOPPED and starts
        no other. Leaving the iteration without it leaves the running ones in progress. The batch
        is ended in the log either way.
        """
        stop = stop or asyncio.Event()
        stopping = asyncio.create_task(self._stopping(stop))
        waiting = iter(todo)
        running: set[asyncio.Task[Outcome]] = set()
        error: str | None = "It broke off before it was done."
        try:
            while True:
                while len(running) < concurrency and not stopping.done():
                    if (assignment := next(waiting, None)) is None:
                        break
                    running.add(asyncio.create_task(self._one(assignment, stopping)))
                if not running:
                    error = None
                    return
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    yield task.result()
        finally:
            await _cancelled(stopping, *running)
            if self.batch_id:
                await asyncio.to_thread(self.log.end_batch, self.batch_id, error)

    async def _stopping(self, stop: asyncio.Event) -> None:
        """Returns when the batch is to stop, whoever asked: this process, or another in the log."""
        if self.batch_id is None:
            await stop.wait()
            return
        while not stop.is_set():
            with suppress(StoreError):  # a log that is busy now is asked again
                batch = await asyncio.to_thread(self.log.batch, self.batch_id)
                if batch.state is BatchState.STOPPING:
                    return
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), STOP_POLL_S)

    async def _one(self, assignment: Assignment, stopping: asyncio.Task[None]) -> Outcome:
        try:
            with boundary(SweetError, "The episode broke off"):
                return Outcome(assignment, await self._episode(assignment, stopping))
        except SweetError as e:
            return Outcome(assignment, None, str(e))

    async def _episode(self, assignment: Assignment, stopping: asyncio.Task[None]) -> Episode:
        row = assignment.row
        collaborator = self.collaborator(row)
        start = (row.task.id, self.policy.id, collaborator.name, assignment.seed, self.max_turns)
        episode = await asyncio.to_thread(self.log.start_episode, *start, batch_id=self.batch_id)
        players = (self.policy, collaborator, self.evaluator)
        moves = asyncio.create_task(run_episode(self.log, row, episode, *players))
        try:
            await asyncio.wait((moves, stopping), return_when=asyncio.FIRST_COMPLETED)
            if moves.done():
                return moves.result()
        finally:
            await _cancelled(moves)
        return await stop_episode(self.log, episode.id)


async def _cancelled(*tasks: asyncio.Task) -> None:
    """Cancel what still runs and wait until it has ended."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError, SweetError):
            await task
