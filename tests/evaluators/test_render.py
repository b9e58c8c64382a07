"""The renderer: the same pixels each time, through dying browsers, busy threads and odd pages."""

from __future__ import annotations

import base64
import io
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from PIL import Image

from evaluators.render import Limits, Renderer, answers
from evaluators.render import renderer as rendering
from evaluators.render.browser import Browser, Tab
from sweet.errors import RenderError
from sweet.types import DrawsPages, Rendering

PATIENT = Limits(load_s=30, shot_s=30, all_s=60)
FOLDER = Path(os.environ.get("SWEET_COLBENCH") or Path(__file__).parents[3] / "shared" / "colbench")
ROWS = FOLDER / "frontend_sample.jsonl"
TAILWIND = (
    '<link href="https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/dist/tailwind.min.css" '
    'rel="stylesheet">'
)
STYLED = (
    f'{TAILWIND}<body class="bg-gray-100"><h1 class="text-3xl font-bold p-4">Title</h1>'
    '<img src="https://picsum.photos/id/48/300/200"><style title=z>p{color:red}</style>'
    '<p>red</p><table><td><a href="#">q</a></table>'
)
PLAIN = '<p class="p-8">plain <a href="https://page.invalid/">x</a>'
SPIN = "@keyframes s{to{transform:rotate(1turn);opacity:0}}"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="99" height="99"><circle r="9">'
SLIDE = '<animate attributeName="cx" from="0" to="99" dur=".3s" repeatCount="indefinite"/>'


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    with Renderer(PATIENT) as started:
        yield started


def pixels(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png)).convert("RGB")


def gif() -> str:
    frames = [Image.new("RGB", (40, 40), color) for color in ("red", "blue", "green")]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=30, loop=0)
    return "data:image/gif;base64," + base64.b64encode(file.getvalue()).decode()


MOVING = {
    "an endless animation": f"<style>{SPIN}p{{animation:s .3s linear infinite}}</style><p>round",
    "one that ends": "<style>@keyframes s{from{opacity:0}}p{animation:s .3s both}</style><p>in",
    "one by scrolling": f"<style>{SPIN}p{{animation:s;animation-timeline:scroll()}}</style><p>x",
    "a transition": "<style>p{transition:all 3s}@starting-style{p{opacity:0}}</style><p>in",
    "a drawing": f"{SVG}{SLIDE}</circle></svg>",
    "a drawing in a picture": f"<img src='data:image/svg+xml,{SVG}{SLIDE}</circle></svg>'>",
    "a moving picture": f'<img src="{gif()}">',
    "a moving background": f'<p style="background:url({gif()})">x',
    "a marquee": "<marquee>passing by</marquee>",
    "a waiting bar": "<progress></progress>",
    "a cursor": "<input autofocus>",
    "a link that was seen": '<a href="https://page.invalid/">a</a><a href="#">b</a><a href>c</a>',
    "Tailwind's": f'{TAILWIND}<p class="animate-spin w-9">x</p><p class="animate-pulse">y',
    "a late picture": '<p style="height:3000px"><img loading=lazy src="https://picsum.photos/300">',
    "a large picture": '<img decoding=async src="https://picsum.photos/3000/2000">',
}  # fmt: skip
STAINING = {
    "a policy": "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'\">",
    "a preferred set of styles": "<style title=a>p{color:blue}</style><p>x",
    "a colour scheme": "<meta name=color-scheme content=dark><p>x",
    "dark roots": "<style>:root{color-scheme:dark}@layer z,y;</style><p>x",
    "a doctype": "<!doctype html><p>x",
    "a language": "<html lang=ar dir=rtl><meta http-equiv=content-language content=ja><p>x",
    "an encoding": "<meta charset=utf-16><p>x",
    "a view": "<meta name=viewport content='width=300,initial-scale=3'><p>x",
    "other classes": f'{TAILWIND}<p class="text-9xl bg-red-500">x',
    "a large area": '<div style="width:5000px;height:5000px;zoom:3">x',
    "a font": "<style>@font-face{font-family:serif;src:url(data:font/woff2;base64,AAAA)}</style>",
    "a target": "<a id=x href=#x>q</a><input autofocus>",
    "what is never closed": "<table><select><svg><template><style>",
}  # fmt: skip


def test_it_is_what_draws_pages(renderer: Renderer) -> None:
    drawer: DrawsPages = renderer
    drawn = drawer.render("<p style='background:#00ff00;margin:0;height:10px'>", width=400)
    assert (drawn.width, drawn.height, drawn.is_cut) == (400, 720, False)
    picture = pixels(drawn.png)
    assert picture.size == (400, 720)
    assert picture.getpixel((200, 12)) == (0, 255, 0)


@pytest.mark.parametrize("name", MOVING)
def test_what_moves_stands_still_at_the_same_place(renderer: Renderer, name: str) -> None:
    drawn = [renderer.render(MOVING[name])]
    for wait_s in (0.05, 0.13):
        time.sleep(wait_s)
        drawn.append(renderer.render(MOVING[name]))
    assert drawn[0] == drawn[1] == drawn[2]


def test_another_browser_draws_the_same_pixels(renderer: Renderer) -> None:
    with Renderer(PATIENT, at_once=1) as other:
        assert other.render(STYLED) == renderer.render(STYLED)


def test_what_fades_in_is_there() -> None:
    with Renderer(PATIENT, at_once=1) as renderer:
        colors = pixels(renderer.render(MOVING["one that ends"]).png).getcolors(1 << 24) or []
    assert (0, 0, 0) in [color for _, color in colors]


def test_a_page_leaves_nothing_to_the_next() -> None:
    with Renderer(PATIENT, at_once=1) as renderer:  # one tab draws them all
        styled, plain = renderer.render(STYLED), renderer.render(PLAIN)
        for name, page in STAINING.items():
            renderer.render(page)
            assert renderer.render(STYLED) == styled, name
            renderer.render(page, width=600)
            assert renderer.render(PLAIN) == plain, name


def test_every_page_has_the_styles_of_its_own_classes() -> None:
    colors = {"red": "#ef4444", "green": "#10b981", "blue": "#3b82f6"}
    page = f'{TAILWIND}<p class="bg-{{}}-500">tailwind.min.css</p>'
    with Renderer(PATIENT, at_once=1) as renderer:  # one document for them all
        drawn = {name: renderer.render(page.format(name)).boxes[0] for name in colors}
    assert {name: box.background for name, box in drawn.items()} == colors
    assert {box.text for box in drawn.values()} == {"tailwind.min.css"}


def test_many_threads_each_get_their_own_page(renderer: Renderer) -> None:
    def color_of(n: int) -> tuple[float, ...]:
        page = f'<body style="background:rgb({n}, {255 - n}, 7)">'
        return pixels(renderer.render(page).png).getpixel((5, 5))  # type: ignore[return-value]

    numbers = range(0, 240, 10)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(color_of, numbers)) == [(n, 255 - n, 7) for n in numbers]


def test_a_long_page_is_cut_and_says_so(renderer: Renderer) -> None:
    long, short = (renderer.render(f'<p style="height:{h}px">x') for h in (9000, 3000))
    assert (long.height, long.is_cut) == (4000, True)
    assert (short.is_cut, pixels(short.png).size) == (False, (1280, short.height))


def test_photos_have_the_size_that_their_address_asks_for(renderer: Renderer) -> None:
    sizes = {
        "id/48/300/200": (300, 200),
        "id/48/300/200-estate": (300, 200),
        "seed/a/60/50.jpg?blur=2": (60, 50),
        "150": (150, 150),
        "g/40/30": (40, 30),
    }
    page = "".join(f'<img src="https://picsum.photos/{path}"><br>' for path in sizes)
    drawn = [(box.width, box.height) for box in renderer.render(page).boxes if box.tag == "img"]
    assert drawn == list(sizes.values())


@pytest.mark.parametrize(
    "address",
    [
        "https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/dist/tailwind.min.css",
        "https://unpkg.com/tailwindcss@^2/dist/tailwind.min.css",
        "https://cdnjs.cloudflare.com/ajax/libs/tailwindcss/2.2.19/tailwind.min.css",
        "http://cdn.jsdelivr.net/npm/tailwindcss@2/dist/tailwind.css",
        "//cdn.jsdelivr.net/npm/tailwindcss/dist/tailwind.min.css",
    ],
)
def test_the_stylesheet_is_there_by_all_of_its_addresses(renderer: Renderer, address: str) -> None:
    link = f'<link rel="stylesheet" href="{address}"><p class="bg-red-500">x'
    imported = f'<style>@import "{address}";</style><p class="bg-red-500">x'
    for page in (link, imported):
        assert [box.background for box in renderer.render(page).boxes] == ["#ef4444"]


@pytest.mark.skipif(not ROWS.exists(), reason=f"no ColBench rows in {FOLDER} (SWEET_COLBENCH)")
def test_every_colbench_page_is_drawn_with_its_styles(renderer: Renderer) -> None:
    pages = [json.loads(line)["ground_truth"] for line in ROWS.read_text().splitlines()]
    with ThreadPoolExecutor(2) as pool:
        drawn = list(pool.map(renderer.render, pages))
        bare = list(pool.map(renderer.render, (page.replace("<link", "<x") for page in pages)))
    assert len(pages) == 60
    assert [n for n in range(60) if drawn[n].png == bare[n].png or not drawn[n].boxes] == []
    pictures = [box for one in drawn for box in one.boxes if box.tag == "img"]
    assert len(pictures) > 34


def test_pages_that_cannot_be_drawn_say_why(renderer: Renderer) -> None:
    with pytest.raises(RenderError, match="600,000 bytes; at most 524,288"):
        renderer.render("é" * 300_000)
    with pytest.raises(RenderError, match="0 pixels wide"):
        renderer.render("<p>x", width=0)
    with pytest.raises(RenderError, match="more than 500 files"):
        renderer.render("".join(f'<img src="https://picsum.photos/{n}">' for n in range(700)))
    assert renderer.render(PLAIN).boxes


def test_a_missing_stylesheet_is_no_bare_page(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, Renderer(PATIENT, at_once=1) as renderer:
        patch.setattr(answers, "ASSETS", tmp_path)
        patch.setattr(answers, "_stylesheet", answers._stylesheet.__wrapped__)
        with pytest.raises(RenderError, match=r"tailwind-2.2.19.min.css can't be read.*make setup"):
            renderer.render(STYLED)
        assert renderer.render("<p>needs none").boxes


def test_a_browser_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEET_CHROMIUM", "/nowhere/chromium")
    with pytest.raises(RenderError, match="SWEET_CHROMIUM=/nowhere/chromium"):
        Renderer().start()
    monkeypatch.setenv("SWEET_CHROMIUM", "/bin/false")
    with pytest.raises(RenderError, match="Chromium could not be started"):
        Renderer().start()


def group_of(renderer: Renderer) -> int:
    assert renderer._browser is not None
    return int((renderer._browser._folder / "pid").read_text())


def members(group: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, ProcessLookupError):
            continue
    return found


def is_gone(group: int) -> bool:
    """Whether all that was killed has ended; the kernel may take its time."""
    for _ in range(600):
        if not members(group):
            return True
        time.sleep(0.1)
    return False


def test_a_browser_killed_in_mid_page_is_replaced_and_the_page_drawn() -> None:
    began, killed = threading.Event(), threading.Event()
    shoot = Tab._shoot

    async def shoot_late(self: Tab, width: int, limits: Limits) -> Rendering:
        if not began.is_set():
            began.set()
            while not killed.is_set():
                await rendering.asyncio.sleep(0.01)
        return await shoot(self, width, limits)

    with Renderer(PATIENT) as renderer, ThreadPoolExecutor(1) as pool:
        whole = renderer.render(STYLED)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Tab, "_shoot", shoot_late)
            drawing = pool.submit(renderer.render, STYLED)
            assert began.wait(60)
            first = group_of(renderer)
            os.killpg(first, signal.SIGKILL)
            killed.set()
            assert drawing.result() == whole
        assert group_of(renderer) != first
        assert renderer.render(STYLED) == whole


def test_a_page_that_ends_every_browser_is_given_up() -> None:
    async def die(self: Tab, *args: object) -> Rendering:
        os.killpg(group_of(renderer), signal.SIGKILL)
        return await draw(self, PLAIN, 1280, PATIENT)

    draw = Tab.draw
    with Renderer(PATIENT) as renderer:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rendering, "_problem", _no_problem)
            patch.setattr(Tab, "draw", die)
            with pytest.raises(RenderError, match="ends the browser"):
                renderer.render(PLAIN)
        assert renderer.render(PLAIN).boxes


async def _no_problem(browser: Browser) -> str:
    return ""


def test_the_watchdog_kills_a_browser_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(self: Tab, *args: object) -> Rendering:
        await rendering.asyncio.sleep(3600)
        raise AssertionError

    with Renderer(Limits(load_s=30, shot_s=30, all_s=1)) as renderer:
        first = group_of(renderer)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Tab, "draw", hang)
            with pytest.raises(RenderError, match="held the browser up for 1 s"):
                renderer.render(PLAIN)
        renderer.limits = PATIENT
        assert renderer.render(PLAIN).boxes
        assert group_of(renderer) != first
        assert is_gone(first)


def test_the_limits_leave_no_page_more_than_twelve_seconds() -> None:
    limits = Limits()
    assert limits.load_s + limits.shot_s < limits.all_s < 12
    assert (limits.load_s, limits.shot_s, limits.page_bytes, limits.height_px) == (
        4, 5, 512 << 10, 4000,
    )  # fmt: skip


def test_a_browser_is_replaced_after_its_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "RECYCLE_PAGES", 3)
    groups: set[int] = set()
    pages = 0
    with Renderer(PATIENT, at_once=1) as renderer:
        first = renderer.render(STYLED)
        while len(groups) < 3 and pages < 2000:
            assert renderer.render(STYLED) == first
            groups.add(group_of(renderer))
            pages += 1
    assert len(groups) == 3
    assert [group for group in groups if not is_gone(group)] == []


def test_closing_ends_everything_and_says_so_to_who_waits() -> None:
    renderer = Renderer(PATIENT).start()
    assert renderer._browser is not None
    group, folder = group_of(renderer), renderer._browser._folder
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(renderer.render, STYLED) for _ in range(8)]
        renderer.close()
        failed = [future.exception() for future in waiting]
    assert all(error is None or isinstance(error, RenderError) for error in failed)
    assert is_gone(group)
    assert not folder.exists()
    with pytest.raises(RenderError, match="closed"):
        renderer.render(PLAIN)
    renderer.close()


def test_a_renderer_that_never_drew_can_be_closed() -> None:
    Renderer().close()
