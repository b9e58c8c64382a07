"""Engines: one protocol, three places where a model may run."""

from __future__ import annotations

from pathlib import Path

from sweet.engines.local import LocalEngine
from sweet.engines.openai import EndpointEngine
from sweet.settings import EMBEDDED_WEIGHTS, ModelSettings
from sweet.types import Engine, TaskKind

_ASSETS = Path(__file__).parents[1] / "assets"
EMBEDDED_DIR = _ASSETS / "embedded"
EMBEDDED_PAGES_DIR = _ASSETS / "embedded-pages"
EMBEDDED_DIRS = {
    EMBEDDED_WEIGHTS[TaskKind.BACKEND]: EMBEDDED_DIR,
    EMBEDDED_WEIGHTS[TaskKind.FRONTEND]: EMBEDDED_PAGES_DIR,
}


def open_engine(settings: ModelSettings) -> Engine:
    """The engine for a role's settings; nothing is loaded or called before the first request."""
    if settings.base_url:
        return EndpointEngine(
            settings.base_url, settings.model, settings.api_key, settings.timeout_s
        )
    return LocalEngine(EMBEDDED_DIRS.get(settings.model, settings.model))
