"""Brings a log to this version's schema: one process at a time, after a backup."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock, Timeout
from sqlite_utils import Database

from sweet.errors import StoreError
from sweet.store.backup import copy_database
from sweet.store.clock import now, stamp
from sweet.store.connection import connect, read_only, store_errors, writable
from sweet.store.schema import APPLICATION_ID, MIGRATIONS, migration_names

LOCK_TIMEOUT_S = 60.0


def prepare(path: Path, busy_timeout_s: float) -> None:
    """Make the log, or migrate an older one. Raises: StoreError; the file stays as it was."""
    with store_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not writable(path):
            raise StoreError(read_only(path))
        try:
            with FileLock(f"{path}.lock", timeout=LOCK_TIMEOUT_S):
                _prepare_alone(path, busy_timeout_s)
        except Timeout as e:
            raise StoreError(
                f"Another process has been preparing the log {path} for {LOCK_TIMEOUT_S:.0f} s. "
                "Wait for it, or end it, then try again."
            ) from e


def _prepare_alone(path: Path, busy_timeout_s: float) -> None:
    db = connect(path, busy_timeout_s=busy_timeout_s, create=True)
    try:
        _check_ours(db, path)
        pending = MIGRATIONS.pending(db)
        if not pending:
            return
        if db.table_names():
            copy_database(db, _free_name(path, pending[0].name))
        _migrate(db)
    finally:
        db.close()


def _check_ours(db: Database, path: Path) -> None:
    """Refuse other programs' files and newer schemas."""
    application_id = db.execute("PRAGMA application_id").fetchone()[0]
    if application_id != APPLICATION_ID and db.table_names():
        raise StoreError(
            f"{path} is a SQLite file of another program; it was left as it is. Choose another "
            "data folder with SWEET_DATA, or move that file away."
        )
    known = migration_names()
    newer = [m.name for m in MIGRATIONS.applied(db) if m.name not in known]
    if newer:
        raise StoreError(
            f"The log {path} was made by a newer version of the studio (it has "
            f"{', '.join(newer)}; this version knows up to {known[-1]}). It was left as it is. "
            "Update the studio, or restore the backup made before that migration."
        )


def _migrate(db: Database) -> None:
    """All pending migrations in one transaction: all of them, or none."""
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("BEGIN IMMEDIATE")
    try:
        MIGRATIONS.apply(db)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {len(migration_names())}")
        db.execute("COMMIT")
    except BaseException:
        db.rollback()
        raise


def _free_name(path: Path, migration: str) -> Path:
    """Where the backup before `migration` goes; never over an older one."""
    return path.with_name(f"{path.name}.before-{migration}-{stamp(now())}")
