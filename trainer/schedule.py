"""Rounds by themselves: every so many new episodes, or every so many hours; off by default."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from sweet.store import Round
from trainer.jobs import Jobs
from trainer.settings import RoundSettings


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
    waiting_for: str  # in words: what it waits for

    @property
    def is_on(self) -> bool:
        """Whether rounds start by themselves."""
        return bool(self.every_episodes or self.every_hours)


class Schedule:
    """The schedule of one data folder, kept in the log."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs

    def state(self) -> ScheduleState:
        """The schedule, its next and its last run."""
        raise NotImplementedError

    def set(
        self,
        *,
        every_episodes: int = 0,
        every_hours: float = 0.0,
        settings: RoundSettings | None = None,
    ) -> ScheduleState:
        """Change it; both 0 turn it off. Raises: ConfigError."""
        raise NotImplementedError

    def check(self) -> str | None:
        """Start a round if one is due; its id."""
        raise NotImplementedError

    def watch(self) -> threading.Thread:
        """The thread that checks, where no other app of this data folder does so already."""
        raise NotImplementedError
