from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sweet.engines.local import LocalEngine
from tests.sweet.engines import tiny


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tiny.llama(), tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def engine(model_folder: Path) -> Iterator[LocalEngine]:
    engine = LocalEngine(model_folder, device="cpu", max_batch=8)
    yield engine
    engine.close()
