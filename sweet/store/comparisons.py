"""Verbs about comparisons: two episodes of a task side by side, and the votes on them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from sqlite_utils import Database

from sweet.errors import StoreError
from sweet.store.base import Row, StoreBase, clean, insert, one, rows
from sweet.store.clock import normal, now_iso
from sweet.store.connection import ContentError
from sweet.store.lookups import need_episode, new_id
from sweet.store.records import Choice, Comparison, Vote, Voter
from sweet.store.rows import differing
from sweet.store.search import EPISODES, TASK_SET, episode_conditions
from sweet.types import EpisodeFilter, StopReason

PAGE = 200  # votes read at once

_COMPARISON = f"""
SELECT c.*, t.kind, {TASK_SET} AS task_set, l.policy_id AS left_policy, r.policy_id AS right_policy
FROM comparisons AS c JOIN tasks AS t ON t.id = c.task_id
  JOIN episodes AS l ON l.id = c.left_id JOIN episodes AS r ON r.id = c.right_id
"""


class ComparisonVerbs(StoreBase):
    """What can be done with comparisons."""

    def start_comparison(
        self, one: str, other: str, *, is_blind: bool = True, key: str | None = None
    ) -> Comparison:
        """A new comparison of two episodes of one task; which of them is left is drawn.

        The same request again, by its `key`, gives the comparison it made, with its sides.
        Raises: StoreError for unknown episodes, one episode twice, or episodes of two tasks.
        """
        left, right = (one, other) if secrets.randbelow(2) else (other, one)
        new = {
            "id": new_id(),
            "left_id": left,
            "right_id": right,
            "is_blind": int(is_blind),
            "key": key,
            "created_at": now_iso(),
        }
        return self._write(lambda db: _start(db, new), durable=True)

    def comparison(self, comparison_id: str) -> Comparison:
        """The comparison. Raises: StoreError where there is none."""
        with self._reading() as db:
            return _to_comparison(_need(db, comparison_id))

    def comparisons_of(self, episode_id: str) -> list[Comparison]:
        """The comparisons that an episode is a side of, oldest first."""
        sql = f"{_COMPARISON} WHERE ? IN (c.left_id, c.right_id) ORDER BY c.seq"
        with self._reading() as db:
            need_episode(db, episode_id)
            return [_to_comparison(row) for row in rows(db, sql, [clean(episode_id)])]

    def vote(
        self,
        comparison_id: str,
        choice: Choice,
        voter: str,
        *,
        by: Voter = Voter.PERSON,
        reason: str = "",
        side_named: bool = False,
        key: str | None = None,
    ) -> Vote:
        """The vote, in the log. `side_named`: a side said its own name, so it was not blind.

        Who voted on a comparison has voted: the same choice again is acknowledged and written
        once. Where a side failed only FAILED and SKIP are taken, and FAILED nowhere else.
        Raises: StoreError for another choice of the same voter, or a side that is not over.
        """
        new = {
            "comparison_id": comparison_id,
            "choice": _checked(choice),
            "voter": voter,
            "voter_kind": str(by),
            "reason": reason,
            "side_named": int(side_named),
            "key": key,
            "created_at": now_iso(),
        }
        return self._write(lambda db: _vote(db, new), durable=True)

    def votes(self, comparison_id: str) -> list[Vote]:
        """The votes on a comparison, oldest first."""
        with self._reading() as db:
            comparison = _to_comparison(_need(db, comparison_id))
            sql = "SELECT * FROM votes WHERE comparison_id = ? ORDER BY seq"
            return [_to_vote(row, comparison) for row in rows(db, sql, [comparison.id])]

    def iter_votes(self, wanted: EpisodeFilter | None = None) -> Iterator[Vote]:
        """The votes on comparisons of which the filter lets a side through, oldest first."""
        where, values = episode_conditions(wanted or EpisodeFilter())
        let = f"SELECT e.id FROM {EPISODES} WHERE {where}"
        sql = (
            "SELECT v.* FROM votes AS v JOIN comparisons AS c ON c.id = v.comparison_id "
            f"WHERE v.seq > ? AND (c.left_id IN ({let}) OR c.right_id IN ({let})) "
            "ORDER BY v.seq LIMIT ?"
        )
        after = 0
        while True:
            with self._reading() as db:
                page = rows(db, sql, [after, *values, *values, PAGE])
                votes = [
                    _to_vote(row, _to_comparison(_need(db, row["comparison_id"]))) for row in page
                ]
            yield from votes
            if len(page) < PAGE:
                return
            after = page[-1]["seq"]

    def add_vote(self, vote: Vote) -> bool:
        """Whether a vote of another log was new; it is added with its comparison.

        Raises: StoreError where an episode is not here, or it contradicts the log.
        """
        return self._write(lambda db: _add(db, vote), durable=False)


def _start(db: Database, new: Row) -> Comparison:
    sides = {new["left_id"], new["right_id"]}
    if new["key"] is not None:
        made = one(db, "SELECT * FROM comparisons WHERE key = ?", clean(new["key"]))
        if made is not None:
            if {made["left_id"], made["right_id"]} != sides:
                raise ContentError(
                    f"The request {new['key']!r} made a comparison of other episodes already; a "
                    "new comparison needs a key of its own."
                )
            return _to_comparison(_need(db, made["id"]))
    _insert(db, new)
    return _to_comparison(_need(db, new["id"]))


def _insert(db: Database, new: Row) -> None:
    left, right = need_episode(db, new["left_id"]), need_episode(db, new["right_id"])
    if left["id"] == right["id"]:
        raise ContentError(f"Episode {left['id']} cannot be compared with itself. Choose another.")
    if left["task_id"] != right["task_id"]:
        raise ContentError(
            f"Episodes {left['id']} and {right['id']} are of different tasks ({left['task_id']}, "
            f"{right['task_id']}). Choose two of the same task."
        )
    insert(db, "comparisons", new | {"task_id": left["task_id"]})


def _vote(db: Database, new: Row) -> Vote:
    comparison = _to_comparison(_need(db, new["comparison_id"]))
    if not new["voter"].strip():
        raise ContentError("A vote needs a voter: the name of a person, a browser or a judge.")
    old = _known_vote(db, new)
    if old is None:
        _check_sides(db, comparison, Choice(new["choice"]))
        insert(db, "votes", new)
        old = _known_vote(db, new)
        assert old is not None  # just written
    elif differ := differing(new, old, ("comparison_id", "voter", "voter_kind", "choice")):
        raise ContentError(
            f"The vote of {old['voter']} on comparison {old['comparison_id']} is in the log with "
            f"another {' and '.join(differ)}. A vote is not changed."
        )
    return _to_vote(old, comparison)


def _checked(choice: str) -> str:
    if choice not in set(Choice):
        raise ContentError(f"The vote is {choice!r}; it must be one of {', '.join(Choice)}.")
    return str(choice)


def _known_vote(db: Database, new: Row) -> Row | None:
    if new["key"] is not None:
        row = one(db, "SELECT * FROM votes WHERE key = ?", clean(new["key"]))
        if row is not None:
            return row
    sql = "SELECT * FROM votes WHERE comparison_id = ? AND voter = ?"
    return one(db, sql, clean(new["comparison_id"]), clean(new["voter"]))


def _check_sides(db: Database, comparison: Comparison, choice: Choice) -> None:
    ends = [need_episode(db, side)["stop_reason"] for side in (comparison.left, comparison.right)]
    failed = StopReason.FAILED in ends
    if failed and choice not in (Choice.FAILED, Choice.SKIP):
        raise ContentError(
            f"A side of comparison {comparison.id} failed: that is recorded, not voted on. Skip "
            "it, or retry the failed episode."
        )
    if choice is Choice.FAILED and not failed:
        raise ContentError(f"No side of comparison {comparison.id} failed; vote, or skip it.")
    if None in ends and choice not in (Choice.SKIP, Choice.FAILED):
        raise ContentError(
            f"A side of comparison {comparison.id} is not over. Vote when both are, or skip it."
        )


def _add(db: Database, vote: Vote) -> bool:
    comparison = vote.comparison
    new = {
        "id": comparison.id,
        "left_id": comparison.left,
        "right_id": comparison.right,
        "is_blind": int(comparison.is_blind),
        "created_at": normal(comparison.created_at, "created_at"),
    }
    old = one(db, "SELECT * FROM comparisons WHERE id = ?", clean(comparison.id))
    if old is None:
        _insert(db, new)
    elif differ := differing(new, old, ("left_id", "right_id", "is_blind")):
        raise ContentError(
            f"Comparison {comparison.id!r} is in the log with another {' and '.join(differ)}."
        )
    cast = {
        "comparison_id": comparison.id,
        "choice": str(vote.choice),
        "voter": vote.voter,
        "voter_kind": str(vote.by),
        "reason": vote.reason,
        "side_named": int(vote.side_named),
    }
    known = _known_vote(db, cast | {"key": None})
    if known is None:
        insert(db, "votes", cast | {"created_at": normal(vote.created_at, "created_at")})
    elif differ := differing(cast, known, list(cast)):
        raise ContentError(
            f"The vote of {vote.voter!r} on comparison {comparison.id} is in the log with another "
            f"{' and '.join(differ)}."
        )
    return known is None


def _need(db: Database, comparison_id: str) -> Row:
    row = one(db, f"{_COMPARISON} WHERE c.id = ?", clean(comparison_id))
    if row is None:
        raise StoreError(f"There is no comparison {comparison_id!r} in the log.")
    return row


def _to_comparison(row: Row) -> Comparison:
    return Comparison(
        id=row["id"],
        task_id=row["task_id"],
        task_set=row["task_set"],
        left=row["left_id"],
        right=row["right_id"],
        left_policy=row["left_policy"],
        right_policy=row["right_policy"],
        is_blind=bool(row["is_blind"]),
        created_at=row["created_at"],
    )


def _to_vote(row: Row, comparison: Comparison) -> Vote:
    return Vote(
        comparison,
        Choice(row["choice"]),
        row["voter"],
        Voter(row["voter_kind"]),
        row["reason"],
        bool(row["side_named"]),
        row["created_at"],
    )
