"""The answer mark: what ends an episode, and what only talks about ending it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweet.errors import PolicyError
from sweet.parsing import parse_action, spoken, without_page
from sweet.types import ANSWER_MARK, Usage

CODE = "def f(x):\n    return x"


@pytest.mark.parametrize(
    "text",
    [
        f"{ANSWER_MARK}\n{CODE}",
        f"{ANSWER_MARK} {CODE}",
        f"**I want to answer:**\n{CODE}",
        f"**I want to answer**: {CODE}",
        f"**I WANT TO ANSWER:\n{CODE}**",
        f"*i Want to  Answer :*\n\n{CODE}\n",
        f"I want\nto answer:\n{CODE}",
        f"`I WANT TO ANSWER:`\n{CODE}",
        f"“I want to answer:”\n{CODE}",
        f"I WANT TO ANSWER:\n{CODE}",
        f"Thanks! That is all.\n\n### I WANT TO ANSWER:\n{CODE}",
        f"I_WANT_TO_ANSWER:\n{CODE}",
        f"<think>hm</think>\n{ANSWER_MARK}\n{CODE}",
    ],
)
def test_the_mark_ends_the_episode_however_it_is_dressed(text: str) -> None:
    action = parse_action(text)
    assert action.is_final
    assert action.artifact == CODE
    assert action.raw == text


@pytest.mark.parametrize(
    "text",
    [
        "When I want to answer I will say so.",
        "I don't want to answer: what is the fee?",
        "I wanted to answer: but what is the fee?",
        "HAI want to answer: no",
        "Do you want me to answer: yes or no?",
        "I WANT TO ANSWER",
        "I want to answer your question. The fee: what is it?",
        f"<think>{ANSWER_MARK} no, ask first</think>What is the fee?",
    ],
)
def test_a_mention_of_the_mark_ends_nothing(text: str) -> None:
    action = parse_action(text)
    assert not action.is_final
    assert action.artifact is None


def test_what_stands_before_the_mark_is_the_message() -> None:
    action = parse_action(f"Thank you, that helps.\n\n## **{ANSWER_MARK}**\n```python\n{CODE}\n```")
    assert action.message == "Thank you, that helps."
    assert action.artifact == f"```python\n{CODE}\n```"


def test_the_first_mark_counts() -> None:
    action = parse_action(f"{ANSWER_MARK}\nfirst\n{ANSWER_MARK}\nsecond")
    assert action.artifact == f"first\n{ANSWER_MARK}\nsecond"


def test_a_block_on_lines_of_its_own_keeps_its_indentation() -> None:
    assert parse_action(f"{ANSWER_MARK}\n    def f():\n        pass").artifact == (
        "    def f():\n        pass"
    )


def test_a_fence_right_after_the_mark_stays_whole() -> None:
    assert parse_action(f"{ANSWER_MARK}```python\n{CODE}\n```").artifact == (
        f"```python\n{CODE}\n```"
    )


def test_an_answer_of_nothing_is_still_an_answer() -> None:
    action = parse_action(ANSWER_MARK)
    assert action.is_final
    assert action.artifact == ""


@pytest.mark.parametrize("text", ["", "  \n ", "<think>what to ask?</think>", "<think>what to"])
def test_a_model_that_says_nothing_has_failed(text: str) -> None:
    with pytest.raises(PolicyError, match="returned nothing"):
        parse_action(text)


def test_thoughts_are_kept_raw_and_not_shown() -> None:
    action = parse_action("<think>a</think>\n<think>b</think>\nWhat is the fee?", Usage(3, 4), 5.0)
    assert action.message == "What is the fee?"
    assert action.raw.startswith("<think>a")
    assert (action.usage, action.duration_ms) == (Usage(3, 4), 5.0)


@given(st.text(), st.text())
def test_any_text_around_the_mark_is_an_answer(before: str, after: str) -> None:
    before = before.replace("<", "")
    action = parse_action(f"{before}\n{ANSWER_MARK}{after}")
    assert action.is_final
    assert action.raw == f"{before}\n{ANSWER_MARK}{after}"


@given(st.text(alphabet="I WANTO*_`\"' \n", max_size=3000))
def test_texts_close_to_the_mark_never_hang(text: str) -> None:
    assert spoken(text) == text.strip()
    if text.strip():
        assert not parse_action(text).is_final


@pytest.mark.parametrize(
    ("text", "beside"),
    [
        ("<html>a</html>", ""),
        ("Here:\n```html\n<html>a</html>\n```\nGood?", "Here:\n\nGood?"),
        ("Draft 2.\n<!doctype html><html>a</html>", "Draft 2."),
        ("Done. **I WANT TO ANSWER:**\n<html>a</html>", "Done."),
        ("<think>hm</think>Look: <html>a</html> Fine.", "Look:\n\nFine."),
        ("Which colour?", "Which colour?"),
        ("Half: <html>a", "Half: <html>a"),
    ],
)
def test_what_is_said_beside_a_page_is_told_apart_from_it(text: str, beside: str) -> None:
    assert without_page(text) == beside
