"""What is fetched beside pages: a kept design sealed in a tab of its own, its source, its picture.

A design goes by the hash of its HTML. The picture is the one that was drawn first, or is drawn now.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sweet.errors import SweetError
from sweet.services import Services
from ui.design import PAGES, WIDTHS
from ui.sealed import HEADERS, sealed_document

_FOR_EVER = {"cache-control": "private, max-age=31536000, immutable"}


def routes(services: Services) -> list[Route]:
    """The routes, to be served before Gradio's own."""

    def sealed(request: Request) -> Response:
        html = services.gallery.html(request.path_params["name"])
        if html is None:
            return _missing()
        try:
            document = sealed_document(html)
        except SweetError as e:
            return PlainTextResponse(str(e), 503)
        return Response(document, media_type="text/html", headers=HEADERS)

    def source(request: Request) -> Response:
        html = services.gallery.html(request.path_params["name"])
        if html is None:
            return _missing()
        there = {"content-disposition": 'attachment; filename="page.html"'}
        return Response(html, media_type="text/html", headers={**HEADERS, **there})

    def picture(request: Request) -> Response:
        html = services.gallery.html(request.path_params["name"])
        width = request.path_params["width"]
        if html is None or width not in WIDTHS:
            return _missing()
        try:
            drawn = services.gallery.render(html, width=width)
        except SweetError as e:
            return PlainTextResponse(str(e), 503)
        return Response(drawn.png, media_type="image/png", headers=_FOR_EVER)

    return [
        Route(f"/{PAGES}/{{name}}-{{width:int}}.png", picture),
        Route(f"/{PAGES}/{{name}}.html", source),
        Route(f"/{PAGES}/{{name}}", sealed),
    ]


def _missing() -> Response:
    return PlainTextResponse("There is no such page. Open it from its episode.", 404)
