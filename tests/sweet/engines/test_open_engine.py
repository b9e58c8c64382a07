from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sweet.engines import EMBEDDED_DIR, open_engine
from sweet.engines.local import LocalEngine
from sweet.engines.openai import EndpointEngine
from sweet.errors import ConfigError
from sweet.settings import ModelSettings
from sweet.types import Engine, Sampling
from tests.sweet.engines.server import says, serving
from tests.sweet.engines.tiny import sampling, say


def test_without_settings_the_embedded_model_is_opened() -> None:
    engine = open_engine(ModelSettings())
    assert isinstance(engine, LocalEngine)
    assert engine.model == str(EMBEDDED_DIR)


def test_a_folder_is_opened_here(model_folder: Path) -> None:
    engine = open_engine(ModelSettings(model=str(model_folder)))
    assert isinstance(engine, LocalEngine)
    assert asyncio.run(engine.complete(say("hello"), sampling())).text
    engine.close()


def test_a_base_url_is_asked_with_its_model_and_key() -> None:
    with serving(says("Hi")) as server:
        settings = ModelSettings(model="large", base_url=server.base_url, api_key="sk-1")
        engine = open_engine(settings)
        assert isinstance(engine, EndpointEngine)
        assert asyncio.run(engine.complete(say("hello"), Sampling())).text == "Hi"
        _, headers, body = server.asked[0]
    assert (body["model"], headers["Authorization"]) == ("large", "Bearer sk-1")


def test_a_wrong_base_url_is_refused_when_it_is_opened() -> None:
    with pytest.raises(ConfigError, match="base_url"):
        open_engine(ModelSettings(model="large", base_url="localhost:8000"))


def test_both_are_engines() -> None:
    for settings in (ModelSettings(), ModelSettings(model="m", base_url="http://host.example/v1")):
        assert isinstance(open_engine(settings), Engine)
