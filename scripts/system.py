"""Running other programs during set-up, each with a time limit. Standard library only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


class SetupError(Exception):
    """Set-up cannot go on; the message says what failed and what to do."""


def say(text: str) -> None:
    """Print a line at once, also into a pipe."""
    print(text, flush=True)


def problem_of(
    command: Sequence[object],
    timeout_s: float,
    *,
    show: bool = False,
    env: Mapping[str, str] | None = None,
) -> str:
    """The end of what a command complained of; empty when it succeeded.

    `show` lets its output through, for commands that draw their progress.
    """
    try:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=ROOT,  # so that a program finds our packages from anywhere
            stdin=subprocess.DEVNULL,
            stdout=None if show else subprocess.PIPE,
            stderr=None if show else subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        return f"no end after {timeout_s:g} s"
    except OSError as e:
        return f"{command[0]}: {e.strerror}"
    if done.returncode == 0:
        return ""
    lines = [line for line in (done.stdout or b"").decode(errors="replace").splitlines() if line]
    return "\n".join(lines[-8:]) or f"it ended with status {done.returncode}"


def output_of(command: Sequence[object], timeout_s: float = 60) -> str | None:
    """What a command printed on stdout, stripped; None when it failed."""
    try:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=ROOT,  # so that a program finds our packages from anywhere
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def install_debian(*packages: str) -> str:
    """Why Debian packages could not be installed; empty when they were.

    Only as root or where sudo asks for no password: set-up never stops to ask for one.
    """
    if not shutil.which("apt-get"):
        return "this is no Debian (no apt-get)"
    root = as_root()
    if root is None:
        return "that takes root, or sudo without a password"
    say(f"Installing {' '.join(packages)} from Debian …")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    problem_of([*root, "apt-get", "update", "-qq"], 180)  # stale lists may still do
    return problem_of(
        [*root, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
        900,
        env=quiet,
    )


def as_root() -> list[str] | None:
    """What to put before a command so that it runs as root; None where that cannot be had."""
    if os.geteuid() == 0:
        return []
    return ["sudo", "-n"] if problem_of(["sudo", "-n", "true"], 10) == "" else None


def is_mac() -> bool:
    """Whether this is macOS."""
    return sys.platform == "darwin"
