"""One worker process and the talk with it. Not shared between threads: the pool lends it out."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import time
from importlib import resources

from evaluators.sandbox.inside import frames
from evaluators.sandbox.levels import Launch
from sweet.errors import SandboxError

START_S = 30.0
INSIDE = ("seccomp", "confine", "frames", "encode", "extract", "published", "programs",
          "supervise", "probe", "zygote")  # fmt: skip
ENVIRONMENT = {
    "PYTHONHASHSEED": "0",  # sets of strings come in one order, in the reference and the answer
    "LC_ALL": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",
}


class WorkerDied(Exception):
    """The worker ended, or stopped answering; the answer in flight was not scored."""


class Worker:
    """A running worker. Raises on start: SandboxError with what the worker said."""

    def __init__(self, launch: Launch):
        boot = _boot_code(launch.config)
        command = [part.format(len(boot)) if "{}" in part else part for part in launch.command]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=ENVIRONMENT,
                cwd="/",
                start_new_session=True,  # Ctrl-C is for the studio; the group ends together
                bufsize=0,
            )
        except OSError as e:
            raise SandboxError(f"{command[0]} could not be started: {e}") from e
        assert self._process.stdin and self._process.stdout
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._greet(boot)

    def _greet(self, boot: bytes) -> None:
        try:
            frames.write_all(self._stdin, boot)
            answer = json.loads(self._read(START_S))
        except (OSError, ValueError, WorkerDied) as e:
            raise SandboxError(
                f"The sandbox's worker did not start: {self._last_words() or e}"
            ) from e
        if "error" in answer:
            self.close()
            raise SandboxError(f"The sandbox's worker did not start: {answer['error']}")

    def _last_words(self) -> str:
        self._kill()
        assert self._process.stderr
        text = self._process.stderr.read().decode(errors="replace").strip()
        self.close()
        return text[-500:]

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def probe(self) -> dict[str, tuple[bool, str]]:
        """What each layer did when it was tried in there. Raises: WorkerDied."""
        self._send({"op": "probe"})
        found = json.loads(self._read(START_S))
        return {name: (bool(held), str(detail)) for name, (held, detail) in found.items()}

    def run(self, job: dict, timeout_s: float) -> list[frames.Frame]:
        """The frames of a job, one a test. Raises: WorkerDied."""
        self._send(job)
        buffer = bytearray(self._read(timeout_s))
        try:
            return list(frames.unpack(buffer))
        except ValueError as e:
            raise WorkerDied(f"it {e}") from e

    def _send(self, job: dict) -> None:
        try:
            frames.write_message(self._stdin, json.dumps(job).encode())
        except OSError as e:
            raise WorkerDied(f"it has gone: {e}") from e

    def _read(self, timeout_s: float) -> bytes:
        until = time.monotonic() + timeout_s
        header = self._exactly(4, until)
        return self._exactly(struct.unpack("<I", header)[0], until)

    def _exactly(self, size: int, until: float) -> bytes:
        data = bytearray()
        poller = select.poll()
        poller.register(self._stdout, select.POLLIN)
        while len(data) < size:
            if not poller.poll(max(0.0, until - time.monotonic()) * 1000):
                raise WorkerDied("it did not answer in time")
            piece = os.read(self._stdout, min(size - len(data), 1 << 20))
            if not piece:
                raise WorkerDied("it ended")
            data += piece
        return bytes(data)

    def _kill(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End the worker and all it had started. May be called twice."""
        self._kill()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()


def _boot_code(config: dict) -> bytes:
    """Source that makes the modules of `inside/` and serves: the worker reads no file of ours."""
    package = "evaluators.sandbox.inside"
    folder = resources.files(package)
    sources = {name: folder.joinpath(f"{name}.py").read_text(encoding="utf-8") for name in INSIDE}
    return f"""
import sys, types
for name in ("evaluators", "evaluators.sandbox", {package!r}):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
for name, source in {sources!r}.items():
    module = types.ModuleType({package!r} + "." + name)
    sys.modules[module.__name__] = module
    setattr(sys.modules[{package!r}], name, module)
    exec(compile(source, "<" + name + ">", "exec"), module.__dict__)
module.main({config!r})
""".encode()
