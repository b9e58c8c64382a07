"""A forked, confined child seen from its worker: its frames, its clocks, its end."""

import contextlib
import fcntl
import marshal
import os
import select
import signal
import time

from evaluators.sandbox.inside import confine, frames, programs

POLL_MS = 25
RESULTS, ORDERS = 3, 4  # the only descriptors of a child


class Child:
    """Confines itself at once, and then waits for a job.

    So one can be made ready while another still works: half of an answer's time would go into it.
    """

    def __init__(
        self, confinement: confine.Confinement, cpu_s: int, memory_bytes: int, studio_fd: int
    ):
        self.limits = (cpu_s, memory_bytes)
        self._studio = studio_fd
        self._buffer, self._bytes = bytearray(), 0
        self._stage = "start"
        self._fd, results = os.pipe()
        orders, self._orders = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _become_program(confinement, self.limits, results, orders)
        os.close(results)
        os.close(orders)

    @property
    def is_alive(self) -> bool:
        """Whether somebody still reads its orders; it may have ended, or been ended, meanwhile."""
        poller = select.poll()
        poller.register(self._orders, 0)
        return not poller.poll(0)

    def begin(self, job: dict, first: int) -> None:
        """Hand over a job, to be run from test `first` on; `watch` gives what becomes of it."""
        self._job, self._next = job, first
        self._restart_clocks()
        with contextlib.suppress(OSError):  # it has died: `watch` will say so
            frames.write_message(self._orders, marshal.dumps((job, first)))

    def watch(self) -> list[frames.Frame]:
        """What became of the tests until the child was through, lost or killed.

        The last frame is of kind load, missing, timeout, crash, … where that ended it; one about
        loading, not about a test, has the stage in its reason.
        """
        found: list[frames.Frame] = []
        lost, kind = "", "crash"
        try:
            while self._next < len(self._job["tests"]) and not lost:
                arrived = self._wait()
                if arrived == ENDED or (arrived and self._keep(found)):
                    break
                if time.monotonic() - self._seen > POLL_MS / 2000:  # also while bytes drip in
                    lost, kind = self._overdue(), "timeout"
        except ValueError as e:
            lost, kind = str(e), "not_data"
        ended = self.end()
        settled = found and found[-1][0] in ("load", "missing")
        if self._next < len(self._job["tests"]) and not settled:
            found.append(self._loss(kind if lost else "crash", lost or ended))
        return found

    def _keep(self, found: list[frames.Frame]) -> bool:
        """Take in the frames that are whole; True once the program has been seen not to load."""
        for frame in frames.unpack(self._buffer, frames.FROM_CHILD):
            kind, index, _, _ = frame
            if index != self._next or index >= len(self._job["tests"]):
                raise ValueError("wrote a result for another test")
            if kind not in NEXT_KINDS[self._stage]:
                raise ValueError("wrote a result out of turn")
            self._restart_clocks()
            if kind in NEXT_KINDS:
                self._stage = kind
                continue
            found.append(frame)
            if kind in ("load", "missing"):
                return True
            self._next += 1
        return False

    def _loss(self, kind: str, why: str) -> frames.Frame:
        if self._stage == "start":
            kind, why = "infra", f"the sandbox could not be closed round the program: {why}"
        elif self._stage == "confined":
            why = f"{LOADING}{why}"
        return kind, self._next, 0.0, frames.reason(why)

    def _wait(self) -> str:
        """Reads: "data" when some has arrived, "end" at its end, nothing after a silence."""
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        poller.register(self._studio, 0)
        events = dict(poller.poll(POLL_MS))
        if self._studio in events:  # the studio has gone: so does everything here
            os.kill(self._pid, signal.SIGKILL)
            os._exit(0)
        if not events:
            return ""
        piece = os.read(self._fd, 1 << 16)
        if not piece:
            return ENDED
        self._buffer += piece
        self._bytes += len(piece)
        if self._bytes > frames.MAX_TOTAL_BYTES:
            raise ValueError(f"wrote more than {frames.MAX_TOTAL_BYTES:,} bytes")
        return "data"

    def _restart_clocks(self) -> None:
        self._started = self._seen = time.monotonic()
        self._cpu_s = _cpu_seconds(self._pid)
        self._idle_s = 0.0

    def _overdue(self) -> str:
        """Why the test's time is up, or an empty string."""
        limits, now = self._job["limits"], time.monotonic()
        cpu_s, since, self._seen = _cpu_seconds(self._pid), now - self._seen, now
        if cpu_s is None or self._cpu_s is None:  # no such clock here: elapsed time must do
            return _over(now - self._started, 2 * limits["cpu_s"], "took more than {} s")
        self._idle_s += since if _asleep(self._pid) else 0
        return (
            _over(cpu_s - self._cpu_s, limits["cpu_s"], "took more than {} s of processor time")
            or _over(self._idle_s, limits["idle_s"], "slept for more than {} s")
            or _over(now - self._started, limits["wall_s"], "took more than {} s")
        )

    def end(self) -> str:
        """Kill and reap; in words, how the child had ended by itself."""
        with contextlib.suppress(OSError):
            os.kill(self._pid, signal.SIGKILL)
        os.close(self._fd)
        os.close(self._orders)
        status = os.waitpid(self._pid, 0)[1]
        if os.WIFSIGNALED(status):
            return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
        return f"ended with exit code {os.WEXITSTATUS(status)} before giving a result"


ENDED = "end"
NEXT_KINDS = {
    "start": ("confined",),
    "confined": ("loaded", "load", "missing"),
    "loaded": ("value", "raised", "too_big"),
}
"""What a child may say next, by what it has said."""

LOADING = "while loading: "


def _over(value: float, limit: float, words: str) -> str:
    return words.format(f"{limit:g}") if value > limit else ""


def _become_program(confinement, limits, results, orders):
    """Never returns: keep two descriptors, confine this process, take a job, run its tests, end."""
    try:
        _keep_only(results, orders, confinement.ruleset)
        reporter = programs.Reporter(RESULTS)
        confinement.apply(*limits)
        message = frames.read_message(ORDERS) or b""  # none: the worker has gone
        os.close(ORDERS)
        job, first = marshal.loads(message)
        reporter.send("confined", first)
        programs.run(job, first, reporter)
    finally:
        os._exit(0)


def _keep_only(results, orders, ruleset):
    """The two pipes under their numbers, and the ruleset, which is closed when it is applied."""
    above = [fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in (results, orders)]
    os.dup2(above[0], RESULTS)
    os.dup2(above[1], ORDERS)
    kept = max(ruleset, ORDERS)
    os.closerange(ORDERS + 1, kept)
    os.closerange(kept + 1, max(above) + 1)


def _cpu_seconds(pid: int) -> float | None:
    """Processor time of a process so far, by its own clock."""
    if not confine.LINUX:
        return None
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return None


def _asleep(pid: int) -> bool:
    """Whether all threads of the process wait of their own will, not for a processor."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        return all(_state(f"/proc/{pid}/task/{thread}/stat") in b"STt" for thread in threads)
    except OSError:
        return False


def _state(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read().rpartition(b")")[2].split()[0]
