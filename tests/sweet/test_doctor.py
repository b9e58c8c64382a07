"""The doctor: each probe in a process of its own, and what is said about what it finds."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sweet import probes
from sweet.doctor import as_text, examine, is_healthy, main
from sweet.probes import Check, Probe

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    monkeypatch.setenv("SWEET_DATA", str(folder))
    return folder


def test_quick_probes_find_this_machine_working(data: Path) -> None:
    quick = [p for p in probes.PROBES if p.name in ("python", "sqlite", "data")]
    checks = examine(quick)
    assert [(c.name, c.state) for c in checks] == [
        ("python", "works"),
        ("sqlite", "works"),
        ("data folder", "works"),
    ]
    assert is_healthy(checks)
    assert str(data) in checks[2].detail


def test_the_sandbox_is_reported_by_level_and_layer() -> None:
    found = probes.probe_sandbox()
    assert found[0].name == "sandbox"
    assert {c.name.removeprefix("sandbox: ") for c in found[1:]} >= {"seccomp", "landlock"}
    assert all(c.todo for c in found if c.state != "works")


@pytest.mark.parametrize(
    ("name", "value", "state", "said"),
    [
        ("MODEL", "", "missing", "visual similarity"),
        ("WEIGHTS", "/no/such/file.pt", "broken", "no such file"),
        ("MODEL", "local-dir:/no/such/folder", "broken", "could not be loaded"),
    ],
)
def test_clip_is_reported_as_it_is_configured(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, state: str, said: str
) -> None:
    monkeypatch.setenv(f"SWEET_CLIP__{name}", value)
    check = probes.probe_clip()
    assert (check.state, check.needed) == (state, False)
    assert said in check.detail


def never() -> Check:
    raise AssertionError("a probe runs in its own process")


def run_as(code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let every probe's process run `code` in place of the doctor."""
    fake = tmp_path / "python"
    fake.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{code}'\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os; os.abort()", "-6"),
        ("import sys; sys.exit(3)", "3"),
        ('raise ImportError("torchvision::nms does not exist")', "nms does not exist"),
        ('print("no JSON")', "0"),
        ("import time; time.sleep(99)", "no answer after 2 s"),
    ],
)
def test_a_probe_that_dies_or_hangs_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    run_as(code, monkeypatch, tmp_path)
    (check,) = examine([Probe("torch", never, timeout_s=2)])
    assert (check.state, check.needed) == ("broken", True)
    assert said in check.detail
    assert check.todo
    assert not is_healthy([check])


def test_noise_before_the_finding_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = json.dumps([{"name": "x", "state": "works", "detail": "fine"}]).replace('"', '\\"')
    run_as(f'print("a library says hello"); print("{row}")', monkeypatch, tmp_path)
    assert examine([Probe("x", never)]) == [Check("x", "works", "fine")]


def test_what_is_missing_but_not_needed_leaves_the_studio_healthy() -> None:
    checks = [Check("a", "works", "", needed=True), Check("gpu", "missing", "none")]
    assert is_healthy(checks)
    assert not is_healthy([*checks, Check("b", "missing", "", needed=True)])


def test_the_text_has_a_line_a_check_and_what_to_do_below() -> None:
    text = as_text([Check("a", "works", "fine"), Check("longer", "broken", "no", "mend it")])
    assert [line.split() for line in text.splitlines()] == [
        ["works", "a", "fine"],
        ["broken", "longer", "no"],
        ["→", "mend", "it"],
    ]


def test_wrong_settings_are_a_finding_with_the_value(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SWEET_PORT", "many")
    main("data")
    (found,) = json.loads(capsys.readouterr().out)
    assert found["state"] == "broken"
    assert "SWEET_PORT = 'many'" in found["detail"]


def test_a_data_folder_that_cannot_be_made_names_the_setting(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data.write_text("a file")
    found = probes.probe_data()
    assert found.state == "broken"
    assert "SWEET_DATA" in found.todo


def test_an_almost_full_disk_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "FREE_BYTES", 1 << 62)
    found = probes.probe_data()
    assert (found.state, found.needed) == ("broken", True)
    assert "GiB free" in found.detail


def test_a_sqlite_without_full_text_search_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def old(*_: object) -> sqlite3.Connection:
        raise sqlite3.OperationalError("no such module: fts5")

    monkeypatch.setattr(sqlite3, "connect", old)
    found = probes.probe_sqlite()
    assert found.state == "broken"
    assert "fts5" in found.detail
    assert "Debian 12" in found.todo


class Server(BaseHTTPRequestHandler):
    """A vLLM server's version, and a model that refuses the key."""

    def do_GET(self) -> None:
        self.answer(200, {"version": "0.32.0"})

    def do_POST(self) -> None:
        self.answer(401, {"error": {"message": "Incorrect API key"}})

    def answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def test_a_vllm_server_is_found_by_its_version(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "VLLM_URL", server)
    assert probes.probe_vllm() == Check("vllm", "works", f"0.32.0 at {server}")
    monkeypatch.setattr(probes, "VLLM_URL", "http://127.0.0.1:9")
    assert probes.probe_vllm().state == "missing"


def test_an_endpoint_that_refuses_is_broken_and_one_not_configured_is_missing(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWEET_AGENT__MODEL", "qwen")
    monkeypatch.setenv("SWEET_AGENT__BASE_URL", f"{server}/v1")
    agent, simulator = probes.probe_endpoints()
    assert (agent.state, agent.needed) == ("broken", True)
    assert "SWEET_AGENT__API_KEY" in agent.todo
    assert (simulator.state, simulator.needed) == ("missing", False)


def test_the_command_gives_one_json_value_and_never_a_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sweet", "doctor", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
    )
    value = json.loads(done.stdout)
    names = {check["name"] for check in value["checks"]}
    assert {"python", "torch", "gpu", "embedded model", "sandbox", "sqlite"} <= names
    assert {"data folder", "chromium", "clip weights", "vllm", "agent endpoint"} <= names
    assert all(check["todo"] for check in value["checks"] if check["state"] == "broken")
    assert done.returncode == (0 if value["healthy"] else 1)
    assert "Traceback" not in done.stderr
