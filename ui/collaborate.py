"""The Collaborate page, put together: a person and the agent make something, turn by turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from sweet.services import Services
from sweet.types import TaskKind
from ui import choose, play
from ui.session import Seat
from ui.theme import BIND, FOLLOW, lead, markup
from ui.wire import bound

_ABOUT = """\
<div class="panel about"><h2>The embedded model</h2>
<p>The agent called <strong>embedded</strong> comes with the studio: a few million parameters.
<strong>It knows only ColBench-Mini</strong>, the small tasks made for it. Anything else it gets
wrong.</p>
<h3>Connect a real model</h3>
<p>Start the studio with the address of any OpenAI-compatible server:</p>
<div class="code"><button type="button" class="copy" data-action="copy">Copy</button><pre
tabindex="0" aria-label="Commands"><code>SWEET_AGENT__BASE_URL=http://127.0.0.1:8000/v1 \\
SWEET_AGENT__MODEL=Qwen/Qwen3-8B \\
SWEET_AGENT__API_KEY=… make run</code></pre></div>
<p class="meta">Without a base URL the model is a Hugging Face id or folder and runs here.
SWEET_SIMULATOR__… sets the simulator’s model in the same way.</p></div>"""


@dataclass(frozen=True, slots=True)
class Chooser:
    """What the choice of a task is made of."""

    task_set: gr.Dropdown
    search: gr.Textbox
    surprise: gr.Button
    task: gr.Dropdown
    found: gr.HTML
    card: gr.HTML
    collaborator: gr.Radio
    policy: gr.Dropdown
    begin: gr.Button
    own_kind: gr.Radio
    own: gr.Textbox
    own_policy: gr.Dropdown
    begin_own: gr.Button


def build(demo: gr.Blocks, services: Services) -> None:
    """The page inside the current route."""
    markup(
        lead(
            "Collaborate",
            "Make a Python function or a web page together with an agent, and see it scored.",
        )
    )
    parts: dict[str, Any] = {"seat": gr.State(Seat())}
    with gr.Row(visible=False, elem_id="setup", equal_height=False) as parts["setup"]:
        with gr.Column(scale=7, min_width=300):
            chooser = _chooser()
        with gr.Column(scale=4, min_width=300, elem_id="about"):
            markup(_ABOUT)
    with gr.Row(visible=False, elem_id="stage", equal_height=False) as parts["stage"]:
        with gr.Column(scale=7, min_width=300):
            renew = _conversation(parts)
        with gr.Column(scale=4, min_width=300, visible=False, elem_id="aside") as parts["aside"]:
            _secret(parts)
    _wire_choice(demo, services, chooser)
    _wire_play(demo, services, chooser, parts, renew)


def _chooser() -> Chooser:
    with gr.Tabs():
        with gr.Tab("From a task set", id="set"):
            with gr.Row():
                task_set = gr.Dropdown(label="Task set", choices=[], scale=2, min_width=180)
                search = gr.Textbox(
                    label="Search the tasks",
                    placeholder="words of the description",
                    max_lines=1,
                    scale=3,
                )
                surprise = gr.Button("Random task", scale=1, min_width=130, elem_classes="level")
            task = gr.Dropdown(label="Task", choices=[], filterable=True)
            found = markup()
            card = markup(elem_classes="panel")
            with gr.Row():
                collaborator = gr.Radio(
                    label="Who collaborates with the agent", choices=[], scale=3, min_width=260
                )
                policy = gr.Dropdown(label="Policy version", choices=[], scale=2, min_width=200)
            begin = gr.Button("Start", variant="primary", elem_classes="begin")
        with gr.Tab("Your own task", id="own"):
            own_kind = gr.Radio(
                label="What is made", choices=play.OWN_KINDS, value=TaskKind.BACKEND.value
            )
            own = gr.Textbox(
                label="What do you want?",
                info="Nothing scores it: at the end you grade the result yourself.",
                placeholder="A function that … Its signature is: def name(argument)",
                lines=4,
                max_length=play.MAX_TEXT_CHARS,
            )
            own_policy = gr.Dropdown(label="Policy version for your task", choices=[])
            begin_own = gr.Button("Start with your task", variant="primary", elem_classes="begin")
    return Chooser(
        task_set, search, surprise, task, found, card, collaborator, policy, begin,
        own_kind, own, own_policy, begin_own,
    )  # fmt: skip


def _conversation(parts: dict[str, Any]) -> gr.Button:
    parts["task"] = markup(elem_classes="panel")
    parts["design"] = markup(elem_id="design", js=BIND)
    parts["figures"] = markup(elem_id="figures")
    parts["transcript"] = markup(elem_id="transcript", js=BIND)
    parts["live"] = markup(elem_id="live", js=FOLLOW)
    with gr.Row(visible=False, elem_id="composer") as parts["composer"]:
        parts["says"] = gr.Textbox(
            label="Your answer to the agent",
            placeholder="Answer in a sentence or two; Enter sends",
            lines=1,
            max_lines=6,
            max_length=play.MAX_TEXT_CHARS,
            scale=6,
            min_width=200,
        )
        parts["send"] = gr.Button("Send", variant="primary", scale=1, min_width=90)
    parts["result"] = markup(elem_id="result", js=BIND)
    with gr.Row(elem_id="moves"):
        parts["stop"] = gr.Button("Stop", variant="stop", visible=False, min_width=110)
        parts["again"] = gr.Button("Retry", variant="primary", visible=False, min_width=110)
        parts["finish"] = gr.Button("End episode", visible=False, min_width=110)
        renew = gr.Button("New episode", min_width=110)
    return renew


def _secret(parts: dict[str, Any]) -> None:
    with gr.Accordion("Only you see this", open=True, elem_classes="panel"):
        markup(
            '<p class="meta">What the finished function should do. The agent never sees it: answer '
            "its questions in your own words.</p>",
        )
        parts["reference"] = markup(elem_id="reference")


def _wire_choice(demo: gr.Blocks, services: Services, c: Chooser) -> None:
    chosen = [c.task_set, c.task, c.found, c.card, c.collaborator, c.policy, c.own_policy]
    quiet = {"outputs": chosen, "show_progress": "hidden", "api_visibility": "private"}
    players = [c.policy, c.collaborator]
    looked_for = [c.task_set, c.search, *players]
    demo.load(bound(choose.first_choice, services), None, **quiet)
    choose_set = bound(choose.choose_set, services)
    c.task_set.input(choose_set, looked_for, **quiet)
    c.search.change(choose_set, looked_for, trigger_mode="always_last", **quiet)
    c.surprise.click(bound(choose.choose_random, services), [c.task_set, *players], **quiet)
    c.task.input(bound(choose.choose_task, services), [c.task, *players], **quiet)
    c.policy.input(bound(choose.choose_policy, services), [c.task, c.policy], **quiet)


def _wire_play(
    demo: gr.Blocks, services: Services, c: Chooser, parts: dict[str, Any], renew: gr.Button
) -> None:
    outputs = [parts[name] for name in play.Shown._fields]
    seat, says = parts["seat"], parts["says"]
    quiet = {"outputs": outputs, "show_progress": "hidden", "api_visibility": "private"}
    speak = {"fn": bound(play.speak, services), "inputs": [seat], **quiet}
    send = bound(play.send, services)
    moves = [
        demo.load(bound(play.open_page, services), None, **quiet),
        c.begin.click(bound(play.start, services), [c.task, c.collaborator, c.policy], **quiet),
        c.begin_own.click(
            bound(play.start_own, services), [c.own_kind, c.own, c.own_policy], **quiet
        ),
        says.submit(send, [seat, says], **quiet),
        parts["send"].click(send, [seat, says], **quiet),
        parts["again"].click(bound(play.again, services), [seat], **quiet),
        parts["transcript"].click(bound(play.act, services), [seat], **quiet),
        parts["result"].click(bound(play.act, services), [seat], **quiet),
    ]
    speaking = [move.success(**speak) for move in moves]
    for spoken in speaking:
        measure = bound(play.measure, services)
        spoken.success(measure, [seat], trigger_mode="always_last", **quiet)
    parts["stop"].click(bound(play.stopped, services), [seat], cancels=speaking, **quiet)
    parts["finish"].click(bound(play.finish, services), [seat], cancels=speaking, **quiet)
    renew.click(bound(play.new_episode, services), None, cancels=speaking, **quiet)
