"""Rounds as processes of their own: started, kept, aborted, resumed and watched from anywhere.

A round outlives the app that started it. What is known of it is in the log and in its folder, so
any process of the same data folder can say how it stands and act on it.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from sweet.errors import TrainingError
from sweet.services import Services
from sweet.settings import Settings, default_data_dir
from sweet.store import Round, RoundState
from trainer.preview import Preview, preview
from trainer.progress import StageProgress, stages_of
from trainer.settings import RoundSettings
from trainer.workbench import (
    LOG,
    Workbench,
    already_running,
    check_start,
    only_round,
    rounds_folder,
    settings_of,
)

__all__ = ["Jobs", "Preview", "StageProgress"]

ROOT = Path(__file__).parents[1]
KEEPABLE = ("collect", "critic", "candidates", "rank", "policy", "evaluate")
END_S = 10.0  # how long a round may take to end by itself
START_S = 30.0  # how long another start may take
LOG_BYTES = 1_000_000  # of a log are read for its last lines
_NOT_SHOWN = ("API_KEY", "SWEET_HOST", "SWEET_PORT", "SWEET_DATA")


class Jobs:
    """The rounds of one data folder."""

    def __init__(self, services: Services) -> None:
        self.services = services

    def start(self, settings: RoundSettings) -> str:
        """The id of a round that now runs in a process of its own.

        Raises: SweetError with the reason where settings are wrong or another round runs.
        """
        with self._alone():
            bench = Workbench.begin(self.services, settings)
            self._spawn(bench.id)
        return bench.id

    def resume(self, id: str) -> None:
        """Go on with a round that broke off, was aborted, or failed. Raises: SweetError."""
        with self._alone():
            check_start(self.services, settings_of(self.services, id))
            if self.services.store.round(id).state is RoundState.DONE:
                raise TrainingError(f"The round {id} is done; there is nothing to resume.")
            self._spawn(id)

    def keep(self, id: str) -> None:
        """End the running stage early with what it has; the later stages run on.

        Raises: TrainingError where the round does not run, or its stage can't be cut short.
        """
        round = self._needed(id, "cut short")
        if not can_keep(round):
            raise TrainingError(
                f"The round {id} is at {round.stage}, which is not cut short. Stages that can be: "
                f"{', '.join(KEEPABLE)}. Wait, or abort the round: it can be resumed."
            )
        self.services.store.keep_round(id)

    def abort(self, id: str) -> None:
        """End the round's process; nothing is registered, and it can be resumed.

        Raises: TrainingError where it does not run here.
        """
        round = self._needed(id, "aborted")
        if round.process_id == os.getpid():
            raise TrainingError(f"The round {id} runs in this very process; end it with Ctrl-C.")
        with suppress(psutil.NoSuchProcess):
            _end(psutil.Process(round.process_id))
        self.services.store.stop_round(id)

    def running(self) -> Round | None:
        """The round that runs now, whoever started it."""
        return next((r for r in self.rounds() if r.state is RoundState.RUNNING), None)

    def rounds(self, limit: int = 20) -> list[Round]:
        """The newest rounds first, each as it truly stands."""
        found = self.services.store.rounds(limit)
        if any(r.state is RoundState.RUNNING and not r.is_here for r in found):
            # Another machine's process can't be seen, but where nobody holds the lock it is gone.
            with suppress(TrainingError), only_round(self.services):
                pass
            found = self.services.store.rounds(limit)
        return found

    def progress(self, id: str) -> list[StageProgress]:
        """Each stage of a round, in order. Raises: StoreError where there is no such round."""
        return stages_of(self.services.store.round(id), self._folder(id))

    def log_tail(self, id: str, lines: int = 200) -> str:
        """The last lines of what a round said; empty where there are none."""
        with suppress(FileNotFoundError), (self._folder(id) / LOG).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_BYTES))
            text = file.read().decode("utf-8", "replace")
            return "\n".join(deque(text.splitlines(), maxlen=max(0, lines)))
        return ""

    def preview(self, settings: RoundSettings) -> Preview:
        """What a round with these settings would learn from, chosen as the round chooses."""
        return preview(self.services, settings)

    def command(self, settings: RoundSettings) -> str:
        """The shell command, to be run in the project's folder, that does the same headless."""
        words = [_python(), "-m", "trainer", "round"]
        for name, value in settings.changed().items():
            option = name.replace("_", "-")
            if isinstance(value, bool):
                words.append(f"--{option}" if value else f"--no-{option}")
            else:
                words.append(f"--{option}={value}")
        given = {n: v for n, v in os.environ.items() if n.upper().startswith("SWEET_")}
        shown = {n: v for n, v in given.items() if not n.upper().endswith(_NOT_SHOWN)}
        data = self.services.settings.data
        if "SWEET_DATA" in given or data != default_data_dir():
            shown["SWEET_DATA"] = str(data.absolute())
        assigned = [f"{name}={shlex.quote(value)}" for name, value in sorted(shown.items())]
        return " ".join([*assigned, shlex.join(words)])

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else starts a round meanwhile, and none runs. Raises: TrainingError."""
        folder = rounds_folder(self.services)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(folder / "start.lock", timeout=START_S):
                if running := self.running():
                    raise TrainingError(already_running([running]))
                yield
        except Timeout as e:
            raise TrainingError("Another round is just being started. Try again.") from e

    def _spawn(self, id: str) -> None:
        """Resume the round in a process that is a session of its own. Raises: TrainingError."""
        command = [sys.executable, "-m", "trainer", "round", "--resume", id]
        try:
            process = self._process(id, command)
        except OSError as e:
            why = f"The process of round {id} could not be started: {e}. Resume the round later."
            self.services.store.fail_round(id, why)
            raise TrainingError(why) from e
        self.services.store.resume_round(id, process.pid)
        threading.Thread(target=process.wait, name=f"end of {id}", daemon=True).start()

    def _process(self, id: str, command: list[str]) -> subprocess.Popen[bytes]:
        with (self._folder(id) / LOG).open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=ROOT,
                env=_environment(self.services.settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _needed(self, id: str, what: str) -> Round:
        """The round, which runs on this machine. Raises: TrainingError, StoreError."""
        round = self.services.store.round(id)
        if round.state is not RoundState.RUNNING:
            raise TrainingError(f"The round {id} is {round.state}, so it can't be {what}.")
        if not round.is_here:
            raise TrainingError(f"The round {id} runs on {round.host}; it can be {what} there.")
        return round

    def _folder(self, id: str) -> Path:
        return rounds_folder(self.services) / id


def can_keep(round: Round) -> bool:
    """Whether the stage that the round is at can be ended with what it has."""
    return round.stage.partition(" ")[0] in KEEPABLE


def _environment(settings: Settings) -> dict[str, str]:
    """This process's environment, with exactly these settings."""
    kept = {n: v for n, v in os.environ.items() if not n.upper().startswith("SWEET_")}
    own = dict(_variables("SWEET", settings.model_dump(mode="json", exclude_none=True)))
    own["SWEET_DATA"] = str(settings.data.absolute())
    return {**kept, **own}


def _variables(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    """Settings as environment variables; nested ones with two underscores."""
    between = "_" if prefix == "SWEET" else "__"
    for name, one in value.items():
        full = f"{prefix}{between}{name.upper()}"
        if isinstance(one, dict):
            yield from _variables(full, one)
        else:
            yield full, one if isinstance(one, str) else json.dumps(one)


def _end(process: psutil.Process) -> None:
    """End a round's process and its children: asked first, killed if that doesn't help."""
    family = [process, *process.children(recursive=True)]
    leads_group = os.getpgid(process.pid) == process.pid  # not where a script's shell leads it
    if leads_group:
        os.killpg(process.pid, signal.SIGTERM)
    else:
        process.terminate()
    psutil.wait_procs([process], timeout=END_S)
    for one in family:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    if leads_group:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    psutil.wait_procs(family, timeout=END_S)


def _python() -> str:
    """This Python, as it is called in the project's folder."""
    path = Path(sys.executable)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
