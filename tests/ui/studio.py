"""The real app as a process, a real browser on it, and a model's server that does as asked."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from playwright.sync_api import Browser, Page, expect, sync_playwright

from sweet.browser import chromium_path
from sweet.services import Services
from sweet.settings import Settings
from tests.sweet.engines.server import DONE, USAGE, Handler, piece, refuses, serving
from trainer.jobs import Jobs

ROOT = Path(__file__).parents[2]
ANSWER = "I WANT TO ANSWER:\ndef {}(*args):\n    while True:\n        pass"
ATTACK = (
    "<script>window.hit=1</script><img src=x onerror=window.hit=1> "
    "![x](http://evil.example/x.png) [go](javascript:window.hit=1) "
    '"><svg onload=window.hit=1> <iframe src="http://evil.example"></iframe> '
    "{{constructor}} ${window.hit=1} </textarea><b>bold</b>"
)
PATIENCE_MS = 60_000  # twenty browsers of another test may share the two cores
expect.set_options(timeout=PATIENCE_MS)


def talk(handler: Handler, body: dict[str, Any]) -> None:
    """Two questions that repeat what was said last, then an answer; some words change that."""
    messages = body["messages"]
    said = [m["content"] for m in messages if m["role"] == "user"]
    turn = sum(m["role"] == "assistant" for m in messages)
    everything = " ".join(said)
    if "FAILING" in everything and not handler.server.released.is_set():
        return refuses(401, f"the key is wrong {ATTACK}")(handler, body)
    if "SLOW" in everything:
        return handler.send_events(_slowly(handler))
    name = (re.findall(r"def (\w+)\(", everything) or ["f"])[0]
    text = (
        ANSWER.format(name)
        if turn >= 2
        else f"Heard “{said[-1][-200:]}”. What is number {turn + 1}?"
    )
    if "ATTACK" in everything and turn < 2:
        text = ATTACK
    words = re.findall(r"\s*\S+", text)
    handler.send_events([*map(piece, words), piece("", "stop"), USAGE, DONE])


def _slowly(handler: Handler) -> Iterator[bytes]:
    while not handler.server.released.wait(0.05):
        yield piece("slowly ")
    yield from (piece("", "stop"), USAGE, DONE)


def free_port() -> int:
    """A port that no other app takes while one of ours is started again on it."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Studio:
    """A running app: its address, its data folder, and the way to end it."""

    def __init__(self, data: Path, port: int = 0, **env: str) -> None:
        self.data = data
        self._env = {
            **os.environ,
            "SWEET_DATA": str(data),
            "SWEET_PORT": str(port or free_port()),
            **env,
        }
        self._lines: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "app.py"],
            cwd=ROOT,
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()
        self.address = self._wait_for_address()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.append(line)

    def _wait_for_address(self, patience_s: float = 120) -> str:
        end = time.monotonic() + patience_s
        while time.monotonic() < end and self._process.poll() is None:
            for line in list(self._lines):
                if found := re.search(r"runs at (http://127\.0\.0\.1:\d+)", line):
                    return found[1]
            time.sleep(0.05)
        self.kill()
        raise AssertionError("the app did not start:\n" + self.output)

    @property
    def output(self) -> str:
        """What the app printed so far."""
        return "".join(self._lines)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.address.rsplit(":", 1)[1])

    def kill(self) -> None:
        """End it at once, as a crash does."""
        self._process.kill()
        self._process.wait()


@contextmanager
def running(data: Path, port: int = 0, **env: str) -> Iterator[Studio]:
    """The app on a free port with that data folder."""
    studio = Studio(data, port, **env)
    try:
        yield studio
    finally:
        studio.kill()


@contextmanager
def training(data: Path) -> Iterator[Studio]:
    """The app with that data folder; a round outlives its app, and is ended after it."""
    with running(data) as studio:
        yield studio
    with Services(Settings(data=data)) as services:
        jobs = Jobs(services)
        if left := jobs.running():
            jobs.abort(left.id)


@contextmanager
def talking() -> Iterator[dict[str, str]]:
    """The settings of an agent whose model is `talk`."""
    with serving(talk) as server:
        yield {"SWEET_AGENT__BASE_URL": server.base_url, "SWEET_AGENT__MODEL": "small"}


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser; not across modules, since its loop would be in the way of others."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_path(),
            args=["--no-sandbox", "--disable-background-networking"],
        )
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """A person at a browser of their own, who also notes what a page must not do."""

    def __init__(self, browser: Browser, address: str, width: int = 1280, **options: Any) -> None:
        viewport = {"width": width, "height": 900}
        self.context = browser.new_context(viewport=viewport, **options)  # type: ignore[arg-type]
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.address = address
        self.wrong: list[str] = []
        self.page.on("request", self._note_request)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("console", self._note_console)
        self.page.on("dialog", lambda dialog: self.wrong.append("a dialog opened"))

    def _note_request(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.wrong.append(f"request: {request.url}")

    def _note_console(self, message: Any) -> None:
        left = ("AbortError", "Connection errored out")  # a page was left while it was busy
        if message.type == "error" and not any(text in message.text for text in left):
            self.wrong.append(f"console: {message.text}")

    def leave(self) -> None:
        """Close the browser; nothing was requested from elsewhere, nothing failed or ran."""
        hit = self.page.evaluate("window.hit")
        self.context.close()
        assert not self.wrong, self.wrong
        assert hit is None, "a message ran as code"

    def go(self, path: str = "/") -> None:
        """Open a page of the studio."""
        self.page.goto(self.address + path)

    def go_watch(self) -> None:
        """Open the Watch page and wait for its choices."""
        self.go("/watch")
        expect(self.page.get_by_label("Policy version")).not_to_have_value("")

    def button(self, name: str) -> Any:
        """The button of that name."""
        return self.page.get_by_role("button", name=name, exact=True)

    def begin(self) -> str:
        """Start an episode on the first task offered; its id, once the agent has spoken."""
        self.go()
        expect(self.page.get_by_label("Task", exact=True)).not_to_have_value("")
        self.button("Start").click()
        self.expect_turns(1)
        return self.episode_id

    def begin_own(self, description: str) -> None:
        """Start an episode on an own task."""
        self.go()
        self.page.get_by_role("tab", name="Your own task").click()
        self.page.get_by_label("What do you want?").fill(description)
        self.button("Start with your task").click()
        expect(self.page.locator("#stage .task")).to_be_visible()

    @property
    def episode_id(self) -> str:
        """The episode that the address names."""
        found = re.search(r"episode=(\w+)", self.page.url)
        assert found, self.page.url
        return found[1]

    def expect_turns(self, n: int) -> None:
        """The agent has spoken `n` times, and it is the person's turn or the end."""
        expect(self.page.locator("#transcript .message.agent")).to_have_count(n)
        expect(self.page.locator("#transcript .message.agent .tools")).to_have_count(n)

    def say(self, text: str) -> None:
        """Answer the agent."""
        self.page.get_by_label("Your answer to the agent").fill(text)
        self.button("Send").click()
        expect(self.page.locator("#transcript")).to_contain_text(text)

    def overflow(self) -> list[str]:
        """What stands out at the right of the page; nothing may."""
        return self.page.evaluate(
            """() => document.documentElement.scrollWidth <= innerWidth ? [] :
                [...document.querySelectorAll("body *")]
                    .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
                    .map(e => e.tagName + "." + e.className)"""
        )


V = TypeVar("V", bound=Visitor)
Arrive = Callable[..., Visitor]
"""Brings a person to the studio; takes what `Visitor` takes."""


@contextmanager
def arriving(browser: Browser, address: str, kind: Callable[..., V]) -> Iterator[Callable[..., V]]:
    """A way to bring people of that kind, who all leave at the end."""
    visitors: list[V] = []

    def arrive(**options: Any) -> V:
        visitors.append(kind(browser, address, **options))
        return visitors[-1]

    yield arrive
    for visitor in visitors:
        visitor.leave()
