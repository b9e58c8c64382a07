"""What every group of verbs stands on: reading, writing, and refusing what cannot be kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlite_utils import Database

from sweet.store.connection import ContentError, Readers, store_errors
from sweet.store.writer import Writer

T = TypeVar("T")
Row = dict[str, Any]


class StoreBase:
    """The connections of an open log."""

    def __init__(self, path: Path, readers: Readers, writer: Writer) -> None:
        self.path = path
        self._readers = readers
        self._writer = writer

    @contextmanager
    def _reading(self) -> Iterator[Database]:
        """A read transaction: all that is read inside belongs to one moment."""
        with store_errors(self.path), self._readers.lend() as db:
            yield db

    def _write(self, job: Callable[[Database], T], *, durable: bool) -> T:
        """What `job` returned, committed. `durable` is for what a person wrote or voted."""
        with store_errors(self.path):
            return self._writer.do(job, durable=durable)


def one(db: Database, sql: str, *values: Any) -> Row | None:
    """The first row, or None."""
    return next(iter(rows(db, sql, values)), None)


def rows(db: Database, sql: str, values: Sequence[Any] = ()) -> list[Row]:
    """All rows; without the savepoint that `db.query` puts round each."""
    cursor = db.execute(sql, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def insert(db: Database, table: str, row: Row) -> int:
    """The new row's number."""
    columns = ", ".join(row)
    marks = ", ".join("?" for _ in row)
    cursor = db.execute(
        f"INSERT INTO {table} ({columns}) VALUES ({marks})", [clean(v) for v in row.values()]
    )
    assert cursor.lastrowid is not None  # an INSERT that did not raise
    return cursor.lastrowid


def clean(value: Any) -> Any:
    """The value as it can be stored: half a surrogate pair is no text and becomes �."""
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def to_json(value: Any) -> str:
    """The value as JSON. Raises: StoreError for what JSON has no word for."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as e:
        raise ContentError(f"Nothing was saved: {value!r} cannot be written as JSON ({e}).") from e


def page_bounds(limit: int, offset: int) -> tuple[int, int]:
    """The bounds of a page, as SQLite takes them; nothing negative."""
    return max(0, limit), max(0, offset)
