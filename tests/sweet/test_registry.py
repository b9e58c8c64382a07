"""Policy versions on disk: whole or not at all, checked, promoted and rolled back."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sweet.errors import ConfigError, PolicyError
from sweet.registry import Registry
from sweet.types import PolicyVersion

BUILTIN = [PolicyVersion("embedded", "embedded")]


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    folder = tmp_path / "trained"
    folder.mkdir()
    (folder / "adapter_config.json").write_text("{}")
    (folder / "adapter_model.safetensors").write_bytes(b"weights")
    return folder


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "policies", BUILTIN)


def test_a_new_studio_has_the_builtin_versions_and_serves_none_of_its_own(
    registry: Registry,
) -> None:
    assert [v.id for v in registry.versions()] == ["embedded"]
    assert registry.promoted() is None
    assert registry.history() == []


def test_a_version_is_exactly_the_adapter_folder_and_a_manifest(
    registry: Registry, adapter: Path, tmp_path: Path
) -> None:
    version = registry.register(
        adapter,
        "embedded",
        parent_id="embedded",
        round_id="round-1",
        data_hash="abc",
        settings={"lr": 1e-4},
        figures={"success_rate": 0.4},
        note="first",
    )
    folder = tmp_path / "policies" / "v0001"
    assert version.id == "v0001" and version.adapter_path == str(folder)
    assert {p.name for p in folder.iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
        "manifest.json",
    }
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["parent"] == "embedded" and manifest["round"] == "round-1"
    assert manifest["data_hash"] == "abc" and manifest["settings"] == {"lr": 1e-4}
    assert set(manifest["sha256"]) == {"adapter_config.json", "adapter_model.safetensors"}
    assert registry.manifest("v0001").figures == {"success_rate": 0.4}
    assert [p.name for p in (tmp_path / "policies").iterdir()] == ["v0001"]


def test_versions_are_numbered_on_and_listed_in_order(registry: Registry, adapter: Path) -> None:
    ids = [registry.register(adapter, "embedded").id for _ in range(11)]
    assert [v.id for v in registry.versions()] == ["embedded", *ids]
    assert ids[-1] == "v0011"


def test_versions_registered_at_once_get_ids_of_their_own(
    registry: Registry, adapter: Path
) -> None:
    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(lambda _: registry.register(adapter, "embedded").id, range(12)))
    assert len(set(ids)) == 12
    assert registry.broken() == {}


def test_a_folder_that_is_no_adapter_is_refused_and_leaves_nothing(
    registry: Registry, tmp_path: Path
) -> None:
    with pytest.raises(PolicyError, match=r"adapter_config\.json"):
        registry.register(tmp_path, "embedded")
    assert [v.id for v in registry.versions()] == ["embedded"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"id": "v0009"}', "\x00\xff"])
def test_a_damaged_manifest_is_reported_and_the_others_are_listed(
    registry: Registry, adapter: Path, tmp_path: Path, text: str
) -> None:
    registry.register(adapter, "embedded")
    registry.register(adapter, "embedded")
    (tmp_path / "policies" / "v0001" / "manifest.json").write_text(text)
    assert [v.id for v in registry.versions()] == ["embedded", "v0002"]
    assert "manifest.json" in registry.broken()["v0001"]
    with pytest.raises(PolicyError, match="v0001"):
        registry.version("v0001")


def test_damaged_weights_are_noticed_before_they_are_served(
    registry: Registry, adapter: Path, tmp_path: Path
) -> None:
    registry.register(adapter, "embedded")
    (tmp_path / "policies" / "v0001" / "adapter_model.safetensors").write_bytes(b"weightz")
    with pytest.raises(PolicyError, match=r"adapter_model\.safetensors"):
        registry.verified("v0001")
    with pytest.raises(PolicyError):
        registry.promote("v0001")
    assert registry.promoted() is None


@pytest.mark.parametrize("policy_id", ["v0099", "nonsense", "../outside", ""])
def test_an_unknown_version_is_refused_with_those_there_are(
    registry: Registry, policy_id: str
) -> None:
    with pytest.raises(PolicyError, match="embedded"):
        registry.version(policy_id)


def test_promotions_roll_back_one_by_one(registry: Registry, adapter: Path) -> None:
    first, second = (registry.register(adapter, "embedded").id for _ in range(2))
    registry.promote(first)
    registry.promote(second)
    registry.promote(second)  # again: nothing to do
    assert registry.promoted() == second
    assert registry.rollback() == first
    assert registry.promoted() == first
    registry.promote("embedded")
    assert registry.rollback() == first
    assert registry.rollback() is None
    assert registry.promoted() is None
    with pytest.raises(ConfigError, match="nothing to roll back"):
        registry.rollback()


def test_the_history_keeps_every_promotion_and_survives_a_restart(
    registry: Registry, adapter: Path, tmp_path: Path
) -> None:
    registry.promote(registry.register(adapter, "embedded").id)
    registry.rollback()
    again = Registry(tmp_path / "policies", BUILTIN)
    assert [(p.action, p.policy_id) for p in again.history()] == [
        ("promote", "v0001"),
        ("rollback", None),
    ]


def test_a_damaged_history_is_a_clear_error(
    registry: Registry, adapter: Path, tmp_path: Path
) -> None:
    registry.promote(registry.register(adapter, "embedded").id)
    (tmp_path / "policies" / "promotions.jsonl").write_text("{}\n")
    with pytest.raises(PolicyError, match="Line 1"):
        registry.promoted()


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    folder = tmp_path / "whole"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"all weights")
    return folder


def test_a_whole_model_is_a_version_that_runs_from_its_own_folder(
    registry: Registry, whole: Path, tmp_path: Path
) -> None:
    version = registry.register(whole, "embedded", parent_id="embedded")
    folder = str(tmp_path / "policies" / "v0001")
    assert (version.model_path, version.adapter_path) == (folder, None)
    assert version.base_model == "embedded"
    assert registry.verified("v0001") == version


def test_an_adapter_on_a_whole_model_needs_both_and_damage_to_either_is_found(
    registry: Registry, whole: Path, adapter: Path, tmp_path: Path
) -> None:
    below = registry.register(whole, "embedded")
    child = registry.register(adapter, "embedded", model_path=below.model_path)
    assert child.model_path == below.model_path
    assert child.adapter_path == str(tmp_path / "policies" / "v0002")
    assert registry.verified("v0002") == child
    (tmp_path / "policies" / "v0001" / "model.safetensors").write_bytes(b"other")
    with pytest.raises(PolicyError, match=r"'v0001' are missing or damaged: model.safetensors"):
        registry.verified("v0002")


def test_a_model_outside_the_registry_is_no_version_s(
    registry: Registry, adapter: Path, tmp_path: Path
) -> None:
    registry.register(adapter, "embedded")
    path = tmp_path / "policies" / "v0001" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "on_model": "../../elsewhere"}))
    assert "no version's id" in registry.broken()["v0001"]
