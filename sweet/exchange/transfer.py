"""Exports what a filter lets through, and imports files of any of the shapes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from sweet.errors import ConfigError, TaskDataError
from sweet.exchange import colbench, own, preferences, votes
from sweet.exchange.files import read_rows, write_rows
from sweet.store import ContentError, EpisodeStore, LoggedEpisode
from sweet.types import EpisodeFilter, PreferencePair

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
    """What an import did: new and known rows, and the lines it could not use."""

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


def export_votes(store: EpisodeStore, wanted: EpisodeFilter, path: Path) -> int:
    """How many votes were written to `path`: those of which the filter lets a side through.

    Each has both of its episodes with it. Raises: StoreError.
    """
    counted = _Counted(
        votes.to_line(
            vote,
            store.whole_episode(vote.comparison.left),
            store.whole_episode(vote.comparison.right),
        )
        for vote in store.iter_votes(wanted)
    )
    write_rows(Path(path).expanduser(), counted, votes.SCHEMA)
    return counted.count


def export_preferences(pairs: Iterable[PreferencePair], path: Path) -> int:
    """How many pairs were written to `path`, in TRL's shape; each once. Raises: StoreError."""
    counted = _Counted(line for _, line in _distinct(pairs))
    write_rows(Path(path).expanduser(), counted, preferences.SCHEMA)
    return counted.count


def preference_ids(pairs: Iterable[PreferencePair]) -> set[str]:
    """The ids under which an import knows the pairs again."""
    return {id for id, _ in _distinct(pairs)}


def imported_preferences(store: EpisodeStore) -> Iterator[PreferencePair]:
    """The preference pairs that imports brought, oldest first."""
    for _, content in store.iter_preferences():
        yield preferences.from_line(content)


def import_episodes(
    store: EpisodeStore, path: Path, known_preferences: Callable[[], Collection[str]] = tuple
) -> EpisodesImported:
    """What an import of a JSONL or parquet file did; each line is of any of the shapes.

    Episodes, votes and preference pairs may be mixed. Each good line is committed as it is read,
    and known ones are recognised: an import that broke off is simply run again.
    `known_preferences` gives the ids of the pairs that this log makes by itself; it is asked once,
    at the first pair. Raises: StoreError where the file or the log cannot be used.
    """
    path = Path(path).expanduser()
    added = known = bad = 0
    problems: list[LineProblem] = []
    brings = _Import(store, path, known_preferences)
    for number, value in read_rows(path):
        try:
            new = brings.row(value)
        except (TaskDataError, ContentError) as e:
            bad += 1
            if len(problems) < MAX_PROBLEMS:
                problems.append(LineProblem(number, str(e)))
            continue
        added, known = added + new, known + (not new)
    return EpisodesImported(added, known, bad, tuple(problems))


class _Counted:
    """Rows that are counted while they are read."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self._rows = rows
        self.count = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for row in self._rows:
            self.count += 1
            yield row


class _Import:
    """Brings rows of one file into the log."""

    def __init__(
        self, store: EpisodeStore, path: Path, known_preferences: Callable[[], Collection[str]]
    ) -> None:
        self._store = store
        self._path = path
        self._ask = known_preferences
        self._known: Collection[str] | None = None

    def row(self, value: Any) -> bool:
        """Whether the row was new. Raises: TaskDataError, StoreError."""
        if isinstance(value, ValueError):
            raise TaskDataError(str(value))
        if isinstance(value, dict) and "choice" in value:
            return self._vote(value)
        if isinstance(value, dict) and "rejected" in value:
            return self._preference(value)
        return self._store.add_episode(_episode(value, self._path))

    def _vote(self, value: dict[str, Any]) -> bool:
        vote, *sides = votes.from_line(value)
        for side in sides:
            self._store.add_episode(side)
        return self._store.add_vote(vote)

    def _preference(self, value: dict[str, Any]) -> bool:
        line = preferences.to_line(preferences.from_line(value))
        id = preferences.id_of(line)
        if self._known is None:
            self._known = self._ask()
        return id not in self._known and self._store.add_preference(id, line)


def _distinct(pairs: Iterable[PreferencePair]) -> Iterator[tuple[str, dict[str, Any]]]:
    seen: set[str] = set()
    for pair in pairs:
        line = preferences.to_line(pair)
        id = preferences.id_of(line)
        if id not in seen and preferences.says_something(line):
            seen.add(id)
            yield id, line


def _episode(value: Any, path: Path) -> LoggedEpisode:
    if isinstance(value, dict) and "dialogue_history" in value:
        return colbench.from_line(value, policy_id=f"file:{path.stem}")
    if isinstance(value, dict) and "turns" in value:
        return own.from_line(value)
    raise TaskDataError(
        "no episode: expected an object with task, turns, … (this studio's) or with task, "
        "dialogue_history, answer (ColBench's); a vote has choice, a preference pair has prompt, "
        "chosen and rejected"
    )
