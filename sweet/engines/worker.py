"""The thread that minds running batches: requests join and leave them at every step."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Hashable
from typing import Any, Protocol

from sweet.engines.generation import OutOfMemory, Request, Row
from sweet.errors import PolicyError, boundary

TOGETHER = 8  # a full batch takes new rows by eighths: reading one costs as much as reading four
TWIN = 0.25  # a row that begins as another one, in rows: of 16 candidates some 5 come to differ
STEPS_BEFORE_SWITCH = 8  # switching adapters costs about as much as a step of a small model


class Batch(Protocol):
    """Rows that are decoded together, under one adapter."""

    @property
    def rows(self) -> list[Row]:
        """All rows."""

    @property
    def computed(self) -> int:
        """How many rows the model computes for them: those that said the same are one."""

    def join(self, rows: list[Row]) -> None:
        """Read the prompts of new rows and draw their first tokens."""

    def step(self) -> None:
        """One more token for every row."""

    def leave(self, row: Row) -> None:
        """Take a row out."""


class BatchModel(Protocol):
    """A loaded model."""

    @property
    def max_batch(self) -> int:
        """Rows that may be decoded at once."""

    def row(self, request: Request) -> Row:
        """A request, read. Raises: PolicyError."""

    def batch(self, adapter: Any, active: set[Any]) -> Batch:
        """The batch under this adapter, loaded beside the `active` ones. Raises: PolicyError."""

    def forget_batches(self) -> None:
        """Begin anew after a failure: no rows, nothing known."""

    def close(self) -> None:
        """Give the memory back."""


class ModelLoader(Protocol):
    """Makes the model on first use, in the worker's thread."""

    def __call__(self) -> BatchModel:
        """The model. Raises: PolicyError."""


class Worker:
    """Answers requests from any thread, in one thread of its own. An error stays with its row."""

    def __init__(self, load: ModelLoader) -> None:
        self._load = load
        self._model: BatchModel | None = None
        self._inbox: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._waiting: deque[Row] = deque()
        self._batches: dict[Hashable, Batch] = {}
        self._max_rows = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, request: Request) -> None:
        """Queue a request. Raises: PolicyError once closed."""
        with self._lock:
            if self._closed:
                raise PolicyError("The model was closed; open it again.")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
                self._thread.start()
            self._inbox.put(request)

    def close(self) -> None:
        """Stop the thread and give the model's memory back; what still waits fails."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        if thread:
            self._inbox.put(None)
            thread.join()

    def _run(self) -> None:
        while self._take_requests():
            try:
                with boundary(PolicyError, "The engine failed"):
                    self._work()
            except PolicyError as e:
                self._drop_all(e)
        self._drop_all(PolicyError("The model was closed while it was answering."))
        if self._model:
            self._model.close()

    def _work(self) -> None:
        """Some steps of every batch."""
        self._admit()
        busy = [b for b in self._batches.values() if b.rows]
        steps = STEPS_BEFORE_SWITCH if len(busy) > 1 else 1
        for batch in busy:
            for _ in range(steps):
                self._advance(batch)

    def _drop_all(self, error: PolicyError) -> None:
        _fail([*self._waiting, *(r for b in self._batches.values() for r in b.rows)], error)
        self._waiting.clear()
        self._batches.clear()
        if self._model:
            self._model.forget_batches()

    def _take_requests(self) -> bool:
        """Read what came in, waiting for it when there is nothing to do. False when closed."""
        idle = not self._waiting and not any(b.rows for b in self._batches.values())
        while idle or not self._inbox.empty():
            request = self._inbox.get()
            if request is None:
                return False
            idle = False
            try:
                self._waiting.append(self._read(request))
            except PolicyError as e:
                request.send(e)
        return True

    def _read(self, request: Request) -> Row:
        with boundary(PolicyError, "The model could not be started"):
            if self._model is None:
                self._model = self._load()
                self._max_rows = self._model.max_batch
        with boundary(PolicyError, "The prompt could not be read"):
            return self._model.row(request)

    def _admit(self) -> None:
        """Let waiting rows join, oldest first, those of one adapter together."""
        running = self._running()
        free = self._max_rows - running
        if running and free < self._max_rows // TOGETHER:
            return
        joining: dict[Hashable, list[Row]] = {}
        beginnings: set[Hashable] = set()
        while self._waiting and free > 0:
            row = self._waiting.popleft()
            if not row.gone:
                joining.setdefault(row.adapter, []).append(row)
                beginning = row.adapter, tuple(row.ids)
                free -= TWIN if beginning in beginnings else 1
                beginnings.add(beginning)
        for adapter, rows in joining.items():
            active = {a for a, b in self._batches.items() if b.rows} | set(joining)
            try:
                with boundary(PolicyError, "The adapter could not be used"):
                    batch = self._model.batch(adapter, active)  # type: ignore[union-attr]
            except PolicyError as e:
                _fail(rows, e)
                continue
            self._batches[adapter] = batch
            self._join(batch, rows)

    def _join(self, batch: Batch, rows: list[Row]) -> None:
        """Let rows join together; where that fails, one by one."""
        try:
            with boundary(PolicyError, "The model failed while reading the prompt"):
                batch.join(rows)
        except OutOfMemory as e:
            self._make_room(batch, rows, e)
        except PolicyError as e:
            if len(rows) == 1:
                _fail(rows, e)
            else:
                for row in [r for r in rows if r not in batch.rows]:
                    self._join(batch, [row])
        self._sweep(batch)

    def _advance(self, batch: Batch) -> None:
        if not batch.rows:
            return
        try:
            with boundary(PolicyError, "The model failed while writing"):
                batch.step()
        except OutOfMemory as e:
            self._make_room(batch, batch.rows[-1:], e)
        except PolicyError as e:
            _fail(batch.rows, e)
        self._sweep(batch)

    def _make_room(self, batch: Batch, rows: list[Row], error: OutOfMemory) -> None:
        """Send rows back to wait for others to end; what was alone fails, with its twins."""
        for row in [r for r in rows if r in batch.rows]:
            batch.leave(row)
        running, different = self._running(), len({tuple(row.ids) for row in rows})
        if not running and different == 1:
            _fail(rows, error)
            return
        self._max_rows = max(1, int(running), different // 2)
        self._waiting.extendleft(reversed(rows))

    def _running(self) -> float:
        """How full the batches are, in rows."""
        batches = self._batches.values()
        return sum(b.computed + TWIN * (len(b.rows) - b.computed) for b in batches)

    def _sweep(self, batch: Batch) -> None:
        for row in [r for r in batch.rows if r.gone]:
            batch.leave(row)
            self._max_rows = min(self._max_rows + 1, self._model.max_batch)  # type: ignore[union-attr]


def _fail(rows: list[Row], error: PolicyError) -> None:
    """Each row gets an exception of its own: one raised twice would carry both tracebacks."""
    for row in rows:
        fresh = type(error)(*error.args)
        fresh.__cause__ = error.__cause__
        row.fail(fresh)
