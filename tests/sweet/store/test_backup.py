import hashlib
import os
import shutil
import threading

import pytest

from sweet.errors import StoreError
from sweet.store import EpisodeStore
from sweet.store.backup import checksum
from tests.sweet.store.samples import finished, talked


def content(store) -> str:
    with store._reading() as db:
        return checksum(db)


def test_a_backup_restored_as_the_docs_say_is_equal(store, path, tmp_path):
    kept = finished(store, "five")
    before = content(store)
    done = store.backup(tmp_path / "backups" / "one.db")
    talked(store, "after the backup")
    store.close()
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        if (path.parent / name).exists():
            (path.parent / name).rename(path.parent / f"broken-{name}")
    shutil.copy(done.path, path)
    with EpisodeStore.open(path) as restored:
        assert content(restored) == before
        assert restored.episode(kept.id) == kept
        assert restored.search().count == done.episodes == 1
        assert talked(restored, "goes on").turns[0].reply == "goes on"


def test_a_backup_is_one_file_with_the_sum_that_was_told(store, tmp_path):
    finished(store, "five")
    done = store.backup(tmp_path / "backups" / "one.db")
    assert os.listdir(tmp_path / "backups") == ["one.db"]
    data = (tmp_path / "backups" / "one.db").read_bytes()
    assert done.sha256 == hashlib.sha256(data).hexdigest()
    assert (done.bytes, done.tasks, done.episodes, done.turns) == (len(data), 1, 1, 2)


def test_a_backup_during_writes_is_of_one_moment(store, tmp_path):
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            finished(store, "five", collaborator="scripted")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        backups = [store.backup(tmp_path / f"{n}.db") for n in range(5)]
    finally:
        stop.set()
        writer.join()
    for done in backups:
        with EpisodeStore.open(done.path) as copy:
            assert copy.problems() == []
            assert copy.search(limit=1).count == done.episodes


def test_a_backup_never_replaces_a_file(store, path, tmp_path):
    (tmp_path / "there.db").write_text("mine")
    for target in (tmp_path / "there.db", path):
        with pytest.raises(StoreError, match="exists"):
            store.backup(target)
    with pytest.raises(StoreError, match="is a folder"):
        store.backup(tmp_path)
    assert (tmp_path / "there.db").read_text() == "mine"
