"""Verbs about rounds of training."""

from __future__ import annotations

import json
import math
import os
import socket
from collections.abc import Mapping
from typing import Any

from sqlite_utils import Database

from sweet.errors import StoreError
from sweet.store.base import Row, StoreBase, clean, insert, one, rows, to_json
from sweet.store.clock import now_iso
from sweet.store.processes import born, is_running
from sweet.store.records import Round, RoundMetric, RoundState

_STOPPED = "It was stopped. Resume it, or start another."


class RoundVerbs(StoreBase):
    """What can be done with rounds."""

    def start_round(
        self, round_id: str, algorithm: str, policy_id: str, settings: Mapping[str, Any]
    ) -> Round:
        """A new round, run by this process. Raises: StoreError where the id is taken."""
        new = {
            "id": round_id,
            "algorithm": algorithm,
            "policy_id": policy_id,
            "settings": to_json(dict(settings)),
            "host": socket.gethostname(),
            "process_id": os.getpid(),
            "process_born": born(os.getpid()),
            "created_at": now_iso(),
            "stage": "start",
            "done": 0,
            "total": 0,
        }

        def job(db: Database) -> Round:
            insert(db, "rounds", new)
            return _to_round(_need(db, round_id))

        return self._write(job, durable=True)

    def resume_round(self, round_id: str, process_id: int | None = None) -> Round:
        """The round, running again in this process, or in that of another number.

        Raises: StoreError where it is done.
        """
        if self.round(round_id).state is RoundState.DONE:
            raise StoreError(f"The round {round_id} is done; there is nothing to resume.")
        process_id = process_id or os.getpid()
        who = (socket.gethostname(), process_id, born(process_id))
        change = "host = ?, process_id = ?, process_born = ?, ended_at = NULL, error = NULL"
        return self._set_round(round_id, change, *who)

    def round_at(self, round_id: str, stage: str, done: int = 0, total: int = 0) -> Round:
        """The round, now as far as `done` of `total` units of a stage.

        The first count of a stage (`total` above 0) is what its speed is measured from.
        """

        def job(db: Database) -> Round:
            row, at = _need(db, round_id), now_iso()
            begins = total == 0 or row["stage"] != stage
            counts = begins or row["total"] != total
            new = {
                "stage": clean(stage),
                "done": done,
                "total": total,
                "stage_at": at if begins else row["stage_at"],
                "counted_at": at if counts else row["counted_at"],
                "counted_from": done if counts else row["counted_from"],
            }
            change = ", ".join(f"{name} = ?" for name in new)
            db.execute(f"UPDATE rounds SET {change} WHERE id = ?", [*new.values(), round_id])
            return _to_round(_need(db, round_id))

        return self._write(job, durable=False)

    def keep_round(self, round_id: str) -> Round:
        """The round, asked to end the stage that it is at with what that stage has so far."""
        return self._set_round(round_id, "keep_stage = stage")

    def end_round(
        self,
        round_id: str,
        *,
        version_id: str,
        is_promoted: bool,
        figures: Mapping[str, Any],
    ) -> Round:
        """The round, done, with the version that came of it."""
        change = "ended_at = ?, version_id = ?, is_promoted = ?, figures = ?"
        values = (now_iso(), version_id, int(is_promoted), to_json(dict(figures)))
        return self._set_round(round_id, change, *values)

    def fail_round(self, round_id: str, error: str) -> Round:
        """The round, failed for that reason."""
        return self._set_round(round_id, "ended_at = ?, error = ?", now_iso(), error)

    def stop_round(self, round_id: str) -> Round:
        """The round, given up by its process; it can be resumed, and then runs to its end."""
        return self._set_round(round_id, "process_id = 0, keep_stage = NULL")

    def round(self, round_id: str) -> Round:
        """The round and how far it is. Raises: StoreError where there is none."""
        with self._reading() as db:
            return _to_round(_need(db, round_id))

    def rounds(self, limit: int = 20) -> list[Round]:
        """The newest rounds first."""
        sql = "SELECT * FROM rounds ORDER BY seq DESC LIMIT ?"
        with self._reading() as db:
            return [_to_round(row) for row in rows(db, sql, [max(0, limit)])]

    def add_metrics(
        self, round_id: str, stage: str, step: int, values: Mapping[str, float]
    ) -> None:
        """Append what an update gave; an update that is done again after a stop adds nothing.

        Raises: StoreError for a value that is no finite number.
        """
        if wrong := [name for name, value in values.items() if not math.isfinite(value)]:
            raise StoreError(f"{', '.join(wrong)} of {stage}, step {step}, is no finite number.")
        sql = (
            "INSERT OR IGNORE INTO round_metrics (round_id, stage, step, name, value, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?)"
        )

        def job(db: Database) -> None:
            _need(db, round_id)
            for name, value in values.items():
                db.execute(sql, [round_id, stage, step, name, float(value), now_iso()])

        self._write(job, durable=False)

    def metrics(self, round_id: str, after_seq: int = 0) -> list[RoundMetric]:
        """A round's numbers that came after `after_seq`, oldest first."""
        sql = (
            "SELECT seq, stage, step, name, value FROM round_metrics "
            "WHERE round_id = ? AND seq > ? ORDER BY seq"
        )
        with self._reading() as db:
            _need(db, round_id)
            return [RoundMetric(**row) for row in rows(db, sql, [round_id, after_seq])]

    def _set_round(self, round_id: str, change: str, *values: Any) -> Round:
        def job(db: Database) -> Round:
            _need(db, round_id)
            given = [clean(value) for value in (*values, round_id)]
            db.execute(f"UPDATE rounds SET {change} WHERE id = ?", given)
            return _to_round(_need(db, round_id))

        return self._write(job, durable=False)


def _need(db: Database, round_id: str) -> Row:
    row = one(db, "SELECT * FROM rounds WHERE id = ?", clean(round_id))
    if row is None:
        raise StoreError(f"There is no round {round_id!r} in the log.")
    return row


def _to_round(row: Row) -> Round:
    state = _state(row)
    return Round(
        id=row["id"],
        algorithm=row["algorithm"],
        policy_id=row["policy_id"],
        settings=json.loads(row["settings"]),
        state=state,
        stage=row["stage"],
        done=row["done"],
        total=row["total"],
        created_at=row["created_at"],
        ended_at=row["ended_at"],
        error=_STOPPED if state is RoundState.LOST else row["error"],
        version_id=row["version_id"],
        is_promoted=None if row["is_promoted"] is None else bool(row["is_promoted"]),
        figures=json.loads(row["figures"]) if row["figures"] else None,
        process_id=row["process_id"],
        host=row["host"],
        keep_stage=row["keep_stage"],
        stage_at=row["stage_at"],
        counted_at=row["counted_at"],
        counted_from=row["counted_from"],
    )


def _state(row: Row) -> RoundState:
    if row["ended_at"] is not None:
        return RoundState.FAILED if row["error"] is not None else RoundState.DONE
    here = row["host"] == socket.gethostname()
    gone = not row["process_id"] or (
        here and not is_running(row["process_id"], row["process_born"])
    )
    return RoundState.LOST if gone else RoundState.RUNNING
