"""The Leaderboard page, put together: every version's figures, votes, rounds, turn budgets."""

from __future__ import annotations

from typing import Any

import gradio as gr

from sweet.services import Services
from ui import leaderboard_actions as actions
from ui.session import BOARD_SORTS, DEFAULT_BOARD_SORT, BoardView
from ui.theme import BIND, lead, markup
from ui.wire import bound

_LEAD = "Every version’s figures, from the log; none without its 95 % interval and its n."


def build(demo: gr.Blocks, services: Services) -> None:
    """The page inside the current route."""
    markup(lead("Leaderboard", _LEAD))
    parts: dict[str, Any] = {"view": gr.State(BoardView()), "found": gr.State(None)}
    asked, clear = _filters()
    parts["sort"] = asked[-1]
    parts["table"] = markup(elem_id="board", js=BIND)
    with gr.Row(elem_classes="export"):
        refresh = gr.Button("Count anew", min_width=120, elem_classes="level")
        shape = gr.Dropdown(
            label="Export what is shown", choices=list(actions.FORMATS), scale=2, min_width=200
        )
        prepare = gr.Button("Export", scale=1, min_width=110, elem_classes="level")
        parts["file"] = gr.DownloadButton(
            "Download", visible=False, variant="primary", scale=1, min_width=160,
            elem_classes="level",
        )  # fmt: skip
    for name, title in (
        ("votes", "Votes"),
        ("rounds", "Over rounds"),
        ("budgets", "Success by turn budget"),
    ):
        with gr.Accordion(title, open=True):
            parts[name] = markup(elem_id=f"board-{name}")
    _wire(demo, services, parts, asked, {"clear": clear, "refresh": refresh}, shape, prepare)


def _filters() -> tuple[list[Any], gr.Button]:
    """The components of `actions.Asked`, in its order, and the button that empties them."""
    with gr.Accordion("Filters and sorting", open=False):
        with gr.Row():
            fields: list[Any] = [
                _choice("Task set", [("Any task set", "")]),
                _choice("Version", [("Any version", "")]),
                _choice("Collaborator", [("Anybody", "")]),
                _choice("Evaluator", [("Any evaluator", "")]),
                _choice("Votes", list(actions.VOTES.items())),
            ]
        with gr.Row():
            fields += [
                gr.Textbox(label="From", placeholder="2026-01-31", max_lines=1, min_width=130),
                gr.Textbox(label="Until", placeholder="2026-12-31", max_lines=1, min_width=130),
            ]
            sort = _choice("Sort", list(BOARD_SORTS.items()), DEFAULT_BOARD_SORT)
            clear = gr.Button("Clear the filters", min_width=150, elem_classes="level")
    paper = gr.Checkbox(label="Show the paper’s rows beneath (not measured here)", value=False)
    return [*fields, paper, sort], clear


def _choice(label: str, choices: list[tuple[str, str]], value: str = "") -> gr.Dropdown:
    return gr.Dropdown(label=label, choices=choices, value=value, min_width=170)


def _wire(
    demo: gr.Blocks,
    services: Services,
    parts: dict[str, Any],
    asked: list[Any],
    buttons: dict[str, gr.Button],
    shape: gr.Dropdown,
    prepare: gr.Button,
) -> None:
    state = [parts["view"], parts["found"]]
    outputs = [parts[name] for name in actions.Shown._fields]
    whole = [*asked[:-1], *outputs]
    silent = {"show_progress": "hidden", "api_visibility": "private"}
    search = bound(actions.search, services)
    demo.load(bound(actions.open_page, services), None, whole, **silent)
    events = [event for field in asked for event in _changes(field)]
    # One listener: a browser's answers come in the order of its questions.
    gr.on(events, search, [*state, *asked], outputs, trigger_mode="always_last", **silent)
    parts["table"].click(bound(actions.act, services), state, outputs, **silent)
    buttons["clear"].click(bound(actions.clear, services), None, whole, **silent)
    buttons["refresh"].click(bound(actions.refresh, services), parts["view"], whole, **silent)
    prepare.click(bound(actions.export, services), [*state, shape], parts["file"], **silent)


def _changes(field: Any) -> list[Any]:
    """The events that ask for something else; a date is looked at when it is whole."""
    return [field.submit, field.blur] if isinstance(field, gr.Textbox) else [field.input]
