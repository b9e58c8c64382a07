"""One episode: whose move it is, and the loop that makes the moves and logs each at once.

The same function serves pages, rollouts and tests. What is in the log is the only state: a
reload, a crash or another browser goes on from there. A person in the collaborator's seat is a
`collaborator` of None: the loop returns where it is their move, the page logs what they write and
calls again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from sweet.errors import (
    ConfigError,
    EvaluatorError,
    PolicyError,
    SimulatorError,
    StoreError,
    SweetError,
    boundary,
)
from sweet.parsing import last_page
from sweet.seeds import derived_seed
from sweet.types import (
    Action,
    Collaborator,
    Episode,
    Evaluation,
    Evaluator,
    Exchange,
    Observation,
    OnText,
    Policy,
    Speaker,
    StopReason,
    Task,
    TaskKind,
    TaskRow,
    Verdict,
)

OnChange = Callable[[Episode], None]
"""Called with the episode after each thing that was logged."""

_SCORED = (StopReason.ANSWERED, StopReason.TURN_LIMIT)


class EpisodeLog(Protocol):
    """What running an episode needs of the store."""

    def episode(self, episode_id: str) -> Episode:
        """The episode as it was logged."""

    def failures(self, episode_id: str) -> Sequence[object]:
        """The failures that ended it so far."""

    def append_action(self, episode_id: str, index: int, action: Action) -> object:
        """Log what the agent said in turn `index`."""

    def append_reply(
        self, episode_id: str, index: int, text: str, duration_ms: float | None = None
    ) -> object:
        """Log the reply to turn `index`."""

    def finish(
        self,
        episode_id: str,
        stop_reason: StopReason,
        artifact: str | None = None,
        error: str | None = None,
    ) -> object:
        """Log that the episode is over, and why."""

    def reopen(self, episode_id: str) -> Episode:
        """Let a failed or stopped episode go on, and give it."""

    def add_evaluation(self, episode_id: str, evaluation: Evaluation) -> object:
        """Log what scoring gave."""


def next_speaker(episode: Episode) -> Speaker:
    """Whose move it is; NOBODY after an answer, after the last turn, and when it is over."""
    if episode.stop_reason is not None:
        return Speaker.NOBODY
    if not episode.turns:
        return Speaker.AGENT
    last = episode.turns[-1]
    if last.action.is_final or len(episode.turns) >= episode.max_turns:
        return Speaker.NOBODY  # a final turn gets no reply, nor does the last one
    return Speaker.COLLABORATOR if last.reply is None else Speaker.AGENT


def observation_of(task: Task, episode: Episode) -> Observation:
    """What the agent has seen before its next message; before its last one while unanswered."""
    done = tuple(
        Exchange(turn.action.message, turn.reply)
        for turn in episode.turns
        if turn.reply is not None
    )
    return Observation(task.kind, task.description, done, episode.max_turns - len(done))


async def run_episode(
    log: EpisodeLog,
    row: TaskRow,
    episode: Episode,
    policy: Policy,
    collaborator: Collaborator | None = None,
    evaluator: Evaluator | None = None,
    *,
    on_text: OnText | None = None,
    on_change: OnChange | None = None,
) -> Episode:
    """The episode after every move that needs no person, scored when it ended with a result.

    Can be called at any time for an episode in any state; it goes on from what was logged. A
    model that fails ends it as FAILED with the reason; after `retry_episode` this repeats
    the move that failed. Being cancelled leaves it in progress.

    Raises: StoreError; ConfigError where the collaborator would need hidden information that the
    task has not.
    """
    if collaborator is not None and row.hidden is None:
        raise ConfigError(
            f"The task {row.task.id!r} has no reference, so {collaborator.name!r} can't play the "
            "collaborator. Let a person do it."
        )
    run = _Run(log, row, on_change)
    episode = await run.load(episode.id)
    seed = await _seed(log, episode)
    try:
        while (speaker := next_speaker(episode)) is not Speaker.NOBODY:
            if speaker is Speaker.AGENT:
                episode = await run.agent_turn(episode, policy, seed, on_text)
            elif collaborator is None:
                return episode
            else:
                episode = await run.reply(episode, collaborator, seed)
    except StoreError:
        episode = await run.load(episode.id)
        if episode.stop_reason is None:
            raise
        return episode  # somebody ended it while a model was speaking
    except SweetError as e:
        return await run.end(episode, StopReason.FAILED, error=str(e))
    if episode.stop_reason is None:
        episode = await run.close(episode)
    return await evaluate_episode(log, row, episode, evaluator, on_change=on_change)


async def evaluate_episode(
    log: EpisodeLog,
    row: TaskRow,
    episode: Episode,
    evaluator: Evaluator | None,
    *,
    on_change: OnChange | None = None,
) -> Episode:
    """The episode with its evaluation; as it is where there is nothing to score or it has a reward.

    A scoring that fails is logged with its reason and without a reward; calling again tries again.
    """
    if evaluator is None or row.hidden is None or episode.stop_reason not in _SCORED:
        return episode
    if episode.reward is not None:
        return episode
    try:
        with boundary(EvaluatorError, "Scoring failed"):
            evaluation = await evaluator(row.task, row.hidden, episode)
    except EvaluatorError as e:
        evaluation = Evaluation(reward=None, verdict=Verdict.INFRA, error=str(e))
    run = _Run(log, row, on_change)
    return await run.logged(episode.id, lambda: log.add_evaluation(episode.id, evaluation))


async def retry_episode(log: EpisodeLog, episode: Episode) -> Episode:
    """The failed or stopped episode, open again; `run_episode` then repeats the move it broke at.

    An episode that is in progress, or has an outcome, is given back as it is.
    """
    if episode.stop_reason not in (StopReason.FAILED, StopReason.STOPPED):
        return episode
    return await asyncio.to_thread(log.reopen, episode.id)


async def stop_episode(log: EpisodeLog, episode_id: str) -> Episode:
    """The episode, ended because somebody asked; what was said stays, and there is no reward.

    One that has ended otherwise, be it at this very moment, stays as it ended.
    """
    try:
        await asyncio.to_thread(log.finish, episode_id, StopReason.STOPPED)
    except StoreError:
        episode = await asyncio.to_thread(log.episode, episode_id)
        if episode.stop_reason is None:
            raise
        return episode
    return await asyncio.to_thread(log.episode, episode_id)


async def _seed(log: EpisodeLog, episode: Episode) -> int:
    """The episode's seed; another after each failure, which the same draw might only repeat."""
    failures = len(await asyncio.to_thread(log.failures, episode.id))
    return derived_seed(episode.seed, "after failure", failures) if failures else episode.seed


class _Run:
    """The moves of one episode; each is in the log before its method returns."""

    def __init__(self, log: EpisodeLog, row: TaskRow, on_change: OnChange | None) -> None:
        self._log = log
        self._row = row
        self._on_change = on_change

    async def load(self, episode_id: str) -> Episode:
        return await asyncio.to_thread(self._log.episode, episode_id)

    async def agent_turn(
        self, episode: Episode, policy: Policy, seed: int, on_text: OnText | None
    ) -> Episode:
        observation = observation_of(self._row.task, episode)
        with boundary(PolicyError, f"The policy {policy.id!r} failed"):
            action = await policy.act(observation, seed=seed, on_text=on_text)
        index = len(episode.turns)
        return await self.logged(
            episode.id, lambda: self._log.append_action(episode.id, index, action)
        )

    async def reply(self, episode: Episode, collaborator: Collaborator, seed: int) -> Episode:
        assert self._row.hidden is not None  # run_episode checked
        last = episode.turns[-1]
        observation = observation_of(self._row.task, episode)
        began = time.perf_counter()
        with boundary(SimulatorError, f"The collaborator {collaborator.name!r} failed"):
            text = await collaborator.reply(observation, last.action, self._row.hidden, seed=seed)
        if not text.strip():
            raise SimulatorError(f"The collaborator {collaborator.name!r} said nothing.")
        took_ms = (time.perf_counter() - began) * 1000
        return await self.logged(
            episode.id, lambda: self._log.append_reply(episode.id, last.index, text, took_ms)
        )

    async def close(self, episode: Episode) -> Episode:
        last = episode.turns[-1].action
        if last.is_final:
            return await self.end(episode, StopReason.ANSWERED, artifact=last.artifact)
        left = last_page(episode.turns) if self._row.task.kind is TaskKind.FRONTEND else None
        return await self.end(episode, StopReason.TURN_LIMIT, artifact=left)

    async def end(
        self,
        episode: Episode,
        reason: StopReason,
        artifact: str | None = None,
        error: str | None = None,
    ) -> Episode:
        return await self.logged(
            episode.id, lambda: self._log.finish(episode.id, reason, artifact, error)
        )

    async def logged(self, episode_id: str, write: Callable[[], object]) -> Episode:
        """The episode after `write`, which runs beside the event loop: a disk may be slow."""

        def write_and_read() -> Episode:
            write()
            return self._log.episode(episode_id)

        episode = await asyncio.to_thread(write_and_read)
        if self._on_change:
            self._on_change(episode)
        return episode
