"""What Chromium is started behind: no network, no files, nobody's user, its own sandbox.

bubblewrap gives the browser namespaces of its own. Where that can't be had, what is left is
Chromium's own sandbox and its settings, which name no host at all; `doctor` says so.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sweet.browser import chromium_path

NOBODY = "65534"
HOME = "/tmp/home"  # in the browser's own view of the files
MEMORY_KB = 4 << 20  # what one process of the browser may hold
READABLE = (
    "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/nix", "/etc/alternatives",
    "/etc/chromium", "/etc/chromium.d", "/etc/fonts", "/etc/ld.so.cache", "/var/cache/fontconfig",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Walls:
    """What stands round the browser: namespaces of its own, another user, its own sandbox."""

    namespaces: bool
    nobody: bool
    sandbox: bool

    def __str__(self) -> str:
        return ", ".join(name if held else f"NO {name}" for name, held, _ in self.each())

    def each(self) -> list[tuple[str, bool, str]]:
        """Each wall's name, whether it stands, and what to do where it does not."""
        is_ordinary = self.nobody or os.geteuid() != 0
        bubblewrap = "`sudo apt-get install bubblewrap`; in a container it may be forbidden"
        return [
            ("network namespace", self.namespaces, bubblewrap),
            ("unprivileged user", is_ordinary, "start the studio as an ordinary user"),
            ("Chromium's own sandbox", self.sandbox, "allow user namespaces on this machine"),
        ]


def possible() -> Iterator[Walls]:
    """The walls worth trying here, the strongest first."""
    is_root = os.geteuid() == 0
    bubblewrap, setpriv = shutil.which("bwrap") is not None, shutil.which("setpriv") is not None
    for namespaces in (True, False) if bubblewrap and sys.platform == "linux" else (False,):
        for nobody in (True, False) if is_root and setpriv else (False,):
            for sandbox in (False,) if is_root and not nobody else (True, False):
                yield Walls(namespaces, nobody, sandbox)


def write_launcher(walls: Walls, folder: Path, browser: Path) -> Path:
    """A program in `folder` that starts the browser behind these walls.

    It leaves its process id in `folder`/pid; the browser takes that process over.
    """
    home = Path(HOME) if walls.namespaces else folder / "home"
    command = [*(_bubblewrap(browser) if walls.namespaces else []), *_user(walls), str(browser)]
    lines = [
        "#!/bin/sh",
        f"ulimit -d {MEMORY_KB}",
        f"echo $$ > {shlex.quote(str(folder / 'pid'))}",
        f"export HOME={shlex.quote(str(home))}",
        f'exec {shlex.join(command)} "$@" --user-data-dir={shlex.quote(str(home / "profile"))}',
    ]
    launcher = folder / "chromium"
    launcher.write_text("\n".join(lines) + "\n")
    launcher.chmod(0o755)
    return launcher


def _user(walls: Walls) -> list[str]:
    if not walls.nobody:
        return []
    return ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]


def _bubblewrap(browser: Path) -> list[str]:
    """No network, no other processes, the system's programs and fonts to read, a folder to write.

    As root there is no user namespace: the browser itself becomes nobody, and makes the one that
    its own sandbox is built on.
    """
    arguments = ["--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try", "--die-with-parent", "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        arguments += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        arguments += ["--unshare-user", "--uid", NOBODY, "--gid", NOBODY]
    for path in READABLE:
        arguments += [*_folders_above(Path(path)), "--ro-bind-try", path, path]
    arguments += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"]
    for own in sorted({browser.parent, browser.resolve().parent}):
        if not any(own.is_relative_to(path) for path in READABLE):
            arguments += [*_folders_above(own), "--ro-bind", str(own), str(own)]
    return ["bwrap", *arguments, "--chdir", "/tmp", "--"]


def _folders_above(path: Path) -> list[str]:
    """Folders that nobody may pass through, in a view that has none yet."""
    above = [str(parent) for parent in reversed(path.parents)]
    new = (folder for folder in above if folder not in ("/", "/tmp", "/usr"))
    return [part for folder in new for part in ("--perms", "0755", "--dir", folder)]


def browser_path(own: str) -> Path:
    """The Chromium to start: the studio's, else Playwright's `own`. Raises: ConfigError."""
    return chromium_path() or Path(own)
