"""Rounds as processes of their own: started, kept, aborted, resumed and watched from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweet.services import Services
from sweet.store import Round
from trainer.settings import RoundSettings


@dataclass(frozen=True, slots=True)
class StageProgress:
    """How far one stage of a round is; `done` of `total` units, 0 of 0 where it isn't counted."""

    name: str  # collect, pairs, critic, candidates, rank, policy, evaluate, register
    state: str  # waiting, running, done
    done: int = 0
    total: int = 0
    seconds: float | None = None  # since it began, or what it took
    remaining_s: float | None = None  # an estimate, from what was done so far
    note: str = ""  # such as "parent" while evaluate plays the parent's episodes
    ended_early: bool = False
    result: Mapping[str, Any] | None = None  # what it gave, as in the round's folder


@dataclass(frozen=True, slots=True)
class Preview:
    """What a round would learn from if it began now."""

    episodes: int
    tasks: int
    pairs: int
    success_rate: float | None
    by_source: Mapping[str, int]  # task sets: mini-backend/train
    by_collaborator: Mapping[str, int]
    by_policy: Mapping[str, int]
    pairs_by_source: Mapping[str, int]  # outcome, rating, edit, …
    left_out: Mapping[str, int]  # reasons
    fresh: int  # episodes that will be simulated first
    problem: str = ""  # why such a round would end at once; empty where nothing is in its way


class Jobs:
    """The rounds of one data folder."""

    def __init__(self, services: Services) -> None:
        self.services = services

    def start(self, settings: RoundSettings) -> str:
        """The id of a round that now runs in a process of its own. Raises: SweetError."""
        raise NotImplementedError

    def resume(self, id: str) -> None:
        """Go on with a round that broke off, was aborted, or failed. Raises: SweetError."""
        raise NotImplementedError

    def keep(self, id: str) -> None:
        """End the running stage early with what it has; the later stages run on."""
        raise NotImplementedError

    def abort(self, id: str) -> None:
        """End the round's process; nothing is registered, and it can be resumed."""
        raise NotImplementedError

    def running(self) -> Round | None:
        """The round that runs now, whoever started it."""
        raise NotImplementedError

    def rounds(self, limit: int = 20) -> list[Round]:
        """The newest rounds first, each with its true state."""
        raise NotImplementedError

    def progress(self, id: str) -> list[StageProgress]:
        """Each stage of a round, in order."""
        raise NotImplementedError

    def log_tail(self, id: str, lines: int = 200) -> str:
        """The last lines of what a round printed; empty where there are none."""
        raise NotImplementedError

    def preview(self, settings: RoundSettings) -> Preview:
        """What a round with these settings would learn from, chosen as the round chooses."""
        raise NotImplementedError

    def command(self, settings: RoundSettings) -> str:
        """The shell command that does the same without the app."""
        raise NotImplementedError
