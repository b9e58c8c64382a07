"""The visible elements of a drawn page, read from Chromium's own layout.

An element is visible when it draws something itself: text, a background, a border, a shadow, or
because it is a picture or a field. A wrapper that draws nothing is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from playwright.async_api import CDPSession, Page

from evaluators.render.fields import field_texts
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
ELEMENT = 1  # the DOM's number for it
IN_RGB = """colours => {
    const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    return colours.map(css => {
        pen.clearRect(0, 0, 1, 1);
        pen.fillStyle = css;
        pen.fillRect(0, 0, 1, 1);
        const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
        return [red, green, blue, alpha / 255];
    });
}"""
"""What colours of newer kinds look like, such as `oklch(…)`."""

_RGB = re.compile(r"rgba?\(([-\d., e]+)\)")
_NEWER = re.compile(r"(color|lab|lch|oklab|oklch)\(")

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


async def visible_boxes(
    page: Page, devtools: CDPSession, width: int, height: int
) -> tuple[Box, ...]:
    """The elements that are seen in a picture of this size."""
    snapshot = await devtools.send(
        "DOMSnapshot.captureSnapshot", {"computedStyles": list(STYLES), "includeDOMRects": False}
    )
    document, strings = snapshot["documents"][0], snapshot["strings"]
    newer = sorted(set(filter(_NEWER.match, strings)))
    in_rgb = await page.evaluate(IN_RGB, newer) if newer else []
    colours = {css: Colour(*rgba) for css, rgba in zip(newer, in_rgb, strict=True)}
    boxes = _Page(document, strings, colours).boxes()
    return tuple(box for box in boxes if _is_inside(box, width, height))


def _is_inside(box: Box, width: int, height: int) -> bool:
    return box.x < width and box.y < height and box.x + box.width > 0 and box.y + box.height > 0


@dataclass(slots=True)
class _Element:
    """An element while the page is read; what it stands on is worked out from its parent."""

    tag: str
    bounds: list[float]
    style: dict[str, str]
    background: Colour
    opacity: float
    texts: list[str]


class _Page:
    """The snapshot of one document, walked once in its order."""

    def __init__(
        self, document: dict[str, Any], strings: list[str], colours: dict[str, Colour]
    ) -> None:
        self._strings, self._colours = strings, colours
        self._nodes, self._layout = document["nodes"], document["layout"]
        self._parents: list[int] = self._nodes["parentIndex"]
        self._added = set(self._nodes.get("pseudoType", {"index": []})["index"])
        self._elements: dict[int, _Element] = {}
        for row, node in enumerate(self._layout["nodeIndex"]):
            self._read(node, row)
        for node, text in field_texts(self._nodes, strings).items():
            if node in self._elements:
                self._elements[node].texts.append(text)

    def boxes(self) -> Iterator[Box]:
        """The elements that draw something, in the document's order."""
        for node, element in self._elements.items():
            if node not in self._added and self._draws(element):
                yield self._box(element)

    def _read(self, node: int, row: int) -> None:
        is_element = self._nodes["nodeType"][node] == ELEMENT
        if is_element and node not in self._elements:
            self._elements[node] = self._element(node, row, self._parent(node))
        text = self._layout["text"][row]
        speaker = self._elements[node] if is_element else self._parent(node)
        if text >= 0 and speaker is not None and speaker.tag != "::marker":
            speaker.texts.append(self._strings[text])

    def _parent(self, node: int) -> _Element | None:
        """The nearest ancestor with a place on the page."""
        at = self._parents[node]
        while at >= 0 and at not in self._elements:
            at = self._parents[at]
        return self._elements.get(at)

    def _element(self, node: int, row: int, parent: _Element | None) -> _Element:
        values = map(self._strings.__getitem__, self._layout["styles"][row])
        style = dict(zip(STYLES, values, strict=True))
        tag = self._strings[self._nodes["nodeName"][node]].lower()
        return _Element(
            tag=tag,
            bounds=self._layout["bounds"][row],
            style=style,
            background=self._colour(style["background-color"]).over(
                parent.background if parent else WHITE
            ),
            opacity=float(style["opacity"]) * (parent.opacity if parent else 1),
            texts=parent.texts if parent and tag in ("::before", "::after") else [],
        )

    def _colour(self, css: str) -> Colour:
        return self._colours.get(css) or colour(css)

    def _draws(self, element: _Element) -> bool:
        _, _, width, height = element.bounds
        style = element.style
        if width * height <= 1 or not element.opacity or style["visibility"] != "visible":
            return False  # one pixel is how pages hide what only screen readers say
        return bool("".join(element.texts).strip()) or element.tag in DRAWN or self._paints(style)

    def _paints(self, style: dict[str, str]) -> bool:
        if style["background-image"] != "none" or style["box-shadow"] != "none":
            return True
        seen = [style["background-color"]]
        seen += [style[f"border-{s}-color"] for s in SIDES if style[f"border-{s}-width"] != "0px"]
        return any(self._colour(css).alpha for css in seen)

    def _box(self, element: _Element) -> Box:
        x, y, width, height = element.bounds
        style = element.style
        return Box(
            tag=element.tag,
            text=" ".join(" ".join(element.texts).split()),
            x=x,
            y=y,
            width=width,
            height=height,
            color=str(self._colour(style["color"]).over(element.background)),
            background=str(element.background),
            font_size=float(style["font-size"].removesuffix("px")),
            bold=float(style["font-weight"]) >= BOLD,
            align=_align(style["text-align"], style["direction"]),
        )


def _align(align: str, direction: str) -> Align:
    said = align.removeprefix("-webkit-")
    start: Align = "right" if direction == "rtl" else "left"
    end: Align = "left" if direction == "rtl" else "right"
    known: dict[str, Align] = {"center": "center", "right": "right", "left": "left"}
    return known.get(said) or {"justify": "justify", "end": end}.get(said, start)


@lru_cache(maxsize=4096)
def colour(css: str) -> Colour:
    """A computed colour such as `rgba(0, 0, 0, 0.5)`; clear for anything else."""
    found = _RGB.fullmatch(css)
    return Colour(*map(float, found[1].split(","))) if found else CLEAR
