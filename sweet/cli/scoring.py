"""`score`: a file of answers against a file of tasks."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

from evaluators.backend import BackendEvaluator, Mode
from evaluators.frontend import FrontendEvaluator, open_clip_model
from evaluators.render import Renderer
from evaluators.sandbox import Sandbox
from sweet.cli.output import Result, add_command, allow_unsafe, note, settings_of
from sweet.errors import TaskDataError
from sweet.settings import Settings
from sweet.tasks.rows import RowProblem, read_values
from sweet.types import HiddenInfo, TaskKind, Verdict

Row = dict[str, object]
ScoreRows = Callable[[list[HiddenInfo], Iterable[Row]], Iterator[Row]]


def add_commands(commands: Any) -> None:
    """Add `score`."""
    score = add_command(commands, "score", run, "Score answers: a JSON line for each, in order.")
    score.add_argument(
        "--kind",
        choices=list(map(str, TaskKind)),
        default=str(TaskKind.BACKEND),
        help="backend: Python functions, by their tests; frontend: web pages, by their looks",
    )
    score.add_argument(
        "--mode",
        choices=["fixed", "compat"],
        default="fixed",
        help="of functions; fixed: what is true; compat: what the published evaluator says",
    )
    score.add_argument("--tasks", required=True, metavar="FILE", help="tasks in ColBench's shape")
    score.add_argument(
        "--answers", required=True, metavar="FILE", help="rows of {task_index, answer}"
    )
    allow_unsafe(score)


def run(args: argparse.Namespace) -> Result:
    """A row of {task_index, score, passed, verdict, …} for each answer; printed as they come."""
    kind = TaskKind(args.kind)
    tasks, problems = _tasks(Path(args.tasks), kind)
    answers = list(read_answers(Path(args.answers)))
    rows = []
    with ExitStack() as opened:
        score_rows = _opened(kind, args.mode, settings_of(args), opened)
        for row in score_rows(tasks, answers):
            if problem := problems.get(str(row["task_index"])):
                row["error"] = f"the task can't be used: {problem}"
            rows.append(row)
            if not args.json:
                print(json.dumps(row), flush=True)
    failed = [row for row in rows if row["verdict"] == Verdict.INFRA]
    if failed:
        note(f"{len(failed)} of {len(rows)} answers could not be scored; the first: {failed[0]}")
    return Result(rows, "")


def _opened(kind: TaskKind, mode: Mode, settings: Settings, opened: ExitStack) -> ScoreRows:
    """What scores answers; `opened` closes it. Raises: SweetError where it can't be had."""
    if kind is TaskKind.FRONTEND:
        renderer = opened.enter_context(Renderer())
        pages = FrontendEvaluator(renderer, partial(open_clip_model, settings.clip))
        opened.enter_context(closing(pages))
        if why := pages.why_visual:
            note(f"Pages are scored by visual similarity. {why}")
        return pages.score_rows
    sandbox = opened.enter_context(
        Sandbox.start(
            workers=settings.sandbox_workers, allow_unsafe_exec=settings.allow_unsafe_exec
        )
    )
    return opened.enter_context(closing(BackendEvaluator(sandbox, mode))).score_rows


def _tasks(path: Path, kind: TaskKind) -> tuple[list[HiddenInfo], dict[str, RowProblem]]:
    """The hidden information of each row by its index, and what is wrong with the unusable ones.

    Unlike an import this keeps every row, also repeated ones: answers name them by position.
    """
    tasks: list[HiddenInfo] = []
    problems: dict[str, RowProblem] = {}
    for line, value in read_values(path):
        hidden = _hidden(value, kind)
        if hidden is None:
            wrong = value if isinstance(value, RowProblem) else RowProblem(line, _EXPECTED[kind])
            problems[str(len(tasks))] = wrong
        tasks.append(hidden or HiddenInfo(""))
    if not tasks:
        raise TaskDataError(f"There is no task in {path}.")
    for problem in problems.values():
        note(f"{path}, {problem}")
    return tasks, problems


_EXPECTED = {
    TaskKind.BACKEND: "expected ground_truth (text) and test_cases ({test1: call, …})",
    TaskKind.FRONTEND: "expected ground_truth (a page as HTML text)",
}


def _hidden(value: object, kind: TaskKind) -> HiddenInfo | None:
    if not isinstance(value, dict) or not isinstance(value.get("ground_truth"), str):
        return None
    if kind is TaskKind.FRONTEND:
        return HiddenInfo(value["ground_truth"]) if value["ground_truth"].strip() else None
    calls = value.get("test_cases")
    calls = list(calls.values()) if isinstance(calls, dict) else calls
    if not isinstance(calls, list) or not all(isinstance(call, str) for call in calls):
        return None
    return HiddenInfo(value["ground_truth"], tuple(calls))


def read_answers(path: Path) -> Iterator[Row]:
    """The rows of answers. Raises: TaskDataError naming the line that is none."""
    for line, value in read_values(path):
        if isinstance(value, RowProblem):
            raise TaskDataError(f"{path}, {value}")
        if not isinstance(value, dict) or "task_index" not in value or "answer" not in value:
            raise TaskDataError(
                f"{path}, line {line}: expected an object with task_index and answer, not "
                f"{json.dumps(value)[:80]}"
            )
        yield value
