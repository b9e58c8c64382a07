"""Small pages: read back from their HTML, split by what they look like, vaguely described."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path

import pytest

from sweet.errors import TaskDataError
from sweet.tasks import mini
from sweet.tasks.colbench import read_tasks, to_line
from sweet.tasks.mini_drawing import draw_page
from sweet.tasks.mini_frontend import generate, split_of
from sweet.tasks.mini_page_reader import parse_page
from sweet.tasks.mini_pages import CLASSES, COLORS, DETAILS, HEAD, Kind, PageSpec, render
from sweet.tasks.mini_sets import SPLITS
from sweet.tasks.mini_topics import Topic, held_out_topics, topics
from sweet.types import TaskKind
from tests.fakes import hidden_of

ROWS = {split: list(generate(split, 80, seed=3)) for split in SPLITS}
ALL = [row for rows in ROWS.values() for row in rows]
COLBENCH = Path(os.environ.get("SWEET_COLBENCH", Path(__file__).parents[4] / "shared" / "colbench"))
PART_WORDS = {
    "page", "header", "menu", "hero", "card", "cards", "list", "form", "footer", "button", "nav",
}  # fmt: skip
DESIGN_WORDS = {
    *(word for color in COLORS for word in color.split()), "left", "center", "right", "top",
    "medium", "large", "huge", "tall", "column", "columns", "dots", "marks", *PART_WORDS,
}  # fmt: skip

NAME = r"^(The name is|It is called|Our name is) "
MOOD = r"^The colou?r(s| palette| scheme) .*(warm|cool|neutral)\.$"


def page_of(row) -> PageSpec:
    page = parse_page(hidden_of(row).reference)
    assert page is not None
    return page


def pages(n: int) -> list[PageSpec]:
    rng = random.Random(5)
    return [draw_page(rng.choice((*topics(), *held_out_topics())), rng) for _ in range(n)]


def texts_of(topic: Topic) -> set[str]:
    w = topic.words
    words = (w.names, w.slogans, w.links, w.points, w.fields, w.buttons, w.footers)
    return {*topic.nouns, *topic.things, *(text for row in words for text in row)}


def other_values(kind: Kind, value) -> list:
    """Some other values of a detail."""
    if kind is Kind.TEXT:
        return [f"{value} too"]
    if kind is Kind.ITEMS:
        return [(*value, "More"), (*value[:-1], "Else"), tuple(reversed((*value, "More")))]
    return [other for other in CLASSES[kind] if other != value]


def test_a_page_is_read_back_from_its_html() -> None:
    for page in pages(3000):
        html = render(page)
        assert parse_page(html) == page
        assert html.startswith(HEAD) and html.endswith("</body>\n</html>")


def test_every_detail_changes_the_html_and_is_read_back_changed() -> None:
    for page in pages(40):
        for name, detail, kind, value in page.all_details():
            for other in other_values(kind, value):
                changed = page.having(name, detail, other)
                assert render(changed) != render(page), (name, detail, other)
                assert parse_page(render(changed)) == changed


def test_any_order_of_the_sections_is_another_page() -> None:
    for page in pages(50):
        turned = PageSpec(page.background, page.sections[::-1])
        assert render(turned) != render(page)
        assert parse_page(render(turned)) == turned


def test_texts_may_hold_any_character() -> None:
    page = next(page for page in pages(50) if "header" in page.names)
    for text in ('<b>"A" & B</b>', "&amp;", "it's {0}", "Zoë 🙂", "a > b < c", "<!-- x -->"):
        changed = page.having("header", "title", text)
        assert parse_page(render(changed)) == changed
    form = next(page for page in pages(50) if "form" in page.names)
    changed = form.having("form", "fields", ('"><script>', "a & b"))
    assert parse_page(render(changed)) == changed


def test_layout_of_the_source_makes_no_difference() -> None:
    html = hidden_of(ROWS["test"][0]).reference
    page = parse_page(html)
    squeezed = re.sub(r"\s*\n\s*", "", html)
    wrapped = html.replace("<html>\n<link", "<head><title>x</title><link").replace(
        "<body", "</head><body"
    )
    shuffled = re.sub(
        r'class="([^"]*)"', lambda m: f'class="{" ".join(reversed(m[1].split()))}"', html
    )
    for same in (squeezed, f"<!DOCTYPE html>\n{wrapped}", shuffled):
        assert parse_page(same) == page


@pytest.mark.parametrize(
    "damage",
    [
        lambda h: "",
        lambda h: "%%%",
        lambda h: h.replace(HEAD, "<html>\n"),  # unstyled
        lambda h: h.replace("<body", "<div").replace("</body", "</div"),
        lambda h: h.replace("</body>", "<p>more</p>\n</body>"),
        lambda h: h.replace("</body>", "more\n</body>"),
        lambda h: h.replace("p-4", "p-5"),
        lambda h: re.sub(r"text-(left|center|right)", "", h),
        lambda h: re.sub(r'<body class="[^"]*"', '<body class="bg-teal-500"', h),
        lambda h: h.replace(
            "</body>", h[h.index("<header") : h.index("</header>") + 9] + "</body>"
        ),
    ],
)
def test_a_page_that_is_written_otherwise_is_no_mini_page(damage) -> None:
    row = next(r for r in ALL if "<header" in hidden_of(r).reference)
    assert parse_page(damage(hidden_of(row).reference)) is None


def test_the_same_seed_gives_the_same_tasks_and_another_seed_others() -> None:
    assert list(generate("train", 80, seed=3)) == ROWS["train"]
    again = {row.task.id for row in generate("train", 80, seed=4)}
    assert again.isdisjoint(row.task.id for row in ROWS["train"])


def test_a_look_belongs_to_one_split_whatever_the_texts_are() -> None:
    for split in ("train", "validation", "test"):
        assert all(split_of(page_of(row)) == split for row in ROWS[split])
    page = next(page_of(r) for r in ROWS["test"] if "header" in page_of(r).names)
    assert split_of(page.having("header", "title", "Other")) == "test"
    buckets = [split_of(page) for page in pages(2000)]
    assert 40 < buckets.count("test") < 180 and 40 < buckets.count("validation") < 180


def test_references_are_in_one_split_only() -> None:
    for split, rows in ROWS.items():
        mine = {hidden_of(row).reference for row in rows}
        assert len(mine) == len(rows)
        for other in SPLITS:
            others = {hidden_of(row).reference for row in ROWS[other]}
            assert other == split or mine.isdisjoint(others)


def test_held_out_topics_and_their_texts_are_never_in_training() -> None:
    known = set().union(*map(texts_of, topics()))
    kept = set().union(*map(texts_of, held_out_topics()))
    assert known.isdisjoint(kept)
    assert {t.name for t in topics()}.isdisjoint(t.name for t in held_out_topics())
    assert len(topics()) == 40 and len(held_out_topics()) == 12


def test_no_text_of_a_page_speaks_of_its_design() -> None:
    for topic in (*topics(), *held_out_topics()):
        words = re.findall(r"[a-z]+", " ".join(texts_of(topic)).lower())
        assert not DESIGN_WORDS & set(words), topic.name


def test_a_description_gives_away_the_name_and_at_most_one_detail() -> None:
    """What stands before is about the business and the parts, and says nothing of the look."""
    values = {word for color in COLORS for word in color.split()} | DESIGN_WORDS - PART_WORDS
    told = 0
    for row in ALL:
        page, text = page_of(row), row.task.description
        opening, *rest = re.split(r"(?<=[.?!])\s+(?=[A-Z\"0-9])", text)
        assert not values & set(re.findall(r"[a-z]+|\d+", opening.lower())), text
        details = [s for s in rest if not re.search(NAME, s) and not re.search(MOOD, s)]
        names = [s for s in rest if re.search(NAME, s)]
        assert all(str(page.section("header")["title"]) in s for s in names), text
        assert len(details) <= 2 and len(names) <= 1, text  # a detail may end in "?" or hold ". "
        told += bool(details)
    assert 0.1 < told / len(ALL) < 0.35


def test_descriptions_are_worded_in_many_ways() -> None:
    texts = [row.task.description for row in ALL]
    assert len(set(texts)) == len(texts)
    assert len({text.split()[0] for text in texts}) > 20
    assert all(len(text.split()) < 75 for text in texts)


def test_a_typical_page_is_short() -> None:
    word = re.compile(r'</?\w+|="|">|[A-Za-z]+|[0-9]+|\n|[^\sA-Za-z0-9]')
    sizes = sorted(len(word.findall(hidden_of(r).reference.removeprefix(HEAD))) for r in ALL)
    assert sizes[len(sizes) // 2] <= 250


def test_rows_have_colbench_s_shape(tmp_path: Path) -> None:
    path = tmp_path / "mini.jsonl"
    path.write_text("".join(map(to_line, ALL)), encoding="utf-8")
    fields = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert all(set(row) == {"problem_description", "ground_truth"} for row in fields)
    found = read_tasks(path)
    assert len(found.rows) == len(ALL) and not found.problems
    assert {row.task.kind for row in found.rows} == {TaskKind.FRONTEND}
    assert [r.hidden for r in found.rows] == [r.hidden for r in ALL]


def test_rows_look_like_colbench_s_own() -> None:
    sample = COLBENCH / "frontend_sample.jsonl"
    if not sample.exists():
        pytest.skip(f"no ColBench sample at {sample}")
    theirs = [json.loads(line) for line in sample.read_text(encoding="utf-8").splitlines()]
    mine = [json.loads(to_line(row)) for row in ALL]
    assert {tuple(row) for row in theirs} == {tuple(row) for row in mine}
    assert all(row["ground_truth"].startswith(HEAD) for row in [*theirs, *mine])
    assert all(parse_page(row["ground_truth"]) is None for row in theirs)


def test_every_section_and_every_value_occurs() -> None:
    seen: set[tuple] = set()
    for page in pages(3000):
        for name, detail, kind, value in page.all_details():
            seen.add((name, detail, value if kind not in (Kind.TEXT, Kind.ITEMS) else ""))
    for name, details in DETAILS.items():
        for detail, kind in details.items():
            values = CLASSES.get(kind, {"": ""})
            assert all((name, detail, value) in seen for value in values), (name, detail)


def test_a_button_never_has_the_colour_behind_it() -> None:
    for page in pages(500):
        for section in page.sections:
            if section.name in ("hero", "form"):
                assert section["button color"] != section["color"]


def test_sets_are_known_by_name() -> None:
    assert set(mini.SETS) == {
        f"mini-{kind}/{s}" for kind in ("backend", "frontend") for s in SPLITS
    }
    assert list(mini.generate("mini-frontend/test", 80, 3)) == ROWS["test"]
    with pytest.raises(TaskDataError, match="mini-frontend/train"):
        mini.generate("mini-frontend/tset", 1, 0)
    with pytest.raises(TaskDataError, match=r"'tset'.*train, validation, test, families"):
        next(generate("tset", 1, 0))
