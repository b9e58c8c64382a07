"""Verbs about forks: a person changes or retries a turn, and the old episode stays as it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlite_utils import Database

from sweet.errors import StoreError
from sweet.seeds import derived_seed
from sweet.store.base import Row, StoreBase, clean, insert, one, rows
from sweet.store.clock import now_iso
from sweet.store.lookups import find_turn, need_episode, need_turn, new_id
from sweet.store.moves import insert_action
from sweet.store.records import Fork, ForkKind
from sweet.store.rows import to_action, to_episode
from sweet.types import Action, Episode, StopReason

PAGE = 200  # forks read at once


class ForkVerbs(StoreBase):
    """What can be done with an episode that is to go on otherwise."""

    def fork(
        self,
        episode_id: str,
        at_turn: int,
        *,
        reply: str | None = None,
        action: Action | None = None,
        seed: int | None = None,
        key: str | None = None,
    ) -> Episode:
        """A new episode with the turns before `at_turn` copied; the old one becomes REPLACED.

        `reply`: a person's own reply of that turn, rewritten; the agent's message is copied too.
        `action`: the agent's message of that turn, rewritten; its reply is awaited.
        Neither: the agent is to speak again at that turn (also where it failed to).
        `seed` is by default derived from the episode's, and another for each of its forks.
        The same request again, by its `key`, gives the fork it made.
        """
        if reply is not None and action is not None:
            raise StoreError("Give a new reply or a new action, not both: a fork changes one text.")
        kind = ForkKind.REPLY if reply is not None else ForkKind.RETRY
        kind = kind if action is None else ForkKind.ACTION
        change = _Change(at_turn, kind, reply, action, seed, key)
        return self._write(lambda db: _fork(db, episode_id, change), durable=True)

    def children(self, episode_id: str) -> list[str]:
        """The ids of the forks that were made of an episode, oldest first."""
        with self._reading() as db:
            need_episode(db, episode_id)
            found = rows(
                db, "SELECT id FROM episodes WHERE parent_id = ? ORDER BY seq", [episode_id]
            )
        return [row["id"] for row in found]

    def lineage(self, episode_id: str) -> list[str]:
        """The ids from the first episode through its forks to this one."""
        sql = """
        WITH RECURSIVE line (id, parent_id, step) AS (
          SELECT id, parent_id, 0 FROM episodes WHERE id = ?
          UNION ALL
          SELECT e.id, e.parent_id, step + 1 FROM episodes AS e JOIN line ON e.id = line.parent_id
          WHERE step < 10000)
        SELECT id FROM line ORDER BY step DESC"""
        with self._reading() as db:
            need_episode(db, episode_id)
            return [row["id"] for row in rows(db, sql, [clean(episode_id)])]

    def iter_forks(self) -> Iterator[Fork]:
        """All turns that people replaced, oldest first, with what was rejected and chosen."""
        after = 0
        sql = "SELECT * FROM episodes WHERE fork_kind IS NOT NULL AND seq > ? ORDER BY seq LIMIT ?"
        while True:
            with self._reading() as db:
                page = rows(db, sql, [after, PAGE])
                forks = [_to_fork(db, row) for row in page]
            yield from forks
            if len(page) < PAGE:
                return
            after = page[-1]["seq"]


@dataclass(frozen=True, slots=True)
class _Change:
    """What a person wants otherwise."""

    at_turn: int
    kind: ForkKind
    reply: str | None
    action: Action | None
    seed: int | None
    key: str | None


def _fork(db: Database, parent_id: str, change: _Change) -> Episode:
    parent = need_episode(db, parent_id)
    if change.key is not None:
        made = one(db, "SELECT * FROM episodes WHERE fork_key = ?", clean(change.key))
        if made is not None:
            return _made_before(db, made, parent_id, change)
    _check(db, parent, change)
    child = _insert_child(db, parent, change)
    for index in range(change.at_turn):
        _copy_turn(db, parent_id, index, child)
    if change.kind is ForkKind.REPLY:
        _copy_turn(db, parent_id, change.at_turn, child, reply=change.reply)
    if change.action is not None:
        insert_action(db, child, change.at_turn, change.action)
    _replace(db, parent)
    return to_episode(db, need_episode(db, child))


def _made_before(db: Database, made: Row, parent_id: str, change: _Change) -> Episode:
    same = (made["parent_id"], made["forked_at"]) == (parent_id, change.at_turn)
    if not same:
        raise StoreError(
            f"The request {change.key!r} made a fork of episode {made['parent_id']} already; a new "
            "request needs a key of its own."
        )
    return to_episode(db, made)


def _check(db: Database, parent: Row, change: _Change) -> None:
    before = change.at_turn - 1
    if change.at_turn < 0 or change.at_turn >= parent["max_turns"]:
        raise StoreError(
            f"Episode {parent['id']} has turns 0 to {parent['max_turns'] - 1}; it cannot be forked "
            f"at turn {change.at_turn!r}."
        )
    if before >= 0 and need_turn(db, parent["id"], before)["reply"] is None:
        raise StoreError(
            f"Episode {parent['id']} cannot be forked at turn {change.at_turn}: turn {before} has "
            "no reply."
        )
    if change.kind is ForkKind.RETRY:
        return
    turn = need_turn(db, parent["id"], change.at_turn)
    if change.kind is ForkKind.REPLY and turn["reply"] is None:
        raise StoreError(
            f"Turn {change.at_turn} of episode {parent['id']} has no reply to rewrite; append it."
        )


def _insert_child(db: Database, parent: Row, change: _Change) -> str:
    count = "SELECT count(*) AS n FROM episodes WHERE parent_id = ?"
    siblings = rows(db, count, [parent["id"]])[0]["n"]
    same = ("task_id", "policy_id", "collaborator", "max_turns")
    child = {name: parent[name] for name in same} | {
        "id": new_id(),
        "seed": _retry_seed(parent, siblings) if change.seed is None else change.seed,
        "created_at": now_iso(),
        "parent_id": parent["id"],
        "forked_at": change.at_turn,
        "fork_kind": str(change.kind),
        "fork_key": change.key,
    }
    insert(db, "episodes", child)
    return str(child["id"])


def _retry_seed(parent: Row, siblings: int) -> int:
    return derived_seed(parent["seed"], "fork", siblings)


def _copy_turn(
    db: Database, parent_id: str, index: int, child_id: str, reply: str | None = None
) -> None:
    turn = need_turn(db, parent_id, index)
    dropped = ("seq", "action_key", "reply_key")
    copy = {name: value for name, value in turn.items() if name not in dropped}
    if reply is not None:
        copy |= {"reply": reply, "reply_duration_ms": None, "replied_at": now_iso()}
    insert(db, "turns", copy | {"episode_id": child_id})


def _replace(db: Database, parent: Row) -> None:
    if parent["stop_reason"] == StopReason.REPLACED:
        return
    db.execute(
        "UPDATE episodes SET stop_reason = ?, ended_as = ?, ended_at = coalesce(ended_at, ?) "
        "WHERE id = ?",
        [str(StopReason.REPLACED), parent["stop_reason"], now_iso(), parent["id"]],
    )


def _to_fork(db: Database, child: Row) -> Fork:
    kind, index = ForkKind(child["fork_kind"]), child["forked_at"]
    old = find_turn(db, child["parent_id"], index)
    new = find_turn(db, child["id"], index)
    rejected, chosen = (_changed_text(turn, kind) for turn in (old, new))
    return Fork(child["parent_id"], child["id"], index, kind, rejected, chosen)


def _changed_text(turn: Row | None, kind: ForkKind) -> Action | str | None:
    if turn is None:
        return None
    return turn["reply"] if kind is ForkKind.REPLY else to_action(turn)
