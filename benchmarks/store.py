"""Acknowledged turns a second under contention: the store, and plain sqlite-utils.

Both write turns of 8 KB from 8 threads into a WAL file with a search index. Ours goes through one
writer; plain sqlite-utils has a connection a thread and its own `atomic()`, which reads before it
writes, as an application has to, and tries again when the database is locked.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from sqlite_utils import Database

from benchmarks.comparison import Comparison
from sweet.store import EpisodeStore
from sweet.types import Action, HiddenInfo, Task, TaskKind, TaskRow

THREADS = 8
TURNS = 10  # of an episode
EPISODES = 10  # a thread
TEXT = "a word " * 585  # 4 KB: twice a turn


def run() -> list[Comparison]:
    """Ours against plain sqlite-utils."""
    with tempfile.TemporaryDirectory() as folder:
        ours, _ = _rate(_ours(Path(folder) / "ours.db"))
        theirs, locked = _rate(_theirs(Path(folder) / "theirs.db"))
    conditions = (
        f"{THREADS} threads, {THREADS * EPISODES * TURNS} turns of 8 KB, WAL, synchronous NORMAL, "
        f"full-text index; 'database is locked': ours 0 times, theirs {locked} times"
    )
    return [Comparison("acknowledged turns/s under contention", ours, theirs, conditions)]


def _rate(write: Callable[[int], int]) -> tuple[float, int]:
    """Acknowledged turns a second, and how often the database was locked."""
    began = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        locked = sum(pool.map(write, range(THREADS)))
    return THREADS * EPISODES * TURNS / (time.perf_counter() - began), locked


def _ours(path: Path) -> Callable[[int], int]:
    store = EpisodeStore.open(path)
    task = Task("t", TaskKind.BACKEND, "A task.", "test", "benchmark")
    store.add_tasks([TaskRow(task, HiddenInfo("pass"))])
    action = Action(TEXT, TEXT, is_final=False)

    def write(thread: int) -> int:
        for _ in range(EPISODES):
            episode = store.start_episode("t", "benchmark", "scripted", thread)
            for index in range(TURNS):
                store.append_action(episode.id, index, action)
                store.append_reply(episode.id, index, TEXT)
        return 0  # a lock that was not got would be a StoreError

    return write


def _theirs(path: Path) -> Callable[[int], int]:
    with Database(path) as db:
        db.enable_wal()
        columns = {"episode": str, "turn_index": int, "raw": str, "reply": str}
        db.table("turns").create(columns, pk=("episode", "turn_index"))
        db.table("turns").enable_fts(["raw", "reply"], create_triggers=True)

    def write(thread: int) -> int:
        locked = 0
        with Database(path) as db:
            db.execute("PRAGMA synchronous = NORMAL")
            for number in range(EPISODES):
                for index in range(TURNS):
                    at = (f"{thread}-{number}", index)
                    locked += _until_written(db, partial(_say, db, *at))
                    locked += _until_written(db, partial(_reply, db, *at))
        return locked

    return write


def _say(db: Database, episode: str, index: int) -> None:
    table = db.table("turns")
    if table.count_where("episode = ?", [episode]) == index:
        table.insert({"episode": episode, "turn_index": index, "raw": TEXT})


def _reply(db: Database, episode: str, index: int) -> None:
    db.table("turns").update((episode, index), {"reply": TEXT})


def _until_written(db: Database, write: Callable[[], None]) -> int:
    """How often the database was locked before the transaction went through."""
    locked = 0
    while True:
        try:
            with db.atomic():
                write()
            return locked
        except sqlite3.OperationalError:
            locked += 1
