"""Model text → Action, and the web page in it.

How tolerant the answer mark is: any case; any white space, `*` or `_` between its words; markdown
emphasis, backticks or quotes around it ("**I want to answer:**"); a space before the colon and a
full-width colon. The colon is required: "when I want to answer I will say so" is only a mention.
The first mark in the message counts, wherever it stands.

A leading `<think>…</think>` block is what a reasoning model said to itself: no part of its
message, and a mark inside it ends nothing. `Action.raw` keeps everything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sweet.errors import PolicyError
from sweet.types import ANSWER_MARK, Action, Turn, Usage

_EMPHASIS = r"[*_~`\"'“”‘’]"
_BETWEEN = r"[\s*_]{1,8}"
_MARK = re.compile(
    rf"(?P<open>{_EMPHASIS}{{0,6}})(?<![^\W_])"
    + _BETWEEN.join(re.escape(word) for word in ANSWER_MARK.rstrip(":").split())
    + rf"{_EMPHASIS}{{0,6}}[ \t]{{0,4}}[::]",
    re.IGNORECASE,
)
_WHOLE_MARK = re.compile(_MARK.pattern + r"[*_~\"'“”‘’]{0,6}", re.IGNORECASE)
MAX_PAGE_BYTES = 512 << 10
_LONGEST_INDENT = 100

_PAGE_BEGINS = re.compile(r"<(?:!doctype\s{1,8}html|html)\b[^<>]{0,2000}>", re.IGNORECASE)
_PAGE_ENDS = re.compile(r"</html\s{0,8}>", re.IGNORECASE)
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


@dataclass(frozen=True, slots=True)
class FoundPage:
    """The page in a message as `html`, or None and `why` there is none."""

    html: str | None
    why: str = ""


def page_in(text: str) -> FoundPage:
    """The last complete HTML document in a model's text, in a fence or not.

    Complete means from `<!doctype html>` or `<html>` to `</html>`.
    """
    said = spoken(text)
    ends = [match.end() for match in _PAGE_ENDS.finditer(said)]
    begins = [match.start() for match in _PAGE_BEGINS.finditer(said)]
    if not begins:
        return FoundPage(None, "No page: the message has no <html> document.")
    begun_again = any(at >= ends[-1] and _on_own_line(said, at) for at in begins) if ends else True
    if begun_again or ends[-1] < begins[0]:
        return FoundPage(None, "No page: the HTML is cut off, it has no </html>.")
    return _usable(said[_begin(said, begins, ends) : ends[-1]])


def last_page(turns: Sequence[Turn]) -> str | None:
    """The newest message with a complete page: what a design is when its turns are used up."""
    said = (turn.action.message for turn in reversed(turns))
    return next((message for message in said if page_in(message).html), None)


def without_page(text: str) -> str:
    """What a model's text says beside its last complete HTML document and the answer mark."""
    said, found = spoken(text), page_in(text).html
    if found is None:
        return said
    before, _, after = said.rpartition(found)
    rest = _WHOLE_MARK.sub("", before).rstrip().removesuffix("```html").removesuffix("```").rstrip()
    after = after.lstrip().removeprefix("```").strip()
    return f"{rest}\n\n{after}".strip()


def _begin(text: str, begins: list[int], ends: list[int]) -> int:
    """Where the last document begins; a tag on a line of its own before one in a sentence."""
    before = ends[-2] if len(ends) > 1 else 0
    last = [at for at in begins if before <= at < ends[-1]]
    inside = last or [at for at in begins if at < ends[-1]]  # an end within a comment or a text
    return next((at for at in inside if _on_own_line(text, at)), inside[0])


def _on_own_line(text: str, at: int) -> bool:
    """Whether only white space stands before it on its line."""
    return not text[max(0, at - _LONGEST_INDENT) : at].rpartition("\n")[2].strip()


def _usable(html: str) -> FoundPage:
    try:
        size = len(html.encode())
    except UnicodeEncodeError as e:
        return FoundPage(None, f"No page: it is no Unicode text at position {e.start}.")
    if size > MAX_PAGE_BYTES:
        limit = f"{MAX_PAGE_BYTES:,} bytes"
        return FoundPage(None, f"No page: it has {size:,} bytes, the most is {limit}.")
    return FoundPage(html)
