"""`doctor`: what works on this machine."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from sweet.cli.output import Result, add_command
from sweet.doctor import as_text, examine, is_healthy


def add_commands(commands: Any) -> None:
    """Add `doctor`."""
    add_command(commands, "doctor", run, "Try what the studio needs, and say what to do.")


def run(args: argparse.Namespace) -> Result:
    """What each check found; not well where something that is needed does not work."""
    checks = examine()
    healthy = is_healthy(checks)
    value = {"healthy": healthy, "checks": [asdict(check) for check in checks]}
    return Result(value, as_text(checks), ok=healthy)
