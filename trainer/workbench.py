"""A round's folder: what each stage gave, so that a round that was killed goes on from there.

rounds/lock                  held while a round runs: there is never a second one
rounds/r0001/settings.json
rounds/r0001/01-collect.json …   a stage's result, written aside and renamed when it is done
rounds/r0001/critic/ policy/     what was trained: PEFT folders, or whole models
rounds/r0001/log.txt             what was said while it ran
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from sweet.errors import ConfigError, TrainingError, boundary
from sweet.registry import plays
from sweet.services import Services
from sweet.store import Round, RoundState
from sweet.types import PolicyVersion, TaskRow
from trainer.settings import Algorithm, RoundSettings
from trainer.trackers import Tracker, check_tracker

if TYPE_CHECKING:  # it brings torch
    from trainer.fit import Report

Result = dict[str, Any]
LOG = "log.txt"
SAID_UPDATES = 10  # of a training, in its log


class Workbench:
    """The folder, settings and log row of one round."""

    def __init__(self, services: Services, id: str, settings: RoundSettings) -> None:
        self.services = services
        self.id = id
        self.settings = settings
        self.folder = rounds_folder(services) / id
        self._results: dict[str, Result] = {}
        self._tracker: Tracker | None = None

    @classmethod
    def begin(cls, services: Services, settings: RoundSettings) -> Workbench:
        """A new round's, whose start was checked. Raises: ConfigError, PolicyError."""
        parent = check_start(services, settings)
        return cls.new(services, settings.starting_from(parent.id))

    @classmethod
    def new(cls, services: Services, settings: RoundSettings) -> Workbench:
        """A new round's, in the log and on disk."""
        taken = [p.name for p in rounds_folder(services).glob("r[0-9]*") if p.is_dir()]
        taken += [r.id for r in services.store.rounds(1)]  # its folder may have been deleted
        numbers = [int(name[1:]) for name in taken]
        id = f"r{max(numbers, default=0) + 1:04d}"
        bench = cls(services, id, settings)
        bench.folder.mkdir(parents=True)
        bench.write("settings.json", settings.as_dict())
        services.store.start_round(id, settings.algorithm, settings.policy, settings.as_dict())
        return bench

    @classmethod
    def again(cls, services: Services, id: str) -> Workbench:
        """A round that was begun before. Raises: ConfigError, StoreError."""
        bench = cls(services, id, settings_of(services, id))
        check_start(services, bench.settings)
        services.store.resume_round(id)
        return bench

    def stage(self, name: str, work: Callable[[Workbench], Result]) -> Result:
        """What a stage gave: read where it was done before, else done now."""
        file = f"{len(self._results) + 1:02d}-{name}.json"
        path = self.folder / file
        if not path.exists():
            self.at(name, 0, 0)
            begun = time.monotonic()
            with boundary(TrainingError, f"The stage {name} of round {self.id} broke off"):
                result = work(self)
            self.write(file, {**result, "seconds": round(time.monotonic() - begun, 2)})
        self._results[name] = json.loads(path.read_text())
        self.note(f"{name}: {_brief(self._results[name])}")
        return self._results[name]

    def result(self, stage: str) -> Result:
        """What an earlier stage gave."""
        return self._results[stage]

    def cut_short(self) -> list[str]:
        """The stages so far that ended early, because that was asked."""
        return [name for name, result in self._results.items() if result.get("ended_early")]

    def at(self, stage: str, done: int, total: int) -> bool:
        """Let the log know how far the round is; whether the stage is to end with what it has."""
        return self.services.store.round_at(self.id, stage, done, total).keep_stage == stage

    def is_to_end(self, stage: str) -> bool:
        """Whether the stage was asked to end with what it has."""
        return self.services.store.round(self.id).keep_stage == stage

    def reporter(self, stage: str) -> Report:
        """Writes what an update gave into the log, and knows whether training is to end there."""
        settings = self.settings
        how = settings.critic_training if stage == "critic" else settings.policy_training

        def report(step: int, total: int, numbers: Mapping[str, float]) -> bool:
            epoch = (step - 1) * how[1] // total + 1
            told = {**numbers, "epoch": epoch}
            self.services.store.add_metrics(self.id, stage, step, told)
            if self._tracker:
                self._tracker.log(stage, step, told)
            if step in (1, total) or step % max(1, total // SAID_UPDATES) == 0:
                self.note(f"{stage} {step} of {total}: {_brief(dict(numbers))}")
            return self.at(stage, step, total)

        return report

    def note(self, text: str) -> None:
        """Say something on stderr and in the round's own log."""
        line = f"{datetime.now():%H:%M:%S} {self.id} {text}\n"
        sys.stderr.write(line)
        sys.stderr.flush()
        with (self.folder / LOG).open("a") as file:
            if not _is_stderr(file.fileno()):
                file.write(line)

    @contextmanager
    def tracked(self) -> Iterator[None]:
        """Its numbers go where `report_to` says, too. Raises: TrainingError."""
        name = self.settings.report_to
        if name == "none":
            yield
            return
        folder = rounds_folder(self.services) / name
        self._tracker = Tracker(name, self.id, folder, self.settings.as_dict())
        try:
            yield
        finally:
            self._tracker.finish()

    def write(self, name: str, value: object) -> None:
        """Write a JSON file into the folder: whole or not at all."""
        aside = self.folder / f"{name}.new"
        with aside.open("w") as file:
            json.dump(value, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self.folder / name)


def check_start(services: Services, settings: RoundSettings) -> PolicyVersion:
    """The parent, if all that the settings name can be had. Raises: ConfigError, PolicyError."""
    check_tracker(settings.report_to)
    kind = settings.task_kind
    if settings.kind is Algorithm.JUDGE:
        services.judge()
    parent = services.registry.verified(settings.policy or services.default_policy(kind))
    if not plays(parent, kind):
        raise ConfigError(
            f"The version {parent.id!r} was not made for {kind.value} tasks. Start from another "
            "one, or choose its kind with --tasks."
        )
    return parent


def set_rows(services: Services, settings: RoundSettings, name: str) -> list[TaskRow]:
    """The tasks of a set that the round needs. Raises: TaskDataError, ConfigError."""
    rows = services.task_rows(name)
    kinds = {row.task.kind for row in rows}
    if kinds - {settings.task_kind}:
        found = " and ".join(sorted(kinds))
        raise ConfigError(
            f"The set {name!r} holds {found} tasks, but the round is for {settings.tasks} ones. "
            "Choose another set, or the kind with --tasks."
        )
    return rows


def settings_of(services: Services, id: str) -> RoundSettings:
    """The settings that a round was begun with. Raises: ConfigError where there is none."""
    path = rounds_folder(services) / id / "settings.json"
    if not re.fullmatch(r"r\d{4,}", id) or not path.is_file():
        there = ", ".join(r.id for r in services.store.rounds()) or "none"
        raise ConfigError(f"There is no round {id!r} to resume. There are: {there}.")
    with boundary(ConfigError, f"The settings of round {id} can't be read ({path})"):
        return RoundSettings(**json.loads(path.read_text()))


@contextmanager
def only_round(services: Services) -> Iterator[None]:
    """Hold the place of the one round that may run. Raises: TrainingError where it is taken."""
    folder = rounds_folder(services)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as e:
        raise TrainingError(already_running(_running(services))) from e
    try:
        for round in _running(services):
            if round.host != socket.gethostname():  # it would hold the lock
                services.store.stop_round(round.id)
            elif round.process_id not in (os.getpid(), os.getppid()):  # its process just starts
                raise TrainingError(already_running([round]))
        yield
    finally:
        lock.release()


def already_running(rounds: Sequence[Round]) -> str:
    """Why no other round may run now."""
    who = ", ".join(
        f"{r.id} ({r.algorithm} from {r.policy_id}, at {r.stage}, process {r.process_id})"
        for r in rounds
    )
    return (
        f"Another round is running: {who or 'it has just begun'}. Two never run at once. Wait "
        "until it is done, or stop it."
    )


def _running(services: Services) -> list[Round]:
    return [r for r in services.store.rounds() if r.state is RoundState.RUNNING]


def rounds_folder(services: Services) -> Path:
    """Where the rounds of a data folder lie."""
    return services.settings.data / "rounds"


def _brief(result: Result) -> str:
    shown = {k: v for k, v in result.items() if isinstance(v, str | int | float | bool | None)}
    return ", ".join(
        f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in shown.items()
    )


def _is_stderr(file: int) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.fstat(sys.stderr.fileno()))
    except (OSError, ValueError, AttributeError):  # no file of the system's
        return False
