"""The pages in their frame: routes, the header, the look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from sweet.services import Services
from ui import collaborate, compare, leaderboard, sessions, train, watch
from ui.theme import STYLES, head, markup, theme

AT_ONCE = 40
"""Calls a handler may have at the same time, over all browsers; Gradio's default is one."""

Build = Callable[[gr.Blocks, Services], None]
PAGES: tuple[tuple[str, str, Build], ...] = (
    ("Collaborate", "", collaborate.build),
    ("Watch", "watch", watch.build),
    ("Sessions", "sessions", sessions.build),
    ("Compare", "compare", compare.build),
    ("Leaderboard", "leaderboard", leaderboard.build),
    ("Train", "train", train.build),
)


def build(services: Services) -> gr.Blocks:
    """The whole app, ready to be launched with `look()`."""
    demo = gr.Blocks(
        title="Sweet Studio",
        analytics_enabled=False,
        fill_width=True,
        delete_cache=(3600, 24 * 3600),
    )
    for name, path, page in PAGES:
        with demo.route(name, f"/{path}") if path else demo:
            markup(_header(name), elem_classes="top")
            page(demo, services)
    return demo.queue(default_concurrency_limit=AT_ONCE, api_open=False)


def look() -> dict[str, Any]:
    """What `launch` or `mount_gradio_app` needs for the look; `Blocks` ignores it."""
    return {"theme": theme(), "css_paths": list(STYLES), "head": head(), "footer_links": []}


def _header(current: str) -> str:
    links = "".join(_link(name, path, name == current) for name, path, _ in PAGES)
    return (
        '<header class="studio-top"><a class="brand" href="./">Sweet Studio</a>'
        f'<nav aria-label="Pages">{links}</nav>'
        '<button type="button" data-action="theme"><span class="when-light">Dark mode</span>'
        '<span class="when-dark">Light mode</span></button></header>'
    )


def _link(name: str, path: str, current: bool) -> str:
    mark = ' aria-current="page"' if current else ""
    return f'<a href="./{path}"{mark}>{name}</a>'
