"""Everything that was said is escaped; unknown figures are n/a."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweet.types import StopReason
from ui.format import (
    MAX_SHOWN_CHARS,
    code,
    collaborator_name,
    duration,
    esc,
    markdown,
    number,
    outcome,
    percent,
    when,
)

ATTACKS = (
    "<script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "![x](http://evil.example/x.png)",
    "![x][1]\n\n[1]: http://evil.example/x.png",
    "[link](javascript:alert(1))",
    "<http://evil.example>",
    "<iframe src='http://evil.example'></iframe>",
    '"><svg onload=window.hit=1>',
    "```html\n<script>window.hit=1</script>\n```",
    '```"><img src=x onerror=window.hit=1>\ncode\n```',
    "`<b onmouseover=window.hit=1>`",
    "</textarea><script>window.hit=1</script>",
    "{{constructor.constructor('window.hit=1')()}} ${window.hit=1}",
    "<style>body{background:url(http://evil.example/x)}</style>",
    "&lt;script&gt; &#60;script&#62;",
    "\u202egnihtyna",
)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("show", [esc, markdown, code])
def test_no_tag_of_a_message_survives(show, attack: str) -> None:
    shown = show(attack).lower()
    for tag in ("<script", "<img", "<iframe", "<svg", "<style", "<b ", "<a ", "</textarea"):
        assert tag not in shown
    assert "\u202e" not in shown


@given(st.text())
def test_escaped_text_has_no_markup(text: str) -> None:
    shown = esc(text)
    assert not set("<>\"'") & set(shown)


@given(st.text(alphabet="<>&\"'`*_[]()!#\n a1:/\\{}$-"))
def test_markdown_makes_no_link_no_picture_and_no_foreign_tag(text: str) -> None:
    shown = markdown(text)
    for tag in ("<a ", "<img", "<script", "<iframe"):
        assert tag not in shown


def test_markdown_keeps_emphasis_lists_and_highlighted_code() -> None:
    shown = markdown("**bold**\n\n- one\n- two\n\n```python\ndef f():\n    return 1\n```")
    assert "<strong>bold</strong>" in shown
    assert shown.count("<li>") == 2
    assert '<span class="k">def</span>' in shown


def test_a_line_break_stays_a_line_break() -> None:
    assert "<br" in markdown("first\nsecond")


def test_what_is_too_long_is_cut_and_says_so() -> None:
    assert "5 more characters" in esc("x" * (MAX_SHOWN_CHARS + 5))
    assert "5 more characters" in markdown("x" * (MAX_SHOWN_CHARS + 5))
    assert "the rest is in the log" in code("x" * (MAX_SHOWN_CHARS + 5))


def test_unknown_figures_are_not_zero() -> None:
    assert number(None) == percent(None) == duration(None) == when("") == "n/a"
    assert number(0.0) == "0.00"


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0.01, "under 0.1 ms"),
        (1.24, "1.2 ms"),
        (850, "850 ms"),
        (1500, "1.5 s"),
        (61_000, "1 min 01 s"),
        (3_720_000, "1 h 02 min"),
    ],
)
def test_a_time_is_said_as_people_say_it(milliseconds: float, words: str) -> None:
    assert duration(milliseconds) == words


@pytest.mark.parametrize(
    ("stop", "reward", "rating", "words"),
    [
        (None, None, None, "in progress"),
        (StopReason.ANSWERED, 1.0, None, "success"),
        (StopReason.ANSWERED, 0.0, 1.0, "fail"),
        (StopReason.TURN_LIMIT, 0.0, None, "fail"),
        (StopReason.ANSWERED, None, None, "not scored"),
        (StopReason.ANSWERED, None, 1.0, "rated good"),
        (StopReason.ANSWERED, None, -1.0, "rated bad"),
        (StopReason.FAILED, None, None, "failed"),
        (StopReason.STOPPED, None, None, "stopped"),
        (StopReason.REPLACED, 1.0, None, "fork"),
    ],
)
def test_every_outcome_has_words(stop, reward, rating, words: str) -> None:
    assert words in outcome(stop, reward, rating)[1]


def test_collaborators_have_names() -> None:
    assert collaborator_name("person") == "Person"
    assert collaborator_name("llm:qwen") == "Simulator (qwen)"
