"""What a page's requests are answered with: the page itself, a stylesheet, a placeholder picture.

All of it is on disk or in memory; every other request is refused.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from evaluators.render.stylesheet import Stylesheet
from sweet.errors import RenderError

ASSETS = Path(__file__).parents[2] / "assets"
"""Where the set-up puts the stylesheet and the picture."""
STYLESHEET = "tailwind-2.2.19.min.css"
PICTURE = "placeholder.png"
ADDRESS = "https://page.invalid/"
"""Where pages are said to come from; nothing is there, and nothing can be."""
POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline' https: data:; img-src https: data:; "
    "font-src data:; form-action 'none'; base-uri 'none'; upgrade-insecure-requests"
)
MAX_PICTURE_PX = 5000  # the photo service's own limit

_TAILWIND = re.compile(r"tailwind(css)?[^/]*[/@].*\.css$")
_PHOTOS = "picsum.photos"
_SIZE = re.compile(r"/(\d{1,5})(?:/(\d{1,5}))?(?=[^\d/]*$)")


@dataclass(frozen=True, slots=True)
class Answer:
    """A body and its headers."""

    body: bytes
    headers: dict[str, str]


EMPTY = Answer(
    b"<!doctype html>",
    {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": POLICY,
        "X-DNS-Prefetch-Control": "off",
        "Referrer-Policy": "no-referrer",
    },
)
"""The sealed document that pages are written into."""


class Answers:
    """Answers to one page's requests."""

    def __init__(self, page: str) -> None:
        self._page = page

    def to(self, url: str, is_page: bool, kind: str) -> Answer | None:
        """The answer to a request of that kind; None where it is refused.

        `is_page`: it asks for the document of the tab itself. Raises: RenderError where the
        file for the answer is not on this machine.
        """
        if is_page:
            return EMPTY if url == ADDRESS and not self._page else None
        try:
            return self._from_disk(urlsplit(url), kind)
        except OSError as e:
            raise RenderError(
                f"{e.filename} can't be read ({e.strerror}): `make setup` fetches it."
            ) from e
        except ValueError:  # no address at all
            return None

    def _from_disk(self, url: SplitResult, kind: str) -> Answer | None:
        host = url.hostname or ""
        if kind == "stylesheet" and _TAILWIND.search(host + url.path):
            return self._styles
        if kind == "image" and (host == _PHOTOS or host.endswith("." + _PHOTOS)):
            return Answer(_picture(*_size(url.path)), {"Content-Type": "image/svg+xml"})
        return None

    @cached_property
    def _styles(self) -> Answer:
        css = _stylesheet().purged(self._page)
        return Answer(css.encode(), {"Content-Type": "text/css; charset=utf-8"})


def prepare() -> None:
    """Read the files now, where they are there, so that no page has to wait for it."""
    if not missing_assets():
        _stylesheet()
        _placeholder()


def missing_assets() -> str:
    """Why pages cannot be styled; empty where the files are there."""
    missing = [name for name in (STYLESHEET, PICTURE) if not (ASSETS / name).is_file()]
    return f"{ASSETS} has no {' and no '.join(missing)}" if missing else ""


@lru_cache(maxsize=1)
def _stylesheet() -> Stylesheet:
    return Stylesheet((ASSETS / STYLESHEET).read_text())


@lru_cache(maxsize=1)
def _placeholder() -> str:
    return base64.b64encode((ASSETS / PICTURE).read_bytes()).decode()


def _size(path: str) -> tuple[int, int]:
    """The size that a photo's address asks for; one number alone is a square."""
    found = _SIZE.search(path)
    width, height = (int(found[1]), int(found[2] or found[1])) if found else (640, 480)
    return min(max(width, 1), MAX_PICTURE_PX), min(max(height, 1), MAX_PICTURE_PX)


def _picture(width: int, height: int) -> bytes:
    """The placeholder stretched to a size; as SVG, a large one costs no more than a small one."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
        f'<image href="data:image/png;base64,{_placeholder()}" width="{width}" '
        f'height="{height}" preserveAspectRatio="none"/></svg>'
    ).encode()
