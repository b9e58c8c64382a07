"""`import`, `export` and `backup`: the log's ways in and out."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args, get_type_hints

from sweet.cli.output import Result, add_command, free_path, note
from sweet.exchange import FORMATS, export_episodes, import_episodes
from sweet.services import Services
from sweet.settings import load_settings
from sweet.types import EpisodeFilter


def add_commands(commands: Any) -> None:
    """Add `import`, `export` and `backup`."""
    bring = add_command(
        commands, "import", run_import, "Import episodes: this studio's shape or ColBench's."
    )
    bring.add_argument("file", metavar="FILE", help=".jsonl or .parquet")
    export = add_command(commands, "export", run_export, "Export episodes to a file.")
    export.add_argument("--format", choices=list(FORMATS), default="episodes")
    export.add_argument("--out", required=True, metavar="PATH", help=".jsonl or .parquet")
    export.add_argument("--overwrite", action="store_true", help="replace the file at --out")
    add_filter(export)
    backup = add_command(commands, "backup", run_backup, "Copy the log as it is now, checked.")
    backup.add_argument("file", metavar="FILE", help="the new file")


_FILTERS = {
    "text": "only episodes in which this was said",
    "task_set": "only this task set, e.g. mini-backend/test",
    "task_id": "only this task",
    "policy_id": "only this policy version",
    "collaborator": "only person, scripted or llm:MODEL",
    "outcome": "only with this outcome",
    "feedback": "only with this feedback",
    "since": "only from this date on, e.g. 2026-03-05",
    "until": "only to this date",
    "batch_id": "only of this batch",
}


def add_filter(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose episodes."""
    hints = get_type_hints(EpisodeFilter)
    for name, help in _FILTERS.items():
        choices = [choice for choice in get_args(hints[name]) if choice]
        option = "--" + name.removesuffix("_id").replace("_", "-")
        parser.add_argument(option, dest=name, default="", choices=choices or None, help=help)


def wanted_by(args: argparse.Namespace) -> EpisodeFilter:
    """The filter that those options say."""
    return EpisodeFilter(**{name: getattr(args, name) for name in _FILTERS})


def run_import(args: argparse.Namespace) -> Result:
    """How many episodes were new, and what is wrong with the lines that were left out."""
    with Services(load_settings()) as services:
        done = import_episodes(services.store, Path(args.file))
    for problem in done.problems:
        note(f"left out, {problem}")
    value = {
        "added": done.added,
        "known": done.known,
        "left_out": done.bad,
        "problems": [str(problem) for problem in done.problems],
    }
    text = f"{done.added} episodes added, {done.known} were there, {done.bad} lines left out."
    return Result(value, text, ok=done.bad == 0)


def run_export(args: argparse.Namespace) -> Result:
    """How many episodes the filter let through to the file."""
    path = free_path(args.out, args.overwrite)
    wanted = wanted_by(args)
    with Services(load_settings()) as services:
        done = export_episodes(services.store, wanted, path, args.format)
    value = {"path": str(done.path), "episodes": done.episodes, "skipped": done.skipped}
    skipped = f"; {done.skipped} have no place in this format" if done.skipped else ""
    return Result(value, f"{done.episodes} episodes in {done.path}{skipped}.")


def run_backup(args: argparse.Namespace) -> Result:
    """The backup's file, size and checksum, and what is in it."""
    with Services(load_settings()) as services:
        done = services.store.backup(Path(args.file))
    text = f"{done.episodes} episodes, {done.turns} turns in {done.path} ({done.bytes:,} bytes)."
    return Result(asdict(done), text)
