"""Differences of pages, and how they are said: in plain words, many of them, never in HTML."""

from __future__ import annotations

import random
import re

import pytest

from sweet.tasks import page_phrases
from sweet.tasks.mini_drawing import draw_page
from sweet.tasks.mini_page_reader import parse_page
from sweet.tasks.mini_pages import Kind, PageSpec, Section, render
from sweet.tasks.mini_topics import held_out_topics, topics
from sweet.tasks.page_differences import Difference, What, changed, differences
from sweet.tasks.page_phrases import Phrases
from sweet.tasks.page_talk import reply_to, say_difference, tell

HTML = re.compile(r"[<>`{}]|class=|bg-|text-|grid-|href|\bdiv\b|\bh1\b")
HEADER = Section(
    "header", (("color", "blue"), ("align", "left"), ("size", "small"), ("title", "Sunny Oven"))
)
CARDS = Section(
    "cards",
    (("columns", 2), ("align", "left"), ("color", "white"), ("cards", ("Bread", "Cakes", "Pies"))),
)
FOOTER = Section("footer", (("color", "black"), ("align", "right"), ("text", "Thank you")))
PAGE = PageSpec("white", (HEADER, CARDS, FOOTER))


def pairs(n: int) -> list[tuple[PageSpec, PageSpec]]:
    rng = random.Random(9)
    pool = (*topics(), *held_out_topics())
    drawn = [draw_page(rng.choice(pool), rng) for _ in range(2 * n)]
    return list(zip(drawn[:n], drawn[n:], strict=True))


def only(shown: PageSpec) -> Difference:
    (difference,) = differences(PAGE, shown)
    return difference


def said(difference: Difference, n: int = 60, unheard: bool = False) -> set[str]:
    return {say_difference(difference, random.Random(i), unheard=unheard) for i in range(n)}


def test_a_page_does_not_differ_from_itself() -> None:
    assert all(differences(page, page) == [] for page, _ in pairs(100))


def test_carrying_out_every_difference_gives_the_wanted_page() -> None:
    for target, shown in pairs(1500):
        page = shown
        for difference in differences(target, shown):
            after = changed(page, difference)
            assert after != page
            page = after
        assert page == target


def test_each_change_made_leaves_fewer_differences_and_no_new_ones() -> None:
    for target, shown in pairs(60):
        page, before = shown, differences(target, shown)
        while before:
            page = changed(page, before[0])
            after = differences(target, page)
            assert after == before[1:]
            before = after


def test_every_page_of_a_walk_can_be_written_and_read() -> None:
    for target, shown in pairs(60):
        for difference in differences(target, shown):
            shown = changed(shown, difference)
            assert parse_page(render(shown)) == shown


def test_structure_comes_before_looks_and_large_parts_before_small() -> None:
    shown = PAGE.having("footer", "text", "Bye").having("page", "color", "light red")
    shown = PageSpec(shown.background, (shown.sections[1], shown.sections[2]))
    found = differences(PAGE, shown)
    assert [(d.what, d.section, d.detail) for d in found] == [
        (What.MISSING, "header", ""),
        (What.DETAIL, "page", "color"),
        (What.DETAIL, "footer", "text"),
    ]


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (PAGE.having("header", "color", "green"), ("blue", "header")),
        (PAGE.having("header", "align", "center"), ("left", "header")),
        (PAGE.having("header", "size", "huge"), ("small", "title")),
        (PAGE.having("header", "title", "Old Oven"), ("Sunny Oven", "header")),
        (PAGE.having("page", "color", "light red"), ("white", "ground")),
        (PAGE.having("cards", "columns", 1), ("column", "cards")),
        (PAGE.having("cards", "cards", ("Bread", "Cakes", "Tea")), ("Pies", "card")),
        (PAGE.having("footer", "text", "Bye"), ("Thank you", "footer")),
    ],
)
def test_a_detail_is_said_with_what_is_wanted_and_of_what(shown, words) -> None:
    for unheard in (False, True):
        for sentence in said(only(shown), unheard=unheard):
            assert words[0] in sentence or words[0].capitalize() in sentence, sentence
            if words[1] != "ground":
                assert words[1] in sentence.lower() or "menu" in sentence, sentence


def test_a_count_is_said_as_a_number_of_things() -> None:
    shown = PAGE.having("cards", "cards", ("Bread",))
    sentences = said(only(shown))
    assert all(re.search(r"\b(3|three) cards\b", s, re.IGNORECASE) for s in sentences)
    assert any("Bread, Cakes and Pies" in s for s in sentences)
    assert any("one card" in s or "1 card" in s for s in sentences)


def test_a_missing_an_extra_and_a_misplaced_part_are_said() -> None:
    missing = only(PageSpec("white", (HEADER, FOOTER)))
    assert missing.what is What.MISSING and missing.added == CARDS
    assert any(
        re.search(r"(below|under) the .*header|above the .*footer", s) for s in said(missing)
    )
    assert all(re.search(r"cards", s.lower()) for s in said(missing))
    form = Section("form", (("color", "white"),))
    extra = only(PageSpec("white", (HEADER, form, CARDS, FOOTER)))
    assert extra.what is What.EXTRA and all("form" in s.lower() for s in said(extra))
    order = only(PageSpec("white", (HEADER, FOOTER, CARDS)))
    assert order.what is What.ORDER and order.section in ("cards", "footer")
    assert all(re.search(r"below|under|above|top|bottom|end", s) for s in said(order))


def test_a_first_part_is_put_at_the_top_and_never_at_the_end() -> None:
    missing = differences(PAGE, PageSpec("white", (FOOTER,)))[0]
    assert missing.section == "header"
    assert not any("at the end" in s or "bottom" in s for s in said(missing, 200))


def test_nothing_that_is_said_is_html() -> None:
    for i, (target, shown) in enumerate(pairs(400)):
        for difference in differences(target, shown):
            sentence = say_difference(difference, random.Random(i), unheard=i % 2 == 0)
            assert not HTML.search(sentence), sentence
            assert len(sentence) < 300


def test_every_phrasing_can_be_said_and_unheard_ones_are_other_ones() -> None:
    tables = {n: t for n, t in vars(page_phrases).items() if isinstance(t, Phrases)}
    for name, table in tables.items():
        assert len(table.heard) >= 5 and table.unheard, name
        assert set(table.heard).isdisjoint(table.unheard), name
        assert len(set(table.heard)) == len(table.heard), name


def test_one_difference_is_said_in_many_ways() -> None:
    difference = only(PAGE.having("header", "color", "green"))
    heard, unheard = said(difference, 400), said(difference, 400, unheard=True)
    assert len(heard) > 50
    assert heard.isdisjoint(unheard)


def test_a_reply_names_the_largest_differences_and_repeats_by_seed() -> None:
    shown = PAGE.having("page", "color", "light red").having("footer", "text", "Bye")
    html, wanted = render(shown), render(PAGE)
    replies = [reply_to(wanted, html, seed) or "" for seed in range(60)]
    assert replies == [reply_to(wanted, html, seed) or "" for seed in range(60)]
    assert all("white" in reply.lower() for reply in replies)
    both = [reply for reply in replies if "Thank you" in reply]
    assert 10 < len(both) < 50
    assert len(set(replies)) > 30


def test_the_same_page_is_right_and_no_page_is_said_to_be_none() -> None:
    wanted = render(PAGE)
    right = {reply_to(wanted, wanted, seed) for seed in range(80)}
    none = {reply_to(wanted, None, seed) for seed in range(80)}
    assert right == set(page_phrases.RIGHT.heard) and none == set(page_phrases.NO_PAGE.heard)
    kept = {reply_to(wanted, wanted, seed, unheard=True) for seed in range(80)}
    assert kept == set(page_phrases.RIGHT.unheard)


def test_a_detail_can_be_told_before_there_is_a_page() -> None:
    for i in range(100):
        sentence = tell("header", "color", Kind.COLOR, "dark blue", random.Random(i))
        assert "dark blue" in sentence.lower() and " not " not in sentence.replace("not ask", "")


def test_markup_in_a_page_s_texts_is_never_repeated() -> None:
    shown = PAGE.having("header", "title", '<b class="x">`Hi`</b> {0}')
    for sentence in said(only(shown), 200):
        assert not HTML.search(sentence.replace("class=", "")), sentence


# Pages that are not Mini's


@pytest.mark.parametrize(
    "shown", ["", "%%%", "<html></html>", "<p>" * 5000, "<nav>" * 5000, "\0<a b='", "</x>" * 9999]
)
def test_what_is_not_written_as_a_mini_page_is_left_to_those_who_see(shown) -> None:
    assert reply_to(render(PAGE), shown, 1) is None  # it has to be drawn
