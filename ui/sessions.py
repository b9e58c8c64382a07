"""The Sessions page, put together: the log, found, replayed and exported."""

from __future__ import annotations

from typing import Any

import gradio as gr

from sweet.services import Services
from ui import find
from ui.session import DEFAULT_SORT, FEEDBACKS, OUTCOMES, SORTS, LogView
from ui.theme import BIND, lead, markup
from ui.wire import bound

_IMPORT = (
    "<p>Episodes, votes and preference pairs as exported here, episodes in ColBench’s shape, pairs "
    "in TRL’s; JSONL or parquet. What is there already is recognised. Lines that can’t be used are "
    "named, and the rest is kept.</p>"
)
_HIDDEN = "Show the hidden information (training-time only: the agent never sees it)"


def build(demo: gr.Blocks, services: Services) -> None:
    """The page inside the current route."""
    markup(lead("Sessions", "Every episode that was played: find it, replay it, take it with you."))
    parts: dict[str, Any] = {"view": gr.State(LogView())}
    with gr.Column(elem_id="log") as parts["log"]:
        asked, clear = _filters()
        parts["sort"] = asked[-1]
        parts["table"] = markup(elem_id="table", js=BIND)
        with gr.Row(elem_classes="export"):
            shape = gr.Dropdown(
                label="Export what is filtered", choices=list(find.FORMATS), scale=2, min_width=200
            )
            prepare = gr.Button("Export", scale=1, min_width=110, elem_classes="level")
            parts["file"] = gr.DownloadButton(
                "Download", visible=False, variant="primary", scale=1, min_width=160,
                elem_classes="level",
            )  # fmt: skip
        with gr.Accordion("Import", open=False):
            markup(_IMPORT)
            bring = gr.UploadButton(
                "Choose a file", file_types=[".jsonl", ".json", ".parquet"], elem_classes="quiet"
            )
            brought = markup(elem_id="brought")
    with gr.Column(visible=False, elem_id="detail") as parts["detail"]:
        back = gr.Button("← Back to the log", size="sm", elem_classes="quiet")
        parts["replay"] = markup(elem_id="replay", js=BIND)
        parts["reveal"] = gr.Checkbox(label=_HIDDEN, value=False)
        parts["hidden"] = markup(elem_id="hidden")
    _wire(demo, services, parts, asked, clear, back, shape, prepare)
    filters = [*asked[:-1], *(parts[name] for name in find.Found._fields)]
    bring.upload(
        bound(find.bring, services),
        [parts["view"], bring],
        [*filters, brought],
        show_progress_on=brought,
        api_visibility="private",
    )


def _filters() -> tuple[list[Any], gr.Button]:
    """The components of `find.Asked`, in its order, and the button that empties them."""
    text = gr.Textbox(
        label="Search",
        placeholder='words that were said or asked; "two words" together',
        type="text",
        max_lines=1,
    )
    with gr.Accordion("Filters and sorting", open=False):
        with gr.Row():
            boxes = [
                _choice("Task set", [("Any task set", "")]),
                _choice("Policy", [("Any policy", "")]),
                _choice("Collaborator", [("Anybody", "")]),
                _choice("Outcome", list(OUTCOMES.items())),
                _choice("Feedback", list(FEEDBACKS.items())),
            ]
        with gr.Row():
            boxes += [
                gr.Textbox(label="From", placeholder="2026-01-31", max_lines=1, min_width=130),
                gr.Textbox(label="Until", placeholder="2026-12-31", max_lines=1, min_width=130),
                _choice("Sort", list(SORTS.items()), DEFAULT_SORT),
            ]
            clear = gr.Button("Clear search and filters", min_width=150, elem_classes="level")
    return [text, *boxes], clear


def _choice(label: str, choices: list[tuple[str, str]], value: str = "") -> gr.Dropdown:
    return gr.Dropdown(label=label, choices=choices, value=value, min_width=170)


def _wire(
    demo: gr.Blocks,
    services: Services,
    parts: dict[str, Any],
    asked: list[Any],
    clear: gr.Button,
    back: gr.Button,
    shape: gr.Dropdown,
    prepare: gr.Button,
) -> None:
    outputs = [parts[name] for name in find.Found._fields]
    whole = [*asked[:-1], *outputs]
    view = parts["view"]
    silent = {"show_progress": "hidden", "api_visibility": "private"}
    quiet = {"outputs": outputs, **silent}
    search = bound(find.search, services)
    demo.load(bound(find.open_page, services), None, whole, **silent)
    for field in asked:
        if field is asked[0]:  # change: a pasted text is no input event
            field.change(search, [view, *asked], trigger_mode="always_last", **quiet)
        elif isinstance(field, gr.Textbox):  # a date is looked at when it is whole
            gr.on([field.submit, field.blur], search, [view, *asked], **quiet)
        else:
            field.input(search, [view, *asked], **quiet)
    clear.click(bound(find.clear, services), None, whole, **silent)
    parts["table"].click(bound(find.act, services), [view], **quiet)
    parts["replay"].click(bound(find.choose_critic, services), [view], **quiet)
    back.click(bound(find.close, services), [view], **quiet)
    parts["reveal"].input(
        bound(find.reveal, services), [view, parts["reveal"]], parts["hidden"], **silent
    )
    prepare.click(bound(find.export, services), [view, shape], **quiet)
