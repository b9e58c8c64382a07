"""The Train page, put together: a round of training, its history, versions, the schedule."""

from __future__ import annotations

from typing import Any

import gradio as gr

from sweet.services import Services
from trainer.jobs import Jobs
from trainer.schedule import Schedule
from ui import train_actions, train_form
from ui.session import TrainView
from ui.theme import BIND, lead, markup
from ui.train_actions import Desk
from ui.wire import bound


def build(demo: gr.Blocks, services: Services) -> None:
    """The page inside the current route."""
    jobs = Jobs(services)
    desk = Desk(services, jobs, Schedule(jobs))
    markup(lead("Train", "Turn logged episodes into a better agent, and see whether it is one."))
    parts: dict[str, Any] = {"view": gr.State(TrainView()), "marks": gr.State(())}
    parts["served"] = markup(elem_id="served", js=BIND)
    fields = _form(parts)
    _running(parts)
    with gr.Accordion("Rounds", open=True):
        parts["history"] = markup(elem_id="history", js=BIND)
        parts["comparison"] = markup(elem_id="comparison")
    with gr.Accordion("Versions", open=True):
        parts["versions"] = markup(elem_id="versions", js=BIND)
    with gr.Accordion("Schedule", open=False, elem_id="schedule"):
        plan = _schedule(parts)
    parts["timer"] = gr.Timer(train_actions.IDLE_S)
    _wire(demo, desk, parts, fields, plan)


def _form(parts: dict[str, Any]) -> dict[str, Any]:
    """The fields of a round's settings, and beside them what it would learn from."""
    with gr.Row(elem_id="round-form", equal_height=False):
        with gr.Column(scale=7, min_width=300):
            fields = train_form.front()
            parts["retrain"] = gr.Button("Retrain", variant="primary", elem_classes="begin")
        with gr.Column(scale=5, min_width=300):
            parts["preview"] = markup(elem_id="preview")
            with gr.Accordion("The same from the command line", open=False):
                parts["command"] = markup(elem_id="command")
    parts["policy"] = fields["policy"]
    return fields | train_form.expert()


def _running(parts: dict[str, Any]) -> None:
    """The open round: phases, buttons, plots, log."""
    parts["progress"] = markup(elem_id="round", js=BIND)
    with gr.Row(elem_id="round-moves"):
        parts["keep"] = gr.Button("Stop and keep", visible=False)
        parts["abort"] = gr.Button("Abort", variant="stop", visible=False)
        parts["resume"] = gr.Button("Resume", variant="primary", visible=False)
    parts["plots"] = markup(elem_id="plots")
    with gr.Accordion("Log", open=False):
        parts["log"] = markup(elem_id="round-log")


def _schedule(parts: dict[str, Any]) -> list[Any]:
    """The fields of the schedule: its rule and figures, then the button that saves it."""
    parts["schedule"] = markup(elem_id="schedule-state")
    rule = gr.Radio(
        label="Start a round by itself, with the settings above",
        choices=list(train_actions.SCHEDULES),
        value=train_actions.OFF,
    )
    with gr.Row(elem_classes="start-row"):
        episodes = gr.Number(label="New episodes", minimum=1, precision=0, min_width=120)
        hours = gr.Number(label="Hours", minimum=0, min_width=120)
        save = gr.Button("Save the schedule", min_width=150, elem_classes="level")
    return [rule, episodes, hours, save]


def _wire(
    demo: gr.Blocks,
    desk: Desk,
    parts: dict[str, Any],
    fields: dict[str, Any],
    plan: list[Any],
) -> None:
    state = [parts["view"], parts["marks"]]
    outputs = [*state, *(parts[name] for name in train_actions.Shown._fields)]
    inputs = [fields[name] for name in (*train_form.FRONT_INPUTS, *train_form.EXPERT)]
    ahead = [parts["preview"], parts["command"]]
    silent = {"show_progress": "hidden", "api_visibility": "private"}
    quiet = {"outputs": outputs, **silent}
    chosen = [fields[name] for name in ("source", "task_set")]
    opened = [*chosen, *plan[:3], *ahead, *outputs]
    demo.load(bound(train_actions.open_page, desk), None, opened, **silent)
    look = bound(train_actions.look_ahead, desk)
    kind, *others = inputs
    followed = [fields[name] for name in ("task_set", "fresh", *train_form.BY_KIND)]
    shown = kind.input(bound(train_actions.choose_kind, desk), kind, followed, **silent)
    shown.then(look, inputs, ahead, **silent)
    for field in others:
        events = [field.submit, field.blur] if isinstance(field, gr.Textbox) else [field.input]
        gr.on(events, look, inputs, ahead, trigger_mode="always_last", **silent)
    parts["retrain"].click(bound(train_actions.retrain, desk), [*state, *inputs], **quiet)
    for name in ("keep", "abort", "resume"):
        parts[name].click(bound(getattr(train_actions, name), desk), state, **quiet)
    for name in ("served", "history", "versions"):
        parts[name].click(bound(train_actions.act, desk), state, **quiet)
    plan[3].click(bound(train_actions.plan, desk), [*state, *plan[:3], *inputs], **quiet)
    parts["timer"].tick(bound(train_actions.tick, desk), state, concurrency_limit=None, **quiet)
