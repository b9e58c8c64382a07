"""Exports what a filter lets through, and imports files of either shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from sweet.errors import ConfigError, TaskDataError
from sweet.exchange import colbench, own
from sweet.exchange.files import read_rows, write_rows
from sweet.store import ContentError, EpisodeStore, LoggedEpisode
from sweet.types import EpisodeFilter

FORMATS: dict[str, ModuleType] = {shape.NAME: shape for shape in (own, colbench)}
MAX_PROBLEMS = 200  # kept of an import; the others are only counted


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote, and how many episodes the shape has no place for."""

    path: Path
    episodes: int
    skipped: int


@dataclass(frozen=True, slots=True)
class LineProblem:
    """A row that cannot be used: its number (from 1) and what is wrong with it."""

    line: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


@dataclass(frozen=True, slots=True)
class EpisodesImported:
    """What an import did: new and known episodes, and the lines it could not use."""

    added: int
    known: int
    bad: int
    problems: tuple[LineProblem, ...]


def export_episodes(
    store: EpisodeStore, wanted: EpisodeFilter, path: Path, format: str = own.NAME
) -> Exported:
    """What was written to `path` (.jsonl or .parquet), which is there whole or not at all.

    `format` is "episodes", which keeps all, or "colbench". Raises: ConfigError, StoreError.
    """
    if format not in FORMATS:
        raise ConfigError(f"The format is {format!r}; choose one of {', '.join(FORMATS)}.")
    shape = FORMATS[format]
    path = Path(path).expanduser()
    counts = {"written": 0, "skipped": 0}

    def lines() -> Iterator[dict[str, Any]]:
        for whole in store.iter_episodes(wanted):
            line = shape.to_line(whole)
            counts["skipped" if line is None else "written"] += 1
            if line is not None:
                yield line

    write_rows(path, lines(), shape.SCHEMA)
    return Exported(path, counts["written"], counts["skipped"])


def import_episodes(store: EpisodeStore, path: Path) -> EpisodesImported:
    """What an import of a JSONL or parquet file did; each line is of either shape.

    Each good line is committed as it is read, and known episodes are recognised: an import that
    broke off is simply run again. Raises: StoreError where the file or the log cannot be used.
    """
    path = Path(path).expanduser()
    added = known = bad = 0
    problems: list[LineProblem] = []
    for number, value in read_rows(path):
        try:
            new = store.add_episode(_episode(value, path))
        except (TaskDataError, ContentError) as e:
            bad += 1
            if len(problems) < MAX_PROBLEMS:
                problems.append(LineProblem(number, str(e)))
            continue
        added, known = added + new, known + (not new)
    return EpisodesImported(added, known, bad, tuple(problems))


def _episode(value: Any, path: Path) -> LoggedEpisode:
    if isinstance(value, ValueError):
        raise TaskDataError(str(value))
    if isinstance(value, dict) and "dialogue_history" in value:
        return colbench.from_line(value, policy_id=f"file:{path.stem}")
    if isinstance(value, dict) and "turns" in value:
        return own.from_line(value)
    raise TaskDataError(
        "no episode: expected an object with task, turns, … (this studio's) or with task, "
        "dialogue_history, answer (ColBench's)"
    )
