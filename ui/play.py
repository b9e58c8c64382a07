"""Deciding for the Collaborate page: what each handler does, and what is shown after it.

A handler takes the services and the inputs it names, does one thing to the log, and returns a
`Shown`: the outputs by name, in the order the page wires them. What is shown is always derived
from the log, so a reload shows the same. Models move only in `speak`, which runs where the seat
says that a move is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import gradio as gr

from sweet.episode import next_speaker, retry_episode, stop_episode
from sweet.errors import StoreError, SweetError, TaskDataError
from sweet.parsing import parse_action
from sweet.services import PERSON, Services
from sweet.tasks import mini_backend
from sweet.types import Episode, Feedback, Speaker, StopReason, TaskKind, TaskRow
from ui import conversation, designs, opinions, results
from ui.format import esc, notice
from ui.session import Seat
from ui.wire import SKIP

YIELDS_EVERY_S = 0.12  # at most ten a second: each one redraws the message
MAX_TEXT_CHARS = 20_000
_PLACEHOLDERS = {
    TaskKind.BACKEND: "Answer in a sentence or two; Enter sends",
    TaskKind.FRONTEND: "Say what differs from the page you want; Enter sends",
}
OWN_KINDS = [("Python function", TaskKind.BACKEND.value), ("Web page", TaskKind.FRONTEND.value)]
_SCORABLE = (StopReason.ANSWERED, StopReason.TURN_LIMIT)


class Shown(NamedTuple):
    """The outputs of the Collaborate page; what a handler does not name stays as it is."""

    seat: Any = SKIP
    setup: Any = SKIP
    stage: Any = SKIP
    task: Any = SKIP
    design: Any = SKIP
    figures: Any = SKIP
    transcript: Any = SKIP
    live: Any = SKIP
    composer: Any = SKIP
    says: Any = SKIP
    send: Any = SKIP
    stop: Any = SKIP
    again: Any = SKIP
    finish: Any = SKIP
    result: Any = SKIP
    aside: Any = SKIP
    reference: Any = SKIP


# Opening and starting


def open_page(services: Services, request: gr.Request) -> Shown:
    """The episode that the address asks for, taken up where it was; else the choice of a task."""
    wanted = request.query_params.get("episode")
    if not wanted:
        return _setup()
    try:
        episode = services.store.episode(wanted)
    except StoreError as e:
        gr.Warning(esc(e), title="No such episode", duration=None)
        return _setup()
    return shown(services, episode, due=episode.evaluation is None)


def new_episode(services: Services) -> Shown:
    """Back to the choice of a task; the open episode stays in the log."""
    return _setup()


def start(
    services: Services, task_id: str | None, collaborator: str | None, policy_id: str | None
) -> Shown:
    """A new episode on a task; the agent speaks first."""
    if not task_id:
        raise TaskDataError("No task is chosen. Choose one, or press Random.")
    row = services.store.task_row(task_id)
    name = collaborator or PERSON
    if name != PERSON:
        services.simulator_for(row, name)  # says why it can't, before anything is logged
    return _begun(services, row, name, policy_id)


def start_own(
    services: Services, kind: str | None, description: str, policy_id: str | None
) -> Shown:
    """A new episode on the person's own task."""
    what = TaskKind.FRONTEND if kind == TaskKind.FRONTEND else TaskKind.BACKEND
    row = services.own_task(description[:MAX_TEXT_CHARS], what)
    return _begun(services, row, PERSON, policy_id)


# Playing


def send(services: Services, seat: Seat, text: str) -> Shown:
    """What the person says, in the log; then the agent's move is due."""
    episode = _open(services, seat)
    said = text[:MAX_TEXT_CHARS].strip()
    if next_speaker(episode) is not Speaker.COLLABORATOR:
        gr.Warning("It is not your turn. Your text is kept: send it when the agent has spoken.")
        return Shown()
    if not said:
        gr.Warning("Write an answer first. “I don't mind” is one, too.")
        return Shown()
    services.store.append_reply(episode.id, episode.turns[-1].index, said)
    return _emptied(shown(services, services.store.episode(episode.id), due=True))


async def speak(services: Services, seat: Seat) -> AsyncGenerator[Shown, None]:
    """Every move that needs no person, as it happens: text while it comes, then the log's state."""
    if seat.episode_id is None or not seat.due:
        yield Shown()  # Gradio empties the outputs of a generator that yields nothing
        return
    episode = await asyncio.to_thread(services.store.episode, seat.episode_id)
    row = await asyncio.to_thread(services.store.task_row, episode.task_id)
    if not _can_move(episode, row):
        yield Shown(seat=Seat(episode.id))
        return
    live = _Live(services, row, episode)
    moves = asyncio.create_task(
        services.play(episode.id, on_text=live.pieces.append, on_change=live.changed)
    )
    try:
        yield live.begun()
        while not moves.done():
            await asyncio.wait({moves}, timeout=YIELDS_EVERY_S)
            if live.has_news() and not moves.done():
                yield live.shown()
    finally:  # the tab was closed, or somebody pressed Stop
        moves.cancel()
        with suppress(asyncio.CancelledError, SweetError):
            await moves
    yield await asyncio.to_thread(_after, services, live.episode, moves)


def stopped(services: Services, seat: Seat) -> Shown:
    """The log's state after the agent was interrupted: its unfinished message is gone."""
    return shown(services, _open(services, seat))


async def finish(services: Services, seat: Seat) -> Shown:
    """The episode, ended by the person without a reward."""
    await asyncio.to_thread(_open, services, seat)
    episode = await stop_episode(services.store, str(seat.episode_id))
    return shown(services, episode)


async def again(services: Services, seat: Seat) -> Shown:
    """What failed or was interrupted is due again: a turn, or the scoring."""
    episode = await asyncio.to_thread(_open, services, seat)
    if episode.stop_reason is StopReason.STOPPED:
        episode = await asyncio.to_thread(services.store.reopen, episode.id)
    episode = await retry_episode(services.store, episode)
    return shown(services, episode, due=True)


def act(services: Services, seat: Seat, event: gr.EventData) -> Shown:
    """What a person does inside the transcript or the result. The browser's data is not trusted."""
    asked: Mapping[str, Any] = event._data if isinstance(event._data, dict) else {}
    episode = _open(services, seat)
    action = str(asked.get("action", ""))
    if action in opinions.ACTIONS:
        opinions.give(services, episode, action, asked)
        if action in ("note", "rate"):
            gr.Info("Saved.", duration=3)
        page = shown(services, episode)
        return Shown(transcript=page.transcript, result=page.result)
    if action not in ("retry", "edit"):
        return Shown()
    turn = opinions.turn_index(asked, episode)
    fork = services.store.fork(episode.id, turn, **_change(action, asked))
    return shown(services, fork, due=True)


def _change(action: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What stands in the fork instead; nothing where the agent is to speak again."""
    if action == "retry":
        return {}
    text = str(asked.get("text") or "")[:MAX_TEXT_CHARS].strip()
    if not text:
        raise TaskDataError("The text is empty. Write what should stand there instead.")
    if asked.get("who") == "collaborator":
        return {"reply": text}
    return {"action": parse_action(text)}


# What is shown


def shown(services: Services, episode: Episode, due: bool = False) -> Shown:
    """The whole page for an episode as it is in the log."""
    row = services.store.task_row(episode.task_id)
    said = opinions.latest_feedback(services.store.feedback(episode.id))
    by_turn = {index: given for index, given in said.items() if index is not None}
    draws = row.task.kind is TaskKind.FRONTEND
    person = episode.collaborator == PERSON
    over = episode.stop_reason is not None
    changeable = episode.stop_reason is not StopReason.REPLACED
    label = "" if due else _again_label(episode, row)
    return Shown(
        seat=Seat(episode.id, due),
        setup=gr.update(visible=False),
        stage=gr.update(visible=True),
        task=conversation.task_card(row.task) + conversation.episode_line(episode),
        design=_design(services, row, episode),
        figures=SKIP if draws and not due else "",
        transcript=conversation.transcript(episode, by_turn, tools=changeable, kind=row.task.kind),
        live="",
        composer=gr.update(visible=person and not over),
        says=gr.update(placeholder=_PLACEHOLDERS[row.task.kind]),
        send=_button("Send", interactive=next_speaker(episode) is Speaker.COLLABORATOR),
        stop=_button("Stop", visible=False),
        again=_button(label, visible=bool(label)),
        finish=_button("End episode", visible=not over),
        result=_result(services, episode, said.get(None)),
        aside=gr.update(visible=person and row.hidden is not None and not draws),
        reference=_reference(row) if person and not draws else "",
    )


def _reference(row: TaskRow) -> str:
    return conversation.reference_card(row.hidden, hidden_details(row))


def _design(services: Services, row: TaskRow, episode: Episode) -> str:
    """The web page that is made, in its versions; nothing where no page is."""
    if row.task.kind is not TaskKind.FRONTEND:
        return ""
    shown = designs.panel(services, episode, key=episode.id)
    return shown or designs.wanted_alone(services, row.hidden)


def measure(services: Services, seat: Seat) -> Shown:
    """How like the wanted page each version is; drawing them takes a while."""
    if seat.episode_id is None:
        return Shown()
    return Shown(figures=designs.figures(services, services.store.episode(seat.episode_id)))


def hidden_details(row: TaskRow) -> list[str]:
    """The hidden details of a ColBench-Mini task in plain words; nothing for other tasks."""
    if row.hidden is None:
        return []
    try:
        spec = mini_backend.parse_reference(row.hidden.reference)
    except TaskDataError:
        return []
    lines = [f"{name}: {value}" for name, value in spec.constants.items()]
    if spec.limit_name:
        at = "does not count yet" if spec.cmp == ">" else "counts already"
        lines.append(f"{spec.limit_name}: exactly that value {at}")
    how = "not rounded" if spec.rounding == "none" else f"rounded: {spec.rounding}"
    return [*lines, f"the result is {how}"]


class _Live:
    """The agent's message while it is spoken, and the episode as it was last logged."""

    def __init__(self, services: Services, row: TaskRow, episode: Episode) -> None:
        self._services = services
        self._row = row
        self.pieces: list[str] = []
        self.episode = episode
        self._logged = True
        self._drawn = 0

    def changed(self, episode: Episode) -> None:
        """A move was logged; what is spoken next is another message."""
        self.episode = episode
        self._logged = True
        self.pieces.clear()

    def has_news(self) -> bool:
        """Whether there is something that was not drawn yet."""
        return self._logged or len(self.pieces) != self._drawn

    def begun(self) -> Shown:
        """The page when the first move begins: it can be stopped, and nothing else be done."""
        return self.shown()._replace(
            seat=Seat(self.episode.id),
            send=_button("Send", interactive=False),
            stop=_button("Stop", visible=True),
            again=_button("", visible=False),
        )

    def shown(self) -> Shown:
        """The page while a model moves; the turns are drawn only when one was logged."""
        self._drawn = len(self.pieces)
        kind, said = self._row.task.kind, "".join(self.pieces)
        live = conversation.speaking(self.episode, next_speaker(self.episode), said, kind)
        if not self._logged:
            return Shown(live=live)
        self._logged = False
        turns = conversation.transcript(self.episode, kind=kind)
        page = _design(self._services, self._row, self.episode)
        return Shown(transcript=turns, live=live, design=page)


def _button(label: str, **state: bool) -> Any:
    """A button's new state, always with its label: one that was hidden has forgotten it."""
    return gr.update(value=label, **state)


def _after(services: Services, known: Episode, moves: asyncio.Task[Episode]) -> Shown:
    """The page after the models' moves; a failure that is in no log is shown as it is."""
    episode = services.store.episode(known.id)
    page = shown(services, episode)
    failure = moves.exception()
    if failure is None or len(episode.turns) > len(known.turns):
        return page  # where another browser was faster, its turn is the one in the log
    if not isinstance(failure, SweetError):
        raise failure
    return page._replace(live=notice("The agent could not speak", str(failure), "error"))


def _can_move(episode: Episode, row: TaskRow) -> bool:
    """Whether a model or the evaluator has something to do."""
    if episode.stop_reason is None:
        person = episode.collaborator == PERSON
        return not (person and next_speaker(episode) is Speaker.COLLABORATOR)
    scorable = episode.stop_reason in _SCORABLE and row.hidden is not None
    return scorable and episode.reward is None


def _again_label(episode: Episode, row: TaskRow) -> str:
    """What can be done again, in words; "" for nothing."""
    if episode.stop_reason is StopReason.FAILED:
        return "Retry the turn"
    if episode.stop_reason is StopReason.STOPPED:
        return "Go on with it"
    if not _can_move(episode, row):
        return ""
    if episode.stop_reason is not None:
        return "Score again"
    return "Let the agent go on" if next_speaker(episode) is Speaker.AGENT else "Go on"


def _result(services: Services, episode: Episode, said: Feedback | None) -> str:
    by_person = episode.collaborator == PERSON and episode.stop_reason in _SCORABLE
    forks = services.store.children(episode.id)
    return results.result(episode, said, rate=by_person, forks=forks)


def _open(services: Services, seat: Seat) -> Episode:
    if seat.episode_id is None:
        raise TaskDataError("No episode is open. Start one, or open one from Sessions.")
    return services.store.episode(seat.episode_id)


def _begun(services: Services, row: TaskRow, collaborator: str, policy_id: str | None) -> Shown:
    policy = policy_id or services.default_policy(row.task.kind)
    episode = services.new_episode(row, policy, collaborator)
    return _emptied(shown(services, episode, due=True))


def _emptied(page: Shown) -> Shown:
    """The page with nothing in the field for the answer."""
    return page._replace(says={**page.says, "value": ""})


def _setup() -> Shown:
    return Shown(
        seat=Seat(),
        setup=gr.update(visible=True),
        stage=gr.update(visible=False),
        design="",
        figures="",
        transcript='<span data-address=""></span>',
        live="",
        says="",
        result="",
        aside=gr.update(visible=False),
        reference="",
    )
