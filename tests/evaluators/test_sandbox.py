"""The sandbox as a service: levels, refusal, threads, deaths, closing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from evaluators.backend import BackendEvaluator
from evaluators.sandbox import Level, Limits, Program, Sandbox, levels, pool, probe_levels
from evaluators.sandbox.worker import Worker, WorkerDied
from sweet.errors import SandboxError
from sweet.types import Verdict
from tests.evaluators.conftest import offered_levels
from tests.evaluators.hostile import RIGHT, TASK
from tests.evaluators.suite import left_processes, workers

DOUBLE = Program("def f(x):\n    return 2 * x", ("f(1)", "f(2)"), ("f",))
ROOT = Path(__file__).parents[2]


def kinds(sandbox: Sandbox, program: Program) -> list[str]:
    return [kind for kind, *_ in sandbox.run(program)]


def test_each_layer_is_reported_with_what_was_seen() -> None:
    reports = probe_levels()
    assert {layer for layer, _, _ in reports} >= {"landlock", "seccomp", "rlimits"}
    assert all(detail for _, _, detail in reports)


def test_the_strongest_level_that_works_is_taken() -> None:
    best = (*offered_levels(), Level.LIMITS)[0]
    with Sandbox.start(allow_unsafe_exec=True) as sandbox:
        assert sandbox.level is best


def test_without_bubblewrap_the_kernel_level_is_taken(monkeypatch) -> None:
    if Level.KERNEL not in offered_levels():
        pytest.skip("no Landlock and seccomp here")
    monkeypatch.setattr(levels.shutil, "which", lambda name: None)
    with Sandbox.start() as sandbox:
        assert sandbox.level is Level.KERNEL
        assert kinds(sandbox, DOUBLE) == ["value", "value"]


def only_limits(level: Level) -> dict[str, tuple[bool, str]]:
    return {n: (False, f"no {n} here") for n in levels.LAYERS[Level.FULL]} | {
        "rlimits": (True, "refused")
    }


def test_limits_alone_are_refused_with_what_is_missing_and_what_to_do(monkeypatch) -> None:
    monkeypatch.setattr(pool, "_try", only_limits)
    with pytest.raises(SandboxError) as refused:
        Sandbox.start()
    for said in ("limits", "no landlock here", "bubblewrap", "SWEET_ALLOW_UNSAFE_EXEC"):
        assert said in str(refused.value)


def test_limits_alone_run_where_they_are_allowed_by_name(monkeypatch) -> None:
    monkeypatch.setattr(pool, "_try", only_limits)
    with Sandbox.start(allow_unsafe_exec=True) as sandbox:
        evaluator = BackendEvaluator(sandbox)
        evaluation = evaluator.score(TASK, RIGHT)
        assert (evaluation.verdict, evaluation.sandbox_level) == (Verdict.PASS, "limits")
        assert kinds(sandbox, Program("def f(x):\n    while 1: pass", ("f(1)",))) == ["timeout"]
        assert left_processes(sandbox) == []


def test_a_level_that_cannot_be_had_is_an_error(monkeypatch) -> None:
    monkeypatch.setattr(pool, "_try", only_limits)
    with pytest.raises(SandboxError, match=r"level full.*no seccomp here"):
        Sandbox.start(level=Level.FULL)


def test_programs_run_from_many_threads_at_once(sandbox: Sandbox) -> None:
    def once(n: int) -> object:
        program = Program(f"def f(x):\n    return x + {n}", ("f(1)",), ("f",))
        return json.loads(sandbox.run(program)[0][3])

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(once, range(40))) == [n + 1 for n in range(40)]


def test_a_sandbox_outlives_the_thread_that_started_it() -> None:
    started: list[Sandbox] = []

    def start() -> None:
        started.append(Sandbox.start(allow_unsafe_exec=True))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    with started[0] as sandbox:
        before = workers(sandbox)
        assert kinds(sandbox, DOUBLE) == ["value", "value"]
        assert workers(sandbox) == before


def test_a_killed_worker_is_replaced_and_the_next_answer_scored() -> None:
    with Sandbox.start(allow_unsafe_exec=True) as sandbox:
        for process in workers(sandbox):
            process.kill()
        assert kinds(sandbox, DOUBLE) == ["value", "value"]
        assert left_processes(sandbox) == []


def test_an_answer_in_flight_survives_one_death_of_its_worker() -> None:
    slow = Program("import time\ndef f(x):\n    time.sleep(0.6)\n    return x", ("f(1)", "f(2)"))
    with Sandbox.start(allow_unsafe_exec=True) as sandbox:
        killer = threading.Timer(0.3, lambda: [p.kill() for p in workers(sandbox)])
        killer.start()
        assert kinds(sandbox, slow) == ["value", "value"]


def test_a_worker_that_always_dies_gives_no_reward_and_no_zero(monkeypatch) -> None:
    with Sandbox.start(allow_unsafe_exec=True) as sandbox:
        evaluator = BackendEvaluator(sandbox)
        assert evaluator.score(TASK, RIGHT).verdict is Verdict.PASS

        def die(self: Worker, job: dict, timeout_s: float) -> list:
            raise WorkerDied("it ended")

        monkeypatch.setattr(Worker, "run", die)
        evaluation = evaluator.score(TASK, RIGHT)
        assert evaluation.reward is None
        assert evaluation.verdict is Verdict.INFRA
        assert "died twice" in (evaluation.error or "")
        monkeypatch.undo()
        assert evaluator.score(TASK, RIGHT).verdict is Verdict.PASS


def test_two_timeouts_end_an_answer_and_one_does_not() -> None:
    code = "def f(x):\n    while x < 2: pass\n    return x"
    with Sandbox.start(allow_unsafe_exec=True) as sandbox:
        calls = ("f(5)", "f(0)", "f(6)")
        assert kinds(sandbox, Program(code, calls)) == ["value", "timeout", "value"]
        calls = ("f(0)", "f(1)", "f(5)")
        frames = sandbox.run(Program(code, calls))
        assert [kind for kind, *_ in frames] == ["timeout"] * 3
        assert b"not run" in frames[2][3]


def test_the_wall_clock_ends_what_no_other_clock_sees(sandbox: Sandbox) -> None:
    program = Program(
        "import time\ndef f(x):\n    time.sleep(60)", ("f(1)",), limits=Limits(5, 0.3, 60)
    )
    frames = sandbox.run(program)
    assert frames[0][0] == "timeout" and b"0.3 s" in frames[0][3]


def test_closing_ends_all_processes_and_leaves_no_zombie() -> None:
    before = set(psutil.Process().children(recursive=True))
    sandbox = Sandbox.start(workers=2, allow_unsafe_exec=True)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda _: sandbox.run(DOUBLE), range(4)))
    assert set(psutil.Process().children(recursive=True)) > before
    sandbox.close()
    sandbox.close()
    assert set(psutil.Process().children(recursive=True)) <= before
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run(DOUBLE)


def test_a_waiting_child_that_was_ended_is_replaced_and_costs_no_answer() -> None:
    with Sandbox.start(allow_unsafe_exec=True) as sandbox:
        sandbox.run(DOUBLE)
        (worker,) = workers(sandbox)
        (waiting,) = worker.children()
        waiting.kill()
        assert sandbox.run(DOUBLE)[0][0] == "value"
        assert waiting.pid not in [child.pid for child in worker.children()]


def test_each_program_starts_from_a_fresh_child() -> None:
    counter = Program(
        "import builtins\ndef f(x):\n    builtins.n = getattr(builtins, 'n', 0) + 1\n"
        "    return builtins.n",
        ("f(1)", "f(1)"),
    )
    with Sandbox.start(allow_unsafe_exec=True) as sandbox:
        bodies = [[frame[3] for frame in sandbox.run(counter)] for _ in range(3)]
    assert bodies[0] == bodies[1] == bodies[2]
    assert bodies[0][0] != bodies[0][1]


def test_descriptors_do_not_grow_with_answers_and_deaths() -> None:
    with Sandbox.start(allow_unsafe_exec=True) as sandbox:
        sandbox.run(DOUBLE)
        before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
        crash = Program("import os\ndef f(x):\n    os._exit(1)", ("f(1)",))
        for n in range(60):
            sandbox.run(DOUBLE if n % 3 else crash)
            if n % 20 == 0:
                for process in workers(sandbox):
                    process.kill()
        after = len(os.listdir("/proc/self/fd")) if before else 0
        assert after == before


PARENT = """
import sys, time
from evaluators.sandbox import Program, Sandbox
sandbox = Sandbox.start(allow_unsafe_exec=True)
sandbox.run(Program("def f(x): return x", ("f(1)",)))
print(*[w._process.pid for w in sandbox._all], flush=True)
if sys.argv[1] == "busy":
    sandbox.run(Program("import time\\ndef f(x): time.sleep(60)", ("f(1)",)))
"""


@pytest.mark.parametrize("manner", ["exits", "killed"])
def test_workers_end_with_the_studio_however_it_ends(manner: str) -> None:
    mode = "busy" if manner == "killed" else "quiet"
    studio = subprocess.Popen(
        [sys.executable, "-c", PARENT, mode], stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert studio.stdout
    started = [int(pid) for pid in studio.stdout.readline().split()]
    family = [p for pid in started for p in _family(pid)]
    if manner == "killed":
        studio.kill()
    studio.wait(20)
    studio.stdout.close()
    _, alive = psutil.wait_procs(family, timeout=10)
    assert started
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []


def _family(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


ORDINARY = """
import os, sys
os.setgroups([]); os.setresgid(12345, 12345, 12345); os.setresuid(12345, 12345, 12345)
sys.path.insert(0, {root!r})
from evaluators.sandbox import Sandbox, Program
with Sandbox.start() as s:
    program = Program("def f(x): return x", ("f(1)",))
    print(s.level, s.run(program)[0][0])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become an ordinary user")
def test_it_works_for_an_ordinary_user_too(tmp_path: Path) -> None:
    python = "/usr/bin/python3"
    readable = Path(python).exists() and os.stat(ROOT).st_mode & 0o005 == 0o005
    version = readable and subprocess.run(
        [python, "-c", "import sys; print(sys.version_info >= (3, 11))"],
        capture_output=True,
        text=True,
    )
    if not version or version.stdout.strip() != "True":
        pytest.skip("no Python here that an ordinary user may run")
    done = subprocess.run(
        [python, "-c", ORDINARY.format(root=str(ROOT))], capture_output=True, text=True, cwd="/"
    )
    assert done.stdout.split()[-1:] == ["value"], done.stderr
