"""What a command gives, and how it is printed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweet.errors import ConfigError
from sweet.settings import Settings, load_settings


@dataclass(frozen=True, slots=True)
class Result:
    """A command's result: one JSON value, and the same for a person to read."""

    value: Any
    text: str
    ok: bool = True


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Names the default of an option where it has one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        named = action.default not in (None, False, "") and action.help
        return super()._get_help_string(action) if named else action.help


Command = Callable[[argparse.Namespace], Result]


def add_command(
    commands: Any, name: str, run: Command, help: str, **defaults: object
) -> argparse.ArgumentParser:
    """A new command with `--json`; add its other options to what this returns."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=help, description=help, formatter_class=_Help
    )
    parser.add_argument("--json", action="store_true", help="print one JSON value on stdout")
    parser.set_defaults(run=run, **defaults)
    return parser


def allow_unsafe(parser: argparse.ArgumentParser) -> None:
    """Add the option of the commands that run answers."""
    parser.add_argument(
        "--allow-unsafe-exec",
        action="store_true",
        help="run answers also where this machine offers no walls around them",
    )


def settings_of(args: argparse.Namespace) -> Settings:
    """The settings, with what the options say."""
    return load_settings(**({"allow_unsafe_exec": True} if args.allow_unsafe_exec else {}))


def show(result: Result, as_json: bool) -> int:
    """The exit code, after printing the result on stdout."""
    if as_json:
        print(json.dumps(result.value, allow_nan=False))
    elif result.text:
        print(result.text)
    sys.stdout.flush()
    return 0 if result.ok else 1


def note(text: str) -> None:
    """Print something beside the result, on stderr."""
    print(text, file=sys.stderr)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns of equal width; None as n/a."""
    lines = [[str(h) for h in head]]
    lines += [["n/a" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) for line in lines
    )
    return "\n".join(line.rstrip() for line in padded)


def at_least(low: int) -> Callable[[str], int]:
    """An argument type: a whole number from `low` on."""

    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if value < low:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {low} on")
        return value

    return number


def free_path(text: str, overwrite: bool) -> Path:
    """The path to write to. Raises: ConfigError where something is there already."""
    path = Path(text).expanduser()
    if path.exists() and not overwrite:
        raise ConfigError(f"{path} exists. Choose another name, or add --overwrite.")
    return path
