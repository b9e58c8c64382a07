"""The Compare page, put together: two versions side by side, the vote, and whole task sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from sweet.services import Services
from sweet.types import TaskKind
from ui import compare_begin, compare_choose, compare_play, compare_runs
from ui.compare_live import Duels
from ui.compare_shown import Shown
from ui.play import MAX_TEXT_CHARS, OWN_KINDS
from ui.session import CompareView
from ui.theme import BIND, FOLLOW, lead, markup
from ui.wire import bound

REFRESH_S = 2.0
_LEAD = "Two versions on the same task, with the same seed and collaborator."


@dataclass(frozen=True, slots=True)
class Ways:
    """What begins a comparison."""

    is_blind: gr.Checkbox
    search: gr.Textbox
    surprise: gr.Button
    begin: gr.Button
    own_kind: gr.Radio
    own: gr.Textbox
    begin_own: gr.Button
    find: gr.Textbox
    begin_sessions: gr.Button
    figures: list[Any]
    begin_many: gr.Button


def build(demo: gr.Blocks, services: Services) -> None:
    """The page inside the current route."""
    markup(lead("Compare", _LEAD))
    parts: dict[str, Any] = {"view": gr.State(CompareView()), "plan": gr.State(None)}
    with gr.Column(visible=False, elem_id="begin-compare") as parts["setup"]:
        ways = _ways(parts)
    with gr.Row(visible=False, elem_id="stage", equal_height=False) as parts["stage"]:
        with gr.Column(scale=8, min_width=300):
            renew = _stage(parts)
        with gr.Column(scale=3, min_width=300, visible=False, elem_id="aside") as parts["aside"]:
            _secret(parts)
    with gr.Column(visible=False, elem_id="run") as parts["run"]:
        leave = _run(parts)
    _wire_ways(demo, services, ways, parts)
    _wire_stage(demo, Duels(services), ways, parts, renew)
    _wire_run(demo, compare_runs.Runs(services), ways, parts, leave)


def _ways(parts: dict[str, Any]) -> Ways:
    parts["few"] = markup()
    with gr.Row(elem_classes="start-row"):
        parts["first"] = gr.Dropdown(label="Version", choices=[], min_width=220)
        parts["second"] = gr.Dropdown(label="The other version", choices=[], min_width=220)
    is_blind = gr.Checkbox(label="Blind: hide who is who until the vote", value=True)
    with gr.Tabs() as parts["tabs"]:
        with gr.Tab("A task", id="task"):
            search, surprise, begin = _one_task(parts)
        with gr.Tab("Your own task", id="own"):
            own_kind = gr.Radio(
                label="What is made", choices=OWN_KINDS, value=TaskKind.BACKEND.value
            )
            own = gr.Textbox(
                label="What do you want?",
                info="Nothing scores it: you chat with both and vote.",
                placeholder="A function that … Its signature is: def name(argument)",
                lines=4,
                max_length=MAX_TEXT_CHARS,
            )
            begin_own = gr.Button("Chat with both", variant="primary", elem_classes="begin")
        with gr.Tab("A whole task set", id="many"):
            figures, begin_many = _many(parts)
        with gr.Tab("Two sessions of the log", id="sessions"):
            find, begin_sessions = _sessions(parts)
    return Ways(
        is_blind,
        search,
        surprise,
        begin,
        own_kind,
        own,
        begin_own,
        find,
        begin_sessions,
        figures,
        begin_many,
    )


def _one_task(parts: dict[str, Any]) -> tuple[gr.Textbox, gr.Button, gr.Button]:
    with gr.Row():
        parts["task_set"] = gr.Dropdown(label="Task set", choices=[], scale=2, min_width=180)
        search = gr.Textbox(
            label="Search the tasks", placeholder="words of the description", max_lines=1, scale=3
        )
        surprise = gr.Button("Random task", scale=1, min_width=130, elem_classes="level")
    parts["task"] = gr.Dropdown(label="Task", choices=[], filterable=True)
    parts["found"] = markup()
    parts["card"] = markup(elem_classes="panel")
    parts["collaborator"] = gr.Radio(label="Who collaborates with both", choices=[])
    return search, surprise, gr.Button("Start both", variant="primary", elem_classes="begin")


def _many(parts: dict[str, Any]) -> tuple[list[Any], gr.Button]:
    markup(
        '<p class="meta">Both versions play the same tasks with the same seeds. What the log has '
        "already is not played again. Names are shown: nobody votes here.</p>"
    )
    with gr.Row():
        parts["many_set"] = gr.Dropdown(label="Tasks of the set", choices=[], min_width=200)
        parts["many_seat"] = gr.Dropdown(label="Simulator", choices=[], min_width=200)
    with gr.Row(elem_classes="start-row"):
        n = gr.Number(label="How many tasks", value=20, minimum=1, precision=0, min_width=110)
        at_once = gr.Number(label="At once", value=8, minimum=1, precision=0, min_width=110)
        seed = gr.Number(label="Seed", value=0, minimum=0, precision=0, min_width=110)
        begin = gr.Button("Compare them", variant="primary", min_width=140, elem_classes="level")
    parts["known"] = markup()
    return [n, at_once, seed], begin


def _sessions(parts: dict[str, Any]) -> tuple[gr.Textbox, gr.Button]:
    find = gr.Textbox(
        label="Find a session",
        placeholder="words that were said, or the id or link of a session",
        max_lines=1,
    )
    parts["one"] = gr.Dropdown(label="One session", choices=[], filterable=True)
    parts["other"] = gr.Dropdown(
        label="Another session of the same task", choices=[], filterable=True
    )
    parts["listed"] = markup()
    return find, gr.Button("Set them side by side", variant="primary", elem_classes="begin")


def _stage(parts: dict[str, Any]) -> gr.Button:
    parts["head"] = markup(elem_classes="panel", elem_id="compared-task", js=BIND)
    parts["turns"] = markup(elem_id="turns")
    parts["live"] = markup(elem_id="live", js=FOLLOW)
    parts["pages"] = markup(elem_id="both-pages", js=BIND)
    with gr.Row(visible=False, elem_id="composer") as parts["composer"]:
        parts["says"] = gr.Textbox(
            label="Your answer to both",
            placeholder="Answer in a sentence or two; Enter sends it to both",
            lines=1,
            max_lines=6,
            max_length=MAX_TEXT_CHARS,
            scale=6,
            min_width=200,
        )
        parts["send"] = gr.Button("Send to both", variant="primary", scale=1, min_width=120)
    parts["result"] = markup(elem_id="made", js=BIND)
    parts["alike"] = markup(elem_id="alike")
    parts["reason"] = gr.Textbox(
        label="Why? (optional, goes with your vote)",
        visible=False,
        max_lines=3,
        max_length=compare_play.MAX_REASON_CHARS,
        elem_id="reason",
    )
    parts["ballot"] = markup(elem_id="ballot", js=BIND)
    parts["revealed"] = markup(elem_id="revealed")
    with gr.Row(elem_id="moves"):
        parts["stop"] = gr.Button("Stop", variant="stop", visible=False, min_width=110)
        parts["again"] = gr.Button("Let them go on", variant="primary", visible=False)
        parts["finish"] = gr.Button("End both", visible=False, min_width=110)
        parts["following"] = gr.Button("Next task", variant="primary", visible=False)
        parts["repeat"] = gr.Button("Play this task again", visible=False)
        renew = gr.Button("New comparison", min_width=110)
    return renew


def _secret(parts: dict[str, Any]) -> None:
    with gr.Accordion("Only you see this", open=True, elem_classes="panel"):
        markup(
            '<p class="meta">What is wanted. Neither side sees it: answer their questions in your '
            "own words.</p>"
        )
        parts["reference"] = markup(elem_id="reference", js=BIND)


def _run(parts: dict[str, Any]) -> gr.Button:
    parts["progress"] = markup(elem_id="run-progress", js=BIND)
    parts["figures"] = markup(elem_id="run-figures")
    with gr.Row(elem_id="moves"):
        parts["halt"] = gr.Button("Stop", variant="stop", visible=False)
        parts["go_on"] = gr.Button("Go on", variant="primary", visible=False)
        leave = gr.Button("Another comparison")
    parts["timer"] = gr.Timer(REFRESH_S, active=False)
    return leave


_SILENT = {"show_progress": "hidden", "api_visibility": "private"}


def _wire_ways(demo: gr.Blocks, services: Services, ways: Ways, parts: dict[str, Any]) -> None:
    begin = compare_choose.Begin._fields
    quiet = {"outputs": [parts[name] for name in begin], **_SILENT}
    task_set, chosen = parts["task_set"], [parts["first"], parts["collaborator"]]
    demo.load(bound(compare_choose.open_page, services), None, **quiet)
    choose_set = bound(compare_choose.choose_set, services)
    looked_for = [task_set, ways.search, *chosen]
    task_set.input(choose_set, looked_for, **quiet)
    ways.search.change(choose_set, looked_for, trigger_mode="always_last", **quiet)
    ways.surprise.click(bound(compare_choose.choose_random, services), [task_set, *chosen], **quiet)
    parts["task"].input(
        bound(compare_choose.choose_task, services), [parts["task"], *chosen], **quiet
    )
    ways.find.change(
        bound(compare_choose.find_sessions, services),
        [ways.find],
        trigger_mode="always_last",
        **quiet,
    )
    parts["one"].input(bound(compare_choose.choose_session, services), [parts["one"]], **quiet)


def _wire_stage(
    demo: gr.Blocks, duels: Duels, ways: Ways, parts: dict[str, Any], renew: gr.Button
) -> None:
    quiet = {"outputs": [parts[name] for name in Shown._fields], **_SILENT}
    view, says, reason = parts["view"], parts["says"], parts["reason"]
    versions = [parts["first"], parts["second"], ways.is_blind]
    chosen = [parts["task"], parts["collaborator"], *versions]
    send = bound(compare_play.send, duels)
    speak = {"fn": bound(compare_play.speak, duels), "inputs": [view], **quiet}
    moves = [
        demo.load(bound(compare_begin.open_page, duels), None, **quiet),
        ways.begin.click(bound(compare_begin.start, duels), chosen, **quiet),
        ways.begin_own.click(
            bound(compare_begin.start_own, duels), [ways.own_kind, ways.own, *versions], **quiet
        ),
        ways.begin_sessions.click(
            bound(compare_begin.start_sessions, duels),
            [parts["one"], parts["other"], ways.is_blind],
            **quiet,
        ),
        says.submit(send, [view, says], **quiet),
        parts["send"].click(send, [view, says], **quiet),
        parts["again"].click(bound(compare_play.again, duels), [view], **quiet),
        parts["repeat"].click(bound(compare_begin.repeat, duels), [view], **quiet),
        parts["following"].click(bound(compare_begin.following, duels), [view], **quiet),
    ]
    speaking = [move.success(**speak) for move in moves]
    voted = parts["ballot"].click(bound(compare_play.act, duels), [view, reason], **quiet)
    for moved in [*speaking, voted]:
        moved.success(bound(compare_play.measure, duels), [view], **quiet)
    parts["stop"].click(bound(compare_play.stop, duels), [view], **quiet)
    parts["finish"].click(bound(compare_play.finish, duels), [view], **quiet)
    renew.click(bound(compare_play.close, duels), None, cancels=speaking, **quiet)


def _wire_run(
    demo: gr.Blocks, runs: compare_runs.Runs, ways: Ways, parts: dict[str, Any], leave: gr.Button
) -> None:
    named = parts | {"stop": parts["halt"], "again": parts["go_on"]}
    quiet = {"outputs": [named[name] for name in compare_runs.Run._fields], **_SILENT}
    plan = parts["plan"]
    asked = [parts["many_set"], parts["first"], parts["second"], parts["many_seat"], *ways.figures]
    demo.load(bound(compare_runs.open_page, runs), None, **quiet)
    ways.begin_many.click(bound(compare_runs.start, runs), asked, **quiet)
    parts["halt"].click(bound(compare_runs.stop, runs), [plan], **quiet)
    parts["go_on"].click(bound(compare_runs.go_on, runs), [plan], **quiet)
    parts["timer"].tick(bound(compare_runs.tick, runs), [plan], concurrency_limit=None, **quiet)
    leave.click(bound(compare_runs.close, runs), None, **quiet)
