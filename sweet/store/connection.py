"""Connections to the log, and what SQLite's errors mean to a person."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlite_utils import Database

from sweet.errors import StoreError


class ContentError(StoreError):
    """What was to be written contradicts the log or itself: it fails again however often tried."""


WAL_LIMIT_BYTES = 64 << 20  # what a checkpoint leaves of the write-ahead log


def connect(path: Path, *, busy_timeout_s: float, create: bool = False) -> Database:
    """A connection that may be lent from thread to thread, one at a time."""
    uri = f"{path.resolve().as_uri()}?mode={'rwc' if create else 'rw'}"
    connection = sqlite3.connect(
        uri, uri=True, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False
    )
    try:
        db = Database(connection)
        db.execute("PRAGMA foreign_keys = ON")
        db.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
    except BaseException:
        connection.close()
        raise
    return db


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system raise into a StoreError that says what to do."""
    try:
        yield
    except sqlite3.IntegrityError as e:
        raise ContentError(f"The log {path} does not take this: {e}. Nothing was changed.") from e
    except sqlite3.Error as e:
        raise StoreError(_explain(path, e)) from e
    except OSError as e:
        raise StoreError(
            f"Cannot use the log {path}: {e.strerror or e}. Check the folder and its permissions, "
            "or choose another data folder with SWEET_DATA."
        ) from e
    except OverflowError as e:
        raise ContentError(
            f"Nothing was saved: {e}. A whole number must fit in 64 bits (±9.2e18)."
        ) from e
    except UnicodeEncodeError as e:
        raise ContentError(f"Nothing was saved or found: {e.reason} in {e.object!r}.") from e


def _explain(path: Path, error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", "") or ""
    for start, explain in _EXPLANATIONS.items():
        if name.startswith(start):
            return explain(path)
    return (
        f"The log {path} refused this ({name or type(error).__name__}: {error}). Nothing was "
        "changed. If it happens again, make a backup (`python -m sweet backup PATH`) and report it."
    )


def _full(path: Path) -> str:
    with suppress(OSError):
        free_mb = shutil.disk_usage(path.parent).free / 1e6
        return (
            f"The disk is full: this could not be saved to {path} ({free_mb:,.0f} MB free there). "
            "All that was saved before is safe. Make room, then try again; no restart is needed."
        )
    return f"The disk is full: this could not be saved to {path}. Make room, then try again."


def _io(path: Path) -> str:
    return (
        f"The disk did not take or give data for {path} (a quota or file-size limit reached, a "
        "drive removed, or a fault). All that was saved before is safe if the disk is. See to the "
        "disk, then try again."
    )


def read_only(path: Path) -> str:
    """What to do about a log that may not be written."""
    return (
        f"The log {path} cannot be written: the file, its folder or the disk is read-only for this "
        f"user. Nothing was lost. Allow writing (`chmod u+w {path}`, and the folder), or choose "
        "another data folder with SWEET_DATA."
    )


def corrupt(path: Path) -> str:
    """What to do about a file that is damaged or no log."""
    return (
        f"The log {path} is damaged, or no SQLite file; it was left as it is. Stop the studio, "
        "move the file and its -wal and -shm away together, and copy your newest backup to its "
        f"place (backups before migrations: {path.name}.before-*). Without one, "
        "`sqlite3 FILE .recover` saves what can be read. Without a file a new, empty log is made."
    )


def _busy(path: Path) -> str:
    return (
        f"The log {path} is locked by another program. Nothing was changed. Close what holds it "
        "(a database browser, a long import, a stopped process), then try again."
    )


def _cannot_open(path: Path) -> str:
    if path.is_dir():
        return f"The log {path} is a folder; a file is expected there. Move it, or set SWEET_DATA."
    if not path.exists():
        return (
            f"The log {path} cannot be opened: it is not there (any more), and cannot be made. "
            "Check the folder, or choose another with SWEET_DATA."
        )
    return read_only(path)


def _too_big(path: Path) -> str:
    return "The text is longer than SQLite takes (1 GB). Nothing was saved; shorten it."


_EXPLANATIONS = {
    "SQLITE_FULL": _full,
    "SQLITE_IOERR": _io,
    "SQLITE_READONLY": read_only,
    "SQLITE_PERM": read_only,
    "SQLITE_CORRUPT": corrupt,
    "SQLITE_NOTADB": corrupt,
    "SQLITE_BUSY": _busy,
    "SQLITE_LOCKED": _busy,
    "SQLITE_CANTOPEN": _cannot_open,
    "SQLITE_TOOBIG": _too_big,
}


def writable(path: Path) -> bool:
    """Whether this user may write the file, or make it where there is none."""
    effective = os.access in os.supports_effective_ids
    folder = os.access(path.parent, os.W_OK | os.X_OK, effective_ids=effective)
    return folder and (not path.exists() or os.access(path, os.W_OK, effective_ids=effective))


class Readers:
    """Reading connections; each is lent to one thread at a time and kept for the next.

    Threads of a web server come and go: a connection bound to a thread would be left behind by it.
    """

    def __init__(self, path: Path, busy_timeout_s: float) -> None:
        self._path = path
        self._busy_timeout_s = busy_timeout_s
        self._idle: list[Database] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def lend(self) -> Iterator[Database]:
        """A connection inside a read transaction: all that is read belongs together."""
        db = self._take()
        try:
            db.execute("BEGIN")
            yield db
            db.execute("COMMIT")
        except BaseException:
            db.close()  # its state is unknown; a new one costs little
            raise
        self._give_back(db)

    def close(self) -> None:
        """Close what is idle, and what is lent as soon as it comes back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()

    def _take(self) -> Database:
        with self._lock:
            if self._closed:
                raise StoreError(f"The log {self._path} has been closed.")
            if self._idle:
                return self._idle.pop()
        db = connect(self._path, busy_timeout_s=self._busy_timeout_s)
        db.execute("PRAGMA query_only = ON")
        return db

    def _give_back(self, db: Database) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(db)
                return
        db.close()
