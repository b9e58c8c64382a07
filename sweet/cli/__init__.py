"""The command line: `python -m sweet COMMAND`. Results on stdout, progress and errors on stderr.

`--json` prints one JSON value. Exit codes: 0 done, 1 done but not well (every episode failed, a
check failed), 2 could not be done, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from sweet.cli import comparing, doctor, drawing, episodes, log, policies, scoring, tasks
from sweet.cli.output import show
from sweet.errors import SweetError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}\n{self.format_usage()}")


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code of the command in `argv` (default: this process's arguments)."""
    try:
        args = parser().parse_args(argv)
        return show(args.run(args), args.json)
    except SweetError as e:
        print(f"error: {e}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = _Parser(prog="python -m sweet", description="Sweet Studio's command line.")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for part in (doctor, tasks, episodes, comparing, scoring, drawing, log, policies):
        part.add_commands(commands)
    return top
