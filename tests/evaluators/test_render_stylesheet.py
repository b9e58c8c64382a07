"""The purged stylesheet: what can match stays, in its order, and pages look the same with it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from evaluators.render import Limits, Renderer
from evaluators.render.answers import ASSETS, STYLESHEET
from evaluators.render.stylesheet import Stylesheet
from sweet.tasks import mini

CSS = (
    "/*! kept */html{margin:0}.a,.b{color:red}.a .c{color:blue}.w-1\\/2{width:50%}"
    ".md\\:x:hover{top:0}@media (min-width:9px){.a{left:0}.d{left:1px}}.\\32xl{top:2px}"
    "@keyframes spin{to{top:0}}.many>:not(.q){top:3px}.a{color:green}"
)
ADDRESS = "https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/dist/tailwind.min.css"
LINK = f'<link href="{ADDRESS}" rel="stylesheet">'
FOLDER = Path(os.environ.get("SWEET_COLBENCH") or Path(__file__).parents[3] / "shared" / "colbench")
ROWS = FOLDER / "frontend_sample.jsonl"
ODD = (
    '<body class="BG-GRAY-100"><p class="md:w-1/2 w-0.5 -mt-4 2xl:p-4 hover:underline">odd</p>'
    '<p class="text&#45;red-500 space-x-4 divide-y">entity<b>a</b><b>b</b></p>'
    "<p class='group placeholder-red-500 focus:ring-2'>group</p><input autofocus class=\"border\">"
)


@cache
def tailwind() -> str:
    return (ASSETS / STYLESHEET).read_text()


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    with Renderer(Limits(load_s=30, shot_s=30, all_s=60)) as started:
        yield started


@pytest.mark.parametrize(
    ("page", "kept"),
    [
        ("", "html{margin:0}@keyframes spin{to{top:0}}"),
        ('<p class="b">', "html{margin:0}.a,.b{color:red}@keyframes spin{to{top:0}}"),
        ("<p class=w-1/2>", "html{margin:0}.w-1\\/2{width:50%}@keyframes spin{to{top:0}}"),
        ("<p class='md:x'>", "html{margin:0}.md\\:x:hover{top:0}@keyframes spin{to{top:0}}"),
        ("<p class=2XL>", "html{margin:0}.\\32xl{top:2px}@keyframes spin{to{top:0}}"),
        ("<p class=many>", "html{margin:0}@keyframes spin{to{top:0}}.many>:not(.q){top:3px}"),
        (
            "<p class='&#100;'>",
            "html{margin:0}@media (min-width:9px){.d{left:1px}}@keyframes spin{to{top:0}}",
        ),
    ],
)
def test_rules_stay_whose_classes_are_in_the_page(page: str, kept: str) -> None:
    assert Stylesheet(CSS).purged(page) == kept


def test_all_that_can_match_keeps_its_order() -> None:
    purged = Stylesheet(CSS).purged('<p class="a c">')
    assert purged == (
        "html{margin:0}.a,.b{color:red}.a .c{color:blue}@media (min-width:9px){.a{left:0}}"
        "@keyframes spin{to{top:0}}.a{color:green}"
    )


def test_a_page_with_every_class_gets_the_whole_stylesheet() -> None:
    sheet = Stylesheet(tailwind())
    every = " ".join({name for rule in sheet._rules for some in rule.selectors for name in some})
    assert len(sheet.purged(f'<p class="{every}">')) > 0.98 * len(tailwind())


def test_few_classes_give_a_small_stylesheet() -> None:
    assert len(Stylesheet(tailwind()).purged('<p class="p-4 bg-red-500">')) < len(tailwind()) / 100


def both_ways(renderer: Renderer, page: str) -> tuple[bytes, bytes]:
    """The page with the purged stylesheet, and with the whole one."""
    purged = renderer.render(page).png
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "purged", lambda self, page: tailwind())
        return purged, renderer.render(page).png


def test_odd_ways_to_write_classes_look_the_same_purged(renderer: Renderer) -> None:
    for doctype in ("", "<!doctype html>"):
        purged, whole = both_ways(renderer, doctype + LINK + ODD)
        assert purged == whole


def test_mini_pages_look_the_same_purged(renderer: Renderer) -> None:
    rows = mini.generate("mini-frontend/test", 4, 1)
    for row in rows:
        assert row.hidden is not None
        purged, whole = both_ways(renderer, row.hidden.reference)
        assert purged == whole


@pytest.mark.skipif(not ROWS.exists(), reason=f"no ColBench rows in {FOLDER} (SWEET_COLBENCH)")
def test_colbench_pages_look_the_same_purged(renderer: Renderer) -> None:
    for line in ROWS.read_text().splitlines()[::6]:
        purged, whole = both_ways(renderer, json.loads(line)["ground_truth"])
        assert purged == whole
