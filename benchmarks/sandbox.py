"""Answers a second, ten tests each: our sandbox, a subprocess an answer, compiled in-process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.comparison import Comparison
from evaluators.backend import BackendEvaluator
from evaluators.sandbox import Sandbox
from sweet.types import HiddenInfo, Verdict

REFERENCE = """
def shipping_cost(weight, distance, express=False):
    rates = [(1, 4.0), (5, 7.5), (20, 15.0)]
    cost = next((price for limit, price in rates if weight <= limit), 30.0)
    if distance > 100:
        cost += (distance - 100) * 0.05
    return round(cost * 1.5 if express else cost, 2)
"""
CALLS = tuple(f"shipping_cost({w}, {d}, express={d > 150})" for w, d in zip(
    (0.5, 1, 2, 5, 6, 19, 20, 25, 40, 3), (10, 50, 101, 120, 150, 160, 200, 300, 90, 100),
    strict=True))  # fmt: skip
TASK = HiddenInfo(REFERENCE, CALLS)
SECONDS = 3.0


def run() -> list[Comparison]:
    """Ours against each other way, measured in turns so that each meets the same machine."""
    with Sandbox.start() as sandbox:
        evaluator = BackendEvaluator(sandbox)
        expected = _in_process()
        ways: dict[str, Callable[[], object]] = {
            "ours": lambda: _checked(evaluator),
            "subprocess": _in_subprocess,
            "floor": _in_process,
        }
        rates = _rates(ways)
        evaluator.close()
    assert _in_subprocess() == expected
    conditions = (
        f"one worker, level {sandbox.level}, 10 tests an answer, Python {sys.version.split()[0]}, "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
    return [
        Comparison(f"{name}, answers/s", rates["ours"], rates[way], f"{conditions}; {note}")
        for name, way, note in (
            ("sandbox vs a subprocess an answer", "subprocess", "theirs is not walled in"),
            ("sandbox vs compiled in-process", "floor", "theirs is the floor, and not safe"),
        )
    ]


def _rates(ways: dict[str, Callable[[], object]], rounds: int = 3) -> dict[str, float]:
    """Runs a second of each way, the median of the rounds."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, once in ways.items():
            once()
            found[name].append(_rate(once, SECONDS / rounds))
    return {name: sorted(rates)[rounds // 2] for name, rates in found.items()}


def _rate(once: Callable[[], object], seconds: float) -> float:
    count, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        once()
        count += 1
    return count / (time.perf_counter() - started)


def _checked(evaluator: BackendEvaluator) -> None:
    evaluation = evaluator.score(TASK, REFERENCE)
    assert evaluation.verdict is Verdict.PASS, evaluation


def _in_process() -> list[object]:
    scope: dict[str, object] = {}
    exec(compile(REFERENCE, "<answer>", "exec"), scope)
    return [eval(call, scope) for call in CALLS]


def _in_subprocess() -> list[object]:
    program = f"{REFERENCE}\nprint([{', '.join(CALLS)}])"
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, check=True)
    return eval(done.stdout)
