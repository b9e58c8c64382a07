"""Single changes of a web page's HTML, of the kinds that the parts of a similarity are named for.

They change elements that hold only text, so that a regular expression finds them.
"""

from __future__ import annotations

import random
import re

LEAF = re.compile(r"<(?P<tag>h[1-6]|p|li|button|label)\b([^<>]*)>([^<]*\w[^<]*)</(?P=tag)>")
COLOR = re.compile(r"\b(bg|text)-(?:gray|red|yellow|green|blue|indigo|purple|pink)-\d00\b")
NEXT_TO = re.compile(
    rf"(?P<one>{LEAF.pattern})(?P<gap>\s*)(?P<other><(?P<its>\w+)\b[^<>]*>[^<]*</(?P=its)>)"
)
OTHER_COLORS = ("red-700", "blue-700", "green-300", "yellow-400", "purple-900")


def _styled(html: str, leaf: re.Match[str], style: str) -> str:
    opening = leaf.end(2)
    return f'{html[:opening]} style="{style}"{html[opening:]}'


def colored(html: str, rng: random.Random) -> str | None:
    """Another colour for one text or background."""
    found = list(COLOR.finditer(html))
    if not found:
        return None
    one = rng.choice(found)
    color = rng.choice([c for c in OTHER_COLORS if c not in one[0]])
    return f"{html[: one.start()]}{one[1]}-{color}{html[one.end() :]}"


def resized(html: str, rng: random.Random) -> str | None:
    """Much larger letters for one text."""
    leaves = [leaf for leaf in LEAF.finditer(html) if "style=" not in leaf[2]]
    return _styled(html, rng.choice(leaves), "font-size: 58px") if leaves else None


def realigned(html: str, rng: random.Random) -> str | None:
    """Another alignment for one block of text."""
    leaves = [m for m in LEAF.finditer(html) if m[1] in ("h1", "h2", "h3", "p", "li")]
    leaves = [leaf for leaf in leaves if "style=" not in leaf[2]]
    return _styled(html, rng.choice(leaves), "text-align: right; width: 100%") if leaves else None


def without_one(html: str, rng: random.Random) -> str | None:
    """One text is missing."""
    leaves = list(LEAF.finditer(html))
    if not leaves:
        return None
    leaf = rng.choice(leaves)
    return html[: leaf.start()] + html[leaf.end() :]


def swapped(html: str, rng: random.Random) -> str | None:
    """Two texts that follow each other have changed places."""
    found = [m for m in NEXT_TO.finditer(html) if m["one"] != m["other"]]
    if not found:
        return None
    two = rng.choice(found)
    return html[: two.start()] + two["other"] + two["gap"] + two["one"] + html[two.end() :]


EDITS = (colored, resized, realigned, without_one, swapped)


def graded(html: str, count: int, seed: int) -> list[str]:
    """The page with no change, one, two, … `count` of them, as many as can be made."""
    rng = random.Random(seed)
    pages = [html]
    kinds = [*EDITS, *EDITS]
    rng.shuffle(kinds)
    for edit in kinds:
        if len(pages) > count:
            break
        changed = edit(pages[-1], rng)
        if changed is not None and changed not in pages:
            pages.append(changed)
    return pages
