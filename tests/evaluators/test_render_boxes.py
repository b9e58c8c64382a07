"""The visible elements of a page: which, where, with what text and colours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluators.render import Limits, Renderer
from sweet.types import Box

PATIENT = Limits(load_s=30, shot_s=30, all_s=60)


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    with Renderer(PATIENT) as started:
        yield started


def boxes(renderer: Renderer, html: str) -> list[Box]:
    return list(renderer.render(f"<!doctype html><style>body{{margin:0}}</style>{html}").boxes)


def texts(renderer: Renderer, html: str) -> list[str]:
    return [box.text for box in boxes(renderer, html)]


def test_an_element_has_its_place_colours_and_type(renderer: Renderer) -> None:
    style = "position:absolute;left:30px;top:40px;width:200px;height:50px;color:#102030;"
    more = "background:rgb(1, 2, 3);font:bold 20px serif;text-align:right"
    assert boxes(renderer, f'<p style="{style}{more};margin:0">Hello <i>you</i> there</p>')[0] == (
        Box("p", "Hello there", 30, 40, 200, 50, "#102030", "#010203", 20, True, "right")
    )


def test_wrappers_that_draw_nothing_are_not_there(renderer: Renderer) -> None:
    assert [
        b.tag for b in boxes(renderer, "<main><div><section><p>a</p></section></div></main>")
    ] == ["p"]


def test_what_draws_without_text_is_there(renderer: Renderer) -> None:
    html = (
        '<div style="height:9px;background:red"></div><div style="border:1px solid">'
        '</div><hr><div style="height:9px;box-shadow:0 0 9px"></div><img width=9 height=9>'
        '<svg width=9 height=9></svg><input><div style="height:9px;border:1px solid #0000"></div>'
    )
    assert [b.tag for b in boxes(renderer, html)] == [
        "div",
        "div",
        "hr",
        "div",
        "img",
        "svg",
        "input",
    ]


@pytest.mark.parametrize(
    "style",
    [
        "display:none",
        "visibility:hidden",
        "opacity:0",
        "position:absolute;left:-9999px",
        "position:absolute;width:1px;height:1px;overflow:hidden;clip:rect(0,0,0,0)",
    ],
)
def test_what_cannot_be_seen_is_not_there(renderer: Renderer, style: str) -> None:
    assert texts(renderer, f'<div style="{style}">hidden</div><p>seen</p>') == ["seen"]


def test_what_lies_in_something_invisible_is_not_there(renderer: Renderer) -> None:
    html = '<div style="opacity:0"><p>a</p></div><details><summary>b</summary><p>c</p></details>'
    assert texts(renderer, html) == ["b"]


def test_a_background_is_that_of_the_nearest_element_that_has_one(renderer: Renderer) -> None:
    html = (
        '<div style="background:#00f"><p>on blue</p><p style="background:#ff000080">mixed</p></div>'
    )
    _, on_blue, mixed = boxes(renderer, html)
    assert (on_blue.background, mixed.background) == ("#0000ff", "#800080")


def test_colours_of_every_kind_are_told_in_hexadecimal(renderer: Renderer) -> None:
    kinds = (
        "hsl(120 100% 25%)",
        "color(srgb 0 0.5 0)",
        "oklch(0.52 0.177 142.5)",
        "lab(46.3 -47.6 48.6)",
    )
    html = "".join(f'<p style="color:{kind}">x</p>' for kind in kinds)
    assert {box.color for box in boxes(renderer, html)} == {"#008000"}
    faint = boxes(renderer, '<p style="color:rgba(0, 0, 0, 0.5)">x</p>')[0]
    assert faint.color == "#808080"


def test_fields_say_what_they_show(renderer: Renderer) -> None:
    html = (
        "<input value=typed placeholder=no><input placeholder=hint><input type=submit>"
        "<input type=password value=abc><input type=checkbox value=no><textarea>area</textarea>"
        "<select><option>one<option selected>two</select><button>push</button>"
        "<select><optgroup label=g><option>first<option>second</select>"
    )
    shown = ["typed", "hint", "Submit", "•••", "", "area", "two", "push", "first"]
    assert texts(renderer, html) == shown


def test_text_is_as_it_is_drawn(renderer: Renderer) -> None:
    html = (
        "<style>i::before{content:'→ '}</style><p style='text-transform:uppercase'>big</p>"
        "<p>two<br>lines   and\n spaces</p><i>arrow</i><ul><li>item</ul>"
    )
    assert texts(renderer, html) == ["BIG", "two lines and spaces", "→ arrow", "item"]


@pytest.mark.parametrize(
    ("html", "align"),
    [
        ("<p>x", "left"),
        ("<p dir=rtl>x", "right"),
        ("<p dir=rtl style='text-align:end'>x", "left"),
        ("<center>x", "center"),
        ("<p align=center>x", "center"),
        ("<p style='text-align:justify'>x", "justify"),
    ],
)
def test_alignment_is_the_side_that_text_leans_to(
    renderer: Renderer, html: str, align: str
) -> None:
    assert boxes(renderer, html)[0].align == align


def test_what_lies_below_the_cut_is_not_there(renderer: Renderer) -> None:
    html = '<p>above</p><div style="height:5000px"></div><p>below</p>'
    drawn = renderer.render(html)
    assert [b.text for b in drawn.boxes] == ["above"]
    assert (drawn.height, drawn.is_cut) == (4000, True)
