"""Model text → Action.

How tolerant the answer mark is: any case; any white space, `*` or `_` between its words; markdown
emphasis, backticks or quotes around it ("**I want to answer:**"); a space before the colon and a
full-width colon. The colon is required: "when I want to answer I will say so" is only a mention.
The first mark in the message counts, wherever it stands.

A leading `<think>…</think>` block is what a reasoning model said to itself: no part of its
message, and a mark inside it ends nothing. `Action.raw` keeps everything.
"""

from __future__ import annotations

import re

from sweet.errors import PolicyError
from sweet.types import ANSWER_MARK, Action, Usage

_EMPHASIS = r"[*_~`\"'“”‘’]"
_BETWEEN = r"[\s*_]{1,8}"
_MARK = re.compile(
    rf"(?P<open>{_EMPHASIS}{{0,6}})(?<![^\W_])"
    + _BETWEEN.join(re.escape(word) for word in ANSWER_MARK.rstrip(":").split())
    + rf"{_EMPHASIS}{{0,6}}[ \t]{{0,4}}[::]",
    re.IGNORECASE,
)
_CLOSING = str.maketrans("“‘", "”’")
_THOUGHT = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_OPEN_THOUGHT = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)


def parse_action(text: str, usage: Usage | None = None, duration_ms: float | None = None) -> Action:
    """The action that `text` is: a message, or a final answer with its artifact.

    Raises: PolicyError where the model said nothing.
    """
    said = spoken(text)
    if not said:
        thought = " but a thought" if text.strip() else ""
        raise PolicyError(
            f"The model returned nothing{thought}. Retry the turn; if it happens again, raise "
            "max_tokens or choose another model."
        )
    mark = _MARK.search(said)
    if mark is None:
        return Action(text, said, is_final=False, usage=usage, duration_ms=duration_ms)
    message = said[: mark.start()].rstrip().rstrip("#>").rstrip()
    artifact = _artifact(said[mark.end() :], mark["open"][::-1].translate(_CLOSING))
    return Action(text, message, True, artifact, usage, duration_ms)


def spoken(text: str) -> str:
    """What of a model's text is meant for the other: without its thoughts, trimmed."""
    said = text
    while thought := _THOUGHT.match(said):
        said = said[thought.end() :]
    if _OPEN_THOUGHT.match(said):  # cut off while it was still thinking
        return ""
    return said.strip()


def _artifact(rest: str, closing: str) -> str:
    """What follows the mark, without the end of the emphasis the mark began in."""
    if closing and rest.startswith(closing):
        rest = rest.removeprefix(closing)
    elif closing.strip("*") == "" and closing:
        rest = rest.rstrip().removesuffix(closing)
    return rest.lstrip(" \t").strip("\r\n")  # a block on lines of its own keeps its indentation
