"""The sandbox: workers lent to whoever asks, from any thread, restarted when they die."""

from __future__ import annotations

import atexit
import contextlib
import queue
import threading
import weakref
from dataclasses import dataclass

from evaluators.sandbox import levels
from evaluators.sandbox.inside import frames
from evaluators.sandbox.levels import Level
from evaluators.sandbox.worker import Worker, WorkerDied
from sweet.errors import SandboxError

MAX_SOURCE_CHARS = 400_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What a program may use a test. `max_timeouts` of them, and the rest is not run."""

    cpu_s: float = 1.0
    wall_s: float = 10.0
    idle_s: float = 1.0
    max_timeouts: int = 2


@dataclass(frozen=True, slots=True)
class Program:
    """A program and the test expressions to run in it.

    `mode` "fixed" runs it as a Python module, "compat" as the published evaluator does.
    `names` are what the tests need it to define.
    """

    source: str
    tests: tuple[str, ...]
    names: tuple[str, ...] = ()
    mode: str = "fixed"
    limits: Limits = Limits()

    def job(self) -> dict:
        """As the worker takes it."""
        limit = self.limits
        return {
            "source": self.source,
            "tests": self.tests,
            "names": self.names,
            "mode": self.mode,
            "numpy": "numpy" in self.source,
            "limits": {
                "cpu_s": limit.cpu_s,
                "wall_s": limit.wall_s,
                "idle_s": limit.idle_s,
                "max_timeouts": limit.max_timeouts,
            },
        }

    @property
    def deadline_s(self) -> float:
        """When even the slowest job is over: later the worker itself is stuck."""
        return 20 + (self.limits.wall_s + 1) * (len(self.tests) + 1)


@dataclass(frozen=True, slots=True)
class LayerReport:
    """What trying one layer of the sandbox showed."""

    layer: str
    works: bool
    detail: str


class Sandbox:
    """Runs programs behind the walls of `level`.

    Two kinds of worker: answers never run where a reference has run, since freed memory can be
    read. Any thread may call `run`; it waits while all workers are busy.
    """

    def __init__(self, level: Level, layers: tuple[str, ...], workers: int = 1):
        self.level = level
        self.workers = workers
        self._launch = levels.launch(level, layers)
        self._lock = threading.Lock()
        self._closed = False
        self._idle: queue.LifoQueue[Worker | None] = queue.LifoQueue()
        self._references: queue.LifoQueue[Worker | None] = queue.LifoQueue()
        self._references.put(None)
        self._all: set[Worker] = set()
        self._idle.put(self._new_worker())
        for _ in range(workers - 1):
            self._idle.put(None)  # started when it is first needed
        _open.add(self)

    @classmethod
    def start(
        cls, *, workers: int = 1, allow_unsafe_exec: bool = False, level: Level | None = None
    ) -> Sandbox:
        """The strongest sandbox that this machine allows, or the one at `level`.

        Raises: SandboxError where only `limits` is to be had and `allow_unsafe_exec` is not set,
        or where `level` cannot be had.
        """
        chosen, layers, reports = _choose(level)
        if chosen is Level.LIMITS and not allow_unsafe_exec:
            raise SandboxError(_refusal(reports))
        return cls(chosen, layers, workers)

    def run(self, program: Program, *, reference: bool = False) -> list[frames.Frame]:
        """A frame for each of the program's tests.

        A worker that dies is replaced and the program tried once more.

        Raises: SandboxError where it died both times: nothing was scored.
        """
        free = self._references if reference else self._idle
        for attempt in (1, 2):
            worker = self._borrow(free)
            try:
                found = worker.run(program.job(), program.deadline_s)
                if len(found) == len(program.tests):
                    return found
                raise WorkerDied(f"it gave {len(found)} results for {len(program.tests)} tests")
            except WorkerDied as e:
                self._forget(worker)
                if attempt == 2:
                    raise SandboxError(
                        f"The sandbox's worker died twice on one program: {e}. Nothing was scored; "
                        "try again, and run `python -m sweet doctor` if it stays."
                    ) from e
            finally:
                free.put(worker if worker in self._all else None)
        raise AssertionError("unreachable")

    def _borrow(self, free: queue.LifoQueue[Worker | None]) -> Worker:
        worker = free.get()
        try:
            if self._closed:
                raise SandboxError("The sandbox is closed.")
            if worker is not None and worker.alive:
                return worker
            if worker is not None:
                self._forget(worker)
            return self._new_worker()
        except BaseException:
            free.put(None)
            raise

    def _new_worker(self) -> Worker:
        worker = Worker(self._launch)
        with self._lock:
            self._all.add(worker)
            closed = self._closed
        if closed:
            self._forget(worker)
            raise SandboxError("The sandbox is closed.")
        return worker

    def _forget(self, worker: Worker) -> None:
        with self._lock:
            self._all.discard(worker)
        worker.close()

    def close(self) -> None:
        """End all workers. May be called twice; a program in flight raises SandboxError."""
        with self._lock:
            self._closed = True
            workers, self._all = self._all, set()
        for worker in workers:
            worker.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_open: weakref.WeakSet[Sandbox] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for sandbox in list(_open):
        with contextlib.suppress(OSError):
            sandbox.close()


def _try(level: Level) -> dict[str, tuple[bool, str]]:
    """What each layer does in a worker started for `level`; a failed start fails all."""
    try:
        worker = Worker(levels.launch(level, ()))
    except SandboxError as e:
        return {name: (False, str(e)) for name in levels.LAYERS[level]}
    try:
        return worker.probe()
    except WorkerDied as e:
        return dict.fromkeys(levels.LAYERS[level], (False, f"the worker died while trying: {e}"))
    finally:
        worker.close()


def _choose(wanted: Level | None) -> tuple[Level, tuple[str, ...], list[LayerReport]]:
    """The level, the layers to apply, and what was seen. Raises: SandboxError."""
    reports: dict[str, LayerReport] = {}
    for level in Level if wanted is None else (wanted,):
        seen = _try(level)
        for name, (works, detail) in seen.items():
            if name not in reports or works:
                reports[name] = LayerReport(name, works, detail)
        if all(seen[name][0] for name in levels.LAYERS[level]):
            return (
                level,
                tuple(n for n, (works, _) in seen.items() if works),
                list(reports.values()),
            )
    broken = "; ".join(f"{r.layer}: {r.detail}" for r in reports.values() if not r.works)
    raise SandboxError(f"The sandbox cannot be had at level {wanted} on this machine: {broken}")


def probe_levels() -> list[tuple[str, bool, str]]:
    """Each layer of the sandbox, whether it works here, and what was seen: by trying it."""
    try:
        _, _, reports = _choose(None)
    except SandboxError as e:
        return [("worker", False, str(e))]
    return [(r.layer, r.works, r.detail) for r in reports]


def _refusal(reports: list[LayerReport]) -> str:
    missing = "; ".join(f"{r.layer}: {r.detail}" for r in reports if not r.works)
    return (
        "Running answers is refused: this machine offers only resource limits (level `limits`), "
        f"which stop neither reading files nor the network. Missing: {missing}. On Linux install "
        "bubblewrap or use a kernel with Landlock and seccomp; to run answers without walls all "
        "the same, on a machine that holds nothing of worth, set SWEET_ALLOW_UNSAFE_EXEC=1 (or "
        "pass --allow-unsafe-exec)."
    )
