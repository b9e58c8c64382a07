"""A real HTTP server that does as a test says, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Handler", dict[str, Any]], None]


class Handler(BaseHTTPRequestHandler):
    """POST goes to the next answer of the script, its last one again and again."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length))
        self.server.asked.append((self.path, dict(self.headers), body))
        if self.path != self.server.prefix + "/chat/completions":
            return self.send_text(404, "text/html", "<html>Not Found</html>")
        script = self.server.script
        answer = script.pop(0) if len(script) > 1 else script[0]
        answer(self, body)

    def do_GET(self) -> None:
        if self.path != self.server.prefix + "/models":
            return self.send_text(404, "text/html", "<html>Not Found</html>")
        self.send_text(200, "application/json", '{"data": [{"id": "small"}, {"id": "large"}]}')

    def send_text(self, status: int, kind: str, text: str, **headers: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def send_events(self, lines: Iterable[bytes]) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        for line in lines:
            self.wfile.write(line)
            self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        """Silent."""


class Server(ThreadingHTTPServer):
    """Where it listens, what it answers, what it was asked."""

    daemon_threads = True

    def __init__(self, script: list[Answer], prefix: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.prefix = prefix
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.released = threading.Event()
        """Set at the end: what an answer that hangs waits for."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def base_url(self) -> str:
        return self.address + self.prefix

    def handle_error(self, *_: Any) -> None:
        """A client that goes away is part of the tests."""


@contextmanager
def serving(*script: Answer, prefix: str = "/v1") -> Iterator[Server]:
    """A server that gives these answers, one a request."""
    server = Server(list(script), prefix)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()


def event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


def piece(text: str, finish: str | None = None, **delta: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": text, **delta}, "finish_reason": finish}
    return event({"choices": [choice], "usage": None})


USAGE = event({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 3}})
DONE = b"data: [DONE]\n\n"


def says(*texts: str, finish: str = "stop") -> Answer:
    """A well-behaved stream."""
    lines = [b": a comment\n\n", piece("", role="assistant"), *map(piece, texts)]
    return streams(*lines, piece("", finish), USAGE, DONE)


def streams(*lines: bytes) -> Answer:
    """These bytes, then the end of the connection."""
    return lambda handler, _: handler.send_events(lines)


def refuses(status: int, message: str = "no", code: str = "", **headers: str) -> Answer:
    """An error as OpenAI's servers send it."""
    text = json.dumps({"error": {"message": message, "code": code}})
    return lambda handler, _: handler.send_text(status, "application/json", text, **headers)


def sends(status: int, kind: str, text: str, **headers: str) -> Answer:
    """Any body."""
    return lambda handler, _: handler.send_text(status, kind, text, **headers)


def hangs(*lines: bytes) -> Answer:
    """These bytes, then silence until the test is over."""

    def answer(handler: Handler, _: dict[str, Any]) -> None:
        handler.send_events(lines)
        handler.server.released.wait()

    return answer


def hangs_up(handler: Handler, _: dict[str, Any]) -> None:
    """Closes the connection without a word."""
    handler.close_connection = True
    handler.connection.close()
