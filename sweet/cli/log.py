"""`import`, `export` and `backup`: the log's ways in and out."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args, get_type_hints

from sweet.cli.output import Result, add_command, free_path, note
from sweet.exchange import (
    CARD,
    FORMATS,
    PREFERENCES,
    VOTES,
    card_of,
    export_episodes,
    export_preferences,
    export_votes,
    import_episodes,
    preference_ids,
    push,
    write_card,
)
from sweet.services import Services
from sweet.settings import load_settings
from sweet.types import EpisodeFilter
from trainer.preferences import preference_pairs


def add_commands(commands: Any) -> None:
    """Add `import`, `export` and `backup`."""
    bring = add_command(
        commands,
        "import",
        run_import,
        "Import episodes (this studio's shape or ColBench's), votes and preference pairs.",
    )
    bring.add_argument("file", metavar="FILE", help=".jsonl or .parquet")
    export = add_command(
        commands, "export", run_export, "Export episodes, votes or preference pairs to a file."
    )
    export.add_argument("--format", choices=[*FORMATS, VOTES, PREFERENCES], default="episodes")
    export.add_argument("--out", required=True, metavar="PATH", help=".jsonl or .parquet")
    export.add_argument("--overwrite", action="store_true", help="replace the file at --out")
    export.add_argument("--card", action="store_true", help="write a dataset card beside it")
    export.add_argument("--push", metavar="OWNER/NAME", help="put it on the Hugging Face hub")
    export.add_argument("--public", action="store_true", help="with --push: for everybody to see")
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
    """How many rows were new, and what is wrong with the lines that were left out."""
    with Services(load_settings()) as services:
        store = services.store
        done = import_episodes(
            store, Path(args.file), lambda: preference_ids(preference_pairs(store))
        )
    for problem in done.problems:
        note(f"left out, {problem}")
    value = {
        "added": done.added,
        "known": done.known,
        "left_out": done.bad,
        "problems": [str(problem) for problem in done.problems],
    }
    text = f"{done.added} rows added, {done.known} were there, {done.bad} lines left out."
    return Result(value, text, ok=done.bad == 0)


def run_export(args: argparse.Namespace) -> Result:
    """How many rows the filter let through to the file, and where its card and its copy are."""
    path, kind, wanted = free_path(args.out, args.overwrite), args.format, wanted_by(args)
    if args.card:
        free_path(str(path.with_name(CARD)), args.overwrite)
    skipped = 0
    with Services(load_settings()) as services:
        if kind == VOTES:
            count = export_votes(services.store, wanted, path)
        elif kind == PREFERENCES:
            count = export_preferences(preference_pairs(services.store, wanted), path)
        else:
            done = export_episodes(services.store, wanted, path, kind)
            count, skipped = done.episodes, done.skipped
    what = kind if kind in (VOTES, PREFERENCES) else "episodes"
    value: dict[str, Any] = {"path": str(path), what: count, "skipped": skipped}
    if args.card:
        value["card"] = str(write_card(path, kind, count, wanted))
    if args.push:
        card = card_of(path, kind, count, wanted)
        value["pushed"] = push(path, card, args.push, public=args.public)
    left = f"; {skipped} have no place in this format" if skipped else ""
    more = "".join(f"\n{name}: {value[name]}" for name in ("card", "pushed") if name in value)
    return Result(value, f"{count} {what} in {path}{left}.{more}")


def run_backup(args: argparse.Namespace) -> Result:
    """The backup's file, size and checksum, and what is in it."""
    with Services(load_settings()) as services:
        done = services.store.backup(Path(args.file))
    text = f"{done.episodes} episodes, {done.turns} turns in {done.path} ({done.bytes:,} bytes)."
    return Result(asdict(done), text)
