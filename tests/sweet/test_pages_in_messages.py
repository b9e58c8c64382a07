"""The web page in a message: the last complete one, or why there is none."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweet.parsing import MAX_PAGE_BYTES, page_in, parse_action
from sweet.types import ANSWER_MARK

PAGE = '<html>\n<body class="bg-white">\n<p>Hello</p>\n</body>\n</html>'
OTHER = PAGE.replace("Hello", "Bye")
COLBENCH = Path(os.environ.get("SWEET_COLBENCH", Path(__file__).parents[3] / "shared" / "colbench"))


@pytest.mark.parametrize(
    "text",
    [
        PAGE,
        f"```html\n{PAGE}\n```",
        f"```\n{PAGE}\n```\nDo you like it?",
        f"~~~HTML\n{PAGE}\n~~~",
        f"Here is the <html> page:\n\n{PAGE}\nIt begins with <html>, as you see.",
        f"Here it is: {PAGE}",
        f"{OTHER}\nNo, wait:\n{PAGE}",
        f"```html\n{OTHER}\n```\nand now\n```html\n{PAGE}\n```",
        f"<think>{OTHER}</think>\n{PAGE}",
        f"<think>Shall I write {OTHER[:20]}?</think>{PAGE}",
        f"{ANSWER_MARK}\n{PAGE}",
        f"{ANSWER_MARK} ```html\n    {PAGE}\n```",
    ],
)
def test_the_last_complete_document_is_the_page(text: str) -> None:
    found = page_in(text)
    assert (found.html, found.why) == (PAGE, "")


@pytest.mark.parametrize(
    "page",
    [
        f"<!DOCTYPE html>\n{PAGE}",
        f'<!doctype html PUBLIC "-//W3C//DTD">\n{PAGE}',
        PAGE.replace("<html>", '<HTML lang="en">').replace("</html>", "</HTML >"),
        PAGE.replace("Hello", "<!-- </html> --> Zoë 🙂"),
        PAGE.replace("\n", ""),
    ],
)
def test_a_document_is_taken_whole_and_as_it_is(page: str) -> None:
    assert page_in(f"Look:\n```html\n{page}\n```\nFine?").html == page


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no <html>"),
        ("Which colour do you want?", "no <html>"),
        ("<p>Hello</p>", "no <html>"),
        ("</html>", "no <html>"),
        ("```python\nprint(1)\n```", "no <html>"),
        (f"<think>{PAGE}", "no <html>"),
        (f"<think>{PAGE}</think>", "no <html>"),
        (PAGE.removesuffix("</html>"), "cut off"),
        (f"```html\n{PAGE[:30]}", "cut off"),
        (f"{OTHER}\nBetter:\n```html\n{PAGE[:40]}", "cut off"),
        ("</html> <html>", "cut off"),
        (PAGE.replace("Hello", "x" * MAX_PAGE_BYTES), "bytes"),
        (PAGE.replace("Hello", "\ud800"), "Unicode"),
    ],
)
def test_no_page_says_why(text: str, why: str) -> None:
    found = page_in(text)
    assert found.html is None
    assert found.why.startswith("No page") and why in found.why


@pytest.mark.parametrize(
    "piece", ["<html>", "</html>", "<html", "<html></html>", "<!doctype ", "\n<html>", "</html   "]
)
def test_a_huge_hostile_message_is_read(piece: str) -> None:
    found = page_in(piece * (2_000_000 // len(piece)))
    assert found.html is None or len(found.html) <= MAX_PAGE_BYTES
    assert bool(found.why) == (found.html is None)


@given(st.text(), st.text())
def test_any_text_around_a_page_leaves_it_whole(before: str, after: str) -> None:
    text = f"x{before}".replace("<", "") + f"\n{PAGE}\n" + after.replace("<", "")
    assert page_in(text).html == PAGE


def test_a_final_answer_holds_its_page() -> None:
    action = parse_action(f"Thank you.\n\n{ANSWER_MARK}\n```html\n{PAGE}\n```")
    assert action.is_final and action.artifact is not None
    assert page_in(action.artifact).html == PAGE


def test_colbench_s_pages_are_pages() -> None:
    sample = COLBENCH / "frontend_sample.jsonl"
    if not sample.exists():
        pytest.skip(f"no ColBench sample at {sample}")
    rows = [json.loads(line) for line in sample.read_text(encoding="utf-8").splitlines()]
    wrong = [r for r in rows if page_in(r["ground_truth"]).html != r["ground_truth"].strip()]
    assert len(rows) == 60 and wrong == []
