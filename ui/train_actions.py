"""Deciding for the Train page: starting and following rounds, promoting, the schedule.

A round is a process of its own with a row in the log, so closing the page ends nothing, and every
browser shows the same. A tick reads that row, and sends only what has changed since the last one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import gradio as gr

from sweet.errors import ConfigError, PolicyError, StoreError, SweetError
from sweet.registry import Manifest
from sweet.services import Services
from sweet.store import Round, RoundState
from sweet.types import PolicyVersion, TaskKind
from trainer.jobs import Jobs, can_keep
from trainer.schedule import Schedule, ScheduleState
from trainer.settings import RoundSettings
from ui import train_form, train_history, train_plots, train_round
from ui.format import notice
from ui.session import TrainView
from ui.wire import SKIP

BUSY_S, IDLE_S = 1.0, 4.0
SCHEDULE_S = 15.0
LOG_LINES = 200
OFF, BY_EPISODES, BY_HOURS = "Off", "Every so many new episodes", "Every so many hours"
SCHEDULES = (OFF, BY_EPISODES, BY_HOURS)
DEFAULT_EPISODES, DEFAULT_HOURS = 200, 24.0
Marks = tuple[int, ...]


@dataclass(slots=True)
class Desk:
    """What the handlers of this page work with."""

    services: Services
    jobs: Jobs
    schedule: Schedule
    _scheduled: tuple[float, ScheduleState] | None = None

    def scheduled(self, *, anew: bool = False) -> ScheduleState:
        """The schedule; counting new episodes reads the log, so ticks share what was counted."""
        now = time.monotonic()
        if anew or self._scheduled is None or now - self._scheduled[0] > SCHEDULE_S:
            self._scheduled = now, self.schedule.state()
        return self._scheduled[1]


class Shown(NamedTuple):
    """The outputs that follow the log; what has not changed stays as it is."""

    served: Any = SKIP
    policy: Any = SKIP
    progress: Any = SKIP
    keep: Any = SKIP
    abort: Any = SKIP
    resume: Any = SKIP
    plots: Any = SKIP
    log: Any = SKIP
    history: Any = SKIP
    comparison: Any = SKIP
    versions: Any = SKIP
    schedule: Any = SKIP
    timer: Any = SKIP


Outputs = tuple[Any, ...]
"""The view, the marks of what is on the screen, then the fields of `Shown`."""


def open_page(desk: Desk, request: gr.Request) -> Outputs:
    """What can be chosen, the schedule, and the round that the address names or the newest."""
    view = TrainView(request.query_params.get("round") or None)
    return (
        *train_form.choices(desk.services),
        *_schedule_fields(desk.scheduled(anew=True)),
        *_looked_ahead(desk, train_form.default_settings()),
        *_shown(desk, view, ()),
    )


def choose_kind(desk: Desk, kind: str) -> tuple[Any, ...]:
    """The fields that follow from what is made: task sets, fresh episodes, its own defaults."""
    return train_form.choices_of(desk.services, TaskKind(kind))


def look_ahead(desk: Desk, *values: Any) -> tuple[str, str]:
    """What a round with these settings would learn from, and its command."""
    try:
        return _looked_ahead(desk, train_form.settings_of(values))
    except SweetError as e:
        return train_round.no_preview(str(e)), ""


def retrain(desk: Desk, view: TrainView, marks: Marks, *values: Any) -> Outputs:
    """A new round, in a process of its own; closing the page does not end it."""
    round_id = desk.jobs.start(train_form.settings_of(values))
    return _shown(desk, replace(view, round_id=round_id), marks)


def tick(desk: Desk, view: TrainView, marks: Marks) -> Outputs:
    """What has changed in the log; the view is left to what the person does."""
    try:
        return SKIP, *_shown(desk, view, marks)[1:]
    except SweetError as e:  # said in its place: a message a tick would bury the page
        why = notice("The page can't follow the log", str(e), "error")
        return SKIP, (), *Shown(progress=why)


def keep(desk: Desk, view: TrainView, marks: Marks) -> Outputs:
    """The running stage, ended with what it has."""
    desk.jobs.keep(_needed(desk, view).id)
    gr.Info(
        "The running phase ends with what it has; the later ones follow.", title="Stop and keep"
    )
    return _shown(desk, view, marks)


def abort(desk: Desk, view: TrainView, marks: Marks) -> Outputs:
    """The round, ended; nothing is registered, and it can be resumed."""
    desk.jobs.abort(_needed(desk, view).id)
    return _shown(desk, view, marks)


def resume(desk: Desk, view: TrainView, marks: Marks) -> Outputs:
    """A round that broke off, going on."""
    desk.jobs.resume(_needed(desk, view).id)
    return _shown(desk, view, marks)


def act(desk: Desk, view: TrainView, marks: Marks, event: gr.EventData) -> Outputs:
    """What was clicked in the tables. The browser's data is not trusted."""
    asked: Mapping[str, Any] = event._data if isinstance(event._data, dict) else {}
    action, round_id = asked.get("action"), str(asked.get("round"))
    if action == "open":
        view = replace(view, round_id=desk.services.store.round(round_id).id)
    elif action == "compare":
        view = view.comparing(desk.services.store.round(round_id).id)
    elif action == "promote":
        desk.services.registry.promote(str(asked.get("policy")))
        gr.Info(f"{_now_served(desk.services)} from now on.", title="Promoted")
    elif action == "rollback":
        desk.services.registry.rollback()
        gr.Info(f"{_now_served(desk.services)} from now on.", title="Rolled back")
    return _shown(desk, view, marks)


def plan(
    desk: Desk,
    view: TrainView,
    marks: Marks,
    rule: str | None,
    episodes: float | None,
    hours: float | None,
    *values: Any,
) -> Outputs:
    """The schedule, as set now; its rounds have the settings of the form.

    Raises: ConfigError where a figure is missing or out of its range.
    """
    if rule == BY_EPISODES:
        if not episodes or episodes < 1 or episodes != int(episodes):
            raise ConfigError(f"New episodes: {episodes} was given; choose a whole number from 1.")
        desk.schedule.set(every_episodes=int(episodes), settings=train_form.settings_of(values))
    elif rule == BY_HOURS:
        if not hours or hours <= 0:
            raise ConfigError(f"Hours: {hours} was given; choose a number above 0.")
        desk.schedule.set(every_hours=float(hours), settings=train_form.settings_of(values))
    else:
        desk.schedule.set()
    desk.scheduled(anew=True)
    return _shown(desk, view, marks)


def _looked_ahead(desk: Desk, settings: RoundSettings) -> tuple[str, str]:
    return (
        train_round.preview(desk.jobs.preview(settings)),
        train_round.command(desk.jobs.command(settings)),
    )


def _schedule_fields(state: ScheduleState) -> tuple[Any, Any, Any]:
    rule = BY_EPISODES if state.every_episodes else BY_HOURS if state.every_hours else OFF
    return (
        gr.update(value=rule),
        gr.update(value=state.every_episodes or DEFAULT_EPISODES),
        gr.update(value=state.every_hours or DEFAULT_HOURS),
    )


def _needed(desk: Desk, view: TrainView) -> Round:
    """The round on the screen. Raises: ConfigError where there is none."""
    one = _opened(desk, view, desk.jobs.rounds())
    if one is None:
        raise ConfigError("No round is open. Start one with Retrain, or open one from the list.")
    return one


def _opened(desk: Desk, view: TrainView, rounds: list[Round]) -> Round | None:
    """The round that the view names, else the newest."""
    if view.round_id is None:
        return rounds[0] if rounds else None
    listed = next((one for one in rounds if one.id == view.round_id), None)
    return listed or desk.services.store.round(view.round_id)


def _shown(desk: Desk, view: TrainView, marks: Marks) -> Outputs:
    rounds = desk.jobs.rounds()
    try:
        one = _opened(desk, view, rounds)
        shown = _round(desk, view, one) if one else _nothing()
    except StoreError as e:
        view = replace(view, round_id=None)
        hint = f"{e} Choose one from the list below."
        shown = _nothing()._replace(progress=notice("No such round", hint, "error"))
        one = None
    is_busy = any(r.state is RoundState.RUNNING for r in rounds)
    pair = [r for id in view.compared for r in rounds if r.id == id]
    shown = shown._replace(
        served=_served(desk.services),
        policy=gr.update(choices=train_form.version_choices(desk.services)),
        history=train_history.history(rounds, one.id if one else None, view.compared),
        comparison=train_history.comparison(pair),
        versions=_versions(desk.services),
        schedule=train_round.schedule(desk.scheduled()),
        timer=gr.update(value=BUSY_S if is_busy else IDLE_S),
    )
    now = tuple(hash(str(value)) for value in shown)
    same = [bool(marks) and old == new for old, new in zip(marks or now, now, strict=True)]
    sent = [SKIP if skip else value for skip, value in zip(same, shown, strict=True)]
    return view, now, *sent


def _nothing() -> Shown:
    """Where no round is open."""
    hidden = gr.update(visible=False)
    empty = train_round.no_round()
    return Shown(progress=empty, keep=hidden, abort=hidden, resume=hidden, plots="", log="")


def _round(desk: Desk, view: TrainView, one: Round) -> Shown:
    address = f"round={one.id}" if view.round_id else ""
    is_running = one.state is RoundState.RUNNING
    can_resume = one.state in (RoundState.LOST, RoundState.FAILED)
    return Shown(
        progress=train_round.round_panel(one, desk.jobs.progress(one.id), address),
        keep=gr.update(visible=is_running, interactive=can_keep(one)),
        abort=gr.update(visible=is_running),
        resume=gr.update(visible=can_resume),
        plots=train_plots.plots(desk.services.store.metrics(one.id)),
        log=train_round.log(desk.jobs.log_tail(one.id, LOG_LINES)),
    )


def _now_served(services: Services) -> str:
    served = services.served()
    each = dict.fromkeys(served.values())
    return "; ".join(f"{id} makes {train_history.served_things(served, id)}" for id in each)


def _served(services: Services) -> str:
    promotions = services.registry.history()
    can_roll_back = services.registry.promoted() is not None
    last = promotions[-1] if promotions else None
    return train_history.served(services.served(), last, can_roll_back)


def _versions(services: Services) -> str:
    registry = services.registry
    found = [(version, _manifest(services, version)) for version in reversed(registry.versions())]
    return train_history.versions(found, services.served(), registry.broken())


def _manifest(services: Services, version: PolicyVersion) -> Manifest | None:
    try:
        return services.registry.manifest(version.id)
    except PolicyError:  # a built-in version has none
        return None
