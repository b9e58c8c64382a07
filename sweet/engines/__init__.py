"""Engines: one protocol, three places where a model may run."""

from __future__ import annotations

from pathlib import Path

from sweet.engines.local import LocalEngine
from sweet.engines.openai import EndpointEngine
from sweet.settings import EMBEDDED_MODEL, ModelSettings
from sweet.types import Engine

EMBEDDED_DIR = Path(__file__).parents[1] / "assets" / "embedded"


def open_engine(settings: ModelSettings) -> Engine:
    """The engine for a role's settings; nothing is loaded or called before the first request."""
    if settings.base_url:
        return EndpointEngine(
            settings.base_url, settings.model, settings.api_key, settings.timeout_s
        )
    if settings.model == EMBEDDED_MODEL:
        return LocalEngine(EMBEDDED_DIR)
    return LocalEngine(settings.model)
