"""The composition root: settings → services → pages. `python app.py` starts the studio.

Nothing here calls out: analytics and sharing are off, the address is loopback unless settings say
otherwise, and a content policy keeps every page from fetching anything from elsewhere.
"""

from __future__ import annotations

import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import logging
import sys
import threading
from collections.abc import Sequence
from typing import Any

import gradio as gr
from starlette.middleware import Middleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sweet.errors import SweetError
from sweet.services import Services
from sweet.settings import Settings, load_settings
from trainer.jobs import Jobs
from trainer.schedule import Schedule
from ui import shell
from ui.routes import routes
from ui.transfers import EXPORTS

CONTENT_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self' ws: wss: data: blob:; media-src 'self' data: blob:; "
    "worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'"
)
_PRIVATE = (
    "sweet.db",
    "sweet.db-wal",
    "sweet.db-shm",
    "sweet.toml",
    "policies",
    "rounds",
    "backups",
    "pages",
)


class ContentPolicy:
    """ASGI middleware: every answer says what a page may load, and that it is not to be framed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; add the headers to what comes back."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [
                    (b"content-security-policy", CONTENT_POLICY.encode()),
                    (b"referrer-policy", b"no-referrer"),
                    (b"x-content-type-options", b"nosniff"),
                ]
                message = {**message, "headers": [*message.get("headers", []), *added]}
            await send(message)

        await self._app(scope, receive, with_headers)


def launch_options(settings: Settings, routes: Sequence[BaseRoute] = ()) -> dict[str, Any]:
    """What `launch` needs: where to listen, what may be served, the look.

    `routes` are served beside the pages.
    """
    return {
        "server_name": settings.host,
        "server_port": settings.port or None,
        "share": False,
        "run_history": False,
        "ssr_mode": False,
        "enable_monitoring": False,
        "allowed_paths": [str(settings.data / EXPORTS)],
        "blocked_paths": [str(settings.data / name) for name in _PRIVATE],
        "app_kwargs": {"middleware": [Middleware(ContentPolicy)], "routes": list(routes)},
        "quiet": True,
        **shell.look(),
    }


def open_studio() -> tuple[Services, gr.Blocks]:
    """The services of this process' settings, with ColBench-Mini's tasks, and the pages."""
    settings = load_settings()
    os.environ.setdefault("GRADIO_TEMP_DIR", str(settings.data / EXPORTS))
    services = Services(settings)
    services.ensure_mini_tasks()
    return services, shell.build(services)


def main() -> int:
    """Start the studio and serve it until it is interrupted. Returns: the exit status."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        services, demo = open_studio()
    except SweetError as e:
        print(f"The studio can't start: {e}", file=sys.stderr)
        return 1
    with services, Schedule(Jobs(services)).watching():
        try:
            options = launch_options(services.settings, routes(services))
            _, url, _ = demo.launch(prevent_thread_lock=True, **options)
        except OSError as e:
            print(f"The studio can't listen: {e} Set SWEET_PORT to a free port.", file=sys.stderr)
            return 1
        print(f"Sweet Studio runs at {url}", flush=True)
        threading.Thread(target=services.warm_up, name="warm-up", daemon=True).start()
        demo.block_thread()
    return 0


def __getattr__(name: str) -> gr.Blocks:
    """`from app import demo` gives the pages, opened then and not before."""
    if name != "demo":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["demo"] = open_studio()[1]
    return globals()["demo"]


if __name__ == "__main__":
    sys.exit(main())
