"""Pieces of HTML. Everything that a model, a person or a file said is escaped here and only here.

`gr.HTML` runs what it is given, so no other file of the pages may put text into markup. Markdown
is rendered with raw HTML, links and images off: a message can neither run code nor call home.
Unknown figures read "n/a", never 0, and no state is told by colour alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from html import escape
from typing import Literal

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import HtmlLexer, PythonLexer

from sweet.types import StopReason

NA = "n/a"
MAX_SHOWN_CHARS = 20_000
"""Of one message or value; what is longer is cut on the page, and says so, never in the log."""

_GROWING_CHARS = 4_000
_FORMATTER = HtmlFormatter(nowrap=True)
_LEXERS = {"python": PythonLexer(stripnl=False), "html": HtmlLexer(stripnl=False)}
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f]")


def esc(text: object) -> str:
    """`text` as it may stand in markup and in quoted attributes; long text is cut and says so."""
    shown = str(text)
    if len(shown) > MAX_SHOWN_CHARS:
        left = len(shown) - MAX_SHOWN_CHARS
        shown = f"{shown[:MAX_SHOWN_CHARS]} … ({left:,} more characters are in the log)"
    return escape(_BIDI.sub("\N{REPLACEMENT CHARACTER}", shown).replace("\x00", "\ufffd"))


def field_text(text: str) -> str:
    """`text` as it may stand in a field to be edited: escaped, else untouched."""
    return escape(text)


def code(source: str, language: Literal["python", "html"] = "python") -> str:
    """Highlighted source with a copy button."""
    shown = source[:MAX_SHOWN_CHARS]
    marked = highlight(_BIDI.sub("\ufffd", shown), _LEXERS[language], _FORMATTER)
    cut = "" if shown == source else "\n# … the rest is in the log"
    return (
        '<div class="code"><button type="button" class="copy" data-action="copy">Copy</button>'
        f'<pre tabindex="0" aria-label="Code"><code>{marked}{cut}</code></pre></div>'
    )


def code_lines(source: str, language: Literal["python", "html"] = "python") -> list[str]:
    """Highlighted source line by line, each whole in itself; long source is cut and says so."""
    shown = source[:MAX_SHOWN_CHARS]
    marked = highlight(_BIDI.sub("\ufffd", shown), _LEXERS[language], _FORMATTER)
    lines = marked.removesuffix("\n").split("\n")
    return lines if shown == source else [*lines, "# … the rest is in the log"]


def _fence(self: object, tokens: Sequence, index: int, options: object, env: object) -> str:
    return code(tokens[index].content)


_MARKDOWN = MarkdownIt("commonmark", {"html": False, "breaks": True}).disable(
    ["image", "link", "autolink", "html_inline", "html_block", "reference", "lheading"]
)
_MARKDOWN.add_render_rule("fence", _fence)
_MARKDOWN.add_render_rule("code_block", _fence)


def markdown(text: str) -> str:
    """A message's markup: emphasis, lists and code only."""
    shown = _BIDI.sub("\ufffd", text[:MAX_SHOWN_CHARS])
    more = len(text) - len(shown)
    note = f"<p>… ({more:,} more characters are in the log)</p>" if more else ""
    return _MARKDOWN.render(shown) + note


def growing(source: str) -> str:
    """Source that is still being written: its end, which is what is new."""
    shown = source[-_GROWING_CHARS:]
    cut = "" if shown == source else f"… ({len(source) - len(shown):,} characters before)\n"
    return (
        f'<div class="code growing"><pre tabindex="0" aria-label="Code"><code>{cut}{esc(shown)}'
        "</code></pre></div>"
    )


def number(value: float | None, digits: int = 2) -> str:
    """A figure, or "n/a"."""
    return NA if value is None else f"{value:.{digits}f}"


def percent(value: float | None) -> str:
    """A share of 1 as per cent, or "n/a"."""
    return NA if value is None else f"{value:.0%}"


def points(difference: float) -> str:
    """The difference of two shares, in points of per cent."""
    return f"{difference * 100:+.1f} pt".replace("-", "−")


def duration(milliseconds: float | None) -> str:
    """A time as a person says it, or "n/a"."""
    if milliseconds is None:
        return NA
    if milliseconds < 0.1:
        return "under 0.1 ms"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms" if milliseconds >= 10 else f"{milliseconds:.1f} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def when(iso: str) -> str:
    """A moment of the log, to the minute, in UTC."""
    try:
        shown = datetime.fromisoformat(iso).strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return NA
    return f'<time datetime="{esc(iso)}" title="{esc(iso)}">{shown}</time>'


def notice(title: str, hint: str = "", kind: str = "empty") -> str:
    """An empty or an error state ("error") and what to do about it."""
    role = ' role="alert"' if kind == "error" else ""
    below = f"<p>{esc(hint)}</p>" if hint else ""
    return f'<div class="notice {esc(kind)}"{role}><strong>{esc(title)}</strong>{below}</div>'


def pill(kind: str, text: str) -> str:
    """A state in a word; `kind` only adds the colour."""
    return f'<span class="pill {esc(kind)}">{esc(text)}</span>'


def collaborator_name(collaborator: str) -> str:
    """Who sat in the collaborator's seat, in words."""
    if collaborator.startswith("llm:"):
        return f"Simulator ({collaborator[4:]})"
    return {"person": "Person", "scripted": "Simulator (scripted)"}.get(collaborator, collaborator)


def outcome(
    stop_reason: StopReason | None,
    reward: float | None,
    rating: float | None = None,
    *,
    graded: bool = False,
) -> tuple[str, str]:
    """What became of an episode: its kind (for the colour) and its words.

    `graded`: the reward is no yes or no but how alike two pages look.
    """
    if stop_reason is None:
        return "open", "… in progress"
    if stop_reason is StopReason.REPLACED:
        return "none", "↪ went on in a fork"
    if stop_reason is StopReason.STOPPED:
        return "none", "□ stopped"
    if stop_reason is StopReason.FAILED:
        return "wrong", "! failed"
    if reward is not None and graded:
        return "open", f"◐ {percent(reward)} alike"
    if reward is not None:
        return ("pass", "✓ success") if reward >= 1 else ("wrong", "✗ fail")
    if rating is not None:
        return ("pass", "✓ rated good") if rating > 0 else ("wrong", "✗ rated bad")
    return "none", "○ not scored"
