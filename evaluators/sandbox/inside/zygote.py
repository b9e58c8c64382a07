"""The worker: started once inside the walls, forks a confined child for each program.

It never runs a line of an answer itself, and knows no expected value.
"""

import functools
import gc
import json
import os
import sys
import types

from evaluators.sandbox.inside import confine, frames, probe, programs, supervise

PRELOADED = (
    "abc", "array", "bisect", "calendar", "collections", "contextlib", "copy", "csv", "dataclasses",
    "datetime", "decimal", "enum", "fractions", "functools", "hashlib", "heapq", "io", "itertools",
    "json", "logging", "math", "operator", "random", "re", "statistics", "string", "textwrap",
    "typing", "unicodedata", "uuid",
)  # fmt: skip
ENDINGS = ("load", "missing", "infra")
LEAST_CPU_S = 64
"""A child's processor time in all is at least this: the next job's is not known when it is made."""


class Zygote:
    """Takes jobs one after the other until its input ends."""

    def __init__(self, jobs_fd: int, results_fd: int, config: dict):
        self._in, self._out, self._config = jobs_fd, results_fd, config
        self._confinement = confine.Confinement(config["layers"], config["readable"])
        self._numpy = False
        self._spare = self._ready(LEAST_CPU_S, confine.MEMORY_BYTES)

    def _ready(self, cpu_s: int, memory_bytes: int) -> supervise.Child:
        return supervise.Child(self._confinement, cpu_s, memory_bytes, self._in)

    def _take(self, limits: tuple[int, int]) -> supervise.Child:
        """A child with these limits that waits for a job."""
        child = self._spare
        if child.limits != limits or not child.is_alive:
            child.end()
            child = self._ready(*limits)
        return child

    def serve(self) -> None:
        """Answer each job with one message."""
        while (message := frames.read_message(self._in)) is not None:
            job = json.loads(message)
            if job.get("op") == "probe":
                frames.write_message(self._out, json.dumps(probe.run(self._config)).encode())
            else:
                found = self.run(job, self._prepare(job))
                frames.write_message(self._out, b"".join(frames.pack(*f) for f in found))

    def _prepare(self, job: dict) -> tuple[int, int]:
        """Make the job ready to be handed over; the processor time and memory it may use in all."""
        if job["numpy"] and not self._numpy:
            self._numpy = self._import_numpy()
        if job["mode"] == "fixed":
            job["compiled"] = [compile_test(test) for test in job["tests"]]
        needed_s = int(job["limits"]["cpu_s"] * (len(job["tests"]) + 2)) + 1
        memory = confine.MEMORY_WITH_NUMPY_BYTES if self._numpy else confine.MEMORY_BYTES
        return max(LEAST_CPU_S, needed_s), memory

    def _import_numpy(self) -> bool:
        """Once here, not in each child: importing it costs a program's whole second."""
        sys.path.append(self._config["site"])
        try:
            import numpy  # noqa: F401
        except Exception:
            return False
        gc.freeze()
        return True

    def run(self, job: dict, limits: tuple[int, int]) -> list[frames.Frame]:
        """A frame for each test, in order; a child that is lost is followed by the next."""
        found: list[frames.Frame] = []
        timeouts = lost = 0
        while len(found) < len(job["tests"]):
            child = self._take(limits)
            child.begin(job, len(found))
            self._spare = self._ready(*limits)
            found += child.watch()
            kind, _, _, body = found[-1]
            if kind == "infra" and not lost:  # it was ended while it waited: the next one is whole
                lost += 1
                found.pop()
                continue
            timeouts += kind == "timeout"
            if kind in ENDINGS or supervise.LOADING.encode() in body[: len(supervise.LOADING) + 1]:
                return found + _rest(kind, body, len(found), job)
            if kind == "timeout" and timeouts >= job["limits"]["max_timeouts"]:
                why = frames.reason("not run: two tests before it had timed out")
                return found + _rest(kind, why, len(found), job)
        return found


@functools.lru_cache(maxsize=4096)
def compile_test(test: str) -> types.CodeType | None:
    """A test compiled once for all answers; None where the child shall see the error itself."""
    try:
        return compile(test, "<test>", "eval", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _rest(kind: str, body: bytes, start: int, job: dict) -> list[frames.Frame]:
    return [(kind, i, 0.0, body) for i in range(start, len(job["tests"]))]


def main(config: dict) -> None:
    """Set up the walls that belong to the worker, say so, and serve."""
    jobs_fd, results_fd = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    try:
        for name in PRELOADED:
            __import__(name)
        confine.drop_privileges(config["uid"], os.__file__)
        confine.hide_memory()
        zygote = Zygote(jobs_fd, results_fd, config)
        programs.warm_up()
    except Exception as e:
        failure = json.dumps({"error": f"{type(e).__name__}: {e}"})
        frames.write_message(results_fd, failure.encode())
        return
    gc.collect()
    gc.freeze()
    frames.write_message(results_fd, b'{"ready": true}')
    zygote.serve()
