"""Pages that were shown or judged, kept by the hash of their HTML: the source and the pictures.

A page is drawn once at each width; whoever asks again, the pages of the studio, a collaborator or
an evaluator, gets the picture as it was then. The files lie in one folder:

    ab/ab12….html         the source
    ab/ab12…-1280.png     its picture at that width
    ab/ab12…-1280.json    what of it can be seen, as boxes
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from sweet.errors import StoreError, boundary
from sweet.types import Box, DrawsPages, Rendering

WIDTH = 1280
_NAME = re.compile(r"[0-9a-f]{64}")


class Gallery:
    """A folder of pages with their pictures; draws like a renderer. Safe from any thread."""

    def __init__(self, folder: Path, renderer: Callable[[], DrawsPages]) -> None:
        """`renderer` gives what draws the pages that are not here yet; called when one is not."""
        self._folder = folder
        self._renderer = renderer

    def keep(self, html: str) -> str:
        """The name of a page, whose source is now in the folder. Raises: StoreError."""
        data = html.encode(errors="replace")
        name = hashlib.sha256(data).hexdigest()
        path = self._path(name, ".html")
        if not path.exists():
            _write(path, data)
        return name

    def html(self, name: str) -> str | None:
        """The source of a kept page; None for any other name."""
        if not _NAME.fullmatch(name):
            return None
        try:
            return self._path(name, ".html").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def render(self, html: str, *, width: int = WIDTH) -> Rendering:
        """The page as it looks, drawn now only where it was not before.

        Raises: RenderError; StoreError where the picture can't be kept.
        """
        name = self.keep(html)
        if kept := self._drawn(name, width):
            return kept
        drawn = self._renderer().render(html, width=width)
        rest = {
            "height": drawn.height,
            "is_cut": drawn.is_cut,
            "boxes": list(map(asdict, drawn.boxes)),
        }
        _write(self._path(name, f"-{width}.png"), drawn.png)
        _write(self._path(name, f"-{width}.json"), json.dumps(rest).encode())
        return drawn

    def _drawn(self, name: str, width: int) -> Rendering | None:
        try:
            rest = json.loads(self._path(name, f"-{width}.json").read_bytes())
            png = self._path(name, f"-{width}.png").read_bytes()
            boxes = tuple(Box(**box) for box in rest["boxes"])
            return Rendering(png, width, rest["height"], boxes, rest["is_cut"])
        except (OSError, ValueError, TypeError, KeyError):
            return None  # not there, or written by something else: drawn anew

    def _path(self, name: str, ending: str) -> Path:
        return self._folder / name[:2] / f"{name}{ending}"


def _write(path: Path, data: bytes) -> None:
    """The file, there at once and whole."""
    with boundary(StoreError, f"The page could not be kept in {path.parent}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as aside:
            aside.write(data)
        Path(aside.name).replace(path)
