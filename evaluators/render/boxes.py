"""The visible elements of a drawn page, read from Chromium's own layout.

An element is visible when it draws something itself: text, a background, a border, a shadow, or
because it is a picture or a field. A wrapper that draws nothing is not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from playwright.async_api import CDPSession

from sweet.types import Box

STYLES = (
    "color", "background-color", "background-image", "font-size", "font-weight", "text-align",
    "direction", "visibility", "opacity", "box-shadow", "border-top-width", "border-right-width",
    "border-bottom-width", "border-left-width", "border-top-color", "border-right-color",
    "border-bottom-color", "border-left-color",
)  # fmt: skip
SIDES = ("top", "right", "bottom", "left")
DRAWN = frozenset(
    "img svg video audio canvas input textarea select button hr iframe object embed meter "
    "progress picture".split()
)
BOLD = 600
ELEMENT, TEXT = 1, 3

Align = Literal["left", "center", "right", "justify"]


class Colour(NamedTuple):
    """Red, green and blue from 0 to 255, and how opaque it is from 0 to 1."""

    red: float
    green: float
    blue: float
    alpha: float = 1.0

    def over(self, below: Colour) -> Colour:
        """What is seen where this lies on an opaque colour."""
        mixed = (
            a * self.alpha + b * (1 - self.alpha) for a, b in zip(self[:3], below, strict=False)
        )
        return Colour(*mixed)

    def __str__(self) -> str:
        return "#" + "".join(f"{round(part):02x}" for part in self[:3])


WHITE = Colour(255, 255, 255)
CLEAR = Colour(0, 0, 0, 0)


async def visible_boxes(devtools: CDPSession, width: int, height: int) -> tuple[Box, ...]:
    """The elements that are seen in a picture of this size."""
    snapshot = await devtools.send(
        "DOMSnapshot.captureSnapshot", {"computedStyles": list(STYLES), "includeDOMRects": False}
    )
    page = _Page(snapshot["documents"][0], snapshot["strings"])
    boxes = (page.box(node) for node in page.elements())
    return tuple(box for box in boxes if box is not None and _is_inside(box, width, height))


def _is_inside(box: Box, width: int, height: int) -> bool:
    return box.x < width and box.y < height and box.x + box.width > 0 and box.y + box.height > 0


@dataclass(slots=True)
class _Element:
    """An element while the page is read: what it inherits is worked out from its parent."""

    tag: str
    bounds: tuple[float, float, float, float]
    style: dict[str, str]
    background: Colour
    opacity: float
    is_inner: bool  # part of a field's own make-up
    texts: list[str]
    host: int


class _Page:
    """The snapshot of one document, walked once in its order."""

    def __init__(self, document: dict[str, Any], strings: list[str]) -> None:
        self._strings = strings
        self._nodes = document["nodes"]
        self._elements: dict[int, _Element] = {}
        layout = document["layout"]
        self._layout_of: dict[int, int] = {}
        for row, node in enumerate(layout["nodeIndex"]):
            self._layout_of.setdefault(node, row)
        self._layout = layout
        self._inner = self._inner_nodes()
        self._values = self._field_values()
        for node in range(len(self._nodes["nodeType"])):
            self._read(node)

    def elements(self) -> list[int]:
        """The nodes that are elements with a place on the page, in the document's order."""
        return [node for node, element in self._elements.items() if not element.is_inner]

    def _text(self, index: int) -> str:
        return self._strings[index] if index >= 0 else ""

    def _field_values(self) -> dict[int, str]:
        values: dict[int, str] = {}
        for key in ("inputValue", "textValue"):
            rare = self._nodes.get(key, {"index": [], "value": []})
            values |= {
                node: self._text(value)
                for node, value in zip(rare["index"], rare["value"], strict=True)
            }
        return values

    def _inner_nodes(self) -> set[int]:
        """What lies in a field's own make-up, and what a style adds before and after."""
        roots = self._nodes.get("shadowRootType", {"index": [], "value": []})
        inner = {
            node
            for node, kind in zip(roots["index"], roots["value"], strict=True)
            if self._text(kind) == "user-agent"
        }
        inner |= set(self._nodes.get("pseudoType", {"index": []})["index"])
        for node, parent in enumerate(self._nodes["parentIndex"]):
            if parent in inner:
                inner.add(node)
        return inner

    def _read(self, node: int) -> None:
        row = self._layout_of.get(node)
        kind = self._nodes["nodeType"][node]
        parent = self._parent(node)
        if row is None:
            return
        if kind == TEXT:
            self._add_text(parent, self._text(self._layout["text"][row]))
        elif kind == ELEMENT:
            self._elements[node] = self._element(node, row, parent)

    def _parent(self, node: int) -> _Element | None:
        """The nearest ancestor with a place on the page."""
        at = self._nodes["parentIndex"][node]
        while at >= 0 and at not in self._elements:
            at = self._nodes["parentIndex"][at]
        return self._elements.get(at)

    def _add_text(self, element: _Element | None, text: str) -> None:
        if element is not None and not element.tag.startswith("::marker"):
            element.texts.append(text)

    def _element(self, node: int, row: int, parent: _Element | None) -> _Element:
        values = (self._text(index) for index in self._layout["styles"][row])
        style = dict(zip(STYLES, values, strict=False))
        below = parent.background if parent else WHITE
        texts: list[str] = []
        is_inner = node in self._inner
        if is_inner and parent is not None:
            texts = parent.texts
        return _Element(
            tag=self._text(self._nodes["nodeName"][node]).lower(),
            bounds=tuple(self._layout["bounds"][row]),
            style=style,
            background=colour(style.get("background-color", "")).over(below),
            opacity=float(style.get("opacity") or 1) * (parent.opacity if parent else 1),
            is_inner=is_inner,
            texts=texts,
            host=node,
        )

    def box(self, node: int) -> Box | None:
        """The element as a box; None where it draws nothing itself."""
        element = self._elements[node]
        x, y, width, height = element.bounds
        style = element.style
        text = " ".join(" ".join([*element.texts, self._values.get(node, "")]).split())
        if width <= 0 or height <= 0 or element.opacity == 0 or style["visibility"] != "visible":
            return None
        if not text and element.tag not in DRAWN and not _is_painted(style):
            return None
        return Box(
            tag=element.tag,
            text=text,
            x=x,
            y=y,
            width=width,
            height=height,
            color=str(colour(style["color"]).over(element.background)),
            background=str(element.background),
            font_size=float(style["font-size"].removesuffix("px")),
            bold=float(style["font-weight"]) >= BOLD,
            align=_align(style["text-align"], style["direction"]),
        )


def _is_painted(style: dict[str, str]) -> bool:
    if colour(style["background-color"]).alpha > 0 or style["background-image"] != "none":
        return True
    borders = (
        style[f"border-{side}-width"] != "0px" and colour(style[f"border-{side}-color"]).alpha > 0
        for side in SIDES
    )
    return style["box-shadow"] != "none" or any(borders)


def _align(align: str, direction: str) -> Align:
    said = align.removeprefix("-webkit-")
    start: Align = "right" if direction == "rtl" else "left"
    end: Align = "left" if direction == "rtl" else "right"
    known: dict[str, Align] = {"center": "center", "right": "right", "left": "left"}
    return known.get(said) or {"justify": "justify", "end": end}.get(said, start)


def colour(css: str) -> Colour:
    """A computed colour of a style, such as `rgba(0, 0, 0, 0.5)`."""
    numbers = [float(n) for n in re.findall(r"-?\d*\.?\d+(?:e-?\d+)?", css)]
    if not css.startswith("rgb") or len(numbers) < 3:
        return CLEAR
    return Colour(*numbers[:4])
