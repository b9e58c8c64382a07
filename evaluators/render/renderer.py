"""Pages from any thread, drawn by one browser in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import CancelledError
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, TypeGuard, TypeVar

from playwright.async_api import Error

from evaluators.render.answers import prepare
from evaluators.render.browser import START_S, Browser, BrowserGone, Limits
from evaluators.render.walls import Walls, possible
from sweet.errors import ConfigError, RenderError
from sweet.types import Rendering

RECYCLE_PAGES = 50
AT_ONCE = 2
MAX_WIDTH_PX = 4000
TRIAL = '<p style="width: 123px; background: red">It renders.</p>'
END_S = 30.0
T = TypeVar("T")


class Renderer:
    """Draws HTML that nobody trusts. Safe from any thread; close it when done.

    The browser is started by `start`, or by the first page. One that dies, or that a page held up
    for too long, is replaced.
    """

    def __init__(self, limits: Limits | None = None, at_once: int = AT_ONCE) -> None:
        self.limits = limits or Limits()
        self._at_once = at_once
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._is_closed = False
        self._lanes = asyncio.Semaphore(at_once)
        self._entrance = asyncio.Lock()
        self._starting = asyncio.Lock()
        self._browser: Browser | None = None
        self._successor: asyncio.Task[Browser] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._walls: Walls | None = None

    def start(self) -> Renderer:
        """Start the browser now. Raises: RenderError where none can be had."""
        self._do(self._ready())
        return self

    def close(self) -> None:
        """End the browser and the thread. Pages still waiting fail. May be called twice."""
        with self._lock:
            thread, self._is_closed = self._thread, True
        if thread is None or not thread.is_alive():
            return
        with suppress(Exception):
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(END_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        thread.join(END_S)

    def __enter__(self) -> Renderer:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.close()

    def render(self, html: str, *, width: int = 1280) -> Rendering:
        """The page as it looks. Raises: RenderError; never a blank picture instead."""
        size = len(html.encode(errors="replace"))
        if size > self.limits.page_bytes:
            raise RenderError(
                f"The page has {size:,} bytes; at most {self.limits.page_bytes:,} are drawn."
            )
        if not 1 <= width <= MAX_WIDTH_PX:
            raise RenderError(f"A page can't be {width} pixels wide: 1 to {MAX_WIDTH_PX:,} can be.")
        return self._do(self._draw(html, width))

    @property
    def walls(self) -> Walls | None:
        """What the browser was last started behind; None before it was."""
        return self._walls

    # In the thread of its own

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives, done in the renderer's thread."""
        with self._lock:
            if self._is_closed:
                work.close()
                raise RenderError("The renderer is closed: nothing more is drawn.")
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="renderer", daemon=True
                )
                self._thread.start()
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError as e:
            raise RenderError("The renderer was closed while the page waited.") from e

    async def _draw(self, html: str, width: int) -> Rendering:
        """A page whose browser ended is drawn once more, alone: a neighbour may have ended it."""
        left_s = self.limits.all_s
        async with self._lanes:
            try:
                return await self._attempt(html, width, left_s)
            except BrowserGone as e:
                left_s -= e.spent_s
        async with self._alone():
            try:
                return await self._attempt(html, width, left_s)
            except BrowserGone as e:
                raise RenderError("The page could not be drawn: it ends the browser.") from e

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """All lanes at once: nothing else is drawn meanwhile."""
        async with self._entrance, AsyncExitStack() as lanes:
            for _ in range(self._at_once):
                await lanes.enter_async_context(self._lanes)
            yield

    async def _attempt(self, html: str, width: int, limit_s: float) -> Rendering:
        browser = await self._ready()
        browser.in_work += 1
        began = self._loop.time()
        try:
            return await asyncio.wait_for(browser.draw(html, width, self.limits), limit_s)
        except BrowserGone as e:
            e.spent_s = self._loop.time() - began
            raise
        except TimeoutError as e:
            browser.kill()
            raise RenderError(
                f"The page could not be drawn: it held the browser up for {self.limits.all_s:g} s."
            ) from e
        finally:
            browser.in_work -= 1
            if browser is not self._browser and not browser.in_work:
                self._put_away(browser)

    async def _ready(self) -> Browser:
        """A living browser. One that drew many pages goes on until its successor is up."""
        async with self._starting:
            old = self._browser
            if old is not None and old.alive:
                if old.drawn < RECYCLE_PAGES:
                    return old
                self._successor = self._successor or asyncio.create_task(self._start_browser())
                if not self._successor.done():
                    return old
            starting, self._successor = self._successor or self._start_browser(), None
            self._browser = None
            if old is not None and not old.in_work:
                self._put_away(old)
            self._browser = await starting
            return self._browser

    def _put_away(self, browser: Browser) -> None:
        """Close a browser that nobody waits for."""
        browser.kill()
        closing = asyncio.create_task(browser.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _start_browser(self) -> Browser:
        """A new browser behind the strongest walls that hold here; later ones have the same."""
        await asyncio.to_thread(prepare)
        problems = []
        for walls in [self._walls] if self._walls else possible():
            try:
                browser = await Browser.start(walls)
            except ConfigError as e:
                raise RenderError(str(e)) from e
            except (Error, OSError) as e:
                problems.append(_first_line(str(e)))
                continue
            problem = "it was not tried"
            try:
                problem = await _problem(browser)
            finally:
                if problem:
                    self._put_away(browser)
            if not problem:
                self._walls = walls
                return browser
            problems.append(problem)
        raise RenderError(
            f"Chromium could not be started: {problems[-1]}. `python -m sweet doctor` shows what "
            "works; `make setup` finds or installs a browser."
        )

    async def _end(self) -> None:
        successor = self._successor
        browsers = [self._browser, successor.result() if _gave(successor) else None]
        for browser in filter(None, browsers):
            self._put_away(browser)
        waiting = asyncio.all_tasks() - self._closing - {asyncio.current_task()}
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.gather(*self._closing, return_exceptions=True)


async def _problem(browser: Browser) -> str:
    """Why this browser does not draw; empty when it just did."""
    patient = Limits(load_s=START_S, shot_s=START_S, all_s=START_S)
    try:
        drawn = await asyncio.wait_for(browser.draw(TRIAL, 800, patient), START_S)
    except (RenderError, BrowserGone, TimeoutError) as e:
        return str(e) or "it ended while it drew"
    widths = [box.width for box in drawn.boxes]
    return "" if widths == [123] else f"it drew a box of 123 pixels as {widths}"


def _gave(task: asyncio.Task[Browser] | None) -> TypeGuard[asyncio.Task[Browser]]:
    """Whether a task has given a browser."""
    return task is not None and task.done() and not task.cancelled() and not task.exception()


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
