"""Verbs about one episode: start, append, finish, score."""

from __future__ import annotations

from collections.abc import Mapping

from sqlite_utils import Database

from sweet.store import moves
from sweet.store.base import StoreBase
from sweet.store.lookups import need_episode, need_turn, new_id, read_failures
from sweet.store.records import Failure
from sweet.store.rows import insert_advantages, insert_evaluation, to_episode
from sweet.types import MAX_TURNS, Action, Episode, Evaluation, StopReason, Turn

PERSON = "person"


class EpisodeVerbs(StoreBase):
    """What can be done with one episode."""

    def start_episode(
        self,
        task_id: str,
        policy_id: str,
        collaborator: str,
        seed: int,
        max_turns: int = MAX_TURNS,
        parent_id: str | None = None,
        forked_at: int | None = None,
        episode_id: str | None = None,
        batch_id: str | None = None,
    ) -> Episode:
        """A new episode. With an `episode_id` that was started alike already: that one.

        Raises: StoreError for an unknown task or batch, or an id started otherwise.
        """
        new = {
            "id": new_id() if episode_id is None else episode_id,
            "task_id": task_id,
            "policy_id": policy_id,
            "collaborator": collaborator,
            "seed": seed,
            "max_turns": max_turns,
            "parent_id": parent_id,
            "forked_at": forked_at,
            "batch_id": batch_id,
        }
        return self._write(lambda db: moves.start(db, new), durable=collaborator == PERSON)

    def append_action(
        self, episode_id: str, index: int, action: Action, key: str | None = None
    ) -> Turn:
        """The turn, once what the agent said is in the log.

        The same turn again with equal content, or the same request again by its `key`, is
        acknowledged and written once. Raises: StoreError for other content or the wrong turn.
        """
        return self._write(
            lambda db: moves.append_action(db, episode_id, index, action, key), durable=False
        )

    def append_reply(
        self,
        episode_id: str,
        index: int,
        text: str,
        duration_ms: float | None = None,
        key: str | None = None,
    ) -> Turn:
        """The turn, once the collaborator's reply is in the log; acknowledged like an action."""
        with self._reading() as db:
            by_person = need_episode(db, episode_id)["collaborator"] == PERSON
        return self._write(
            lambda db: moves.append_reply(db, episode_id, index, text, duration_ms, key),
            durable=by_person,
        )

    def finish(
        self,
        episode_id: str,
        stop_reason: StopReason,
        artifact: str | None = None,
        error: str | None = None,
    ) -> Episode:
        """The episode, ended. Ending it again alike is acknowledged; otherwise StoreError."""
        end = {"stop_reason": str(stop_reason), "artifact": artifact, "error": error}
        with self._reading() as db:
            with_person = need_episode(db, episode_id)["collaborator"] == PERSON
        return self._write(lambda db: moves.finish(db, episode_id, end), durable=with_person)

    def reopen(self, episode_id: str) -> Episode:
        """The failed or stopped episode, in progress again; one in progress as it is.

        A failure stays on record (`failures`). Raises: StoreError after any other end.
        """
        return self._write(lambda db: moves.reopen(db, episode_id), durable=False)

    def failures(self, episode_id: str) -> list[Failure]:
        """The failures that ended the episode so far, oldest first."""
        with self._reading() as db:
            need_episode(db, episode_id)
            return read_failures(db, episode_id)

    def add_evaluation(self, episode_id: str, evaluation: Evaluation) -> Episode:
        """The episode with a further evaluation; the newest counts, the older ones stay."""

        def job(db: Database) -> Episode:
            need_episode(db, episode_id)
            insert_evaluation(db, episode_id, evaluation)
            return to_episode(db, need_episode(db, episode_id))

        return self._write(job, durable=False)

    def add_advantages(
        self, episode_id: str, critic: str, advantages: Mapping[int, float]
    ) -> Episode:
        """The episode with a critic's advantage of each turn index; the newest count."""

        def job(db: Database) -> Episode:
            for index in advantages:
                need_turn(db, episode_id, index)
            insert_advantages(db, episode_id, critic, advantages)
            return to_episode(db, need_episode(db, episode_id))

        return self._write(job, durable=False)

    def episode(self, episode_id: str) -> Episode:
        """The episode with its turns and its newest evaluation. Raises: StoreError."""
        with self._reading() as db:
            return to_episode(db, need_episode(db, episode_id))
