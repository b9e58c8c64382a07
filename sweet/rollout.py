"""Many episodes at once. No episode waits for another, and a failed one is data, not a crash.

The seed of episode i is derived from the batch's seed and i alone, so a batch can be run again,
cut short, or continued (`first`) and gives the same episodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from sweet.episode import EpisodeLog, OnChange, run_episode, stop_episode
from sweet.errors import ConfigError, SweetError, boundary
from sweet.seeds import derived_seed
from sweet.types import MAX_TURNS, Collaborator, Episode, Evaluator, Policy, TaskRow


class RolloutLog(EpisodeLog, Protocol):
    """What a batch of episodes needs of the store."""

    def start_episode(
        self,
        task_id: str,
        policy_id: str,
        collaborator: str,
        seed: int,
        max_turns: int = MAX_TURNS,
    ) -> Episode:
        """Log a new episode."""


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


def assignments(rows: Sequence[TaskRow], n: int, seed: int, first: int = 0) -> Iterator[Assignment]:
    """`n` episodes from number `first` on, over the tasks in their order, again and again."""
    if not rows:
        raise ConfigError("There is no task to roll out. Choose a task set that has some.")
    for index in range(first, first + n):
        yield Assignment(index, rows[index % len(rows)], derived_seed(seed, "episode", index))


@dataclass(frozen=True, slots=True)
class Rollout:
    """Who plays, who scores, and where it is logged."""

    log: RolloutLog
    policy: Policy
    collaborator: Callable[[TaskRow], Collaborator]
    evaluator: Evaluator | None
    max_turns: int = MAX_TURNS

    async def run(
        self,
        todo: Iterator[Assignment],
        *,
        concurrency: int = 8,
        stop: asyncio.Event | None = None,
        on_change: OnChange | None = None,
    ) -> AsyncIterator[Outcome]:
        """Each outcome as it comes, not in order.

        `stop` ends the running episodes as STOPPED and starts no other. Leaving the iteration
        without it leaves the running ones in progress.
        """
        if concurrency < 1:
            raise ConfigError(f"The concurrency is {concurrency}; it must be at least 1.")
        stop = stop or asyncio.Event()
        stopping = asyncio.create_task(stop.wait())
        running: set[asyncio.Task[Outcome]] = set()
        try:
            while True:
                while len(running) < concurrency and not stop.is_set():
                    if (assignment := next(todo, None)) is None:
                        break
                    running.add(asyncio.create_task(self._one(assignment, stopping, on_change)))
                if not running:
                    return
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    yield task.result()
        finally:
            await _cancelled(stopping, *running)

    async def _one(
        self, assignment: Assignment, stopping: asyncio.Task[bool], on_change: OnChange | None
    ) -> Outcome:
        try:
            with boundary(SweetError, "The episode broke off"):
                return Outcome(assignment, await self._episode(assignment, stopping, on_change))
        except SweetError as e:
            return Outcome(assignment, None, str(e))

    async def _episode(
        self, assignment: Assignment, stopping: asyncio.Task[bool], on_change: OnChange | None
    ) -> Episode:
        row = assignment.row
        collaborator = self.collaborator(row)
        start = (row.task.id, self.policy.id, collaborator.name, assignment.seed, self.max_turns)
        episode = await asyncio.to_thread(self.log.start_episode, *start)
        players = (self.policy, collaborator, self.evaluator)
        moves = asyncio.create_task(
            run_episode(self.log, row, episode, *players, on_change=on_change)
        )
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
