import shutil
import sqlite3

import pytest
from sqlite_utils import Database

from sweet.errors import StoreError
from sweet.store import EpisodeStore
from sweet.store.base import insert
from sweet.store.schema import APPLICATION_ID, MIGRATIONS, migration_names
from sweet.types import EpisodeFilter
from tests.sweet.store.samples import TASK, finished, talked
from tests.sweet.store.writing import PROCESSES, open_and_read

NAMES = migration_names()


def make_older(path, before: str) -> None:
    """A log as the version before migration `before` left it, with an episode in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with Database(sqlite3.connect(path, isolation_level=None)) as db:
        MIGRATIONS.apply(db, stop_before=before)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {NAMES.index(before)}")
        if before != NAMES[0]:
            fill(db)


def fill(db: Database) -> None:
    task = {"id": TASK.id, "kind": TASK.kind, "description": TASK.description}
    insert(db, "tasks", task | {"split": TASK.split, "source": TASK.source})
    who = {"policy_id": "embedded", "collaborator": "person", "seed": 1, "max_turns": 10}
    at = {"created_at": "2026-03-05T00:00:00.000Z"}
    insert(db, "episodes", {"id": "old", "task_id": TASK.id} | who | at)
    said = {"raw": "Which zebra?", "message": "Which zebra?", "is_final": 0, "reply": "five"}
    insert(db, "turns", {"episode_id": "old", "turn_index": 0} | said | at)


def backups(path):
    return sorted(path.parent.glob(f"{path.name}.before-*"))


def schema(path) -> set[str]:
    with Database(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
        return {f"{name}: {sql}" for name, sql in rows}


@pytest.mark.parametrize("before", NAMES)
def test_each_migration_brings_the_schema_before_it_to_today_s(tmp_path, before):
    old, fresh = tmp_path / "old" / "sweet.db", tmp_path / "fresh.db"
    make_older(old, before)
    EpisodeStore.open(fresh).close()
    with EpisodeStore.open(old) as store:
        assert store.problems() == []
        if before != NAMES[0]:
            assert [turn.reply for turn in store.episode("old").turns] == ["five"]
            assert store.search(EpisodeFilter(text="zebra shipping")).count == 1
            batch = store.start_batch("rollout", {}, 1)
            finished(store, "six", batch_id=batch)
            assert store.batch(batch).succeeded == 1
    assert schema(old) == schema(fresh)


def test_all_tables_are_strict_with_foreign_keys(store, path):
    with Database(sqlite3.connect(path)) as db:
        tables = [
            db.table(name)
            for name in db.table_names()
            if "_fts" not in name and not name.startswith(("sqlite_", "_sqlite"))
        ]
        assert all(table.strict for table in tables)
        assert {key.other_table for key in db.table("turns").foreign_keys} == {"episodes"}
        assert db.journal_mode == "wal"


def test_an_older_log_is_backed_up_before_it_is_migrated(path):
    make_older(path, NAMES[-1])
    before = schema(path)
    EpisodeStore.open(path).close()
    (backup,) = backups(path)
    assert NAMES[-1] in backup.name
    assert schema(backup) == before
    EpisodeStore.open(path).close()
    assert backups(path) == [backup]


def test_a_new_log_needs_no_backup(path):
    EpisodeStore.open(path).close()
    assert backups(path) == []


def test_a_migration_that_fails_leaves_the_log_as_it_was(path, monkeypatch):
    make_older(path, "m004_rounds")
    before = schema(path)
    broken = "CREATE TABLE half (id INTEGER); CREATE TABLE tasks (id INTEGER);"
    monkeypatch.setattr("sweet.store.schema._ROUNDS", broken)
    with pytest.raises(StoreError, match=r"tasks.*already exists"):
        EpisodeStore.open(path)
    assert schema(path) == before
    monkeypatch.undo()
    with EpisodeStore.open(path) as store:
        assert store.episode("old").turns[0].reply == "five"


def test_a_newer_log_is_refused_and_left_as_it_was(path, store):
    episode = talked(store, "five")
    store.close()
    with Database(sqlite3.connect(path)) as db:
        row = {"migration_set": "sweet", "name": "m999_future", "applied_at": "2030"}
        db.table("_sqlite_migrations").insert(row)
    bytes_before = path.read_bytes()
    with pytest.raises(StoreError, match=r"newer version.*m999_future.*Update the studio"):
        EpisodeStore.open(path)
    assert path.read_bytes() == bytes_before
    with Database(sqlite3.connect(path)) as db:
        db.table("_sqlite_migrations").delete_where("name = 'm999_future'")
    with EpisodeStore.open(path) as again:
        assert again.episode(episode.id) == episode


def test_a_log_that_is_migrated_while_in_use_takes_no_more_writes_of_the_old_version(store, path):
    episode = talked(store, "five")
    with Database(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 999")
    with pytest.raises(StoreError, match=r"schema 999.*Restart"):
        store.fork(episode.id, 0)
    assert store.episode(episode.id) == episode


def test_another_program_s_file_is_refused_and_left_as_it_was(path):
    path.parent.mkdir()
    with Database(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE photos (id INTEGER)")
    bytes_before = path.read_bytes()
    with pytest.raises(StoreError, match=r"another program.*SWEET_DATA"):
        EpisodeStore.open(path)
    assert path.read_bytes() == bytes_before


def test_three_processes_migrate_at_once_and_one_does_it(path, tmp_path):
    template = tmp_path / "template.db"
    make_older(template, NAMES[1])
    for attempt in range(10):
        target = path.parent / f"{attempt}" / path.name
        target.parent.mkdir(parents=True)
        shutil.copy(template, target)
        pipes = []
        for _ in range(3):
            mine, theirs = PROCESSES.Pipe()
            PROCESSES.Process(target=open_and_read, args=(target, theirs)).start()
            theirs.close()
            pipes.append(mine)
        for pipe in pipes:
            pipe.send("go")
        assert [pipe.recv() for pipe in pipes] == [("five", [])] * 3
        assert len(backups(target)) == 1
