"""How strong the sandbox can be on this machine, found by trying.

full    bubblewrap (own users, processes, network, files) + Landlock + seccomp + limits
kernel  Landlock + seccomp + limits, where there are no user namespaces (containers, Spaces)
limits  resource limits at most (macOS): not safe, refused unless allowed by name

Never a silent step down: what is missing for a higher level is kept and shown.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from sweet.errors import SandboxError

NOBODY = 65534
NAMESPACES = ("pid", "net", "mnt", "ipc", "uts")
SYSTEM_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")


class Level(StrEnum):
    """The strength of a sandbox, the strongest first."""

    FULL = "full"
    KERNEL = "kernel"
    LIMITS = "limits"


LAYERS = {
    Level.FULL: ("namespaces", "user", "landlock", "seccomp", "rlimits"),
    Level.KERNEL: ("landlock", "seccomp", "rlimits"),
    Level.LIMITS: (),
}
"""The layers that must have been seen to hold for a level."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a worker: its command line and what it is told."""

    command: tuple[str, ...]
    config: dict


def launch(level: Level, layers: tuple[str, ...]) -> Launch:
    """The command of a worker at `level` that applies `layers` to its programs."""
    boot = "import sys;exec(sys.stdin.buffer.raw.read({}))"
    readable = readable_paths()
    command: tuple[str, ...] = (interpreter(), "-s", "-S", "-P", "-B", "-c", boot)
    if level is Level.FULL:
        command = (*bubblewrap(readable), *command)
    config = {
        "layers": [name for name in ("landlock", "seccomp", "rlimits") if name in layers],
        "readable": readable,
        "uid": NOBODY,
        "site": numpy_folder(),
        "namespaces": own_namespaces(),
    }
    return Launch(command, config)


def interpreter() -> str:
    """The Python behind the virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)


def numpy_folder() -> str:
    """The folder that NumPy lies in, or an empty string: programs may use it where it is."""
    return next((p for p in sys.path if p and Path(p, "numpy", "__init__.py").exists()), "")


def readable_paths() -> list[str]:
    """What a worker may read: the interpreter, its library, shared libraries, NumPy."""
    stdlib = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), _base_library()}
    libraries = {str(Path(p).parent) for p in _loaded_libraries()}
    site = numpy_folder()
    numpy = [f"{site}/numpy", f"{site}/numpy.libs"] if site else []
    paths = {interpreter(), *stdlib, *libraries, *SYSTEM_LIBRARIES, *numpy}
    existing = sorted(p for p in paths if p and os.path.exists(p))
    return [p for p in existing if not any(_inside(p, other) for other in existing)]


def _base_library() -> str:
    return os.path.dirname(os.path.realpath(os.__file__))


def _inside(path: str, other: str) -> bool:
    return path != other and path.startswith(other.rstrip("/") + "/") and not os.path.islink(other)


def _loaded_libraries() -> list[str]:
    """The interpreter's own shared library, where it has one outside the system's folders."""
    folder, name = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("LDLIBRARY")
    path = os.path.join(folder or "", name or "")
    return [path] if ".so" in path and os.path.exists(path) else []


def own_namespaces() -> dict[str, str]:
    """The studio's own namespaces, to compare the worker's with."""
    found = {}
    for name in NAMESPACES:
        try:
            found[name] = os.readlink(f"/proc/self/ns/{name}")
        except OSError:
            continue
    return found


def bubblewrap(readable: list[str]) -> tuple[str, ...]:
    """The command in front of the worker's: an empty file view with `readable` in it.

    As root there is no user namespace: the worker itself becomes nobody, which no mapping can
    undo. As an ordinary user there is one. Raises: SandboxError without bubblewrap.
    """
    program = shutil.which("bwrap")
    if program is None:
        raise SandboxError("bubblewrap is not installed: there is no `bwrap` on the PATH")
    user = ["--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]
    root = ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    arguments = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try", "--hostname", "sandbox", "--cap-drop", "ALL"]
    arguments += root if os.geteuid() == 0 else user
    for folder in sorted({str(p) for path in readable for p in Path(path).parents} - {"/"}):
        arguments += ["--perms", "0755", "--dir", folder]
    for path in readable:
        arguments += ["--ro-bind", path, path]
    arguments += ["--proc", "/proc", "--dev-bind", "/dev/null", "/dev/null"]
    return (program, *arguments, "--remount-ro", "/", "--chdir", "/", "--")
