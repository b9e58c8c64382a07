"""Runs the hostile programs and says what went wrong: a wrong verdict, or something left behind."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from evaluators.backend import BackendEvaluator
from evaluators.sandbox import Sandbox
from sweet.types import Evaluation, Verdict
from tests.evaluators.hostile import RIGHT, TASK, Payload

SECRET = "the-secret-of-this-machine"


@dataclass
class Traps:
    """What hostile programs try to reach: listeners, a secret, a folder open to everybody."""

    folder: Path
    secret: Path
    sockets: dict[str, socket.socket]

    def fill(self, code: str) -> str:
        """A program with the traps' addresses in it."""
        ports = {k: s.getsockname()[1] for k, s in self.sockets.items() if k != "unix"}
        unix = self.sockets["unix"].getsockname()[1:].decode()
        return code.format(folder=self.folder, secret=self.secret, unix=unix, **ports)

    def sprung(self) -> list[str]:
        """What was reached."""
        found = [f"a file was made: {p.name}" for p in self.folder.iterdir()]
        for place in ("/tmp/sweet_hostile", "/dev/shm/sweet_hostile"):
            if os.path.exists(place):
                os.unlink(place)
                found.append(f"a file was made: {place}")
        if not self.secret.exists() or self.secret.read_text() != SECRET:
            found.append("the secret file was changed")
        for name, listener in self.sockets.items():
            with contextlib.suppress(BlockingIOError):
                _ = listener.accept() if name == "tcp" else listener.recv(100)
                found.append(f"something arrived by {name}")
        return found


@contextlib.contextmanager
def traps() -> Iterator[Traps]:
    """Set them; they are gone afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="sweet_traps_") as name,
        contextlib.ExitStack() as stack,
    ):
        root = Path(name)
        root.chmod(0o755)
        folder, secret = root / "open", root / "secret"
        folder.mkdir()
        folder.chmod(0o777)
        secret.write_text(SECRET)
        kinds: dict[str, tuple[int, int, Any]] = {
            "tcp": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "udp": (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            "unix": (socket.AF_UNIX, socket.SOCK_DGRAM, f"\0sweet_{os.getpid()}_{root.name}"),
        }
        sockets = {}
        for key, (family, kind, address) in kinds.items():
            sockets[key] = stack.enter_context(socket.socket(family, kind))
            sockets[key].bind(address)
            sockets[key].setblocking(False)
        sockets["tcp"].listen()
        yield Traps(folder, secret, sockets)


def failures(sandbox: Sandbox, payloads: Iterable[Payload]) -> list[str]:
    """What is wrong after running `payloads`; an empty list is a sandbox that holds."""
    evaluator = BackendEvaluator(sandbox)
    with traps() as set_up, ThreadPoolExecutor(sandbox.workers) as threads:
        found = [
            line
            for lines in threads.map(lambda p: _one(evaluator, p, set_up), payloads)
            for line in lines
        ]
        found += set_up.sprung()
    found += _still_works(evaluator) + left_processes(sandbox)
    evaluator.close()
    return found


def _one(evaluator: BackendEvaluator, payload: Payload, set_up: Traps) -> list[str]:
    code = set_up.fill(payload.code) if payload.verdict is not Verdict.PASS else payload.code
    evaluation = evaluator.score(TASK, code)
    found = []
    if evaluation.verdict is not payload.verdict:
        reasons = {t.reason for t in evaluation.tests} or evaluation.error
        found.append(f"{payload.name}: {evaluation.verdict}, not {payload.verdict} {reasons}")
    reward = evaluation.reward
    if reward is None or reward.value or reward.components["tests_passed"]:
        found.append(f"{payload.name}: its reward is {reward}")
    if any(SECRET in (t.got or "") for t in evaluation.tests):
        found.append(f"{payload.name}: it read the secret")
    return found


def _still_works(evaluator: BackendEvaluator) -> list[str]:
    evaluation: Evaluation = evaluator.score(TASK, RIGHT)
    return [] if evaluation.verdict is Verdict.PASS else [f"the next answer: {evaluation}"]


def left_processes(sandbox: Sandbox) -> list[str]:
    """Processes under the workers that are no workers: children left over, and zombies."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.status() == psutil.STATUS_ZOMBIE:
                found.append(f"a zombie: {child.pid}")
    for worker in workers(sandbox):
        with contextlib.suppress(psutil.NoSuchProcess):
            children = worker.children(recursive=True)
            if len(children) > 1:  # one waits for the next program
                found += [f"left running: {c.cmdline()}" for c in children]
    return found


def workers(sandbox: Sandbox) -> list[psutil.Process]:
    """The sandbox's innermost processes, which fork the programs."""
    found = []
    for worker in sandbox._all:
        process = psutil.Process(worker._process.pid)
        while process.name() == "bwrap" and process.children():
            process = process.children()[0]
        found.append(process)
    return found
