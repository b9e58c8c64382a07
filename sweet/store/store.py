"""The log: all that happened, in one SQLite file.

Tasks, episodes, turns, evaluations and feedback go in and are never changed. Writes go through one
thread, which answers after COMMIT: what a verb returned from is saved, also if the process is
killed in the next moment. Reads come from their own connections and never wait for a write. All
verbs are short and may be called from any thread; each raises StoreError and nothing else.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from sweet.errors import StoreError
from sweet.store.arrivals import ArrivalVerbs
from sweet.store.backup import copy_database, integrity_problems
from sweet.store.batches import BatchVerbs, PolicyVerbs
from sweet.store.candidates import CandidateVerbs
from sweet.store.comparisons import ComparisonVerbs
from sweet.store.connection import Readers, store_errors
from sweet.store.episodes import EpisodeVerbs
from sweet.store.forks import ForkVerbs
from sweet.store.log import LogVerbs
from sweet.store.outcomes import OutcomeVerbs
from sweet.store.preferences import PreferenceVerbs
from sweet.store.prepare import prepare
from sweet.store.records import Backup
from sweet.store.rounds import RoundVerbs
from sweet.store.schedule import ScheduleVerbs
from sweet.store.schema import migration_names
from sweet.store.tasks import TaskVerbs
from sweet.store.writer import Writer

BUSY_TIMEOUT_S = 5.0  # how long a write waits for another process's


class EpisodeStore(
    TaskVerbs,
    EpisodeVerbs,
    ForkVerbs,
    LogVerbs,
    ArrivalVerbs,
    BatchVerbs,
    PolicyVerbs,
    RoundVerbs,
    CandidateVerbs,
    ScheduleVerbs,
    ComparisonVerbs,
    PreferenceVerbs,
    OutcomeVerbs,
):
    """An open log. `EpisodeStore.open(path)`; close it, or use it in a `with`."""

    @classmethod
    def open(cls, path: Path | str, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Self:
        """The log at `path`, made or migrated (after a backup) where needed. Raises: StoreError."""
        path = Path(path).expanduser().absolute()
        prepare(path, busy_timeout_s)
        readers = Readers(path, busy_timeout_s)
        return cls(path, readers, Writer(path, busy_timeout_s, len(migration_names())))

    def close(self) -> None:
        """Finish what was asked for and close; closing again does nothing."""
        self._readers.close()
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def backup(self, path: Path | str) -> Backup:
        """A checked copy of the log as it is now, while it is in use. Raises: StoreError.

        To restore: stop the studio, move the log, its -wal and its -shm away, copy the backup
        to the log's place.
        """
        target = Path(path).expanduser().absolute()
        if target.is_dir():
            raise StoreError(f"{target} is a folder; name the file that the backup is to be.")
        with store_errors(target), self._readers.lend() as db:
            return copy_database(db, target)

    def problems(self) -> list[str]:
        """What is wrong inside the file; empty when all is well. Reads all of it."""
        with self._reading() as db:
            return integrity_problems(db)
