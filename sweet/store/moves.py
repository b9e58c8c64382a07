"""What each move does to the log, inside the transaction of its verb."""

from __future__ import annotations

from typing import Any

from sqlite_utils import Database

from sweet.errors import StoreError
from sweet.store.base import Row, clean, insert, one
from sweet.store.clock import now_iso
from sweet.store.lookups import count_turns, find_turn, need_episode, need_turn
from sweet.store.rows import action_row, differing, to_episode, to_turn
from sweet.store.tasks import need_task
from sweet.types import Action, Episode, StopReason, Turn

_SAID = ("raw", "message", "is_final", "artifact")
_REOPENED = (StopReason.FAILED, StopReason.STOPPED)


def start(db: Database, new: Row) -> Episode:
    """The new episode, or the one that was started alike under its id."""
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


def append_action(
    db: Database, episode_id: str, index: int, action: Action, key: str | None
) -> Turn:
    """The turn, with the action in the log."""
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


def append_reply(
    db: Database, episode_id: str, index: int, text: str, duration_ms: float | None, key: str | None
) -> Turn:
    """The turn, with its reply in the log."""
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


def finish(db: Database, episode_id: str, end: Row) -> Episode:
    """The episode, ended."""
    episode = need_episode(db, episode_id)
    if episode["stop_reason"] is None:
        _set_end(db, episode_id, end)
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


def reopen(db: Database, episode_id: str) -> Episode:
    """The episode, in progress again."""
    reason = need_episode(db, episode_id)["stop_reason"]
    if reason in _REOPENED:
        _set_end(db, episode_id, {"stop_reason": None, "artifact": None, "error": None})
    elif reason is not None:
        raise StoreError(
            f"Episode {episode_id} is over ({reason}); only a failed or stopped one is taken up "
            "again. To go on otherwise, make a fork."
        )
    return to_episode(db, need_episode(db, episode_id))


def insert_action(db: Database, episode_id: str, index: int, action: Action, **more: Any) -> None:
    """Append what the agent said."""
    row = {"episode_id": episode_id, "turn_index": index, **action_row(action)}
    insert(db, "turns", {**row, "created_at": now_iso(), **more})


def _set_end(db: Database, episode_id: str, end: Row) -> None:
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
