"""Many episodes at once: none waits, none takes the others down, all are in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from sweet.errors import ConfigError, PolicyError
from sweet.policy import EnginePolicy
from sweet.rollout import Outcome, Rollout, assignments
from sweet.store import BatchState, EpisodeStore
from sweet.types import (
    ANSWER_MARK,
    Completion,
    EpisodeFilter,
    Message,
    OnText,
    Sampling,
    StopReason,
)
from tests.fakes import FakeCollaborator, FakeEngine, FakeEvaluator, HangingEngine, task_row

ANSWER = f"{ANSWER_MARK}\ndef f(x): return x + 5"
ROWS = [task_row(f"task-{i}", description=f"Task number {i}.") for i in range(3)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EpisodeStore]:
    with EpisodeStore.open(tmp_path / "sweet.db") as store:
        store.add_tasks(ROWS)
        yield store


def rollout(store: EpisodeStore, engine, batch_id: str | None = None) -> Rollout:
    policy = EnginePolicy("p", engine, Sampling(), "plain")
    return Rollout(store, policy, lambda _: FakeCollaborator(), FakeEvaluator(), batch_id=batch_id)


def answering() -> FakeEngine:
    return FakeEngine(lambda messages, _: ANSWER if len(messages) > 2 else "Fee?")


async def collected(batch: Rollout, n: int, **options) -> list[Outcome]:
    return [outcome async for outcome in batch.run(assignments(ROWS, n, seed=1), **options)]


def test_every_episode_is_run_scored_and_logged(store: EpisodeStore) -> None:
    outcomes = asyncio.run(collected(rollout(store, answering()), 7, concurrency=3))
    assert sorted(o.assignment.index for o in outcomes) == list(range(7))
    assert all(o.episode and o.episode.reward and o.episode.reward.value == 1 for o in outcomes)
    assert store.search(EpisodeFilter(outcome="success")).count == 7


def test_the_tasks_come_round_again_with_other_seeds() -> None:
    todo = list(assignments(ROWS, 7, seed=1))
    assert [a.row.task.id for a in todo[:4]] == ["task-0", "task-1", "task-2", "task-0"]
    assert len({a.seed for a in todo}) == 7


def test_the_same_batch_has_the_same_seeds_however_many_are_run() -> None:
    assert list(assignments(ROWS, 3, seed=1)) == list(assignments(ROWS, 9, seed=1))[:3]
    assert list(assignments(ROWS, 3, seed=1)) != list(assignments(ROWS, 3, seed=2))


class Gate:
    """An engine where the first task's episode waits until the others are done."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.at_once = self.most = 0

    async def complete(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        *,
        adapter: str | None = None,
        on_text: OnText | None = None,
    ) -> Completion:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        if messages[0].content == "Task number 0.":
            await self.open.wait()
        await asyncio.sleep(0)
        self.at_once -= 1
        return Completion(ANSWER, None, 1.0)


def test_no_episode_waits_for_another_and_no_more_run_than_allowed(store: EpisodeStore) -> None:
    async def play() -> tuple[list[int], int]:
        gate, order = Gate(), []
        todo = assignments([ROWS[0], *ROWS[1:] * 4], 9, seed=1)
        async for outcome in rollout(store, gate).run(todo, concurrency=2):
            order.append(outcome.assignment.index)
            if len(order) == 8:
                gate.open.set()
        return order, gate.most

    order, most = asyncio.run(play())
    assert order[-1] == 0
    assert most == 2


def test_a_failed_episode_is_data_and_the_others_go_on(store: EpisodeStore) -> None:
    def fail_one(messages: Sequence[Message], _: Sampling) -> str:
        if "number 1" in messages[0].content:
            raise PolicyError("out of memory")
        return ANSWER

    outcomes = asyncio.run(collected(rollout(store, FakeEngine(fail_one)), 3))
    reasons = {o.assignment.index: o.episode and o.episode.stop_reason for o in outcomes}
    assert reasons == {
        0: StopReason.ANSWERED,
        1: StopReason.FAILED,
        2: StopReason.ANSWERED,
    }


def test_an_episode_that_cannot_even_start_is_data(store: EpisodeStore) -> None:
    unknown = task_row("never-added")
    batch = rollout(store, answering())

    async def play() -> list[Outcome]:
        return [o async for o in batch.run(assignments([ROWS[0], unknown], 2, seed=1))]

    outcomes = {o.assignment.index: o for o in asyncio.run(play())}
    assert outcomes[0].episode is not None
    assert outcomes[1].episode is None and "never-added" in (outcomes[1].error or "")


def test_stopping_ends_the_running_ones_as_stopped(store: EpisodeStore) -> None:
    async def play() -> tuple[list[Outcome], bool]:
        engine, stop = HangingEngine(), asyncio.Event()
        running = asyncio.create_task(
            collected(rollout(store, engine), 9, concurrency=2, stop=stop)
        )
        await engine.asked.wait()
        stop.set()
        return await running, engine.cancelled

    outcomes, cancelled = asyncio.run(play())
    assert cancelled
    assert len(outcomes) == 2
    assert all(o.episode and o.episode.stop_reason is StopReason.STOPPED for o in outcomes)


def in_batch(store: EpisodeStore, play: Callable) -> BatchState:
    batch_id = store.start_batch("rollout", {}, 5)
    asyncio.run(play(batch_id))
    return store.batch(batch_id).state


def test_a_batch_is_counted_and_ended_in_the_log(store: EpisodeStore) -> None:
    batch_id = store.start_batch("rollout", {}, 5)
    asyncio.run(collected(rollout(store, answering(), batch_id), 5))
    batch = store.batch(batch_id)
    assert (batch.state, batch.finished, batch.succeeded) == (BatchState.DONE, 5, 5)


def test_a_batch_is_stopped_through_the_log(store: EpisodeStore) -> None:
    async def play(batch_id: str) -> None:
        engine = HangingEngine()
        running = asyncio.create_task(collected(rollout(store, engine, batch_id), 5))
        await engine.asked.wait()
        store.request_stop(batch_id)
        await running

    assert in_batch(store, play) is BatchState.STOPPED


def test_a_batch_that_is_left_is_ended_and_its_episodes_stay_in_progress(
    store: EpisodeStore,
) -> None:
    async def play(batch_id: str) -> None:
        engine = HangingEngine()
        running = asyncio.create_task(collected(rollout(store, engine, batch_id), 5))
        await engine.asked.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    assert in_batch(store, play) is BatchState.FAILED
    assert store.search(EpisodeFilter(outcome="in_progress")).count > 0


def test_no_tasks_are_refused() -> None:
    with pytest.raises(ConfigError, match="no task"):
        list(assignments([], 3, seed=1))
