"""What is said of two drawn pages: what differs most comes first, in plain words."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from sweet.drawn.differences import Seen, drawn_differences
from sweet.drawn.talk import color_word, reply_to, say
from sweet.tasks import page_phrases
from sweet.types import Box, Rendering

MARKUP = re.compile(r"[<>`{}]|\b(?:div|h1|bg-|href|class=)\b|#[0-9a-f]{6}")


def box(tag: str, text: str, x: float, y: float, width: float, height: float, **looks) -> Box:
    plain = Box(tag, text, x, y, width, height, "#111827", "#ffffff", 16.0, False, "left")
    return replace(plain, **looks)


BLUE, GRAY = "#3b82f6", "#e5e7eb"
BOXES = {
    "body": box("body", "", 0, 0, 1280, 900),
    "header": box("header", "", 0, 0, 1280, 120, background=BLUE),
    "title": box("h1", "Duck Pond", 20, 40, 1240, 40, font_size=36, background=BLUE, bold=True),
    "home": box("a", "Home", 20, 140, 60, 24),
    "news": box("a", "News", 100, 140, 60, 24),
    "photo": box("img", "", 20, 200, 600, 300),
    "words": box("p", "We feed the ducks every morning.", 660, 200, 560, 30),
    "field": box("input", "", 20, 560, 300, 40),
    "send": box("button", "Send", 340, 560, 100, 40, background="#10b981", color="#ffffff"),
    "footer": box("footer", "Come again", 0, 800, 1280, 60, background=GRAY),
}


def page(**changes: Box | None) -> Rendering:
    boxes = BOXES | changes
    return Rendering(b"png", 1280, 900, tuple(b for b in boxes.values() if b is not None))


def first(**changes: Box | None) -> tuple[Seen, str]:
    """What is seen first where the agent's page has these changes, and how it is said."""
    wanted = page()
    found = drawn_differences(wanted, page(**changes))[0]
    return found.seen, say(found, wanted, random.Random(4))


CHANGES = {
    "page color": ({"body": replace(BOXES["body"], background="#fecaca")}, "white"),
    "color": ({"header": replace(BOXES["header"], background="#ef4444")}, "header"),
    "text": ({"title": replace(BOXES["title"], text="Duck Lake")}, "Duck Pond"),
    "letters": ({"title": replace(BOXES["title"], font_size=18.0)}, "bigger"),
    "align": ({"title": replace(BOXES["title"], align="center")}, "left"),
    "bold": ({"title": replace(BOXES["title"], bold=False)}, "bold"),
    "text color": ({"words": replace(BOXES["words"], color="#ef4444")}, "black|dark gray"),
    "size": ({"photo": replace(BOXES["photo"], width=300.0, height=150.0)}, "bigger"),
    "place": ({"send": replace(BOXES["send"], x=1100.0)}, "further to the left"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_edit_is_seen_for_what_it_is_and_said(name: str) -> None:
    changes, word = CHANGES[name]
    seen, said = first(**changes)
    assert seen == name
    assert re.search(word, said)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("photo", "picture"),
        ("field", "field"),
        ("footer", "footer"),
        ("words", "We feed the ducks"),
    ],
)
def test_what_is_missing_is_asked_for_and_what_is_too_much_is_to_go(name: str, word: str) -> None:
    wanted, shown = page(), page(**{name: None})
    missing, extra = drawn_differences(wanted, shown), drawn_differences(shown, wanted)
    assert missing[0].seen is Seen.MISSING and extra[0].seen is Seen.EXTRA
    assert word in say(missing[0], wanted, random.Random(1))
    assert word in say(extra[0], shown, random.Random(1))


def test_neighbours_of_a_kind_are_told_at_once() -> None:
    wanted = page()
    found = drawn_differences(wanted, page(home=None, news=None))
    assert [d.seen for d in found] == [Seen.MISSING]
    assert '("Home" and "News")' in say(found[0], wanted, random.Random(1))


def test_what_stands_above_instead_of_below_is_to_be_moved() -> None:
    raised = replace(BOXES["words"], x=20.0, y=125.0, height=12.0)
    found = drawn_differences(page(), page(words=raised))
    assert Seen.ORDER in [d.seen for d in found]


def test_a_page_does_not_differ_from_itself() -> None:
    assert drawn_differences(page(), page()) == []
    right = {p.rstrip(".") for p in page_phrases.RIGHT.heard}
    assert {reply_to(page(), page(), seed).rstrip(".") for seed in range(20)} <= right


def test_the_larger_difference_is_told_first() -> None:
    both = page(
        header=replace(BOXES["header"], background="#ef4444"),
        title=replace(BOXES["title"], background="#ef4444", bold=False),
    )
    assert [d.seen for d in drawn_differences(page(), both)] == [Seen.COLOR, Seen.BOLD]


def test_elements_that_changed_alike_are_told_once() -> None:
    links = {
        name: replace(BOXES[name], color="#ef4444", font_size=24.0) for name in ("home", "news")
    }
    seen = [d.seen for d in drawn_differences(page(), page(**links))]
    assert sorted(seen) == sorted({*seen})


def test_the_same_is_said_in_many_ways_and_again_for_the_same_seed() -> None:
    shown = page(header=replace(BOXES["header"], background="#ef4444"))
    said = [reply_to(page(), shown, seed) for seed in range(40)]
    assert len(set(said)) > 12
    assert said == [reply_to(page(), shown, seed) for seed in range(40)]
    unheard = {reply_to(page(), shown, seed, unheard=True) for seed in range(40)}
    assert unheard.isdisjoint(said)


def test_markup_that_a_page_shows_is_never_quoted() -> None:
    nasty = '<b onclick="x">{{hi}}</b> `code` ' * 9
    loud = {
        name: replace(BOXES[name], text=nasty, background="#10b981")
        for name in ("title", "home", "words", "footer", "field", "send")
    }
    for seed in range(60):
        for wanted, shown in ((page(), page(**loud)), (page(**loud), page())):
            said = reply_to(wanted, shown, seed, unheard=seed % 2 == 0)
            assert said and not MARKUP.search(said)


def test_an_empty_page_is_answered() -> None:
    empty = Rendering(b"png", 1280, 720, ())
    assert "should" in " ".join(reply_to(page(), empty, seed) for seed in range(20))
    assert reply_to(empty, page(), 1)
    assert reply_to(empty, empty, 1)


@pytest.mark.parametrize(
    ("color", "word"),
    [
        ("#ffffff", "white"), ("#000000", "black"), ("#f3f4f6", "white|light gray"),
        ("#1f2937", "dark gray"), ("#ef4444", "red"), ("#dc2626", "red"), ("#1e40af", "dark blue"),
        ("#bfdbfe", "light blue"), ("#f59e0b", "orange|yellow"), ("#10b981", "green"),
        ("#065f46", "dark green"), ("#8b5cf6", "purple"), ("#ec4899", "pink"),
    ],
)  # fmt: skip
def test_colours_have_everyday_names(color: str, word: str) -> None:
    assert re.fullmatch(word, color_word(color))


def test_shades_of_one_name_are_lighter_or_darker() -> None:
    wanted = page(header=replace(BOXES["header"], background="#2563eb"))
    shown = page(header=replace(BOXES["header"], background="#60a5fa"))
    (found, *_) = drawn_differences(wanted, shown)
    assert "darker" in say(found, wanted, random.Random(1))
