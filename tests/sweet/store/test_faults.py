import errno
import os
import resource
import sqlite3
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from sweet.errors import StoreError
from sweet.store import EpisodeStore
from tests.sweet.store.samples import TASK_ROW, asks, started, talked

MB = 1 << 20


@contextmanager
def largest_file(size: int):
    """The kernel lets no file grow beyond `size`, like a full disk or a quota."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def not_root():
    """Permissions count: root may write everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def limit_pages(store, pages: int) -> None:
    """SQLite itself says that the disk is full beyond so many pages."""
    store._write(lambda db: db.execute(f"PRAGMA max_page_count = {pages}").fetchall(), durable=True)


def test_a_full_disk_loses_nothing_and_the_store_goes_on_when_there_is_room(store, path):
    episode = talked(store, "five")
    limit_pages(store, 1)  # SQLite takes it as: no more than there are
    with pytest.raises(StoreError, match=r"disk is full.*MB free.*Make room.*no restart"):
        store.append_action(episode.id, 1, asks("x" * MB))
    assert store.episode(episode.id) == episode
    limit_pages(store, 1_000_000)
    store.append_action(episode.id, 1, asks("x" * MB))
    assert len(store.episode(episode.id).turns) == 2
    assert store.problems() == []


def test_a_file_that_may_not_grow_loses_nothing_and_the_store_goes_on_after(store, path):
    episode = talked(store, "five")
    with (
        largest_file(2 * MB),
        pytest.raises(StoreError, match=r"(disk is full|did not take).*safe"),
    ):
        for _ in range(10):
            episode = store.fork(episode.id, 0, reply="y" * MB)
    known = store.episode(episode.id)
    store.append_action(known.id, len(known.turns), asks())
    assert len(store.episode(known.id).turns) == len(known.turns) + 1
    assert store.problems() == []
    store.close()
    with EpisodeStore.open(path) as again:
        assert len(again.episode(known.id).turns) == len(known.turns) + 1


def test_a_backup_that_does_not_fit_leaves_no_half_file(store, tmp_path):
    talked(store, "z" * MB)
    folder = tmp_path / "backups"
    with largest_file(MB // 2), pytest.raises(StoreError, match=r"disk"):
        store.backup(folder / "a.db")
    assert list(folder.iterdir()) == []
    assert store.backup(folder / "a.db").episodes == 1


@pytest.fixture
def open_folder():
    """A folder that every user may enter; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def test_a_read_only_file_is_refused_with_what_to_do(open_folder):
    path = open_folder / "sweet.db"
    with EpisodeStore.open(path) as store:
        store.add_tasks([TASK_ROW])
    path.chmod(0o444)
    with not_root(), pytest.raises(StoreError, match=r"cannot be written.*chmod u\+w.*SWEET_DATA"):
        EpisodeStore.open(path)
    path.chmod(0o644)
    with EpisodeStore.open(path) as again:
        assert again.task(TASK_ROW.task.id) == TASK_ROW.task


def test_a_read_only_folder_is_refused_with_what_to_do(open_folder):
    folder = open_folder / "data"
    folder.mkdir(mode=0o555)
    with not_root(), pytest.raises(StoreError, match=r"cannot be written"):
        EpisodeStore.open(folder / "sweet.db")
    assert list(folder.iterdir()) == []


def test_a_file_that_becomes_read_only_can_still_be_read(store):
    episode = talked(store, "five")
    store._write(lambda db: None, durable=False)
    store._writer._db.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match=r"cannot be written.*read-only"):
        store.append_action(episode.id, 1, asks())
    assert store.episode(episode.id) == episode
    store._writer._db.execute("PRAGMA query_only = OFF")
    assert store.append_action(episode.id, 1, asks()).index == 1


@pytest.mark.parametrize(
    "content", [b"no database at all " * 99, b"SQLite format 3\0" + b"\xff" * 9000, b"\0" * 5000]
)
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged, or no SQLite file.*backup"):
        EpisodeStore.open(path)
    assert path.read_bytes() == content


def test_a_damaged_page_is_told_when_it_is_met_and_the_rest_can_be_read(store, path):
    big = talked(store, *["w" * 100_000] * 5)
    small = talked(store, "five")
    assert small.id != big.id
    store.close()
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xde\xad" * 50_000)
    with EpisodeStore.open(path) as again:
        with pytest.raises(StoreError, match="damaged"):
            again.episode(big.id)
            again.episode(small.id)
            list(again.iter_episodes())
        with pytest.raises(StoreError, match=r"differs from the log or is damaged|is damaged"):
            again.backup(path.parent / "backup.db")
        assert not (path.parent / "backup.db").exists()


def test_a_folder_in_the_log_s_place_is_told(tmp_path):
    with pytest.raises(StoreError, match="is a folder"):
        EpisodeStore.open(tmp_path)


def test_a_data_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=r"SWEET_DATA"):
        EpisodeStore.open(tmp_path / "file" / "sweet.db")


def test_a_foreign_lock_is_told_and_the_write_works_when_it_is_gone(path, store):
    episode = talked(store, "five")
    store.close()
    with EpisodeStore.open(path, busy_timeout_s=0.2) as impatient:
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"locked by another program.*try again"):
            impatient.append_action(episode.id, 1, asks())
        assert impatient.episode(episode.id) == episode  # readers never wait
        holder.execute("ROLLBACK")
        holder.close()
        assert impatient.append_action(episode.id, 1, asks()).index == 1


def test_a_log_that_was_moved_away_takes_no_writes_that_would_be_lost(path, store):
    episode = talked(store, "five")
    aside = path.with_name("aside.db")
    path.rename(aside)
    with pytest.raises(StoreError, match=r"moved, deleted or replaced.*Put the file back"):
        store.append_action(episode.id, 1, asks())
    aside.rename(path)
    assert store.append_action(episode.id, 1, asks()).index == 1


def test_a_failed_write_does_not_stop_those_waiting_behind_it(store):
    with pytest.raises(ZeroDivisionError):
        store._write(lambda db: 1 / 0, durable=False)
    assert started(store).turns == ()


def test_a_write_that_breaks_off_in_the_middle_leaves_nothing(store):
    def half(db):
        db.execute("UPDATE episodes SET policy_id = 'changed'")
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    episode = started(store)
    with pytest.raises(StoreError, match="Input/output error"):
        store._write(half, durable=True)
    assert store.episode(episode.id) == episode


def test_the_clock_is_not_asked_for_the_order(store, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 0.0)
    episode = talked(store, "one", "two", "three")
    assert [turn.reply for turn in episode.turns] == ["one", "two", "three"]
