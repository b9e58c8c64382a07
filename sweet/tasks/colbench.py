"""ColBench's task files: read, check, import.

A file is jsonl (or a JSON array, either one gzipped) of rows
`{problem_description, ground_truth, test_cases: {test1: "f(…)", …}}`; a web-page row has HTML as
its ground truth and no test cases. Other keys are ignored. A row that cannot be used becomes a
RowProblem that names its line; the rows around it are still read.

Imported sets lie in the data folder as `tasks/<source>/<split>.jsonl`, in the same shape.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweet.errors import TaskDataError, boundary
from sweet.tasks.rows import RowProblem, cut, read_values
from sweet.types import HiddenInfo, Task, TaskKind, TaskRow

HUB_DATASET = "facebook/collaborative_agent_bench"
HUB_PAGE = f"https://huggingface.co/datasets/{HUB_DATASET}"
HUB_FILES = {"train": "backend_tasks/train.jsonl", "test": "backend_tasks/test.jsonl"}
LICENCE_NOTE = (
    f"ColBench comes from the hub dataset {HUB_DATASET} under its own licence (its authors' code "
    "is CC-BY-NC): read the dataset's card before you use it for more than research."
)
SOURCES = {TaskKind.BACKEND: "colbench-backend", TaskKind.FRONTEND: "colbench-frontend"}

_HTML = re.compile(r"\s*(<!doctype\s+html|<html|<head|<body|<!--)", re.IGNORECASE)
_TASK_FILE = re.compile(r"\.jsonl?(\.gz)?$")
_KEYS = "problem_description, ground_truth and test_cases"
_SPLITS = ("train", "validation", "test", "families", "own")


@dataclass(frozen=True, slots=True)
class TaskFile:
    """What a task file holds: its good rows in order, and a problem for each of the others."""

    rows: tuple[TaskRow, ...]
    problems: tuple[RowProblem, ...]


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did to one task set (`name`, kept at `path`)."""

    name: str
    path: Path
    added: int
    known: int
    problems: tuple[RowProblem, ...]


def read_tasks(path: Path, *, split: str = "own", source: str | None = None) -> TaskFile:
    """The good rows and the problems of a file. Raises: TaskDataError if it cannot be opened.

    `source` names the rows' task set; by default ColBench's own for the row's kind.
    """
    rows: list[TaskRow] = []
    problems: list[RowProblem] = []
    seen: dict[str, int] = {}
    for line, value in read_values(Path(path)):
        if isinstance(value, RowProblem):
            problems.append(value)
            continue
        row = _check(value, split, source)
        if isinstance(row, TaskRow) and row.task.id in seen:
            row = f"the same row as line {seen[row.task.id]}"
        if isinstance(row, str):
            problems.append(RowProblem(line, row))
        else:
            seen[row.task.id] = line
            rows.append(row)
    return TaskFile(tuple(rows), tuple(problems))


def read_file_set(name: str) -> TaskFile:
    """What the task set `file:PATH` holds. Raises: TaskDataError."""
    path = Path(name.removeprefix("file:")).expanduser().resolve()
    return read_tasks(path, split="own", source=f"file:{path}")


# One row


def _check(value: object, split: str, source: str | None) -> TaskRow | str:
    """The row as a task, or what is wrong with it."""
    if not isinstance(value, dict):
        return f"a JSON {_json_type(value)}; expected an object with {_KEYS}"
    for key in ("problem_description", "ground_truth"):
        if problem := _text_problem(value, key):
            return problem
    reference = value["ground_truth"]
    if not value.get("test_cases") and _HTML.match(reference):
        return _row(TaskKind.FRONTEND, value["problem_description"], reference, (), split, source)
    calls = _test_calls(value)
    if isinstance(calls, str):
        return calls
    problem = _reference_problem(reference, calls)
    if problem:
        return problem
    texts = tuple(call.strip() for call in calls.values())
    return _row(TaskKind.BACKEND, value["problem_description"], reference, texts, split, source)


def _row(
    kind: TaskKind,
    description: str,
    reference: str,
    calls: tuple[str, ...],
    split: str,
    source: str | None,
) -> TaskRow:
    source = source or SOURCES[kind]
    content = json.dumps([kind, description, reference, calls]).encode()
    task_id = f"{source.split(':')[0]}-{hashlib.sha256(content).hexdigest()[:16]}"
    return TaskRow(Task(task_id, kind, description, split, source), HiddenInfo(reference, calls))


def _text_problem(row: dict[str, Any], key: str) -> str:
    if key not in row:
        return f"no {key}; a row needs {_KEYS}"
    text = row[key]
    if not isinstance(text, str):
        return f"{key} is a JSON {_json_type(text)}; expected a string"
    if not text.strip():
        return f"{key} is empty"
    return _unicode_problem(key, text)


def _unicode_problem(what: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as e:
        return f"{what} is no Unicode text: bytes that are not UTF-8 at position {e.start}"
    return ""


def _test_calls(row: dict[str, Any]) -> dict[str, str] | str:
    """The test calls by name, or what is wrong with them."""
    if "test_cases" not in row:
        return "no test_cases, and ground_truth is no HTML page; a backend row needs test_cases"
    calls = row["test_cases"]
    if not isinstance(calls, dict):
        return f'test_cases is a JSON {_json_type(calls)}; expected {{"test1": "f(…)", …}}'
    if not calls:
        return "test_cases is empty: nothing could be scored"
    for name, call in calls.items():
        if not isinstance(call, str):
            return f"test_cases.{name} is a JSON {_json_type(call)}; expected a string"
        if problem := _unicode_problem(f"test_cases.{name}", call):
            return problem
    return calls


def _reference_problem(reference: str, calls: dict[str, str]) -> str:
    """Why these calls do not test this reference; empty when they do."""
    tree = _parse(reference, "exec")
    if isinstance(tree, str):
        return f"ground_truth does not parse as Python: {tree}"
    functions = _functions(tree)
    if not functions:
        return "ground_truth defines no function"
    for name, call in calls.items():
        expression = _parse(call.strip(), "eval")
        if isinstance(expression, str):
            return f"test_cases.{name} does not parse as an expression: {expression}: {cut(call)}"
        called = _called(expression)
        if not called & functions:
            calls_what = f"calls {', '.join(sorted(called))}" if called else "calls nothing"
            defines = ", ".join(sorted(functions))
            return f"test_cases.{name} {calls_what}; ground_truth defines {defines}: {cut(call)}"
    return ""


def _parse(code: str, mode: str) -> ast.AST | str:
    """The syntax tree, or what is wrong with the code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape is the row's business
            return ast.parse(code, mode=mode)
    except SyntaxError as e:
        return f"{e.msg} (line {e.lineno})" if e.lineno else str(e.msg)
    except (ValueError, RecursionError, MemoryError) as e:
        return str(e) or f"nested too deeply ({type(e).__name__})"


def _functions(tree: ast.AST) -> set[str]:
    """The names that a module's top level binds to functions, also under `if` and `try`."""
    names: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif not isinstance(node, ast.ClassDef | ast.expr):
            waiting.extend(ast.iter_child_nodes(node))
    return names


def _called(expression: ast.AST) -> set[str]:
    """The plain names an expression calls; ColBench has rows like `f(…) == 1`."""
    nodes = (node.func for node in ast.walk(expression) if isinstance(node, ast.Call))
    return {func.id for func in nodes if isinstance(func, ast.Name)}


def _json_type(value: object) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


# Import


def import_path(path: Path, data: Path, *, split: str | None = None) -> list[Imported]:
    """What was added to the task sets of the data folder from a file, or a folder of them.

    `split` is guessed from the file's name where it is not given ("train.jsonl", "own" else).
    Importing a file again adds nothing. Raises: TaskDataError.
    """
    if split and split not in _SPLITS:
        raise TaskDataError(f"There is no split {split!r}; there are {', '.join(_SPLITS)}.")
    path = Path(path).expanduser()
    files = _task_files(path) if path.is_dir() else [path]
    return [done for file in files for done in _import_file(file, data, split or _guess(file))]


def import_hub(
    data: Path, *, splits: Sequence[str] = tuple(HUB_FILES), endpoint: str | None = None
) -> list[Imported]:
    """What was added from ColBench's files on the Hugging Face hub.

    Downloads show a progress bar and go on where they broke off; `endpoint` is the hub's address
    (default: HF_ENDPOINT, else the public one). Raises: TaskDataError saying what to do instead.
    """
    unknown = sorted(set(splits) - set(HUB_FILES))
    if unknown:
        raise TaskDataError(f"ColBench has no split {unknown[0]!r}; it has {', '.join(HUB_FILES)}.")
    files = {split: _download(HUB_FILES[split], data / "hub", endpoint) for split in splits}
    return [done for split, file in files.items() for done in _import_file(file, data, split)]


def imported_sets(data: Path) -> dict[str, Path]:
    """The imported task sets by name ("colbench-backend/test") and their files."""
    files = sorted((data / "tasks").glob("colbench-*/*.jsonl"))
    return {f"{file.parent.name}/{file.stem}": file for file in files}


def read_imported(name: str, data: Path) -> TaskFile:
    """What the imported set `name` holds. Raises: TaskDataError if it was never imported."""
    sets = imported_sets(data)
    if name not in sets:
        there = ", ".join(sets) or "none yet"
        raise TaskDataError(
            f"The task set {name!r} has not been imported (imported: {there}). "
            "`python -m sweet tasks import` fetches ColBench; with a PATH it takes your own file."
        )
    source, split = name.split("/", 1)
    return read_tasks(sets[name], split=split, source=source)


def _import_file(path: Path, data: Path, split: str) -> list[Imported]:
    found = read_tasks(path, split=split)
    if not found.rows:
        first = "; ".join(map(str, found.problems[:3])) or "the file is empty"
        raise TaskDataError(f"No usable row in {path}: {first}.")
    kinds = [kind for kind in TaskKind if any(row.task.kind is kind for row in found.rows)]
    done = []
    for kind in kinds:
        rows = [row for row in found.rows if row.task.kind is kind]
        target = data / "tasks" / SOURCES[kind] / f"{split}.jsonl"
        added = _add(rows, target, split)
        problems = found.problems if kind is kinds[0] else ()
        name = f"{SOURCES[kind]}/{split}"
        done.append(Imported(name, target, added, len(rows) - added, problems))
    return done


def _add(rows: list[TaskRow], target: Path, split: str) -> int:
    """How many of the rows were new to the set; the file is replaced in one go."""
    with boundary(TaskDataError, f"Cannot write the task set {target}"):
        old = read_tasks(target, split=split).rows if target.exists() else ()
        known = {row.task.id for row in old}
        new = [row for row in rows if row.task.id not in known]
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{target.name}.{os.getpid()}")
        aside.write_text("".join(map(to_line, [*old, *new])), encoding="utf-8")
        aside.replace(target)
    return len(new)


def to_line(row: TaskRow) -> str:
    """The row in ColBench's own shape, with its line end. The row must have a reference."""
    if row.hidden is None:
        raise TaskDataError(f"Task {row.task.id} has no reference: it cannot be a ColBench row.")
    fields: dict[str, Any] = {
        "problem_description": row.task.description,
        "ground_truth": row.hidden.reference,
    }
    if row.task.kind is TaskKind.BACKEND:
        calls = enumerate(row.hidden.test_calls, 1)
        fields["test_cases"] = {f"test{n}": call for n, call in calls}
    return json.dumps(fields, ensure_ascii=False) + "\n"


def _task_files(folder: Path) -> list[Path]:
    files = [file for file in sorted(folder.rglob("*")) if _TASK_FILE.search(file.name)]
    if not files:
        raise TaskDataError(f"No .jsonl or .json file (or .gz of one) in the folder {folder}.")
    return files


def _guess(path: Path) -> str:
    """The split a file's name speaks of."""
    words = re.split(r"[^a-z]+", path.name.lower())
    return next((split for split in _SPLITS if split in words), "own")


def _download(file: str, folder: Path, endpoint: str | None) -> Path:
    from sweet.tasks.hub import fetch  # its libraries are slow to import, and only needed here

    try:
        with boundary(TaskDataError, "the hub gave no file"):
            return fetch(HUB_DATASET, file, folder, endpoint=endpoint)
    except TaskDataError as e:
        raise TaskDataError(
            f"ColBench's {file} could not be fetched from the Hugging Face hub ({_first(e)}). "
            "If the hub asks for an account, run `hf auth login` and try again. If this machine "
            f"cannot reach it: on one that can, open {HUB_PAGE}, "
            f"download {' and '.join(HUB_FILES.values())}, bring them here, and run "
            "`python -m sweet tasks import PATH`. What was fetched is kept: trying again goes on."
        ) from e


def _first(error: Exception) -> str:
    return cut(str(error).splitlines()[0])
