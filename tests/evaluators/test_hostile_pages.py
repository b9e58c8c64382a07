"""Hostile pages reach nothing, cost little, and leave the next page as it should be."""

from __future__ import annotations

import io
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from playwright.async_api import Error, Route

from evaluators.render import Limits, Renderer, answers, browser
from evaluators.render import renderer as rendering
from evaluators.render.browser import Tab
from evaluators.render.walls import Walls, possible
from sweet.errors import RenderError
from tests.evaluators.hostile_pages import (
    COST,
    LOOT,
    MARK,
    NETWORK,
    PAGES,
    PAINT,
    HostilePage,
    Traps,
    trapped,
)

LONGEST_S = 12
PATIENT = Limits(load_s=10, shot_s=10, all_s=11.5)
QUICK = Limits(load_s=1.5, shot_s=1.5, all_s=11.5)
CONTROL = '<body style="background:#dfd"><h1 style="color:red">Control</h1><input value=same>'


@contextmanager
def _traps(factory: pytest.TempPathFactory) -> Iterator[Traps]:
    folder = factory.mktemp("traps")
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o755)
    with trapped(folder) as set_up:
        yield set_up


@pytest.fixture(scope="module")
def traps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traps]:
    with _traps(tmp_path_factory) as set_up:
        yield set_up


@pytest.fixture
def traps_apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traps]:
    """For a browser with a hole: what it still sends when it ends is not the next test's."""
    with _traps(tmp_path_factory) as set_up:
        yield set_up


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    with Renderer(PATIENT) as started:
        yield started


@pytest.fixture(scope="module")
def control(renderer: Renderer) -> bytes:
    return renderer.render(CONTROL).png


@pytest.fixture
def without_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = [walls for walls in possible() if not walls.namespaces]
    monkeypatch.setattr(rendering, "possible", lambda: iter(fewer))


def wrong(renderer: Renderer, page: HostilePage, traps: Traps) -> list[str]:
    """What a page did that it must not."""
    traps.seen.clear()
    renderer.start()
    found, began = [], time.monotonic()
    try:
        drawn = renderer.render(traps.fill(page.html))
    except RenderError as e:
        found += [f"it failed: {e}"] if page.is_drawn else []
    else:
        found += ["it was drawn"] if page.is_drawn is False else []
        if MARK in page.html and not any(MARK in box.text for box in drawn.boxes):
            found.append("what else is on it was not drawn")
        colors = Image.open(io.BytesIO(drawn.png)).convert("RGB").getcolors(1 << 24) or []
        found += ["it shows loot"] if LOOT in [color for _, color in colors] else []
    spent = time.monotonic() - began
    return found + ([f"it took {spent:.1f} s"] if spent > LONGEST_S else []) + traps.seen


def all_wrong(renderer: Renderer, pages: Iterable[HostilePage], traps: Traps) -> dict[str, object]:
    """What each of the pages did that it must not."""
    found = {page.name: wrong(renderer, page, traps) for page in pages}
    return {name: problems for name, problems in found.items() if problems}


def test_there_are_many_and_each_has_its_name() -> None:
    assert len(PAGES) >= 44
    assert len({page.name for page in PAGES}) == len(PAGES)


@pytest.mark.parametrize("page", NETWORK, ids=lambda page: page.name)
def test_a_page_reaches_nothing(
    renderer: Renderer, control: bytes, traps: Traps, page: HostilePage
) -> None:
    assert wrong(renderer, page, traps) == []
    assert renderer.render(CONTROL).png == control


@pytest.mark.parametrize("page", COST, ids=lambda page: page.name)
def test_a_page_costs_little(
    renderer: Renderer, control: bytes, traps: Traps, page: HostilePage
) -> None:
    renderer.limits = PATIENT if page.is_drawn else QUICK
    try:
        assert wrong(renderer, page, traps) == []
    finally:
        renderer.limits = PATIENT
    assert renderer.render(CONTROL).png == control


@pytest.mark.usefixtures("without_namespaces")
def test_without_namespaces_pages_reach_nothing_either(traps: Traps) -> None:
    with Renderer(PATIENT) as renderer:
        assert renderer.walls is not None and not renderer.walls.namespaces
        assert all_wrong(renderer, NETWORK, traps) == {}


def test_walls_that_are_missing_are_said() -> None:
    assert str(Walls(True, True, True)) == (
        "network namespace, unprivileged user, Chromium's own sandbox"
    )
    bare = Walls(namespaces=False, nobody=True, sandbox=False)
    assert str(bare) == "NO network namespace, unprivileged user, NO Chromium's own sandbox"
    assert [todo for _, held, todo in bare.each() if not held and not todo] == []


async def _let_through(self: Tab, route: Route) -> None:
    try:
        if route.request.url == answers.ADDRESS:
            await route.fulfill(body="<!doctype html>", content_type="text/html")
        else:
            await self._context.set_offline(False)
            await route.continue_()
    except Error:
        return


@pytest.mark.usefixtures("without_namespaces")
def test_a_renderer_with_a_hole_fails(traps_apart: Traps, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("iframe", "picture", "stylesheet", "preconnect", "object of a file")
    pages = [page for page in NETWORK if page.name in names]
    arguments = [a for a in browser.ARGUMENTS if "host-resolver" not in a]
    monkeypatch.setattr(browser, "ARGUMENTS", arguments)
    monkeypatch.setattr(Tab, "_answer", _let_through)
    with Renderer(replace(PATIENT, load_s=5), at_once=1) as holed:
        found = all_wrong(holed, pages, traps_apart)
    assert {"iframe", "picture", "stylesheet"} <= set(found)
    assert "a connection was opened" in str(found["picture"])


def test_loot_and_lost_text_and_failures_are_noticed(renderer: Renderer, traps: Traps) -> None:
    shown = HostilePage("shown", f'<p>{MARK}</p><p style="{PAINT}">x</p>')
    lost = HostilePage("lost", f'<p style="display:none">{MARK}</p>')
    failed = HostilePage("failed", "x" * (600 << 10))
    assert wrong(renderer, shown, traps) == ["it shows loot"]
    assert wrong(renderer, lost, traps) == ["what else is on it was not drawn"]
    assert wrong(renderer, failed, traps)[0].startswith("it failed: The page has 614,400 bytes")
    assert wrong(renderer, replace(shown, html="x", is_drawn=False), traps) == ["it was drawn"]


def test_the_file_and_the_listener_are_reachable_at_all(traps: Traps) -> None:
    traps.seen.clear()
    address = traps.fill("http://@HOST@/a.css")
    assert b"ff00fe" in urllib.request.urlopen(address, timeout=10).read()
    assert traps.seen[0] == "a connection was opened"
    assert Path(traps.fill("@FILE@")).stat().st_mode & 0o004
