"""Both sides of a comparison while they are played: begun together, once, whoever watches.

A page shows as many moves of the one side as of the other, and of the messages that are being
spoken as many characters. A quick model waits there for a slow one, so its pace says nothing.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from sweet.episode import next_speaker
from sweet.errors import PolicyError, StoreError, SweetError, boundary
from sweet.services import PERSON, Services
from sweet.types import Episode, Speaker, StopReason


class Side:
    """One side: its episode as it was last logged, and what is being spoken."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.pieces: list[str] = []
        self.error = ""
        self.is_done = False

    def changed(self, episode: Episode) -> None:
        """A move was logged; what is spoken next is another message."""
        self.episode = episode
        self.pieces.clear()

    @property
    def speaker(self) -> Speaker:
        """Which model is at work; NOBODY while a person is waited for, and while it is scored."""
        found = next_speaker(self.episode)
        waits = found is Speaker.COLLABORATOR and self.episode.collaborator == PERSON
        return Speaker.NOBODY if self.is_done or waits else found


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What a page shows of a side: turns, and what `speaker` has said of the next message."""

    episode: Episode
    speaker: Speaker = Speaker.NOBODY
    said: str = ""


def glimpses(sides: Sequence[Side]) -> list[Glimpse]:
    """As much of each side as all of those that still move have come to."""
    moving = [side for side in sides if side.speaker is not Speaker.NOBODY]
    if not moving:
        return [Glimpse(side.episode) for side in sides]
    at = min(_moves(side.episode) for side in moving)
    speaking = [side for side in moving if _moves(side.episode) == at]
    chars = min(len("".join(side.pieces)) for side in speaking)
    return [_glimpse(side, at, chars) for side in sides]


def _glimpse(side: Side, at: int, chars: int) -> Glimpse:
    """A side after `at` moves, with so many characters of the next one."""
    moves = _moves(side.episode)
    if moves < at or (moves == at and side.speaker is Speaker.NOBODY):
        return Glimpse(side.episode)
    shown = _cut(side.episode, at) if moves > at else side.episode
    if at % 2:
        return Glimpse(shown, Speaker.COLLABORATOR)
    turns = side.episode.turns
    text = turns[at // 2].action.raw if moves > at else "".join(side.pieces)
    return Glimpse(shown, Speaker.AGENT, text[:chars])


def _moves(episode: Episode) -> int:
    """How many messages there are, of both who speak."""
    return sum(1 + (turn.reply is not None) for turn in episode.turns)


def _cut(episode: Episode, moves: int) -> Episode:
    """The episode as it was after so many moves."""
    turns = episode.turns[: (moves + 1) // 2]
    if moves % 2:
        turns = (*turns[:-1], replace(turns[-1], reply=None, reply_duration_ms=None))
    return replace(
        episode, turns=turns, artifact=None, stop_reason=None, evaluation=None, error=None
    )


class Duel:
    """Two episodes that are being played side by side; a failing one ends in the log as failed."""

    def __init__(self, services: Services, episodes: Sequence[Episode]) -> None:
        self.sides = [Side(episode) for episode in episodes]
        self.task = asyncio.create_task(self._play_all(services))

    async def _play_all(self, services: Services) -> None:
        await asyncio.gather(*(self._play(services, side) for side in self.sides))

    async def _play(self, services: Services, side: Side) -> None:
        try:
            with boundary(PolicyError, "The side could not be played"):
                await services.play(
                    side.episode.id, on_text=side.pieces.append, on_change=side.changed
                )
        except StoreError as e:
            side.error = str(e)
        except SweetError as e:  # it could not even begin: its version or the sandbox is not there
            with suppress(StoreError):
                end = (side.episode.id, StopReason.FAILED, None, str(e))
                await asyncio.to_thread(services.store.finish, *end)
        finally:
            side.is_done = True


class Duels:
    """The comparisons that this process plays now, by id. For the event loop's thread.

    Closing a page ends none of them: they run to a person's move, or to the end.
    """

    def __init__(self, services: Services) -> None:
        self.services = services
        self.writing = threading.Lock()
        """Held while a message goes to both sides: none gets between the two."""
        self._running: dict[str, Duel] = {}

    def is_running(self, comparison_id: str) -> bool:
        """Whether its sides are being played."""
        duel = self._running.get(comparison_id)
        return duel is not None and not duel.task.done()

    def joined(self, comparison_id: str, episodes: Sequence[Episode]) -> Duel:
        """The duel that runs for a comparison; begun now where none does."""
        if not self.is_running(comparison_id):
            self._running[comparison_id] = Duel(self.services, episodes)
        duel = self._running[comparison_id]
        duel.task.add_done_callback(lambda _: self._forget(comparison_id, duel))
        return duel

    def _forget(self, comparison_id: str, duel: Duel) -> None:
        if self._running.get(comparison_id) is duel:
            del self._running[comparison_id]

    async def stop(self, comparison_id: str) -> None:
        """Interrupt both sides; what was not finished is dropped."""
        duel = self._running.get(comparison_id)
        if duel is not None:
            duel.task.cancel()
            with suppress(asyncio.CancelledError, SweetError):
                await duel.task
