"""Set-up of a bare machine: `python -m scripts.setup`, standard library only.

The environment in .venv and its packages must succeed; Chromium, bubblewrap and the assets may be
missing, and then it says what to do. A stamp makes the next start skip all of it.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts.assets import prepare_assets
from scripts.chromium import prepare_chromium
from scripts.system import (
    ROOT,
    SetupError,
    install_debian,
    is_mac,
    output_of,
    problem_of,
    say,
)

REQUIREMENTS = ("requirements.txt", "requirements-dev.txt")
UV = "uv>=0.9"
INSTALL_S = 3600
DATA_FOLDER = (
    "from sweet.settings import load_settings; d = load_settings().data; "
    "d.mkdir(parents=True, exist_ok=True); print(d)"
)


@dataclass(frozen=True)
class Place:
    """Where a set-up puts things, all below the project's folder, and the Python it starts from.

    That Python is never .venv's own, even while .venv is active: it may have to go.
    """

    root: Path
    base: str = getattr(sys, "_base_executable", sys.executable)

    @property
    def venv(self) -> Path:
        """The virtual environment."""
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.venv / "bin" / "python"

    @property
    def stamp(self) -> Path:
        """What the last finished set-up was made for."""
        return self.root / ".setup" / "stamp"

    def key(self) -> str:
        """What a set-up depends on: the pins, the environment's Python and the folder."""
        parts = [str(self.root).encode()]
        parts += [(self.root / name).read_bytes() for name in REQUIREMENTS]
        config = self.venv / "pyvenv.cfg"
        parts.append(config.read_bytes() if config.exists() else b"")
        return hashlib.sha256(b"\0".join(parts)).hexdigest()

    def is_ready(self) -> bool:
        """Whether the last set-up still holds."""
        return (
            self.python.exists()
            and self.stamp.exists()
            and self.stamp.read_text().strip() == self.key()
        )


def set_up(place: Place) -> None:
    """Bring everything this machine can have. Raises: SetupError where it cannot go on."""
    with _alone(place.root):
        if not place.is_ready():
            make_environment(place)
            install_packages(place)
        prepare_data_folder(place)
        todo = prepare_optional(place)
        place.stamp.write_text(place.key() + "\n")
    for line in todo:
        say(f"  to do: {line}")
    say("Set-up is done." if not todo else "Set-up is done, but for the above.")


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Hold set-up's lock: two at once would write into one environment."""
    folder = root / ".setup"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another set-up is running here; waiting for it …")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_environment(place: Place) -> None:
    """Make .venv where there is no working one. Raises: SetupError."""
    new = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    if place.python.exists() and not problem_of([place.python, "-c", new], 60):
        return
    version = ".".join(map(str, sys.version_info[:3]))
    say(f"Making a virtual environment in .venv with Python {version} …")
    command = [place.base, "-m", "venv", "--clear", place.venv]
    problem = problem_of(command, 300)
    if "ensurepip" in problem or "No module named venv" in problem:
        mine = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        if not install_debian(mine):
            problem = problem_of(command, 300)
        else:
            problem += f"\nInstall it: sudo apt-get install {mine}"
    if problem:
        raise SetupError(f"No virtual environment could be made in {place.venv}:\n{problem}")


def install_packages(place: Place) -> None:
    """Install the pinned packages with uv, or with pip where uv cannot. Raises: SetupError."""
    say("Installing the pinned packages (the first time several GB, PyTorch above all) …")
    began = time.monotonic()
    pip = [place.python, "-m", "pip"]
    wanted = ["-r", place.root / REQUIREMENTS[-1]]
    problem = problem_of([*pip, "install", "--quiet", UV], 600)
    if not problem:
        uv = [place.python, "-m", "uv", "pip", "install", "--python", place.python]
        problem = problem_of([*uv, *wanted], INSTALL_S, show=True)
        if problem:
            say("uv could not; trying pip, which may know another index …")
            problem = problem_of([*pip, "install", *wanted], INSTALL_S, show=True)
    if problem:
        raise SetupError(
            f"The packages could not be installed:\n{problem}\n"
            "This needs a network, or a package index named by PIP_INDEX_URL and UV_INDEX_URL, "
            "and about 8 GB of disk. What was fetched is kept: run it again to go on."
        )
    say(f"  installed in {time.monotonic() - began:.0f} s")


def prepare_data_folder(place: Place) -> None:
    """Make the folder of the log and the imported tasks. Raises: SetupError."""
    folder = output_of([place.python, "-c", DATA_FOLDER])
    if folder is None:
        problem = problem_of([place.python, "-c", DATA_FOLDER], 60).splitlines()[-1]
        raise SetupError(
            f"The data folder could not be made: {problem}\n"
            "Name one you may write to: SWEET_DATA=/path/to/folder make run"
        )
    say(f"  data folder: {folder}")


def prepare_optional(place: Place) -> list[str]:
    """What is still to be done by hand for things that the studio can start without."""
    todo = []
    browser, problem = prepare_chromium(place.python, place.stamp.with_name("chromium"))
    say(f"  Chromium: {browser or 'none'}")
    if problem:
        todo.append(f"no Chromium, so no web page can be rendered or tested: {problem}")
    if not is_mac():
        if problem := prepare_bubblewrap():
            todo.append(f"no bubblewrap, so the sandbox lacks a layer: {problem}")
        say(f"  bubblewrap: {shutil.which('bwrap') or 'none'}")
    if problem := prepare_assets(place.root / "assets"):
        todo.append(
            f"no stylesheet for web-page tasks ({problem}): `make setup` with a network; "
            "Python tasks need none"
        )
    return todo


def prepare_bubblewrap() -> str:
    """What to do for bubblewrap; empty where it is installed."""
    if shutil.which("bwrap"):
        return ""
    problem = install_debian("bubblewrap")
    return f"`sudo apt-get install bubblewrap` ({problem.splitlines()[-1]})" if problem else ""


def main(arguments: list[str], place: Place) -> int:
    """The exit status: with `--check` 0 only where nothing is to be done; without, sets up."""
    if arguments == ["--check"]:
        return 0 if place.is_ready() else 1
    try:
        set_up(place)
    except (SetupError, OSError) as e:
        say(f"\nSet-up failed. {e}")
        return 1
    except KeyboardInterrupt:
        say("\nSet-up was stopped; the same command goes on with it.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Place(ROOT)))
