from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweet.engines.local import LocalEngine
from sweet.errors import PolicyError
from tests.sweet.engines import tiny
from tests.sweet.engines.tiny import ask, ask_all, sampling


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Folders of LoRA adapters that each say something else; a dot in the path is no trouble."""
    root = tmp_path_factory.mktemp("adapters")
    return [str(tiny.save_adapter(root / f"v000{i}.1", seed=i)) for i in range(3)]


@pytest.fixture(scope="module")
def engine(model_folder: Path) -> Iterator[LocalEngine]:
    engine = LocalEngine(model_folder, device="cpu", max_batch=8)
    yield engine
    engine.close()


def test_each_adapter_says_what_it_says_merged_into_the_model(
    model_folder: Path, adapters: list[str], engine: LocalEngine, tmp_path: Path
) -> None:
    for i, adapter in enumerate(adapters):
        merged = tiny.merge(model_folder, adapter, tmp_path / str(i))
        alone = LocalEngine(merged, device="cpu")
        expected = ask(alone, "hello", temperature=0).text
        alone.close()
        assert ask(engine, "hello", adapter=adapter, temperature=0).text == expected


def test_the_bare_model_is_the_same_before_and_after_adapters(
    model_folder: Path, adapters: list[str]
) -> None:
    engine = LocalEngine(model_folder, device="cpu")
    before = ask(engine, "hello").text
    with_adapter = ask(engine, "hello", adapter=adapters[0]).text
    assert ask(engine, "hello").text == before != with_adapter
    engine.close()


def test_adapters_at_once_do_not_cross(engine: LocalEngine, adapters: list[str]) -> None:
    chosen = [None, *adapters] * 3
    alone = [ask(engine, f"hello {i}", adapter=a).text for i, a in enumerate(chosen)]

    async def together() -> list[str]:
        calls = [
            ask_all(engine, [(f"hello {i}", sampling())], adapter=a) for i, a in enumerate(chosen)
        ]
        return [c[0].text for c in await asyncio.gather(*calls)]

    assert asyncio.run(together()) == alone
    assert len(set(alone)) == len(chosen)


def test_the_least_used_adapter_is_unloaded(model_folder: Path, adapters: list[str]) -> None:
    engine = LocalEngine(model_folder, device="cpu", max_adapters=2)
    texts = [ask(engine, "hello", adapter=a).text for a in [*adapters, adapters[0]]]
    assert texts[0] == texts[3]
    loaded = engine._worker._model.adapters._peft.peft_config  # type: ignore[union-attr]
    assert len(loaded) == 2
    engine.close()


def test_more_adapters_at_once_than_are_kept_still_work(
    model_folder: Path, adapters: list[str]
) -> None:
    engine = LocalEngine(model_folder, device="cpu", max_adapters=1)
    alone = [ask(engine, "hello", adapter=a).text for a in adapters]

    async def together() -> list[str]:
        calls = [ask_all(engine, [("hello", sampling())], adapter=a) for a in adapters]
        return [c[0].text for c in await asyncio.gather(*calls)]

    assert asyncio.run(together()) == alone
    engine.close()


def test_a_folder_written_anew_is_read_anew(
    model_folder: Path, adapters: list[str], tmp_path: Path
) -> None:
    engine = LocalEngine(model_folder, device="cpu")
    folder = tmp_path / "current"
    said = []
    for source in adapters[:2]:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder, copy_function=shutil.copyfile)
        said.append(ask(engine, "hello", adapter=str(folder)).text)
    assert said == [ask(engine, "hello", adapter=a).text for a in adapters[:2]]
    engine.close()


def _without_config(folder: Path) -> None:
    (folder / "adapter_config.json").unlink()


def _without_weights(folder: Path) -> None:
    (folder / "adapter_model.safetensors").unlink()


def _with_cut_weights(folder: Path) -> None:
    weights = folder / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:300])


def _with_broken_config(folder: Path) -> None:
    (folder / "adapter_config.json").write_text("{")


def _with_another_rank(folder: Path) -> None:
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps({**config, "r": 2}))


def _with_other_layers(folder: Path) -> None:
    config = json.loads((folder / "adapter_config.json").read_text())
    config["target_modules"] = ["up_proj"]
    (folder / "adapter_config.json").write_text(json.dumps(config))


def _of_another_kind(folder: Path) -> None:
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps({**config, "peft_type": "IA3"}))


BREAKS = [
    _without_config,
    _without_weights,
    _with_cut_weights,
    _with_broken_config,
    _with_another_rank,
    _with_other_layers,
    _of_another_kind,
]


@pytest.mark.parametrize("broken", BREAKS)
@pytest.mark.parametrize("loaded_before", [False, True])
def test_a_broken_adapter_is_named_and_spares_the_others(
    broken: object, loaded_before: bool, model_folder: Path, adapters: list[str], tmp_path: Path
) -> None:
    engine = LocalEngine(model_folder, device="cpu")
    bare, other = ask(engine, "hello").text, None
    if loaded_before:
        other = ask(engine, "hello", adapter=adapters[1]).text
    folder = tmp_path / "broken"
    shutil.copytree(adapters[0], folder)
    broken(folder)  # type: ignore[operator]
    for _ in range(2):
        with pytest.raises(PolicyError, match="broken"):
            ask(engine, "hello", adapter=str(folder))
    assert ask(engine, "hello").text == bare
    if loaded_before:
        assert ask(engine, "hello", adapter=adapters[1]).text == other
    assert ask(engine, "hello", adapter=adapters[2]).text != bare
    engine.close()


def test_an_adapter_that_is_not_there_is_named(engine: LocalEngine) -> None:
    with pytest.raises(PolicyError, match="adapter folder /nowhere/v0009 was not found"):
        ask(engine, "hello", adapter="/nowhere/v0009")
