"""Designs by themselves: only pages that were kept, sealed, and their pictures."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from starlette.applications import Starlette

from evaluators.render.answers import missing_assets
from sweet.drawn.gallery import Gallery
from sweet.errors import RenderError
from tests.fakes import FakeRenderer
from tests.ui.designing import VERSIONS, attacking_page
from ui.routes import routes

needs_assets = pytest.mark.skipif(bool(missing_assets()), reason="make setup fetches the assets")


class Client:
    """A browser's requests, without a server between."""

    def __init__(self, app: Starlette) -> None:
        self._transport = httpx.ASGITransport(app)

    def get(self, path: str) -> httpx.Response:
        """The answer to a request."""

        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(transport=self._transport) as client:
                return await client.get(f"http://studio{path}")

        return asyncio.run(ask())


def serving(folder: Path, renderer: FakeRenderer | None = None) -> tuple[Client, Gallery]:
    gallery = Gallery(folder / "pages", lambda: renderer or FakeRenderer())
    services = SimpleNamespace(gallery=gallery)
    return Client(Starlette(routes=routes(services))), gallery  # type: ignore[arg-type]


@needs_assets
def test_a_page_is_sent_sealed(tmp_path: Path) -> None:
    client, gallery = serving(tmp_path)
    answer = client.get(f"/pages/{gallery.keep(attacking_page('http://127.0.0.1:9'))}")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none'; ") and "allow-" not in policy
    assert answer.text.startswith('<meta charset="utf-8"><meta http-equiv="Content-Security')


def test_a_source_is_a_download_as_it_was_written(tmp_path: Path) -> None:
    client, gallery = serving(tmp_path)
    answer = client.get(f"/pages/{gallery.keep(VERSIONS[0])}.html")
    assert answer.text == VERSIONS[0]
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in answer.headers["content-security-policy"]


def test_a_picture_is_drawn_once_and_may_be_kept_by_the_browser(tmp_path: Path) -> None:
    renderer = FakeRenderer()
    client, gallery = serving(tmp_path, renderer)
    name = gallery.keep(VERSIONS[0])
    for _ in range(2):
        answer = client.get(f"/pages/{name}-375.png")
        assert answer.headers["content-type"] == "image/png"
        assert "immutable" in answer.headers["cache-control"]
    assert renderer.asked == [(VERSIONS[0], 375)]


def test_a_picture_that_cannot_be_drawn_says_why_and_is_not_kept(tmp_path: Path) -> None:
    client, gallery = serving(tmp_path, FakeRenderer(RenderError("it took over 4 s")))
    answer = client.get(f"/pages/{gallery.keep(VERSIONS[0])}-1280.png")
    assert (answer.status_code, answer.text) == (503, "it took over 4 s")
    assert "cache-control" not in answer.headers


def test_nothing_else_is_served(tmp_path: Path) -> None:
    client, gallery = serving(tmp_path)
    name = gallery.keep(VERSIONS[0])
    (tmp_path / "sweet.db").write_text("secret")
    for path in (
        f"/pages/{'0' * 64}", f"/pages/{name}-1281.png", f"/pages/{name}-0.png",
        f"/pages/{name}-99999999999999999999.png", f"/pages/{name}.json", f"/pages/{name[:2]}",
        "/pages/../sweet.db", "/pages/..%2f..%2fsweet.db", "/pages/%2e%2e/sweet.db", "/pages/",
        f"/pages/{name.upper()}", f"/pages/{name}%00", "/pages/sweet.db.html",
    ):  # fmt: skip
        answer = client.get(path)
        assert answer.status_code == 404, path
        assert "secret" not in answer.text
