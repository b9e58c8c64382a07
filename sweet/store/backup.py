"""Backups: a copy of one moment, checked row by row before it gets its name."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sqlite_utils import Database

from sweet.errors import StoreError
from sweet.store.records import Backup


def copy_database(db: Database, target: Path) -> Backup:
    """The checked backup of what `db` reads now. Raises: StoreError; sqlite3 and OS errors as is.

    Written aside and renamed, so that `target` is there whole or not at all. One file, without
    -wal and -shm.
    """
    if target.exists():
        raise StoreError(f"{target} exists; a backup never replaces a file. Choose another name.")
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        counts = _copy(db, aside)
        digest = _sha256(aside)
        size = aside.stat().st_size
        os.replace(aside, target)
        _sync_folder(target.parent)
    finally:
        aside.unlink(missing_ok=True)
    return Backup(str(target), size, digest, *counts)


def _copy(db: Database, aside: Path) -> tuple[int, ...]:
    aside.unlink(missing_ok=True)
    copy = Database(sqlite3.connect(aside, isolation_level=None))
    held = not db.conn.in_transaction
    if held:
        db.execute("BEGIN")  # the copy and the checksum are of one moment
    try:
        before = checksum(db)
        db.conn.backup(copy.conn)
        copy.execute("PRAGMA journal_mode = DELETE")
        problems = integrity_problems(copy)
        if problems or checksum(copy) != before:
            raise StoreError(
                f"The backup {aside} differs from the log or is damaged "
                f"({'; '.join(problems) or 'unequal checksums'}); it was thrown away. Check the "
                "disk, and the log with `python -m sweet doctor`."
            )
        tables = set(copy.table_names())
        names = ("tasks", "episodes", "turns")
        return tuple(copy.table(name).count if name in tables else 0 for name in names)
    finally:
        if held:
            db.rollback()
        copy.close()


def integrity_problems(db: Database) -> list[str]:
    """What is wrong inside a database file; empty when nothing is."""
    found = [row[0] for row in db.execute("PRAGMA integrity_check(20)") if row[0] != "ok"]
    broken = db.execute("PRAGMA foreign_key_check").fetchmany(20)
    return found + [
        f"{table} row {rowid} refers to no {other}" for table, rowid, other, _ in broken
    ]


def checksum(db: Database) -> str:
    """SHA-256 of all rows of all tables: equal for equal content, however the file is laid out."""
    digest = hashlib.sha256()
    for line in _rows(db):
        digest.update(line)
    return digest.hexdigest()


def _rows(db: Database) -> Iterator[bytes]:
    virtual = {t for t in db.table_names() if db.table(t).virtual_table_using}
    for name in sorted(db.table_names()):
        if name in virtual or any(name.startswith(f"{fts}_") for fts in virtual):
            continue  # an index of the others
        yield f"{name}\n".encode()
        for row in db.execute(f'SELECT * FROM "{name}" ORDER BY rowid'):
            yield f"{row!r}\n".encode()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
