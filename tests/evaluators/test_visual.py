"""How alike two pages look: properties on boxes, and on real pages drawn by the real renderer."""

from __future__ import annotations

import io
import itertools
import json
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from PIL import Image

from evaluators.blocks import MAX_BLOCKS, assignment, page_of, text_likeness
from evaluators.render import Renderer
from evaluators.visual import NOTHING, Similarity, similarity
from sweet.tasks import mini_frontend
from sweet.tasks.mini_page_reader import parse_page
from sweet.tasks.mini_pages import PageSpec, render
from sweet.types import Box, Rendering
from tests.evaluators.page_edits import graded

COLBENCH = Path(os.environ.get("SWEET_COLBENCH", Path(__file__).parents[3] / "shared/colbench"))
SAMPLE = COLBENCH / "frontend_sample.jsonl"
COLORS = ("#ffffff", "#000000", "#10b981", "#ef4444", "#3b82f6", "#f3f4f6")


def box(text: str = "", y: float = 0, **more: object) -> Box:
    """A line of black text over the whole width, but for what `more` says."""
    given = {
        "tag": "p", "x": 0.0, "width": 1280.0, "height": 24.0, "color": "#000000",
        "background": "#ffffff", "font_size": 16.0, "bold": False, "align": "left",
    } | more  # fmt: skip
    return Box(text=text, y=y, **given)  # type: ignore[arg-type]


def picture(width: int = 1280, height: int = 720, color: str = "#ffffff") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), color).save(file, "PNG")
    return file.getvalue()


BLANK = picture()


def drawn(*boxes: Box, png: bytes = BLANK) -> Rendering:
    return Rendering(png, 1280, 720, boxes)


PAGE = (
    box("", 0, tag="header", height=80.0, background="#10b981"),
    box("Green garden", 20, tag="h1", font_size=36.0, height=40.0, background="#10b981"),
    box("We plant trees and hedges.", 120, x=40.0, width=1200.0),
    box("We mow your lawn.", 160, x=40.0, width=1200.0),
    box("Opening hours", 220, tag="h2", x=40.0, width=1200.0, font_size=24.0, height=32.0),
    box("", 280, tag="img", x=40.0, width=300.0, height=200.0),
    box("Your name", 500, tag="input", x=40.0, width=200.0, height=30.0),
    box("Send", 540, tag="button", x=40.0, width=80.0, height=40.0, background="#3b82f6"),
)


def changed(at: int, **what: object) -> Rendering:
    return drawn(*(replace(b, **what) if i == at else b for i, b in enumerate(PAGE)))  # type: ignore[arg-type]


def lowest(found: Similarity) -> str:
    parts = found.parts()
    return min(parts, key=lambda name: parts[name])


def test_a_page_with_itself_is_exactly_1_in_every_part() -> None:
    found = similarity(drawn(*PAGE), drawn(*PAGE))
    assert found == Similarity(1, 1, 1, 1, 1, 1, 1)


def test_two_blank_pages_are_alike_and_a_blank_one_is_like_no_other() -> None:
    assert similarity(drawn(), drawn()).overall == 1
    assert similarity(drawn(*PAGE), drawn()) == NOTHING
    assert similarity(drawn(), drawn(*PAGE)) == NOTHING
    only_background = drawn(box("", 0, tag="body", height=720.0, background="#10b981"))
    assert similarity(drawn(*PAGE), only_background).overall == 0
    assert similarity(drawn(), only_background).overall < 0.5


@pytest.mark.parametrize(
    ("other", "part"),
    [
        (changed(3, color="#ef4444"), "color"),
        (changed(0, background="#ef4444"), "color"),
        (changed(2, font_size=30.0), "size"),
        (changed(2, bold=True), "size"),
        (changed(5, width=150.0, height=100.0), "size"),
        (changed(2, align="center"), "layout"),
        (changed(2, text="Something else entirely."), "text"),
        (changed(7, x=1000.0), "layout"),
        (drawn(*PAGE[:3], *PAGE[4:]), "blocks"),
        (drawn(*PAGE[:5], *PAGE[6:]), "blocks"),
        (drawn(*PAGE, box("An extra line.", 620)), "blocks"),
        (drawn(*PAGE[:2], replace(PAGE[2], y=160.0), replace(PAGE[3], y=120.0), *PAGE[4:]),
         "layout"),
    ],
)  # fmt: skip
def test_a_single_change_lowers_the_overall_and_its_own_part_most(
    other: Rendering, part: str
) -> None:
    found = similarity(drawn(*PAGE), other)
    assert found.overall < 1
    assert lowest(found) == part
    assert similarity(other, drawn(*PAGE)) == found


def test_what_moves_all_the_rest_down_counts_where_it_happens() -> None:
    below = [replace(b, y=b.y + 200) for b in PAGE[4:]]
    lower = similarity(drawn(*PAGE), drawn(*PAGE[:4], *below))
    assert 0.85 < lower.position < 1
    assert (lower.text, lower.color, lower.size, lower.layout) == (1, 1, 1, 1)


def test_a_larger_difference_of_color_counts_more() -> None:
    found = [changed(0, background=c) for c in ("#14b88a", "#3b82f6", "#ef4444")]
    colors = [similarity(drawn(*PAGE), page).color for page in found]
    assert 1 > colors[0] > colors[1] > colors[2] > 0


def test_pictures_are_judged_by_what_they_show() -> None:
    image = box("", 0, tag="img", width=1280.0, height=720.0)
    sky, grass = drawn(image, png=picture(color="#3b82f6")), drawn(image, png=picture())
    assert similarity(sky, sky).overall == 1
    assert lowest(similarity(sky, grass)) == "color"


def test_a_page_without_text_is_judged_by_its_areas_and_pictures() -> None:
    bar = box("", 0, tag="div", height=100.0, background="#000000")
    side = box("", 100, tag="aside", width=200.0, height=600.0, background="#ef4444")
    photo = box("", 200, tag="img", x=400.0, width=300.0, height=300.0)
    page = drawn(bar, side, photo)
    assert similarity(page, page).overall == 1
    assert lowest(similarity(page, drawn(bar, side))) == "blocks"
    assert lowest(similarity(page, drawn(bar, replace(side, background="#3b82f6"), photo))) == (
        "color"
    )
    assert similarity(page, drawn(replace(photo, x=900.0))).overall < 0.3


def test_a_wrapper_in_the_color_it_lies_on_counts_little() -> None:
    wrapped = drawn(box("", 100, tag="div", height=200.0), *PAGE)
    extra = drawn(box("", 100, tag="div", height=200.0, background="#ef4444"), *PAGE)
    faint, seen = (similarity(drawn(*PAGE), page).blocks for page in (wrapped, extra))
    assert 1 > faint > seen


def test_an_unrelated_page_is_far_from_it() -> None:
    other = drawn(
        box("Login", 300, tag="h1", x=500.0, width=200.0, font_size=20.0, align="center"),
        box("Password", 360, tag="input", x=500.0, width=200.0, height=40.0),
        box("Forgotten? Ask an administrator.", 420, x=500.0, width=200.0, color="#ef4444"),
    )
    assert similarity(drawn(*PAGE), other).overall < 0.15


def test_a_page_of_thousands_of_boxes_is_still_judged() -> None:
    many = drawn(*(box(f"line {i}", i * 24) for i in range(2000)))
    assert len(page_of(many).blocks) == MAX_BLOCKS
    assert similarity(drawn(*PAGE), many).overall < 0.05


boxes = st.builds(
    Box,
    tag=st.sampled_from(["p", "div", "img", "input", "button", "h1", "body"]),
    text=st.sampled_from(["", "Home", "Welcome to us", "Call now", "é😀", " "]),
    x=st.floats(0, 1200), y=st.floats(0, 3000), width=st.floats(0, 1280),
    height=st.floats(0, 800), color=st.sampled_from(COLORS), background=st.sampled_from(COLORS),
    font_size=st.floats(0, 90), bold=st.booleans(),
    align=st.sampled_from(["left", "center", "right", "justify"]),
)  # fmt: skip
pages = st.lists(boxes, max_size=12).map(lambda found: drawn(*found))


@settings(max_examples=60, deadline=None, phases=[Phase.generate])
@given(pages, pages)
def test_any_two_pages_have_parts_between_0_and_1_and_no_order(
    one: Rendering, other: Rendering
) -> None:
    found, turned = similarity(one, other), similarity(other, one)
    for value in (found.overall, *found.parts().values()):
        assert 0 <= value <= 1
    assert similarity(one, one).overall == 1
    assert found == turned


@settings(max_examples=100, deadline=None, phases=[Phase.generate])
@given(st.integers(1, 5), st.integers(1, 5), st.randoms(use_true_random=False))
def test_the_assignment_has_the_highest_sum(rows: int, columns: int, rng: random.Random) -> None:
    scores = np.array([[rng.choice([0, 0.1, 0.5, 1]) for _ in range(columns)] for _ in range(rows)])
    pairs = assignment(scores)
    assert len(pairs) == min(rows, columns) == len({i for i, _ in pairs}) == len(dict(pairs))
    long = scores if rows <= columns else scores.T
    ways = itertools.permutations(range(long.shape[1]), len(long))
    best = max(sum(long[i, j] for i, j in enumerate(way)) for way in ways)
    assert sum(scores[i, j] for i, j in pairs) == pytest.approx(best)


def test_texts_are_alike_by_the_letter_pairs_they_share() -> None:
    found = text_likeness(["Home", ""], ["Home", "Homes", "xyz", ""])
    assert found[0, 0] == 1 and 0.5 < found[0, 1] < 1 and found[0, 2] == 0
    assert found[1].tolist() == [0, 0, 0, 1]


# Real pages


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    with Renderer() as opened:
        yield opened


def spearman_with_count(values: Sequence[float]) -> float:
    """The rank correlation of falling values with 0, 1, 2, …; ties have their mean rank."""
    found = np.array(values).round(9)
    ranks = [(found < v).sum() + ((found == v).sum() - 1) / 2 for v in found.tolist()]
    return float(-np.corrcoef(ranks, range(len(ranks)))[0, 1])


def falling(renderer: Renderer, pages: Sequence[str]) -> float:
    seen = [renderer.render(page) for page in pages]
    return spearman_with_count([similarity(seen[0], page).overall for page in seen])


def mini_pages(n: int) -> list[str]:
    return [row.hidden.reference for row in mini_frontend.generate("test", n, 5) if row.hidden]


def spec_of(html: str) -> PageSpec:
    found = parse_page(html)
    assert found is not None
    return found


def single_changes(page: PageSpec) -> Iterator[tuple[str, PageSpec]]:
    """The page with one detail changed, and the part that the change should lower most."""
    first = page.sections[0]
    for name, detail, kind, value in page.all_details():
        if name != first.name:
            continue
        if kind.value == "color":
            yield "color", page.having(name, detail, "red" if value != "red" else "dark blue")
        if kind.value == "size":
            yield "size", page.having(name, detail, "huge" if value != "huge" else "small")
        if kind.value == "align":
            yield "layout", page.having(name, detail, "right" if value != "right" else "left")
    yield "blocks", replace(page, sections=page.sections[1:])
    yield "layout", replace(page, sections=(page.sections[1], first, *page.sections[2:]))


def test_each_change_of_a_mini_page_lowers_its_own_part_most(renderer: Renderer) -> None:
    checked = set()
    for html in mini_pages(2):
        wanted = renderer.render(html)
        assert similarity(wanted, wanted).overall == 1
        for part, other in single_changes(spec_of(html)):
            found = similarity(wanted, renderer.render(render(other)))
            assert found.overall < 1
            assert lowest(found) == part, (part, found)
            checked.add(part)
    assert checked >= {"color", "layout", "blocks"}


def test_mini_pages_fall_with_the_number_of_changes(renderer: Renderer) -> None:
    found = [falling(renderer, graded(html, 4, seed)) for seed, html in enumerate(mini_pages(3))]
    assert np.mean(found) >= 0.9


@pytest.mark.skipif(not SAMPLE.exists(), reason=f"ColBench's sample pages are not in {COLBENCH}")
def test_colbench_pages_fall_with_the_number_of_changes(renderer: Renderer) -> None:
    with SAMPLE.open(encoding="utf-8") as lines:
        rows = [json.loads(line)["ground_truth"] for line in itertools.islice(lines, 0, 40, 10)]
    found = [falling(renderer, graded(html, 5, seed)) for seed, html in enumerate(rows)]
    assert np.mean(found) >= 0.9
