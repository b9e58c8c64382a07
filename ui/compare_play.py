"""Deciding for an open comparison: what is said to both sides, their moves, the vote.

As on the Collaborate page, models move only in `speak`, which runs where the view says that a move
is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import gradio as gr

from sweet.episode import stop_episode
from sweet.errors import ConfigError
from sweet.services import PERSON, Services
from sweet.store import Choice, Comparison
from sweet.types import Episode, TaskKind, TaskRow
from ui import compare_view
from ui.compare_live import Duels, Side, glimpses
from ui.compare_shown import (
    Shown,
    alike,
    button,
    duo_of,
    episodes_of,
    fresh,
    named_sides,
    opened,
    pages,
    setup,
    shown,
    voter_of,
    waits_for_person,
)
from ui.compare_vote import CHOICES
from ui.format import notice
from ui.play import MAX_TEXT_CHARS, YIELDS_EVERY_S
from ui.session import CompareView

MAX_REASON_CHARS = 2000


def send(duels: Duels, view: CompareView, text: str, request: gr.Request) -> Shown:
    """What the person says, to each side that waits for it; then the sides' moves are due."""
    comparison = opened(duels, view)
    said = text[:MAX_TEXT_CHARS].strip()
    if not said:
        gr.Warning("Write an answer first. “I don't mind” is one, too.")
        return Shown()
    store = duels.services.store
    with duels.writing:
        waiting = [e for e in episodes_of(duels, comparison) if waits_for_person(e)]
        if not waiting or duels.is_running(comparison.id):
            gr.Warning("It is not your turn. Your text is kept: send it when both have spoken.")
            return Shown()
        for episode in waiting:
            store.append_reply(episode.id, episode.turns[-1].index, said)
    return shown(duels, comparison, request, due=True)._replace(says="")


async def speak(
    duels: Duels, view: CompareView, request: gr.Request
) -> AsyncGenerator[Shown, None]:
    """Both sides' moves that need no person, as they happen; then the log's state.

    A page that is closed ends nothing: who opens the comparison again sees it go on.
    """
    if view.comparison_id is None or not view.due:
        yield Shown()  # Gradio empties the outputs of a generator that yields nothing
        return
    comparison = await asyncio.to_thread(opened, duels, view)
    episodes = await asyncio.to_thread(episodes_of, duels, comparison)
    duel = duels.joined(comparison.id, episodes)
    row = await asyncio.to_thread(duels.services.store.task_row, comparison.task_id)
    live = Live(duels.services, comparison, row, duel.sides)
    yield live.begun()
    while not duel.task.done():
        await asyncio.wait({duel.task}, timeout=YIELDS_EVERY_S)
        if not duel.task.done() and live.has_news():
            yield live.shown()
    page = await asyncio.to_thread(shown, duels, comparison, request, False)
    errors = " ".join(side.error for side in duel.sides if side.error)
    yield page._replace(live=notice("It could not go on", errors, "error")) if errors else page


async def stop(duels: Duels, view: CompareView, request: gr.Request) -> Shown:
    """The log's state after both were interrupted: what they had not finished is gone."""
    comparison = await asyncio.to_thread(opened, duels, view)
    await duels.stop(comparison.id)
    return await asyncio.to_thread(shown, duels, comparison, request, False)


def again(duels: Duels, view: CompareView, request: gr.Request) -> Shown:
    """What was interrupted is due again: messages, or the scoring."""
    return shown(duels, opened(duels, view), request, due=True)


async def finish(duels: Duels, view: CompareView, request: gr.Request) -> Shown:
    """Both sides, ended by the person without a reward; they can be voted on."""
    comparison = await asyncio.to_thread(opened, duels, view)
    await duels.stop(comparison.id)
    for episode_id in (comparison.left, comparison.right):
        await stop_episode(duels.services.store, episode_id)
    return await asyncio.to_thread(shown, duels, comparison, request, False)


def act(
    duels: Duels, view: CompareView, reason: str | None, event: gr.EventData, request: gr.Request
) -> Shown:
    """A vote. The browser's data is not trusted."""
    asked: Mapping[str, Any] = event._data if isinstance(event._data, dict) else {}
    if asked.get("action") != "vote":
        return Shown()
    comparison = opened(duels, view)
    choice = str(asked.get("choice"))
    if choice not in CHOICES:
        known = ", ".join(CHOICES)
        raise ConfigError(f"The vote is {choice!r}; it must be one of {known}.")
    duels.services.store.vote(
        comparison.id,
        Choice(choice),
        voter_of(request),
        reason=(reason or "")[:MAX_REASON_CHARS].strip(),
        side_named=any(named_sides(duels.services, episodes_of(duels, comparison))),
    )
    return fresh(shown(duels, comparison, request, due=False))


def measure(duels: Duels, view: CompareView, request: gr.Request) -> Shown:
    """How like the wanted page both are, once this browser has voted."""
    if view.comparison_id is None or duels.is_running(view.comparison_id):
        return Shown()
    comparison = opened(duels, view)
    duo = duo_of(duels.services, comparison, voter_of(request), is_playing=True)
    shows = duo.shows_figures and duo.kind is TaskKind.FRONTEND
    return Shown(alike=alike(duels.services, duo)) if shows else Shown()


def close(duels: Duels) -> Shown:
    """Back to the ways to begin; what is played goes on, and stays in the log."""
    return setup()


class Live:
    """What the page shows while both sides are played."""

    def __init__(
        self, services: Services, comparison: Comparison, row: TaskRow, sides: Sequence[Side]
    ) -> None:
        self._services = services
        self._comparison = comparison
        self._row = row
        self._sides = sides
        self._drawn: list[Any] = []
        self._turns: list[Any] = []

    def has_news(self) -> bool:
        """Whether there is something that was not drawn yet."""
        return self._seen() != self._drawn

    def _seen(self) -> list[Any]:
        return [(_moves_seen(g.episode), g.speaker, len(g.said)) for g in glimpses(self._sides)]

    def begun(self) -> Shown:
        """The page when the moves begin: they can be stopped, and nothing else be done."""
        return self.shown()._replace(
            view=CompareView(self._comparison.id),
            send=gr.update(interactive=False),
            stop=button("Stop", visible=True),
            again=button("", visible=False),
        )

    def shown(self) -> Shown:
        """The page now; the turns are drawn only when there are others."""
        self._drawn = self._seen()
        seen = glimpses(self._sides)
        episodes = [glimpse.episode for glimpse in seen]
        live = compare_view.live(
            episodes,
            [glimpse.speaker for glimpse in seen],
            [glimpse.said for glimpse in seen],
            self._row.task.kind,
        )
        turns = [_moves_seen(episode) for episode in episodes]
        if turns == self._turns:
            return Shown(live=live)
        self._turns = turns
        named = named_sides(self._services, episodes)
        left, right = (compare_view.Side(e, told) for e, told in zip(episodes, named, strict=True))
        kind = self._row.task.kind
        duo = compare_view.Duo(self._comparison, (left, right), kind=kind)
        knows = any(episode.collaborator == PERSON for episode in episodes)
        drawn = pages(self._services, duo, self._row, knows=knows)
        return Shown(live=live, turns=compare_view.transcript(duo), pages=drawn)


def _moves_seen(episode: Episode) -> tuple[int, bool]:
    return len(episode.turns), bool(episode.turns) and episode.turns[-1].reply is not None
