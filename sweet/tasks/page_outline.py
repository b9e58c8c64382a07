"""In what any two HTML pages differ, as far as their elements tell without drawing them.

For pages that are not ColBench-Mini's: which landmarks there are and in what order, how many
cards, links, fields and pictures, colours and alignment by Tailwind's class names, and the texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from sweet.tasks.html_tree import Node, parse_html
from sweet.tasks.mini_pages import HUES, PAGE, Kind, Value
from sweet.tasks.page_differences import Difference, What, move

_LANDMARKS = {
    "header": "header", "nav": "nav", "form": "form", "footer": "footer", "table": "table",
    "ul": "list", "ol": "list", "aside": "sidebar", "img": "image",
}  # fmt: skip
_COLORED = ("header", "nav", "footer", "form", "sidebar")
_BACKGROUND = re.compile(r"bg-(white|black|[a-z]+-\d+)$")
_INLINE = re.compile(r"background(?:-color)?\s*:\s*([a-z]+)\b", re.IGNORECASE)
_ALIGNED = {f"text-{way}": way for way in ("left", "center", "right")}
_ALIGNED |= {"justify-center": "center", "justify-end": "right"}
_HEADINGS = ("h1", "h2", "h3", "h4")


@dataclass(slots=True)
class Outline:
    """What can be told of a page: the landmarks in their order, looks, rows of things, texts."""

    landmarks: list[str] = field(default_factory=list)
    looks: dict[tuple[str, str], str] = field(default_factory=dict)
    rows: dict[str, tuple[str, ...]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)


def outline_differences(wanted: str, shown: str) -> list[Difference]:
    """In what the page `shown` differs from `wanted`, the most outstanding first."""
    target, page = outline(wanted), outline(shown)
    return [
        *_structure(target.landmarks, page.landmarks),
        *_looks(target, page),
        *_rows(target, page),
        *_texts(target, page),
    ]


def outline(html: str) -> Outline:
    """The outline of any HTML."""
    found = Outline(looks={(PAGE, "color"): "white"})
    rows: dict[str, list[str]] = {name: [] for name in ("headings", "buttons", "fields", "images")}
    for node in parse_html(html).walk():
        _note_landmark(node, found)
        if row := _row_of(node):
            rows[row].append(_name_of(node))
        if cards := _cards(node):
            found.rows.setdefault("cards", cards)
        if node.tag == "nav":
            links = tuple(n.text for n in node.walk() if n.tag == "a")
            found.rows.setdefault("links", links)
        found.texts += [child for child in node.children if isinstance(child, str)]
    found.rows |= {name: tuple(texts) for name, texts in rows.items()}
    return found


def _note_landmark(node: Node, found: Outline) -> None:
    name = PAGE if node.tag == "body" else _LANDMARKS.get(node.tag, "")
    if not name or name in found.landmarks:
        return
    if name != PAGE:
        found.landmarks.append(name)
    if (name in _COLORED or name == PAGE) and (color := _color(node)):
        found.looks[name, "color"] = color
    align = next((_ALIGNED[c] for c in node.classes if c in _ALIGNED), "")
    if name in _COLORED and align:
        found.looks[name, "align"] = align


def _row_of(node: Node) -> str:
    """The row of like things that an element belongs to, or ""."""
    if node.tag in _HEADINGS:
        return "headings"
    if node.tag == "button":
        return "buttons"
    if node.tag in ("select", "textarea"):
        return "fields"
    if node.tag == "input":
        hidden = node.attrs.get("type", "") in ("hidden", "submit", "button")
        return "" if hidden else "fields"
    return "images" if node.tag == "img" else ""


def _name_of(node: Node) -> str:
    return "" if node.tag == "img" else node.attrs.get("placeholder", "") or node.text


def _cards(node: Node) -> tuple[str, ...]:
    """What stands first in each child of a grid."""
    if "grid" not in node.classes or len(node.elements) < 2:
        return ()
    return tuple(
        next((n.text for n in child.walk() if n.tag in _HEADINGS), child.text)
        for child in node.elements
    )


def _color(node: Node) -> str:
    """The background in words ("light blue"), or ""."""
    for name in node.classes:
        if match := _BACKGROUND.match(name):
            hue, _, shade = match[1].partition("-")
            if not shade:
                return hue
            light = int(shade) <= 300
            return ("light " if light else "dark " if int(shade) >= 700 else "") + hue
    inline = _INLINE.search(node.attrs.get("style", ""))
    known = inline and inline[1].lower() in (*HUES, "white", "black")
    return inline[1].lower() if inline and known else ""


# Comparing


def _structure(wanted: list[str], shown: list[str]) -> Iterator[Difference]:
    for i, name in enumerate(wanted):
        if name not in shown:
            there = [n for n in wanted[i + 1 :] if n in shown]
            above = there[0] if there else ""
            below = wanted[i - 1] if i else ""
            yield Difference(What.MISSING, name, below=below, above=above)
    for name in shown:
        if name not in wanted:
            yield Difference(What.EXTRA, name)
    both = [name for name in wanted if name in shown]
    if moved := move(both, [name for name in shown if name in wanted]):
        yield moved


def _looks(target: Outline, page: Outline) -> Iterator[Difference]:
    for (name, detail), wanted in target.looks.items():
        shown = page.looks.get((name, detail), "")
        there = name == PAGE or name in page.landmarks
        if there and shown != wanted:
            yield Difference(What.DETAIL, name, detail, Kind(detail), wanted, shown)


def _rows(target: Outline, page: Outline) -> Iterator[Difference]:
    for name, wanted in target.rows.items():
        shown = page.rows.get(name, ())
        if wanted != shown and wanted:
            yield _row(name, wanted, shown)


def _row(name: str, wanted: Value, shown: Value) -> Difference:
    return Difference(What.DETAIL, PAGE, name, Kind.ITEMS, wanted, shown)


def _texts(target: Outline, page: Outline) -> Iterator[Difference]:
    known = set(page.texts)
    for text in target.texts:
        if text not in known and any(c.isalnum() for c in text):
            yield Difference(What.DETAIL, PAGE, "text", Kind.TEXT, text)
