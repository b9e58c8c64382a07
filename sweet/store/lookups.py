"""Finding episodes and turns, and saying so where there are none."""

from __future__ import annotations

import secrets

from sqlite_utils import Database

from sweet.errors import StoreError
from sweet.store.base import Row, clean, one, rows
from sweet.store.records import Failure


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


def count_turns(db: Database, episode_id: str) -> int:
    """How many agent messages an episode has."""
    return rows(db, "SELECT count(*) AS n FROM turns WHERE episode_id = ?", [episode_id])[0]["n"]


def read_failures(db: Database, episode_id: str) -> list[Failure]:
    """The failures of an episode, oldest first."""
    found = rows(db, "SELECT * FROM failures WHERE episode_id = ? ORDER BY seq", [episode_id])
    return [Failure(r["episode_id"], r["turns"], r["error"], r["created_at"]) for r in found]


def _has(db: Database, episode_id: str) -> str:
    count = count_turns(db, episode_id)
    return f"it has turns 0 to {count - 1}" if count else "it has no turns yet"
