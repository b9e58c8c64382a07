"""The one writer: a thread that runs each write in a transaction and answers after its COMMIT."""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from sqlite_utils import Database

from sweet.errors import StoreError
from sweet.store.connection import connect

T = TypeVar("T")


class Writer:
    """Runs writes one after another; a failed one leaves nothing behind and stops no other."""

    def __init__(self, path: Path, busy_timeout_s: float, schema_version: int) -> None:
        self._path = path
        self._busy_timeout_s = busy_timeout_s
        self._schema_version = schema_version
        self._jobs: queue.SimpleQueue[tuple[Callable, bool, Future] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._db: Database | None = None
        self._file: tuple[int, int] | None = None
        self._thread = threading.Thread(target=self._run, name="sweet-store-writer", daemon=True)
        self._thread.start()

    def do(self, job: Callable[[Database], T], *, durable: bool) -> T:
        """What `job` returned, once it is committed. `durable` also survives a power cut."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise StoreError(f"The log {self._path} has been closed.")
            self._jobs.put((job, durable, future))
        return future.result()

    def close(self) -> None:
        """Finish what was asked for, then close the connection."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._answer(*job)
            del job  # its result must not be kept alive until the next one comes
        self._disconnect()

    def _answer(self, job: Callable[[Database], Any], durable: bool, future: Future) -> None:
        try:
            future.set_result(self._commit(job, durable))
        except BaseException as e:  # the caller's, not this thread's
            future.set_exception(e)

    def _commit(self, job: Callable[[Database], T], durable: bool) -> T:
        db = self._connected()
        # WAL with NORMAL survives any crash of a process; FULL also a crash of the machine.
        db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        db.execute("BEGIN IMMEDIATE")
        try:
            self._check_schema(db)
            result = job(db)
            db.execute("COMMIT")
        except BaseException:
            self._roll_back(db)
            raise
        return result

    def _connected(self) -> Database:
        """The connection; refuses when the file was moved away, where writes would be lost."""
        here = _identity(self._path)
        if self._db is None:
            self._db = connect(self._path, busy_timeout_s=self._busy_timeout_s)
            self._file = here
        elif here != self._file:
            raise StoreError(
                f"The log {self._path} was moved, deleted or replaced while the studio runs. "
                "Nothing was saved. Put the file back, or restart the studio to begin with what "
                "is there now."
            )
        return self._db

    def _check_schema(self, db: Database) -> None:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version != self._schema_version:
            raise StoreError(
                f"The log {self._path} was brought to schema {version} by another version of the "
                f"studio; this process knows {self._schema_version}. Nothing was saved. Restart it."
            )

    def _roll_back(self, db: Database) -> None:
        try:
            db.rollback()
        except sqlite3.Error:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino
