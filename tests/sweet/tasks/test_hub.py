"""Fetching ColBench from a hub: a real HTTP server that answers like one, and misbehaves."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sweet.errors import TaskDataError
from sweet.tasks.colbench import HUB_FILES, import_hub, read_imported

FOLDER = "/datasets/facebook/collaborative_agent_bench/resolve/main/"


def lines(split: str, count: int) -> bytes:
    rows = (
        {
            "problem_description": f"{split} parcel {n}",
            "ground_truth": "def price(kg):\n    return kg",
            "test_cases": {"test1": f"price({n})"},
        }
        for n in range(count)
    )
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


class Hub(ThreadingHTTPServer):
    """Serves two files; `cut` breaks the next answers off after so many bytes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {FOLDER + file: lines(split, 300) for split, file in HUB_FILES.items()}
        self.cut: list[int] = []
        self.ranges: list[str | None] = []
        self.status = 200
        self.damage = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.server.ranges.append(self.headers["Range"])
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        data = self.server.files.get(self.path)
        if self.server.status != 200 or data is None:
            self.send_response(404 if data is None else self.server.status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        etag = hashlib.sha256(data).hexdigest()
        begin = int((self.headers["Range"] or "bytes=0-").removeprefix("bytes=").rstrip("-"))
        sent = data[begin:][::-1] if self.server.damage else data[begin:]
        self.send_response(206 if begin else 200)
        self.send_header("ETag", f'"{etag}"')
        self.send_header("X-Repo-Commit", "c" * 40)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        if body:
            self.wfile.write(sent[: self.server.cut.pop(0)] if self.server.cut else sent)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def test_both_splits_come_in_with_a_progress_bar(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = import_hub(tmp_path, endpoint=hub.url)
    assert [(d.name, d.added) for d in done] == [
        ("colbench-backend/train", 300),
        ("colbench-backend/test", 300),
    ]
    rows = read_imported("colbench-backend/test", tmp_path).rows
    assert rows[7].task.description == "test parcel 7"
    captured = capsys.readouterr()
    assert "backend_tasks/train.jsonl: 100%" in captured.err
    assert captured.out == ""


def test_a_second_import_downloads_nothing(hub: Hub, tmp_path: Path) -> None:
    import_hub(tmp_path, endpoint=hub.url)
    asked = len(hub.ranges)
    done = import_hub(tmp_path, endpoint=hub.url)
    assert [(d.added, d.known) for d in done] == [(0, 300), (0, 300)]
    assert len(hub.ranges) == asked


def test_a_connection_cut_off_goes_on_where_it_broke(hub: Hub, tmp_path: Path) -> None:
    hub.cut = [5000, 700]
    (done,) = import_hub(tmp_path, splits=["test"], endpoint=hub.url)
    assert done.added == 300
    assert hub.ranges == ["bytes=0-", "bytes=5000-", "bytes=5700-"]


def test_a_later_run_goes_on_where_an_earlier_one_stopped(hub: Hub, tmp_path: Path) -> None:
    data = hub.files[FOLDER + HUB_FILES["test"]]
    part = tmp_path / "hub" / hashlib.sha256(data).hexdigest()[:16] / "test.jsonl.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(data[:9000])
    (done,) = import_hub(tmp_path, splits=["test"], endpoint=hub.url)
    assert done.added == 300
    assert hub.ranges == ["bytes=9000-"]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_says_what_to_do_instead(hub: Hub, tmp_path: Path, status: int) -> None:
    hub.status = status
    with pytest.raises(TaskDataError) as refused:
        import_hub(tmp_path, endpoint=hub.url)
    assert "python -m sweet tasks import PATH" in str(refused.value)
    assert "hf auth login" in str(refused.value)


def test_a_hub_out_of_reach_says_what_to_do_instead(tmp_path: Path) -> None:
    with pytest.raises(TaskDataError, match=r"could not be fetched.*tasks import PATH"):
        import_hub(tmp_path, endpoint="http://127.0.0.1:9")
    assert not (tmp_path / "tasks").exists()


def test_a_damaged_file_is_refused_and_fetched_anew(hub: Hub, tmp_path: Path) -> None:
    hub.damage = True
    with pytest.raises(TaskDataError, match="damaged"):
        import_hub(tmp_path, splits=["test"], endpoint=hub.url)
    hub.damage = False
    (done,) = import_hub(tmp_path, splits=["test"], endpoint=hub.url)
    assert done.added == 300


def test_a_split_the_hub_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskDataError, match="no split 'families'; it has train, test"):
        import_hub(tmp_path, splits=["families"])
