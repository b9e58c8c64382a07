"""The doctor's lines on the renderer: it draws, behind which walls, with which files."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluators.render import answers, renderer
from evaluators.render.walls import possible
from sweet import probes


def test_it_draws_and_every_wall_has_its_line() -> None:
    found = {check.name: check for check in probes.probe_renderer()}
    assert found["renderer"].state == "works"
    assert {"renderer: network namespace", "renderer: unprivileged user"} < set(found)
    assert all(check.todo for check in found.values() if check.state != "works")


def test_a_wall_that_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = [walls for walls in possible() if not walls.namespaces]
    monkeypatch.setattr(renderer, "possible", lambda: iter(fewer))
    found = {check.name: check for check in probes.probe_renderer()}
    assert found["renderer"].state == "works"
    missing = found["renderer: network namespace"]
    assert (missing.state, "bubblewrap" in missing.todo) == ("missing", True)


def test_missing_browsers_and_files_are_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SWEET_CHROMIUM", "/nowhere")
    monkeypatch.setattr(answers, "ASSETS", tmp_path)
    broken, assets = probes.probe_renderer()
    assert (broken.state, "/nowhere" in broken.detail) == ("broken", True)
    assert (assets.state, "make setup" in assets.todo) == ("missing", True)
    assert "no tailwind-2.2.19.min.css and no placeholder.png" in assets.detail
