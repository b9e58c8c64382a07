"""The composition root."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import app
from sweet.settings import load_settings
from tests.ui.studio import ROOT


def test_demo_is_the_whole_app(tmp_path: Path) -> None:
    code = "from app import demo; print([path for path, *_ in demo.pages])"
    env = {"SWEET_DATA": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True
    )
    pages = "['', 'watch', 'sessions', 'compare', 'leaderboard', 'train']"
    assert done.stdout.strip() == pages, done.stderr


def test_importing_the_app_opens_nothing() -> None:
    with pytest.raises(AttributeError):
        _ = app.no_such_name


def test_it_listens_on_loopback_and_shares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SWEET_HOST", raising=False)
    options = app.launch_options(load_settings())
    assert options["server_name"] == "127.0.0.1"
    assert options["share"] is False
    assert options["run_history"] is False


def test_a_wrong_setting_is_said_in_a_line() -> None:
    env = {"SWEET_PORT": "many", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "app.py"], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "SWEET_PORT" in done.stderr
    assert "Traceback" not in done.stderr
