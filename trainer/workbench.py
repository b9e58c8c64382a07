"""A round's folder: what each stage gave, so that a round that was killed goes on from there.

rounds/lock                  held while a round runs: there is never a second one
rounds/r0001/settings.json
rounds/r0001/01-collect.json …   a stage's result, written aside and renamed when it is done
rounds/r0001/critic/ policy/     adapters as PEFT folders
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from sweet.errors import ConfigError, TrainingError, boundary
from sweet.services import Services
from sweet.store import RoundState
from trainer.fit import Report
from trainer.settings import RoundSettings

Result = dict[str, Any]


class Workbench:
    """The folder, settings and log row of one round."""

    def __init__(self, services: Services, id: str, settings: RoundSettings) -> None:
        self.services = services
        self.id = id
        self.settings = settings
        self.folder = _rounds(services) / id
        self._results: dict[str, Result] = {}

    @classmethod
    def new(cls, services: Services, settings: RoundSettings) -> Workbench:
        """A new round's, in the log and on disk."""
        taken = [p.name for p in _rounds(services).glob("r[0-9]*") if p.is_dir()]
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
        path = _rounds(services) / id / "settings.json"
        if not re.fullmatch(r"r\d{4,}", id) or not path.is_file():
            there = ", ".join(r.id for r in services.store.rounds()) or "none"
            raise ConfigError(f"There is no round {id!r} to resume. There are: {there}.")
        with boundary(ConfigError, f"The settings of round {id} can't be read ({path})"):
            settings = RoundSettings(**json.loads(path.read_text()))
        services.store.resume_round(id)
        return cls(services, id, settings)

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
        _note(f"{self.id} {name}: {_brief(self._results[name])}")
        return self._results[name]

    def result(self, stage: str) -> Result:
        """What an earlier stage gave."""
        return self._results[stage]

    def at(self, stage: str, done: int, total: int) -> None:
        """Let the log know how far the round is."""
        self.services.store.round_at(self.id, stage, done, total)

    def reporter(self, stage: str) -> Report:
        """Writes what an update gave into the log."""

        def report(step: int, total: int, numbers: Mapping[str, float]) -> None:
            self.services.store.add_metrics(self.id, stage, step, numbers)
            self.at(stage, step, total)

        return report

    def write(self, name: str, value: object) -> None:
        """Write a JSON file into the folder: whole or not at all."""
        aside = self.folder / f"{name}.new"
        with aside.open("w") as file:
            json.dump(value, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self.folder / name)


@contextmanager
def only_round(services: Services) -> Iterator[None]:
    """Hold the place of the one round that may run. Raises: TrainingError where it is taken."""
    folder = _rounds(services)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as e:
        running = [r for r in services.store.rounds() if r.state is RoundState.RUNNING]
        who = ", ".join(
            f"{r.id} ({r.algorithm} from {r.policy_id}, at {r.stage}, process {r.process_id})"
            for r in running
        )
        raise TrainingError(
            f"Another round is running: {who or 'it has just begun'}. Two never run at once. Wait "
            "until it is done, or stop it."
        ) from e
    try:
        yield
    finally:
        lock.release()


def _rounds(services: Services) -> Path:
    return services.settings.data / "rounds"


def _brief(result: Result) -> str:
    shown = {k: v for k, v in result.items() if isinstance(v, str | int | float | bool | None)}
    return ", ".join(
        f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in shown.items()
    )


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
