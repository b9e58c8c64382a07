"""Verbs about tasks."""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import partial
from itertools import islice

from sqlite_utils import Database

from sweet.errors import StoreError
from sweet.store.base import Row, StoreBase, clean, insert, one, page_bounds, rows, to_json
from sweet.store.connection import ContentError
from sweet.store.records import Imported, TaskSet
from sweet.store.rows import differing, to_hidden, to_task
from sweet.store.search import task_conditions
from sweet.types import HiddenInfo, Task, TaskKind, TaskRow

CHUNK = 500  # rows a transaction: the lock is free again in between


class TaskVerbs(StoreBase):
    """What can be done with tasks."""

    def add_tasks(self, new: Iterable[TaskRow]) -> Imported:
        """How many tasks were added and how many were known.

        Chunks are committed as they come: what was read before a bad row stays.
        Raises: StoreError for an id that is in the log with another content.
        """
        added = known = 0
        source = iter(new)
        while chunk := list(islice(source, CHUNK)):
            durable = any(row.hidden is None for row in chunk)  # a person's own task
            done = self._write(partial(add_rows, chunk), durable=durable)
            added, known = added + done, known + len(chunk) - done
        return Imported(added, known)

    def task(self, task_id: str) -> Task:
        """The task. Raises: StoreError where there is none."""
        with self._reading() as db:
            return to_task(need_task(db, task_id))

    def hidden(self, task_id: str) -> HiddenInfo | None:
        """The task's hidden information; None for a person's own task, which has none."""
        with self._reading() as db:
            need_task(db, task_id)
            return to_hidden(one(db, "SELECT * FROM hidden_info WHERE task_id = ?", task_id))

    def task_row(self, task_id: str) -> TaskRow:
        """The task with its hidden information, for what may see it."""
        return TaskRow(self.task(task_id), self.hidden(task_id))

    def task_sets(self) -> list[TaskSet]:
        """The task sets, in the order they came."""
        with self._reading() as db:
            found = rows(
                db,
                "SELECT source, split, kind, count(*) AS n FROM tasks "
                "GROUP BY source, split, kind ORDER BY min(seq)",
            )
        return [TaskSet(r["source"], r["split"], TaskKind(r["kind"]), r["n"]) for r in found]

    def tasks(
        self, source: str = "", split: str = "", text: str = "", limit: int = 50, offset: int = 0
    ) -> list[Task]:
        """A page of tasks in the order they came; an empty field does not filter."""
        where, values = task_conditions(source, split, text)
        sql = f"SELECT * FROM tasks AS t WHERE {where} ORDER BY seq LIMIT ? OFFSET ?"
        with self._reading() as db:
            found = rows(db, sql, [*values, *page_bounds(limit, offset)])
        return [to_task(row) for row in found]

    def count_tasks(self, source: str = "", split: str = "", text: str = "") -> int:
        """How many tasks there are on all pages together."""
        where, values = task_conditions(source, split, text)
        with self._reading() as db:
            return rows(db, f"SELECT count(*) AS n FROM tasks AS t WHERE {where}", values)[0]["n"]

    def random_task(self, source: str, split: str, seed: int) -> Task:
        """A task of the set: the same for the same seed. Raises: StoreError where it is empty."""
        where, values = task_conditions(source, split, "")
        with self._reading() as db:
            ids = rows(db, f"SELECT seq FROM tasks AS t WHERE {where} ORDER BY seq", values)
            if not ids:
                raise StoreError(
                    f"There is no task of the set {source or '(any)'}/{split or '(any)'} in the "
                    "log. `python -m sweet tasks list` shows what there is, `… tasks make` and "
                    "`… tasks import` add some."
                )
            seq = random.Random(seed).choice(ids)["seq"]
            row = one(db, "SELECT * FROM tasks WHERE seq = ?", seq)
        assert row is not None  # one moment
        return to_task(row)


def need_task(db: Database, task_id: str) -> Row:
    """The task's row. Raises: StoreError where there is none."""
    row = one(db, "SELECT * FROM tasks WHERE id = ?", clean(task_id))
    if row is None:
        raise StoreError(
            f"There is no task {task_id!r} in the log. Add it first; `python -m sweet tasks list` "
            "shows the task sets there are."
        )
    return row


def add_rows(chunk: Iterable[TaskRow], db: Database) -> int:
    """How many of the tasks were new."""
    return sum(_add(db, row) for row in chunk)


def _add(db: Database, row: TaskRow) -> bool:
    task, hidden = row.task, row.hidden
    new = {
        "id": task.id,
        "kind": str(task.kind),
        "description": task.description,
        "split": task.split,
        "source": task.source,
    }
    old = one(db, "SELECT * FROM tasks WHERE id = ?", clean(task.id))
    if old is not None:
        _check_same(db, new, old, hidden)
        return False
    insert(db, "tasks", new)
    if hidden is not None:
        calls = to_json(list(hidden.test_calls))
        secret = {"task_id": task.id, "reference": hidden.reference, "test_calls": calls}
        insert(db, "hidden_info", secret)
    return True


def _check_same(db: Database, new: Row, old: Row, hidden: HiddenInfo | None) -> None:
    differ = differing(new, old, ("kind", "description"))
    stored = to_hidden(one(db, "SELECT * FROM hidden_info WHERE task_id = ?", old["id"]))
    if _cleaned(hidden) != stored:
        differ.append("hidden information")
    if differ:
        raise ContentError(
            f"Task {old['id']!r} is in the log with another {' and '.join(differ)}. Episodes may "
            "refer to it, so it is not changed: give the new task an id of its own."
        )


def _cleaned(hidden: HiddenInfo | None) -> HiddenInfo | None:
    if hidden is None:
        return None
    return HiddenInfo(clean(hidden.reference), tuple(clean(c) for c in hidden.test_calls))
