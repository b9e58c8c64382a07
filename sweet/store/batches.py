"""Verbs about batches of simulated episodes, and about policy versions."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from typing import Any

from sqlite_utils import Database

from sweet.errors import StoreError
from sweet.store.base import Row, StoreBase, clean, insert, one, rows, to_json
from sweet.store.clock import normal, now_iso
from sweet.store.lookups import new_id
from sweet.store.processes import is_running
from sweet.store.records import Batch, BatchState
from sweet.store.rows import differing, to_policy
from sweet.types import PolicyVersion

_BATCH = """
SELECT b.*, count(e.id) AS started, count(e.stop_reason) AS finished,
  coalesce(sum(v.reward >= 1), 0) AS succeeded, avg(v.reward) AS mean_reward,
  coalesce(sum(e.error IS NOT NULL OR v.error IS NOT NULL OR e.stop_reason = 'failed'), 0) AS errors
FROM batches AS b LEFT JOIN episodes AS e ON e.batch_id = b.id
  LEFT JOIN evaluations AS v ON v.seq = e.evaluation_seq
"""


class BatchVerbs(StoreBase):
    """What can be done with batches."""

    def start_batch(self, kind: str, settings: Mapping[str, Any], total: int) -> str:
        """The id of a new batch of `total` episodes, run by this process."""
        batch = {
            "id": new_id(),
            "kind": kind,
            "settings": to_json(dict(settings)),
            "total": total,
            "host": socket.gethostname(),
            "process_id": os.getpid(),
            "created_at": now_iso(),
        }
        self._write(lambda db: insert(db, "batches", batch), durable=False)
        return str(batch["id"])

    def batch(self, batch_id: str) -> Batch:
        """The batch and how far it is. Raises: StoreError where there is none."""
        with self._reading() as db:
            return _to_batch(_need_batch(db, batch_id))

    def batches(self, limit: int = 20) -> list[Batch]:
        """The newest batches first."""
        sql = f"{_BATCH} GROUP BY b.seq ORDER BY b.seq DESC LIMIT ?"
        with self._reading() as db:
            return [_to_batch(row) for row in rows(db, sql, [max(0, limit)])]

    def request_stop(self, batch_id: str) -> Batch:
        """The batch, asked to stop: whoever runs it reads STOPPING and starts no more episodes."""
        return self._set(batch_id, "stop_requested_at = coalesce(stop_requested_at, ?)", now_iso())

    def end_batch(self, batch_id: str, error: str | None = None) -> Batch:
        """The batch, ended: DONE, STOPPED where that was asked, FAILED with an `error`."""
        change = "error = CASE WHEN ended_at IS NULL THEN ? ELSE error END, "
        return self._set(batch_id, change + "ended_at = coalesce(ended_at, ?)", error, now_iso())

    def end_lost_batches(self) -> list[str]:
        """The ids of this machine's batches whose process is gone; they end as FAILED.

        Their episodes stay, those in progress too.
        """
        sql = "SELECT id, process_id FROM batches WHERE ended_at IS NULL AND host = ?"
        with self._reading() as db:
            running = rows(db, sql, [socket.gethostname()])
        lost = [row["id"] for row in running if not is_running(row["process_id"])]
        for batch_id in lost:
            self.end_batch(batch_id, "Its process ended before it was done.")
        return lost

    def _set(self, batch_id: str, change: str, *values: Any) -> Batch:
        def job(db: Database) -> Batch:
            _need_batch(db, batch_id)
            db.execute(
                f"UPDATE batches SET {change} WHERE id = ?",
                [clean(value) for value in (*values, batch_id)],
            )
            return _to_batch(_need_batch(db, batch_id))

        return self._write(job, durable=False)


class PolicyVerbs(StoreBase):
    """What can be done with policy versions."""

    def add_policy(self, policy: PolicyVersion) -> PolicyVersion:
        """The policy version, in the log; adding it again alike changes nothing.

        Raises: StoreError for an id that is there with another content, or an unknown parent.
        """
        return self._write(lambda db: _add_policy(db, policy), durable=True)

    def policy(self, policy_id: str) -> PolicyVersion:
        """The policy version. Raises: StoreError where there is none."""
        with self._reading() as db:
            return to_policy(_need_policy(db, policy_id))

    def policies(self) -> list[PolicyVersion]:
        """All policy versions, in the order they came."""
        with self._reading() as db:
            return [to_policy(row) for row in rows(db, "SELECT * FROM policies ORDER BY seq")]


def _need_batch(db: Database, batch_id: str) -> Row:
    row = one(db, f"{_BATCH} WHERE b.id = ? GROUP BY b.seq", clean(batch_id))
    if row is None:
        raise StoreError(f"There is no batch {batch_id!r} in the log. Start it first.")
    return row


def _to_batch(row: Row) -> Batch:
    return Batch(
        id=row["id"],
        kind=row["kind"],
        settings=json.loads(row["settings"]),
        total=row["total"],
        state=_state(row),
        started=row["started"],
        finished=row["finished"],
        succeeded=row["succeeded"],
        errors=row["errors"],
        created_at=row["created_at"],
        ended_at=row["ended_at"],
        error=row["error"],
        process_id=row["process_id"],
        mean_reward=row["mean_reward"],
    )


def _state(row: Row) -> BatchState:
    asked = row["stop_requested_at"] is not None
    if row["ended_at"] is None:
        return BatchState.STOPPING if asked else BatchState.RUNNING
    if row["error"] is not None:
        return BatchState.FAILED
    return BatchState.STOPPED if asked else BatchState.DONE


def _add_policy(db: Database, policy: PolicyVersion) -> PolicyVersion:
    new = {
        "id": policy.id,
        "base_model": policy.base_model,
        "adapter_path": policy.adapter_path,
        "parent_id": policy.parent_id,
        "note": policy.note,
    }
    old = one(db, "SELECT * FROM policies WHERE id = ?", clean(policy.id))
    if old is None:
        if policy.parent_id is not None:
            _need_policy(db, policy.parent_id)
        created = normal(policy.created_at, "created_at") if policy.created_at else now_iso()
        insert(db, "policies", new | {"created_at": created})
    elif differ := differing(new, old, list(new)):
        raise StoreError(
            f"Policy {policy.id!r} is in the log with another {' and '.join(differ)}. A version is "
            "not changed: register the new one under an id of its own."
        )
    return to_policy(_need_policy(db, policy.id))


def _need_policy(db: Database, policy_id: str) -> Row:
    row = one(db, "SELECT * FROM policies WHERE id = ?", clean(policy_id))
    if row is None:
        raise StoreError(
            f"There is no policy {policy_id!r} in the log. `python -m sweet policies list` shows "
            "those there are."
        )
    return row
