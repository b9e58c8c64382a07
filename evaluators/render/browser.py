"""One running Chromium and its tabs."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from playwright.async_api import Browser as Chromium
from playwright.async_api import (
    BrowserContext,
    CDPSession,
    Error,
    Page,
    Playwright,
    Route,
    async_playwright,
)
from playwright.async_api import TimeoutError as PlaywrightTimeout

from evaluators.render.answers import ADDRESS, Answer, Answers
from evaluators.render.boxes import visible_boxes
from evaluators.render.walls import NOBODY, Walls, browser_path, write_launcher
from sweet.errors import RenderError
from sweet.types import Rendering

VIEW_HEIGHT = 720
MAX_REQUESTS = 500
START_S = 60.0
STOP_S = 10.0
SETTLE_S = 0.2  # until a browser that died is known to have
ARGUMENTS = (
    "--disable-site-isolation-trials",  # a page is alone anyway; a process for each costs much
    "--host-resolver-rules=MAP * ~NOTFOUND",  # no name and no number leads anywhere
    "--disable-background-networking",
    "--disable-quic",
    "--disable-lcd-text",
    "--font-render-hinting=none",
    "--force-prefers-reduced-motion",
    "--blink-settings=imageAnimationPolicy=2",  # moving pictures stand at their first frame
    "--disable-gpu",
)
STILL = """() => {
    for (const animation of document.getAnimations()) {
        const ends = Number.isFinite(animation.effect?.getComputedTiming().endTime);
        if (ends && animation.playbackRate !== 0) animation.finish();
        else animation.cancel();
    }
    for (const drawing of document.querySelectorAll("svg")) {
        drawing.pauseAnimations?.();
        drawing.setCurrentTime?.(0);
    }
    for (const moving of document.querySelectorAll("marquee")) {
        const still = document.createElement("div");
        for (const { name, value } of moving.attributes) still.setAttribute(name, value);
        still.append(...moving.childNodes);
        moving.replaceWith(still);
    }
    for (const bar of document.querySelectorAll("progress:indeterminate")) bar.value = 0;
}"""
"""What moves stands still for good; the screenshot's own stilling ends before boxes are read."""
FORGET = ("Network.setCacheDisabled", {"cacheDisabled": True})
"""Empties the cache of a document, which would give a page the stylesheet of the page before."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a page may cost. `all_s` is for everything; then the browser is killed."""

    page_bytes: int = 512 << 10
    height_px: int = 4000
    load_s: float = 4.0
    shot_s: float = 5.0
    all_s: float = 11.5


class BrowserGone(Exception):
    """The browser ended while it was needed; the page in work may be innocent."""

    spent_s = 0.0


class Tab:
    """One page at a time, written into a sealed empty document.

    A new document for every page would cost several times what the page does. Only pages that
    change the document itself make the next one begin with a new document.
    """

    def __init__(self, context: BrowserContext, page: Page, devtools: CDPSession) -> None:
        self._context, self._page, self._devtools = context, page, devtools
        self._answers = Answers("")
        self._is_clean = False
        self._asked = 0
        self.problem: RenderError | None = None
        """Why the page in work must fail, seen while its requests were answered."""

    @classmethod
    async def open(cls, chromium: Chromium) -> Tab:
        """A tab with everything closed that a page could use."""
        context = await chromium.new_context(
            java_script_enabled=False,
            service_workers="block",
            accept_downloads=False,
            reduced_motion="reduce",
            color_scheme="light",
            forced_colors="none",
            viewport={"width": 1280, "height": VIEW_HEIGHT},
            device_scale_factor=1,
            locale="en-US",
            timezone_id="UTC",
            offline=True,
        )
        page = await context.new_page()
        tab = cls(context, page, await context.new_cdp_session(page))
        await context.route("**/*", tab._answer)
        await context.route_web_socket("**/*", lambda socket: socket.close())
        return tab

    async def _answer(self, route: Route) -> None:
        request = route.request
        self._asked += 1
        with suppress(Error):  # the page may be gone
            is_page = request.is_navigation_request() and request.frame == self._page.main_frame
            answer = await self._answer_to(request.url, is_page, request.resource_type)
            if answer is None:
                await route.abort()
            else:
                await route.fulfill(body=answer.body, headers=answer.headers)

    async def _answer_to(self, url: str, is_page: bool, kind: str) -> Answer | None:
        if self._asked > MAX_REQUESTS:
            self.problem = RenderError(f"The page asks for more than {MAX_REQUESTS} files.")
            await self._page.close()
            return None
        try:
            return self._answers.to(url, is_page, kind)
        except RenderError as e:
            self.problem = e
            return None

    async def draw(self, html: str, width: int, limits: Limits) -> Rendering:
        """The page as it looks. Raises: RenderError, Error."""
        if not self._is_clean:
            self._answers = Answers("")
            await self._page.goto(ADDRESS)
        self._is_clean = not leaves_traces(html)
        self._answers, self._asked = Answers(html), 0
        await self._devtools.send(*FORGET)
        await self._page.set_viewport_size({"width": width, "height": VIEW_HEIGHT})
        writing = self._page.set_content(html, wait_until="load", timeout=limits.load_s * 1000)
        await _in_time(writing, limits.load_s, "load")
        rendering = await _in_time(self._shoot(width, limits), limits.shot_s, "draw")
        if self.problem:
            raise self.problem
        return rendering

    async def _shoot(self, width: int, limits: Limits) -> Rendering:
        await self._page.evaluate(STILL)
        metrics = await self._devtools.send("Page.getLayoutMetrics")
        full = max(int(metrics["cssContentSize"]["height"]), VIEW_HEIGHT)
        height = min(full, limits.height_px)
        png = await self._page.screenshot(
            full_page=True,
            clip={"x": 0, "y": 0, "width": width, "height": height},
            animations="disabled",
            caret="hide",
            scale="css",
            timeout=limits.shot_s * 1000,
        )
        boxes = await visible_boxes(self._page, self._devtools, width, height)
        return Rendering(png, width, height, boxes, is_cut=full > height)


def leaves_traces(html: str) -> bool:
    """Whether the page may change the document it is in beyond its own content.

    A policy or a colour scheme in a meta element stays, and so does the name of a preferred set of
    styles.
    """
    page = html.lower()
    if "http-equiv" in page or "color-scheme" in page:
        return True
    has_styles = "<link" in page or "<style" in page
    return has_styles and re.search(r"\btitle\s*=", page) is not None


class Browser:
    """A running Chromium behind its walls, with tabs to lend."""

    def __init__(self, driver: Playwright, chromium: Chromium, folder: Path) -> None:
        self._driver, self._chromium, self._folder = driver, chromium, folder
        self.drawn = 0
        self.in_work = 0
        self._is_killed = False
        self._free: list[Tab] = []

    @classmethod
    async def start(cls, walls: Walls) -> Browser:
        """A browser behind these walls. Raises: Error where it does not start."""
        driver = await async_playwright().start()
        folder = Path(tempfile.mkdtemp(prefix="sweet-render-"))
        _open_to_nobody(folder, walls)
        try:
            path = browser_path(driver.chromium.executable_path)
            chromium = await driver.chromium.launch(
                executable_path=write_launcher(walls, folder, path),
                chromium_sandbox=walls.sandbox,
                args=ARGUMENTS,
                env=_environment(),
                timeout=START_S * 1000,
                handle_sigint=False,  # Ctrl-C is for the studio
            )
        except BaseException:
            _kill(folder)
            shutil.rmtree(folder, ignore_errors=True)
            await driver.stop()
            raise
        return cls(driver, chromium, folder)

    @property
    def alive(self) -> bool:
        """Whether it still answers."""
        return not self._is_killed and self._chromium.is_connected()

    async def draw(self, html: str, width: int, limits: Limits) -> Rendering:
        """The page as it looks. Raises: RenderError; BrowserGone."""
        self.drawn += 1
        tab = None
        try:
            tab = self._free.pop() if self._free else await Tab.open(self._chromium)
            rendering = await tab.draw(html, width, limits)
        except (Error, RenderError) as e:
            await asyncio.sleep(SETTLE_S)
            reason = tab.problem if tab else None
            if not self.alive and reason is None:
                raise BrowserGone from e
            self.kill()  # what the page had begun goes on in a browser that is let live
            raise reason or _classified(e) from e
        self._free.append(tab)
        return rendering

    def kill(self) -> None:
        """End all of its processes at once."""
        self._is_killed = True
        _kill(self._folder)

    async def close(self) -> None:
        """End it and remove what it left."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
        with suppress(Error, TimeoutError):
            await asyncio.wait_for(self._chromium.close(), STOP_S)
        with suppress(Error, TimeoutError):
            await asyncio.wait_for(self._driver.stop(), STOP_S)


async def _in_time(work: Awaitable[T], seconds: float, what: str) -> T:
    try:
        return await asyncio.wait_for(work, seconds)
    except (TimeoutError, PlaywrightTimeout) as e:
        raise RenderError(
            f"The page could not be drawn: it took over {seconds:g} s to {what}."
        ) from e


def _classified(error: Error | RenderError) -> RenderError:
    if isinstance(error, RenderError):
        return error
    line = next((line for line in error.message.splitlines() if line.strip()), "no reason given")
    return RenderError(f"The page could not be drawn: {line.strip()}")


def _open_to_nobody(folder: Path, walls: Walls) -> None:
    home = folder / "home"
    home.mkdir(mode=0o700)
    folder.chmod(0o711)
    if walls.nobody and not walls.namespaces:
        os.chown(home, int(NOBODY), int(NOBODY))


def _environment() -> dict[str, str | float | bool]:
    kept = {name: os.environ[name] for name in ("PATH",) if name in os.environ}
    return {**kept, "LANG": "C.UTF-8", "TZ": "UTC"}


def _kill(folder: Path) -> None:
    """End the process group that the launcher began; nothing where it never did."""
    with suppress(OSError, ValueError):
        os.killpg(int((folder / "pid").read_text()), signal.SIGKILL)
