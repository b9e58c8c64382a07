"""An agent that draws: a model's server whose pages follow what it was told, attacks among them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import expect

from tests.sweet.engines.server import DONE, USAGE, Handler, piece, serving
from tests.ui.studio import Visitor

STYLESHEET = (
    '<link href="https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/dist/tailwind.min.css" '
    'rel="stylesheet">'
)
MARK = "I WANT TO ANSWER:"
SHOWN = "#design .version:not([hidden])"


def page(color: str, title: str, more: str = "") -> str:
    """A small page in Tailwind's classes."""
    return (
        f'<html>\n{STYLESHEET}\n<body class="bg-white">\n<header class="bg-{color}-800 p-4">'
        f'<h1 class="text-5xl text-white">{title}</h1></header>\n<main class="p-8">'
        f"<p>Words about it.</p>{more}</main>\n</body>\n</html>"
    )


VERSIONS = (
    page("red", "First"),
    page("green", "Second"),
    page("blue", "Third", '<img src="https://picsum.photos/id/48/300/200">'),
)


ATTACKS = {
    "script": "<script>parent.hit='script'; fetch('{c}/script')</script>",
    "script-src": '<script src="{c}/script-src"></script>',
    "onerror": "<img src=x onerror=\"top.hit='onerror'\"><img src='{c}/onerror'>",
    "onload": "<svg onload=\"top.hit='onload'\"><image href='{c}/onload'/></svg>",
    "frame": "<iframe src='{c}/frame'></iframe><iframe src=\"javascript:top.hit='f'\"></iframe>",
    "refresh": "<meta http-equiv='refresh' content='0;url={c}/refresh'>",
    "form": "<form action='{c}/form' target='_top'><button id='send'>Send it</button></form>",
    "links": "<link rel='preconnect' href='{c}'><link rel='prefetch' href='{c}/links'>"
    "<link rel='stylesheet' href='{c}/links'><link rel='icon' href='{c}/links'>",
    "styles": "<style>@import '{c}/styles'; body {{ background: url({c}/styles) }}"
    "@font-face {{ font-family: x; src: url({c}/styles) }} p {{ font-family: x }}</style>",
    "objects": "<object data='{c}/objects'></object><embed src='{c}/objects'>"
    "<video src='{c}/objects' autoplay></video><audio src='{c}/objects'></audio>",
    "base": "<base href='{c}/'><img src='base'><a id='go' target='_top' href='base'>Go there</a>",
    "break-out": "</textarea></template>\"'></iframe><script>window.hit='out'</script>"
    "<img src='{c}/break-out'>${{window.hit='t'}} {{{{window.hit='t'}}}}",
}
"""Twelve ways to run, to call home ({c}) or to take the page over; each names itself."""


def attacking_page(canary: str) -> str:
    """One page with all of them."""
    all_of_them = "\n".join(attack.format(c=canary) for attack in ATTACKS.values())
    return page("red", "Attack", all_of_them)


@contextmanager
def drawing(canary: str = "http://127.0.0.1:9") -> Iterator[dict[str, str]]:
    """The settings of an agent whose model draws: two versions, then its answer."""

    def draw(handler: Handler, body: dict[str, Any]) -> None:
        messages = body["messages"]
        turn = sum(m["role"] == "assistant" for m in messages)
        last = str(messages[-1]["content"])
        text = f"Here it is.\n{VERSIONS[min(turn, 2)]}"
        if turn >= 2:
            text = f"{MARK}\n```html\n{VERSIONS[2]}\n```"
        if "ATTACK" in last:
            text = attacking_page(canary)
        if "NOTHING" in last:
            text = "Which colour would you like?"
        handler.send_events(_spoken(text, 0.4 if "SLOWLY" in last else 0))

    with serving(draw) as server:
        yield {"SWEET_AGENT__BASE_URL": server.base_url, "SWEET_AGENT__MODEL": "small"}


def _spoken(text: str, pause_s: float) -> Iterator[bytes]:
    for part in re.findall(r".{1,60}", text, re.DOTALL):
        time.sleep(pause_s)
        yield piece(part)
    yield from (piece("", "stop"), USAGE, DONE)


class Designer(Visitor):
    """A person who wants a web page."""

    def begin_page(self, task_set: str = "mini-frontend/test") -> str:
        """Start an episode on the first page of a set; its id, once there is a version."""
        self.go()
        self.choose_set(task_set)
        self.button("Start").click()
        self.expect_turns(1)
        return self.episode_id

    def choose_set(self, task_set: str) -> None:
        """Choose a task set and wait for its first task."""
        expect(self.page.get_by_label("Task", exact=True)).not_to_have_value("")
        self.page.get_by_label("Task set").click()
        self.page.get_by_role("option", name=task_set).click()
        expect(self.page.locator("#setup .task")).to_contain_text(task_set)

    def shown_page(self) -> Any:
        """What is inside the frame of the version that is shown."""
        return self.page.frame_locator(f"{SHOWN} iframe")

    def forget_refusals(self, canary: str) -> None:
        """A browser says what it refused, and announces what it then does not send.

        What was sent is the canary's to say.
        """
        refused = ("Content Security Policy", "sandboxed", "Blocked", f"request: {canary}")
        self.wrong = [w for w in self.wrong if not any(word in w for word in refused)]
