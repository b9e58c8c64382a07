"""`tasks make|import|list`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sweet.cli.output import Result, add_command, at_least, free_path, note, table
from sweet.errors import ConfigError, TaskDataError, boundary
from sweet.services import Services
from sweet.settings import load_settings
from sweet.tasks import colbench, mini
from sweet.tasks.mini_sets import SPLITS


def add_commands(commands: Any) -> None:
    """Add `tasks` and what it does."""
    tasks = commands.add_parser("tasks", help="make, import and list task sets")
    verbs = tasks.add_subparsers(metavar="make|import|list", required=True)
    make = add_command(verbs, "make", make_tasks, "Make ColBench-Mini tasks.")
    make.add_argument(
        "--tasks",
        default=mini.SETS[0],
        metavar="SET",
        help=f"{{{','.join(mini.GENERATORS)}}}/{{{','.join(SPLITS)}}}",
    )
    make.add_argument("-n", type=at_least(1), default=100, help="how many tasks")
    make.add_argument("--seed", type=int, default=1, help="the same seed makes the same tasks")
    make.add_argument("--out", help="write them to this file in ColBench's shape, not to the store")
    make.add_argument("--overwrite", action="store_true", help="replace the file at --out")
    bring = add_command(verbs, "import", import_tasks, "Import ColBench task files.")
    bring.add_argument(
        "path", nargs="?", help="a file or a folder of them; without it: from the Hugging Face hub"
    )
    bring.add_argument("--split", help="train, validation or test; else by the file's name")
    add_command(verbs, "list", list_tasks, "List the task sets that are here.")


def make_tasks(args: argparse.Namespace) -> Result:
    """Tasks of a ColBench-Mini split, in the store or in a file."""
    if args.tasks not in mini.SETS:
        known = ", ".join(mini.SETS)
        raise ConfigError(f"--tasks {args.tasks!r} can't be made. There are: {known}.")
    rows = mini.generate(args.tasks, args.n, args.seed)
    if args.out:
        path = free_path(args.out, args.overwrite)
        with boundary(TaskDataError, f"The tasks can't be written to {path}"):
            path.write_text("".join(map(colbench.to_line, rows)), encoding="utf-8")
        value = {"tasks": f"file:{path}", "n": args.n, "seed": args.seed, "path": str(path)}
        return Result(value, f"{args.n} tasks in {path}: use them as --tasks file:{path}")
    with Services(load_settings()) as services:
        services.ensure_mini_tasks([args.tasks])  # first: a set begins alike on every machine
        done = services.store.add_tasks(rows)
    value = {"tasks": args.tasks, "n": args.n, "seed": args.seed, "added": done.added}
    return Result(value, f"{done.added} tasks added to {args.tasks}, {done.known} were there.")


def import_tasks(args: argparse.Namespace) -> Result:
    """ColBench's task files, from a path or from the hub, in the data folder and the store."""
    with Services(load_settings()) as services:
        data = services.settings.data
        if args.path:
            imported = colbench.import_path(Path(args.path), data, split=args.split)
        else:
            note(colbench.LICENCE_NOTE)
            splits = [args.split] if args.split else list(colbench.HUB_FILES)
            imported = colbench.import_hub(data, splits=splits)
        for done in imported:
            services.store.add_tasks(colbench.read_imported(done.name, data).rows)
            for problem in done.problems:
                note(f"left out, {problem}")
    value = [
        {
            "tasks": done.name,
            "added": done.added,
            "known": done.known,
            "left_out": [str(problem) for problem in done.problems],
        }
        for done in imported
    ]
    rows = [(done.name, done.added, done.known, len(done.problems)) for done in imported]
    return Result(value, table(("task set", "added", "known", "left out"), rows))


def list_tasks(args: argparse.Namespace) -> Result:
    """The task sets in the store, and how many tasks each has."""
    with Services(load_settings()) as services:
        services.ensure_mini_tasks()
        sets = services.store.task_sets()
    value = [{"tasks": s.name, "kind": s.kind.value, "n": s.count} for s in sets]
    return Result(value, table(("task set", "kind", "tasks"), [[*v.values()] for v in value]))
