"""Rounds by themselves: every so many new episodes, or every so many hours; off by default.

The schedule is in the log, so it outlives the app. A thread of the app looks at it; of several apps
on one data folder only one does. While a round runs it waits. Hours that nobody was there for do
not pile up, and a round that could not begin or failed is not tried again before its next time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from filelock import FileLock, Timeout

from sweet.errors import ConfigError, SweetError
from sweet.store import Round, RoundState, ScheduleRow
from sweet.store.clock import iso, now
from sweet.types import EpisodeFilter
from trainer.jobs import Jobs
from trainer.preview import usable_since
from trainer.settings import RoundSettings
from trainer.workbench import rounds_folder

LOOK_S = 10.0  # how often the app looks whether a round is due
MOST_HOURS = 24 * 366
_BATCHES = 1000  # of the newest ones, those that rounds played are left out


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """When rounds start by themselves, and how the last such one went."""

    every_episodes: int  # 0: not by episodes
    every_hours: float  # 0: not by hours
    new_episodes: int  # usable ones since the last round began
    next_at: str | None  # when the hours are over, ISO 8601; None where not by hours
    last_at: str | None  # when it last started a round, or tried to
    last_round: Round | None
    last_error: str  # why the last one could not begin, or failed; empty where it went well
    waiting_for: str  # in words: what it waits for beside `next_at`

    @property
    def is_on(self) -> bool:
        """Whether rounds start by themselves."""
        return bool(self.every_episodes or self.every_hours)


class Schedule:
    """The schedule of one data folder."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self._store = jobs.services.store

    def state(self) -> ScheduleState:
        """The schedule, its next and its last run."""
        row = self._store.schedule()
        last = self._store.round(row.last_round_id) if row.last_round_id else None
        failed = last.error if last and last.state is RoundState.FAILED else None
        new = len(self._new(row))
        return ScheduleState(
            row.every_episodes,
            row.every_hours,
            new,
            row.next_at if row.every_hours else None,
            row.last_at,
            last,
            row.last_error or failed or "",
            self._waiting_for(row, new),
        )

    def set(
        self,
        *,
        every_episodes: int = 0,
        every_hours: float = 0.0,
        settings: RoundSettings | None = None,
    ) -> ScheduleState:
        """Change it; both 0 turn it off. `settings` are its rounds', as before where not given.

        Raises: ConfigError.
        """
        if every_episodes < 0:
            raise ConfigError(f"Every {every_episodes} episodes: it must be 1 or more, or 0: off.")
        if not 0 <= every_hours <= MOST_HOURS:
            raise ConfigError(
                f"Every {every_hours:g} hours: it must be above 0 and at most {MOST_HOURS:,}, or "
                "0: off."
            )
        row = self._store.schedule()
        self._store.set_schedule(
            replace(
                row,
                every_episodes=every_episodes,
                every_hours=every_hours,
                next_at=_after(every_hours),
                settings=row.settings if settings is None else settings.changed(),
            )
        )
        return self.state()

    def check(self) -> str | None:
        """Start a round if one is due and none runs; its id."""
        row = self._store.schedule()
        if self.jobs.running() or not self._is_due(row):
            return None
        newest = self._store.rounds(1)
        at = iso(now())
        tried = replace(row, since=at, last_at=at, next_at=_after(row.every_hours), last_error="")
        try:
            settings = RoundSettings(**row.settings)
            # The same seed would draw the same fresh tasks again.
            number = int(newest[0].id[1:]) if newest else 0
            id = self.jobs.start(replace(settings, seed=settings.seed + number))
        except (SweetError, TypeError) as e:  # TypeError: settings of another version
            self._store.set_schedule(replace(tried, last_round_id=None, last_error=str(e)))
            return None
        self._store.set_schedule(replace(tried, last_round_id=id))
        return id

    @contextmanager
    def watching(self, look_s: float = LOOK_S) -> Iterator[None]:
        """Due rounds start meanwhile, unless another app of this data folder sees to it."""
        over = threading.Event()
        thread = threading.Thread(target=self._watch, args=(over, look_s), name="schedule")
        thread.daemon = True
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _watch(self, over: threading.Event, look_s: float) -> None:
        folder = rounds_folder(self.jobs.services)
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / "schedule.lock", timeout=0)
        try:
            while not over.wait(look_s):
                try:
                    if not lock.is_locked:
                        lock.acquire()
                    self.check()
                except Timeout:
                    continue  # another app sees to it
                except SweetError as e:
                    logging.getLogger(__name__).warning("The schedule could not be read: %s", e)
        finally:
            lock.release()

    def _is_due(self, row: ScheduleRow) -> bool:
        if row.every_hours and row.next_at and row.next_at <= iso(now()):
            return True
        return bool(row.every_episodes) and len(self._new(row)) >= row.every_episodes

    def _new(self, row: ScheduleRow) -> frozenset[str]:
        """Usable episodes since a round last began, or was tried; not those that rounds played."""
        newest = self._store.rounds(1)
        since = max(row.since or "", newest[0].created_at if newest else "")
        try:
            found = usable_since(self.jobs.services, RoundSettings(**row.settings), since)
        except (ConfigError, TypeError):
            return frozenset()
        played = (
            one.episode.id
            for batch in self._store.batches(_BATCHES)
            if batch.kind.startswith("round ") and batch.created_at >= since
            for one in self._store.iter_episodes(EpisodeFilter(batch_id=batch.id))
        )
        return frozenset(found.difference(played))

    def _waiting_for(self, row: ScheduleRow, new: int) -> str:
        """What stands before the next round beside its time."""
        if not row.every_episodes and not row.every_hours:
            return ""
        if running := self.jobs.running():
            return f"round {running.id} to end"
        left = max(0, row.every_episodes - new)
        return f"{left:,} more {'episode' if left == 1 else 'episodes'}" if left else ""


def _after(hours: float) -> str | None:
    return iso(now() + timedelta(hours=hours)) if hours else None


def in_words(state: ScheduleState) -> str:
    """The schedule as lines of text."""
    rules = [f"every {state.every_episodes:,} new episodes"] if state.every_episodes else []
    rules += [f"every {state.every_hours:g} hours"] if state.every_hours else []
    last = state.last_round
    lines = [
        f"Rounds start by themselves {' or '.join(rules)}." if rules else "The schedule is off.",
        f"New episodes since the last round: {state.new_episodes:,}",
    ]
    if state.is_on:
        lines.append(f"Next: {' or '.join(filter(None, [state.next_at, state.waiting_for]))}")
    ended = f", {last.id} ({last.state})" if last else ""
    lines.append(f"Last: {state.last_at}{ended}" if state.last_at else "Last: never")
    return "\n".join([*lines, *filter(None, [state.last_error])])
