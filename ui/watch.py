"""The Watch page, put together: batches of simulated episodes, live."""

from __future__ import annotations

from typing import Any

import gradio as gr

from sweet.services import Services
from ui import batches
from ui.session import WatchView
from ui.theme import BIND, lead, markup
from ui.wire import bound

REFRESH_S = 1.0


def build(demo: gr.Blocks, services: Services) -> None:
    """The page inside the current route."""
    markup(lead("Watch", "Let the agent play many episodes with a simulator, and see how it does."))
    parts: dict[str, Any] = {"view": gr.State(WatchView())}
    with gr.Row():
        task_set = gr.Dropdown(label="Task set", choices=[], min_width=200)
        policy = gr.Dropdown(label="Policy version", choices=[], min_width=200)
        collaborator = gr.Dropdown(label="Collaborator", choices=[], min_width=200)
    with gr.Row(elem_classes="start-row"):
        n = gr.Number(label="Episodes", value=20, minimum=1, precision=0, min_width=110)
        at_once = gr.Number(label="At once", value=8, minimum=1, precision=0, min_width=110)
        seed = gr.Number(label="Seed", value=0, minimum=0, precision=0, min_width=110)
        begin = gr.Button("Start", variant="primary", min_width=130, elem_classes="level")
    parts["progress"] = markup(elem_id="progress", js=BIND)
    parts["stop"] = gr.Button(batches.STOP, variant="stop", visible=False, elem_id="stop-batch")
    parts["episodes"] = markup(elem_id="episodes")
    with gr.Accordion("Earlier batches", open=True):
        parts["earlier"] = markup(elem_id="earlier", js=BIND)
    parts["timer"] = gr.Timer(REFRESH_S, active=False)
    chosen = [task_set, policy, collaborator]
    _wire(demo, services, parts, chosen, [n, at_once, seed], begin)


def _wire(
    demo: gr.Blocks,
    services: Services,
    parts: dict[str, Any],
    chosen: list[Any],
    figures: list[Any],
    begin: gr.Button,
) -> None:
    outputs = [parts[name] for name in batches.Watched._fields]
    view = parts["view"]
    silent = {"show_progress": "hidden", "api_visibility": "private"}
    quiet = {"outputs": outputs, **silent}
    demo.load(bound(batches.open_page, services), None, [*chosen, *outputs], **silent)
    begin.click(bound(batches.start, services), [*chosen, *figures], **quiet)
    parts["stop"].click(bound(batches.stop, services), [view], **quiet)
    parts["earlier"].click(bound(batches.act, services), [view], **quiet)
    parts["timer"].tick(bound(batches.tick, services), [view], concurrency_limit=None, **quiet)
