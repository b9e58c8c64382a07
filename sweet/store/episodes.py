"""Verbs about one episode: start, append, finish, score."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from sqlite_utils import Database

from sweet.errors import StoreError
from sweet.store.base import Row, StoreBase, clean, insert, one, rows
from sweet.store.clock import now_iso
from sweet.store.records import Failure
from sweet.store.rows import (
    action_row,
    differing,
    insert_advantages,
    insert_evaluation,
    to_episode,
    to_turn,
)
from sweet.store.tasks import need_task
from sweet.types import MAX_TURNS, Action, Episode, Evaluation, StopReason, Turn

PERSON = "person"
_SAID = ("raw", "message", "is_final", "artifact")
_REOPENED = (StopReason.FAILED, StopReason.STOPPED)


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
        return self._write(lambda db: _start(db, new), durable=collaborator == PERSON)

    def append_action(
        self, episode_id: str, index: int, action: Action, key: str | None = None
    ) -> Turn:
        """The turn, once what the agent said is in the log.

        The same turn again with equal content, or the same request again by its `key`, is
        acknowledged and written once. Raises: StoreError for other content or the wrong turn.
        """
        return self._write(
            lambda db: _append_action(db, episode_id, index, action, key), durable=False
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
            lambda db: _append_reply(db, episode_id, index, text, duration_ms, key),
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
        return self._write(lambda db: _finish(db, episode_id, end), durable=with_person)

    def reopen(self, episode_id: str) -> Episode:
        """The failed or stopped episode, in progress again; one in progress as it is.

        A failure stays on record (`failures`). Raises: StoreError after any other end.
        """
        return self._write(lambda db: _reopen(db, episode_id), durable=False)

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


def new_id() -> str:
    """An id nothing else has."""
    return secrets.token_hex(8)


def need_episode(db: Database, episode_id: str) -> Row:
    """The episode's row. Raises: StoreError where there is none."""
    row = one(db, "SELECT * FROM episodes WHERE id = ?", clean(episode_id))
    if row is None:
        raise StoreError(
            f"There is no episode {episode_id!r} in the log. Look for it in Sessions; it may be in "
            "another data folder (SWEET_DATA)."
        )
    return row


def need_turn(db: Database, episode_id: str, index: int) -> Row:
    """The turn's row. Raises: StoreError where there is none."""
    need_episode(db, episode_id)
    row = find_turn(db, episode_id, index)
    if row is None:
        raise StoreError(f"Episode {episode_id!r} has no turn {index!r}; {_has(db, episode_id)}.")
    return row


def find_turn(db: Database, episode_id: str, index: int) -> Row | None:
    """The turn's row, or None."""
    sql = "SELECT * FROM turns WHERE episode_id = ? AND turn_index = ?"
    return one(db, sql, clean(episode_id), index)


def read_failures(db: Database, episode_id: str) -> list[Failure]:
    """The failures of an episode, oldest first."""
    found = rows(db, "SELECT * FROM failures WHERE episode_id = ? ORDER BY seq", [episode_id])
    return [Failure(r["episode_id"], r["turns"], r["error"], r["created_at"]) for r in found]


def insert_action(db: Database, episode_id: str, index: int, action: Action, **more: Any) -> None:
    """Append what the agent said."""
    row = {"episode_id": episode_id, "turn_index": index, **action_row(action)}
    insert(db, "turns", {**row, "created_at": now_iso(), **more})


def count_turns(db: Database, episode_id: str) -> int:
    """How many agent messages an episode has."""
    return rows(db, "SELECT count(*) AS n FROM turns WHERE episode_id = ?", [episode_id])[0]["n"]


def set_end(db: Database, episode_id: str, end: Row) -> None:
    """Write where the episode stands."""
    db.execute(
        "UPDATE episodes SET stop_reason = ?, artifact = ?, error = ?, ended_at = ? WHERE id = ?",
        [
            end["stop_reason"],
            clean(end["artifact"]),
            clean(end["error"]),
            now_iso() if end["stop_reason"] else None,
            episode_id,
        ],
    )


def _has(db: Database, episode_id: str) -> str:
    count = count_turns(db, episode_id)
    return f"it has turns 0 to {count - 1}" if count else "it has no turns yet"


def _start(db: Database, new: Row) -> Episode:
    need_task(db, new["task_id"])
    if not new["id"] or not str(new["id"]).strip():
        raise StoreError("An episode id is empty. Leave it out to have one made.")
    if new["batch_id"] and not one(db, "SELECT 1 FROM batches WHERE id = ?", new["batch_id"]):
        raise StoreError(f"There is no batch {new['batch_id']!r} in the log. Start it first.")
    if new["max_turns"] < 1:
        raise StoreError(f"max_turns is {new['max_turns']!r}; an episode has at least 1 turn.")
    old = one(db, "SELECT * FROM episodes WHERE id = ?", clean(new["id"]))
    if old is None:
        insert(db, "episodes", new | {"created_at": now_iso()})
    elif differ := differing(new, old, list(new)):
        raise StoreError(
            f"Episode {new['id']!r} was started already with another {' and '.join(differ)}. "
            "Leave the id out to have a new one made."
        )
    return to_episode(db, need_episode(db, new["id"]))


def _append_action(
    db: Database, episode_id: str, index: int, action: Action, key: str | None
) -> Turn:
    episode = need_episode(db, episode_id)
    old = _by_key(db, "action_key", episode_id, key) or find_turn(db, episode_id, index)
    if old is None:
        _check_next(db, episode, index)
        insert_action(db, episode_id, index, action, action_key=key)
    elif differing(action_row(action), old, _SAID):
        raise StoreError(
            f"Turn {old['turn_index']} of episode {episode_id} is in the log with another message "
            "of the agent. What was said is not changed: make a fork to go on otherwise."
        )
    return to_turn(old or need_turn(db, episode_id, index))


def _append_reply(
    db: Database, episode_id: str, index: int, text: str, duration_ms: float | None, key: str | None
) -> Turn:
    episode = need_episode(db, episode_id)
    old = _by_key(db, "reply_key", episode_id, key) or need_turn(db, episode_id, index)
    if old["reply"] is None:
        _check_open(episode)
        if old["is_final"]:
            raise StoreError(
                f"Turn {index} of episode {episode_id} is the agent's final answer: it gets no "
                "reply. To go on, make a fork."
            )
        db.execute(
            "UPDATE turns SET reply = ?, reply_duration_ms = ?, replied_at = ?, reply_key = ? "
            "WHERE seq = ?",
            [clean(text), duration_ms, now_iso(), clean(key), old["seq"]],
        )
        old = need_turn(db, episode_id, index)
    elif old["reply"] != clean(text):
        raise StoreError(
            f"Turn {old['turn_index']} of episode {episode_id} is in the log with another reply. "
            "What was said is not changed: make a fork to go on otherwise."
        )
    return to_turn(old)


def _by_key(db: Database, column: str, episode_id: str, key: str | None) -> Row | None:
    if key is None:
        return None
    sql = f"SELECT * FROM turns WHERE episode_id = ? AND {column} = ?"
    return one(db, sql, episode_id, clean(key))


def _check_open(episode: Row) -> None:
    if episode["stop_reason"] is None:
        return
    advice = "It is not added to; start a new one."
    if episode["stop_reason"] == StopReason.REPLACED:
        advice = "Go on in the fork that replaced it."
    elif episode["stop_reason"] in _REOPENED:
        advice = "Reopen it to go on."
    raise StoreError(f"Episode {episode['id']} is over ({episode['stop_reason']}). {advice}")


def _check_next(db: Database, episode: Row, index: int) -> None:
    _check_open(episode)
    count = count_turns(db, episode["id"])
    if index != count:
        raise StoreError(
            f"Turn {index!r} does not come next in episode {episode['id']}: turn {count} does."
        )
    if count >= episode["max_turns"]:
        raise StoreError(f"Episode {episode['id']} has had its {episode['max_turns']} turns.")
    if not count:
        return
    last = need_turn(db, episode["id"], count - 1)
    if last["is_final"] or last["reply"] is None:
        missing = "the final answer" if last["is_final"] else "not replied to yet"
        raise StoreError(
            f"The agent cannot speak again in episode {episode['id']}: turn {count - 1} is "
            f"{missing}."
        )


def _finish(db: Database, episode_id: str, end: Row) -> Episode:
    episode = need_episode(db, episode_id)
    if episode["stop_reason"] is None:
        set_end(db, episode_id, end)
        if end["stop_reason"] == StopReason.FAILED:
            failure = {"episode_id": episode_id, "turns": count_turns(db, episode_id)}
            reason = end["error"] or "no reason given"
            insert(db, "failures", failure | {"error": reason, "created_at": now_iso()})
    elif differ := differing(end, episode, list(end)):
        raise StoreError(
            f"Episode {episode_id} is over already ({episode['stop_reason']}), with another "
            f"{' and '.join(differ)}. Nothing was changed."
        )
    return to_episode(db, need_episode(db, episode_id))


def _reopen(db: Database, episode_id: str) -> Episode:
    reason = need_episode(db, episode_id)["stop_reason"]
    if reason in _REOPENED:
        set_end(db, episode_id, {"stop_reason": None, "artifact": None, "error": None})
    elif reason is not None:
        raise StoreError(
            f"Episode {episode_id} is over ({reason}); only a failed or stopped one is taken up "
            "again. To go on otherwise, make a fork."
        )
    return to_episode(db, need_episode(db, episode_id))
