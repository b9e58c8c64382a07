"""Hidden tests on a Python answer: how many of its results equal the reference's.

Mode fixed says what is true: a program that computes the right values passes however it is laid
out. Mode compat says what the published evaluator says, so that a figure can stand beside the
paper's (docs/sandbox.md lists how they differ).
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from evaluators.sandbox import Limits, Program, Sandbox, values
from evaluators.sandbox.calls import REFUSED_TEXTS, bare_call, published_source, required_names
from evaluators.sandbox.inside.frames import Frame
from evaluators.sandbox.pool import MAX_SOURCE_CHARS
from sweet.errors import EvaluatorError, SandboxError
from sweet.types import Episode, Evaluation, HiddenInfo, Reward, Task, TestResult, Verdict

Mode = Literal["fixed", "compat"]

REFERENCE_LIMITS = Limits(cpu_s=5.0, wall_s=20.0, idle_s=5.0)
ANSWER_LIMITS = {
    "fixed": Limits(),
    "compat": Limits(max_timeouts=1000),  # the published evaluator runs every test
}
CACHED_REFERENCES = 4096


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one test gave in one program: a value, an exception, or the way it was lost."""

    kind: str
    value: object = None
    reason: str = ""
    duration_ms: float | None = None

    @classmethod
    def of(cls, frame: Frame) -> Outcome:
        """The outcome that a frame tells of; one that cannot be read is no data."""
        kind, _, elapsed_ms, body = frame
        try:
            data = json.loads(body)
            if kind == "value":
                return cls(kind, values.decode(data), "", elapsed_ms)
            if kind == "raised" or kind == "load":
                name, text = data
                return cls(kind, str(name), f"{name}: {text}" if text else str(name), elapsed_ms)
            if kind == "missing":
                return cls(kind, None, f"no function named {', '.join(map(str, data))}")
            return cls(kind, None, str(data), elapsed_ms or None)
        except (ValueError, TypeError, RecursionError):
            return cls("not_data", None, "wrote what is no result")


@dataclass(frozen=True, slots=True)
class Reference:
    """The expected outcomes of a task's tests, and the calls that are to be made."""

    tests: tuple[str, ...]
    names: tuple[str, ...]
    outcomes: tuple[Outcome, ...]


class BackendEvaluator:
    """Scores Python answers in a sandbox. Safe from any thread; `await` it from asyncio.

    Each reference is run once, in a worker of its own, and its results are kept.
    """

    def __init__(self, sandbox: Sandbox, mode: Mode = "fixed"):
        self._sandbox = sandbox
        self._mode = mode
        self._cache: OrderedDict[HiddenInfo, Reference] = OrderedDict()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(sandbox.workers, thread_name_prefix="evaluator")

    @property
    def name(self) -> str:
        """What rewards say gave them."""
        return f"backend-{self._mode}"

    async def __call__(self, task: Task, hidden: HiddenInfo, episode: Episode) -> Evaluation:
        """The evaluation of `episode.artifact`; without one the reward is 0."""
        if episode.artifact is None:
            return self._evaluation(0.0, Verdict.LOAD, ())
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self.score, hidden, episode.artifact)

    def score(self, hidden: HiddenInfo, answer: str) -> Evaluation:
        """The evaluation of one answer. A failed scoring is a value without a reward."""
        try:
            reference = self._reference(hidden)
            judged = [i for i, o in enumerate(reference.outcomes) if self._can_judge(o)]
            if not judged:
                raise EvaluatorError(
                    "The task cannot be scored: its reference gives no comparable result on any "
                    f"test (the first: {reference.outcomes[0].reason or 'no plain data'})."
                )
            outcomes = self._run_answer(reference, judged, answer)
        except EvaluatorError as e:
            return Evaluation(None, Verdict.INFRA, (), self._sandbox.level, str(e))
        return self._judge(hidden, reference, dict(zip(judged, outcomes, strict=True)))

    def score_rows(
        self, tasks: Sequence[HiddenInfo], rows: Iterable[Mapping[str, object]]
    ) -> Iterator[dict[str, object]]:
        """`{task_index, score, passed, verdict}` for each row `{task_index, answer}`, in order.

        `score` is the fraction of tests passed; it is None, with an `error`, where the scoring
        itself failed.
        """
        ahead = self._sandbox.workers * 4
        waiting = []
        for row in rows:
            waiting.append(self._threads.submit(self._score_row, tasks, row))
            if len(waiting) > ahead:
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()

    def _score_row(self, tasks: Sequence[HiddenInfo], row: Mapping[str, object]) -> dict:
        index, answer = row.get("task_index"), row.get("answer")
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(tasks):
            wrong = f"task_index {index!r} names no task: there are {len(tasks)}, from 0 on"
            evaluation = Evaluation(None, Verdict.INFRA, error=wrong)
        elif answer is not None and not isinstance(answer, str):
            wrong = f"the answer is {type(answer).__name__}, not text"
            evaluation = Evaluation(None, Verdict.INFRA, error=wrong)
        else:
            evaluation = self.score(tasks[index], answer or "")
        return as_row(index, evaluation)

    def close(self) -> None:
        """Give the threads back. The sandbox belongs to whoever started it."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _reference(self, hidden: HiddenInfo) -> Reference:
        """The reference's outcomes, from the cache or by running it once."""
        with self._lock:
            found = self._cache.get(hidden)
            if found is None:
                found = self._run_reference(hidden)
                self._cache[hidden] = found
                if len(self._cache) > CACHED_REFERENCES:
                    self._cache.popitem(last=False)
        return found

    def _run_reference(self, hidden: HiddenInfo) -> Reference:
        if not hidden.test_calls:
            raise EvaluatorError("The task has no tests: there is nothing to score an answer by.")
        names = required_names(hidden)
        fixed = self._mode == "fixed"
        tests = (
            tuple(bare_call(t, names) for t in hidden.test_calls) if fixed else hidden.test_calls
        )
        program = Program(hidden.reference, tests, names, self._mode, REFERENCE_LIMITS)
        outcomes = tuple(map(Outcome.of, self._sandbox.run(program, reference=True)))
        first = outcomes[0]
        if any(o.kind == "infra" for o in outcomes):
            raise SandboxError(f"The reference could not be run: {first.reason}")
        if fixed and first.kind in ("load", "missing"):
            raise EvaluatorError(f"The task's reference does not work: {first.reason}")
        return Reference(tests, names, outcomes)

    def _can_judge(self, expected: Outcome) -> bool:
        """Whether a test tells right from wrong; in mode compat all count, as published."""
        if self._mode == "compat" or expected.kind == "raised":
            return True
        return expected.kind == "value" and not values.has_opaque(expected.value)

    def _run_answer(self, reference: Reference, judged: list[int], answer: str) -> list[Outcome]:
        source = answer
        if self._mode == "compat":
            refused = next((t for t in REFUSED_TEXTS if t in answer), None)
            if refused:
                why = f"the published evaluator gives 0 to answers that hold {refused!r}"
                return [Outcome("load", None, why)] * len(judged)
            source = published_source(answer)
        if not answer.strip():
            return [Outcome("load", None, "the answer is empty")] * len(judged)
        if len(answer) > MAX_SOURCE_CHARS:
            why = f"the answer has {len(answer):,} characters; {MAX_SOURCE_CHARS:,} are read"
            return [Outcome("too_big", None, why)] * len(judged)
        tests = tuple(reference.tests[i] for i in judged)
        limits = ANSWER_LIMITS[self._mode]
        program = Program(source, tests, reference.names, self._mode, limits)
        outcomes = [Outcome.of(frame) for frame in self._sandbox.run(program)]
        lost = next((o for o in outcomes if o.kind == "infra"), None)
        if lost:
            raise SandboxError(f"The sandbox failed: {lost.reason}")
        return outcomes

    def _judge(
        self, hidden: HiddenInfo, reference: Reference, outcomes: dict[int, Outcome]
    ) -> Evaluation:
        tests = []
        for i, call in enumerate(hidden.test_calls):
            expected, got = reference.outcomes[i], outcomes.get(i)
            if got is None:
                why = "not counted: the reference itself gives nothing to compare with here"
                tests.append(TestResult(call, None, None, Verdict.INFRA, None, why))
                continue
            verdict, reason = self._verdict(expected, got, reference.names)
            shown = _shown(expected), _shown(got)
            tests.append(TestResult(call, *shown, verdict, got.duration_ms, reason))
        counted = [t.verdict for t in tests if t.verdict is not Verdict.INFRA]
        fraction = counted.count(Verdict.PASS) / len(counted)
        verdict = next((v for v in counted if v is not Verdict.PASS), Verdict.PASS)
        return self._evaluation(fraction, verdict, tuple(tests))

    def _verdict(
        self, expected: Outcome, got: Outcome, names: tuple[str, ...]
    ) -> tuple[Verdict, str]:
        """A test's verdict and why."""
        compat = self._mode == "compat"
        if compat and (expected.kind != "value" or expected.value is None):
            return Verdict.WRONG, "the reference gives no result here, so no answer can pass"
        if got.kind == "raised":
            if not compat and expected.kind == "raised" and got.value == expected.value:
                return Verdict.PASS, f"raises {got.value}, as it should"
            unknown = any(f"name '{n}' is not defined" in got.reason for n in names)
            return (Verdict.MISSING if compat and unknown else Verdict.CRASH), got.reason
        if got.kind != "value":
            return Verdict(got.kind), got.reason
        if expected.kind == "raised":
            return Verdict.WRONG, f"should have raised {expected.value}"
        if (equal if compat else values.same)(expected.value, got.value):
            return Verdict.PASS, ""
        if not values.is_data(got.value) and values.is_data(expected.value):
            return Verdict.NOT_DATA, "the result is an object, not plain data"
        return Verdict.WRONG, ""

    def _evaluation(
        self, fraction: float, verdict: Verdict, tests: tuple[TestResult, ...]
    ) -> Evaluation:
        parts = {"tests_passed": fraction}
        reward = Reward(1.0 if fraction == 1.0 else 0.0, parts, self.name)
        return Evaluation(reward, verdict, tests, self._sandbox.level)


def as_row(task_index: object, evaluation: Evaluation) -> dict[str, object]:
    """A line of `python -m sweet score`."""
    row: dict[str, object] = {"task_index": task_index, "score": None, "passed": None}
    row["verdict"] = str(evaluation.verdict)
    if evaluation.reward is None:
        return row | {"error": evaluation.error}
    row["score"] = evaluation.reward.components["tests_passed"]
    return row | {"passed": evaluation.reward.value == 1.0}


def equal(expected: object, got: object) -> bool:
    """`==` as the published evaluator asks it; a comparison that fails is no pass."""
    try:
        return bool(expected == got)
    except (ValueError, TypeError, ArithmeticError, RecursionError):
        return False


def _shown(outcome: Outcome) -> str | None:
    if outcome.kind == "value":
        return values.show(outcome.value)
    return f"raises {outcome.value}" if outcome.kind == "raised" else None
