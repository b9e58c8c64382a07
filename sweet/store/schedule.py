"""Verbs about when rounds start by themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlite_utils import Database

from sweet.store.base import StoreBase, clean, one, to_json

_COLUMNS = (
    "every_episodes, every_hours, settings, since, next_at, last_at, last_round_id, last_error"
)


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """When rounds are to start by themselves, and the last that did; off where both are 0."""

    every_episodes: int = 0
    every_hours: float = 0.0
    settings: Mapping[str, Any] = field(default_factory=dict)  # those that are no defaults
    since: str | None = None  # episodes count from here on
    next_at: str | None = None  # when the hours are over
    last_at: str | None = None
    last_round_id: str | None = None
    last_error: str = ""  # why the last one could not begin


class ScheduleVerbs(StoreBase):
    """What can be done with the schedule; there is one."""

    def schedule(self) -> ScheduleRow:
        """The schedule; off where none was ever set."""
        with self._reading() as db:
            row = one(db, f"SELECT {_COLUMNS} FROM schedule")
        return (
            ScheduleRow(**{**row, "settings": json.loads(row["settings"])})
            if row
            else ScheduleRow()
        )

    def set_schedule(self, schedule: ScheduleRow) -> ScheduleRow:
        """The schedule, from now on."""
        values = asdict(schedule) | {"settings": to_json(dict(schedule.settings))}
        given = [clean(values[name]) for name in _COLUMNS.split(", ")]
        marks = ", ".join("?" for _ in given)
        sql = f"INSERT OR REPLACE INTO schedule (id, {_COLUMNS}) VALUES (1, {marks})"

        def job(db: Database) -> None:
            db.execute(sql, given)

        self._write(job, durable=True)
        return schedule
