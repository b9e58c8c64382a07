"""The pages of ColBench-Mini: what one is made of, its one way of writing, and back.

A PageSpec is a background and sections in their order; each section has details (colour,
alignment, size, count, texts) by name. Values are words that people say ("dark blue", "center"),
so that speech and page share them. `render` writes a spec as a complete page in one canonical
way; `mini_page_reader.parse_page` reads it back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from html import escape

STYLESHEET = "https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/dist/tailwind.min.css"
HEAD = f'<html>\n<link href="{STYLESHEET}" rel="stylesheet">\n'

Value = str | int | tuple[str, ...]


class Kind(StrEnum):
    """What sort of thing a detail is."""

    COLOR = "color"
    ALIGN = "align"
    SIZE = "size"
    HEIGHT = "height"
    COLUMNS = "columns"
    MARKS = "marks"
    TEXT = "text"
    ITEMS = "items"


HUES = ("gray", "red", "yellow", "green", "blue", "indigo", "purple", "pink")
SHADES = {"light ": "200", "": "500", "dark ": "800"}
COLORS: dict[str, str] = {"white": "white", "black": "black"} | {
    f"{shade}{hue}": f"{hue}-{number}" for hue in HUES for shade, number in SHADES.items()
}
CLASSES: dict[Kind, dict[Value, str]] = {
    Kind.COLOR: {word: f"bg-{name}" for word, name in COLORS.items()},
    Kind.ALIGN: {word: f"text-{word}" for word in ("left", "center", "right")},
    Kind.SIZE: {"small": "text-xl", "medium": "text-3xl", "large": "text-5xl", "huge": "text-7xl"},
    Kind.HEIGHT: {"short": "p-4", "medium": "p-12", "tall": "p-24"},
    Kind.COLUMNS: {n: f"grid-cols-{n}" for n in (1, 2, 3, 4)},
    Kind.MARKS: {"no marks": "list-none", "dots": "list-disc", "numbers": "list-decimal"},
}
DETAILS: dict[str, dict[str, Kind]] = {
    "header": {"color": Kind.COLOR, "align": Kind.ALIGN, "size": Kind.SIZE, "title": Kind.TEXT},
    "nav": {"color": Kind.COLOR, "align": Kind.ALIGN, "links": Kind.ITEMS},
    "hero": {
        "color": Kind.COLOR, "align": Kind.ALIGN, "height": Kind.HEIGHT, "size": Kind.SIZE,
        "title": Kind.TEXT, "button color": Kind.COLOR, "button": Kind.TEXT,
    },
    "cards": {
        "columns": Kind.COLUMNS, "align": Kind.ALIGN, "color": Kind.COLOR, "cards": Kind.ITEMS,
    },
    "list": {
        "color": Kind.COLOR, "align": Kind.ALIGN, "marks": Kind.MARKS, "items": Kind.ITEMS,
    },
    "form": {
        "color": Kind.COLOR, "align": Kind.ALIGN, "fields": Kind.ITEMS,
        "button color": Kind.COLOR, "button": Kind.TEXT,
    },
    "footer": {"color": Kind.COLOR, "align": Kind.ALIGN, "text": Kind.TEXT},
}  # fmt: skip
PAGE = "page"  # the name under which the page's own background goes


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: its name, and every detail of `DETAILS[name]` in that order."""

    name: str
    details: tuple[tuple[str, Value], ...]

    def __getitem__(self, detail: str) -> Value:
        return dict(self.details)[detail]

    def items(self, detail: str) -> tuple[str, ...]:
        """The detail's texts, where it is a row of them."""
        value = self[detail]
        return value if isinstance(value, tuple) else ()

    def having(self, detail: str, value: Value) -> Section:
        """The section with one detail changed."""
        changed = tuple((name, value if name == detail else old) for name, old in self.details)
        return replace(self, details=changed)


@dataclass(frozen=True, slots=True)
class PageSpec:
    """A small page; a section of a name occurs once at most."""

    background: str
    sections: tuple[Section, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The sections' names, from top to bottom."""
        return tuple(section.name for section in self.sections)

    def section(self, name: str) -> Section:
        """The section of that name. Raises: KeyError where there is none."""
        return {section.name: section for section in self.sections}[name]

    def having(self, name: str, detail: str, value: Value) -> PageSpec:
        """The page with one detail changed; the background is the colour of the page."""
        if name == PAGE:
            return replace(self, background=str(value))
        changed = tuple(s.having(detail, value) if s.name == name else s for s in self.sections)
        return replace(self, sections=changed)

    def all_details(self) -> Iterator[tuple[str, str, Kind, Value]]:
        """Section, detail, kind and value of everything that can be wished for."""
        yield PAGE, "color", Kind.COLOR, self.background
        for section in self.sections:
            for detail, value in section.details:
                yield section.name, detail, DETAILS[section.name][detail], value


def render(spec: PageSpec) -> str:
    """The complete page, in the canonical writing."""
    sections = "\n".join(_SECTIONS[section.name](section) for section in spec.sections)
    return f'{HEAD}<body class="{_color(spec.background)}">\n{sections}\n</body>\n</html>'


def _color(word: Value) -> str:
    return f"bg-{COLORS[str(word)]}" + (" text-white" if is_dark(str(word)) else "")


def is_dark(color: str) -> bool:
    """Whether what stands on that colour is written in white."""
    return color != "white" and not color.startswith("light ")


def _classes(section: Section, *names: str) -> str:
    """The classes of a section's own look, in the order of `names`."""
    found = []
    for name in names:
        kind = DETAILS[section.name].get(name)
        if kind is None:
            found.append(name)  # no detail but a fixed class
        elif kind is Kind.COLOR:
            found.append(_color(section[name]))
        else:
            found.append(CLASSES[kind][section[name]])
    return " ".join(found)


def _block(opening: str, lines: list[str], tag: str) -> str:
    return "\n".join([opening, *(f"    {line}" for line in lines), f"</{tag}>"])


def _title(section: Section) -> str:
    size = CLASSES[Kind.SIZE][section["size"]]
    return f'<h1 class="{size}">{_text(section["title"])}</h1>'


def _button(section: Section) -> str:
    look = f"{_color(section['button color'])} p-2"
    return f'<button class="{look}">{_text(section["button"])}</button>'


def _text(value: Value) -> str:
    return escape(str(value), quote=False)


def _header(section: Section) -> str:
    opening = f'<header class="{_classes(section, "color", "align", "p-4")}">'
    return _block(opening, [_title(section)], "header")


def _nav(section: Section) -> str:
    opening = f'<nav class="{_classes(section, "color", "align", "p-4", "space-x-4")}">'
    return _block(opening, [f"<a>{_text(x)}</a>" for x in section.items("links")], "nav")


def _hero(section: Section) -> str:
    opening = f'<section id="hero" class="{_classes(section, "color", "align", "height")}">'
    return _block(opening, [_title(section), _button(section)], "section")


def _cards(section: Section) -> str:
    classes = _classes(section, "grid", "columns", "align", "gap-4", "p-4")
    cards = section.items("cards")
    look = f"{_color(section['color'])} p-4"
    lines = [f'<div class="{look}">{_text(card)}</div>' for card in cards]
    return _block(f'<section id="cards" class="{classes}">', lines, "section")


def _list(section: Section) -> str:
    classes = _classes(section, "color", "align", "marks", "list-inside", "p-4")
    lines = [f"<li>{_text(item)}</li>" for item in section.items("items")]
    return _block(f'<ul class="{classes}">', lines, "ul")


def _form(section: Section) -> str:
    fields = [f'<input class="border" placeholder="{escape(f)}">' for f in section.items("fields")]
    opening = f'<form class="{_classes(section, "color", "align", "p-4")}">'
    return _block(opening, [*fields, _button(section)], "form")


def _footer(section: Section) -> str:
    classes = _classes(section, "color", "align", "p-4")
    return f'<footer class="{classes}">{_text(section["text"])}</footer>'


_SECTIONS = {
    "header": _header, "nav": _nav, "hero": _hero, "cards": _cards, "list": _list,
    "form": _form, "footer": _footer,
}  # fmt: skip
