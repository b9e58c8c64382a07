"""Pages a second, 1, 2 and 4 at once: our renderer, a context a page, a browser a page."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from playwright.async_api import Browser, Playwright, Route, async_playwright

from benchmarks.comparison import Comparison
from evaluators.render import Limits, Renderer
from evaluators.render.answers import ASSETS, STYLESHEET, Answers, missing_assets
from sweet.browser import chromium_path
from sweet.errors import RenderError
from sweet.tasks import mini

PATIENT = Limits(load_s=60, shot_s=60, all_s=120)
AT_ONCE = (1, 2, 4)
OURS, CONTEXT, BROWSER = 60, 12, 6
"""Pages drawn each way: enough for a second or more."""
Draw = Callable[[str], Awaitable[object]]


def run() -> list[Comparison]:
    """Ours against each other way, in turns within one run; all draw the same styled pages."""
    if missing := missing_assets():
        raise RenderError(f"{missing}: `make setup` fetches it.")
    found = []
    for at_once in AT_ONCE:
        ours, walls = _ours(at_once)
        context, browser = asyncio.run(_others(at_once))
        conditions = (
            f"{at_once} at once, ColBench-Mini pages, 1280 px wide, {os.cpu_count()} cores, "
            f"load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}; ours behind {walls}"
        )
        for name, theirs in (("a context a page", context), ("a browser a page", browser)):
            title = f"renderer vs {name}, {at_once} at once, pages/s"
            found.append(Comparison(title, ours, theirs, conditions))
    return found


def _pages(count: int) -> list[str]:
    rows = mini.generate("mini-frontend/test", count, 1)
    return [row.hidden.reference for row in rows if row.hidden is not None]


def _ours(at_once: int) -> tuple[float, str]:
    pages = _pages(OURS)
    with Renderer(PATIENT, at_once=at_once) as renderer, ThreadPoolExecutor(at_once) as pool:
        list(pool.map(renderer.render, pages[:at_once]))
        began = time.perf_counter()
        list(pool.map(renderer.render, pages))
        return len(pages) / (time.perf_counter() - began), str(renderer.walls)


async def _others(at_once: int) -> tuple[float, float]:
    """The usual two ways, with the whole stylesheet from disk and nothing sealed."""
    async with async_playwright() as playwright:
        chromium = await _launch(playwright)
        context = await _rate(_pages(CONTEXT), lambda page: _in_context(chromium, page), at_once)
        await chromium.close()

        async def in_browser(page: str) -> None:
            own = await _launch(playwright)
            await _in_context(own, page)
            await own.close()

        return context, await _rate(_pages(BROWSER), in_browser, at_once)


async def _rate(pages: Sequence[str], draw: Draw, at_once: int) -> float:
    lanes = asyncio.Semaphore(at_once)

    async def one(page: str) -> None:
        async with lanes:
            await draw(page)

    began = time.perf_counter()
    await asyncio.gather(*map(one, pages))
    return len(pages) / (time.perf_counter() - began)


async def _launch(playwright: Playwright) -> Browser:
    return await playwright.chromium.launch(executable_path=chromium_path(), chromium_sandbox=False)


async def _in_context(chromium: Browser, page: str) -> None:
    context = await chromium.new_context(java_script_enabled=False)
    answers = Answers(page)

    async def answer(route: Route) -> None:
        kind = route.request.resource_type
        if kind == "stylesheet":
            await route.fulfill(path=ASSETS / STYLESHEET, content_type="text/css")
        elif found := answers.to(route.request.url, False, kind):
            await route.fulfill(body=found.body, headers=found.headers)
        else:
            await route.abort()

    await context.route("**/*", answer)
    tab = await context.new_page()
    await tab.set_content(page, wait_until="load")
    await tab.screenshot(full_page=True, animations="disabled")
    await context.close()
