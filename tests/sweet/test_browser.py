"""Which Chromium is taken, and whether it is seen to work."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweet.browser import chromium_path, rendering_problem
from sweet.errors import ConfigError


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose PATH is one empty folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.delenv("SWEET_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def program(path: Path) -> Path:
    path.write_text("#!/bin/sh\necho broken >&2; exit 3\n")
    path.chmod(0o755)
    return path


def test_the_named_browser_comes_before_the_recorded_and_that_before_the_systems(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "record"
    system = program(programs / "google-chrome")
    assert chromium_path(record) == system
    own = program(tmp_path / "own")
    record.write_text(f"{own}\n")
    assert chromium_path(record) == own
    named = program(tmp_path / "named")
    monkeypatch.setenv("SWEET_CHROMIUM", str(named))
    assert chromium_path(record) == named


def test_a_recorded_browser_that_is_gone_is_passed_over(programs: Path, tmp_path: Path) -> None:
    record = tmp_path / "record"
    record.write_text(f"{tmp_path / 'gone'}\n")
    system = program(programs / "chromium")
    assert chromium_path(record) == system


def test_a_named_browser_that_does_not_exist_is_an_error(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWEET_CHROMIUM", "/nowhere/chrome")
    with pytest.raises(ConfigError, match="SWEET_CHROMIUM=/nowhere/chrome"):
        chromium_path()


def test_this_machines_chromium_renders() -> None:
    browser = chromium_path()
    if browser is None:
        pytest.skip("no Chromium on this machine; `make setup` says how to get one")
    assert rendering_problem(browser) == ""


def test_a_program_that_is_no_browser_gives_its_reason(tmp_path: Path) -> None:
    assert "launch" in rendering_problem(program(tmp_path / "chrome"))
