"""What people preferred, for a round: pairs of episodes and of turns, beside the log's outcomes.

Three kinds: pairs of turns that likes, edits and retries make (`human`), what votes on two episodes
side by side make (`vote`), and pairs that a file brought (`imported`). Each has a weight of its own
in the settings; with weight 0 its pairs are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sweet.errors import StoreError
from sweet.exchange import preference_ids
from sweet.exchange import preferences as shape
from sweet.parsing import spoken
from sweet.store import EpisodeStore, LoggedEpisode
from sweet.types import (
    EpisodeFilter,
    PairLevel,
    PairSource,
    PreferencePair,
    Task,
    TaskKind,
    TaskRow,
)
from trainer.opinions import turn_pair, turn_pairs
from trainer.preferences import outcome_pairs, vote_pairs, voted_pair
from trainer.settings import Algorithm, RoundSettings

HELD_OUT = ("validation", "test", "families")
"""Splits that are for measuring: nothing is ever learned from them."""
NO_HIDDEN = "no hidden information"
_NAMES = {TaskKind.BACKEND: "function", TaskKind.FRONTEND: "web page"}


@dataclass(frozen=True, slots=True)
class Preferred:
    """Pairs that people made, the tasks of those from elsewhere, and what can't be learned from."""

    pairs: tuple[PreferencePair, ...]
    rows: Mapping[str, TaskRow]
    left_out: Counter[str]

    @property
    def voted(self) -> frozenset[str]:
        """The episodes that a vote compares with another."""
        return frozenset(
            str(id)
            for pair in self.pairs
            if pair.source is PairSource.VOTE and pair.level is PairLevel.TRAJECTORY
            for id in pair.episode_ids
        )


def preferred(
    store: EpisodeStore,
    settings: RoundSettings,
    logged: Sequence[LoggedEpisode],
    known_tasks: Collection[str] = (),
) -> Preferred:
    """What a round with these settings learns from, weighted, of all that people preferred.

    `logged` are the episodes that its filter lets through; the critic reads hidden information of
    `known_tasks` that the log has none of. Imported pairs are of no episode, so only a round
    without a filter takes them.
    """
    wanted = log_filter(settings)
    made: list[PreferencePair] = []
    if settings.human_pairs:
        made += turn_pairs(logged, store.iter_forks())
    if settings.vote_pairs and settings.use_log:
        voted = vote_pairs(store, wanted, blind_only=settings.blind_votes)
        made += _not_said_outright(voted, made)
    rows = {id: store.task_row(id) for id in dict.fromkeys(pair.task_id for pair in made)}
    if settings.imported_pairs and settings.use_log and wanted == EpisodeFilter():
        known = preference_ids([*made, *outcome_pairs(logged)])
        for pair, row in _imported(store):
            if pair.episode_ids[0] not in known:
                made.append(pair)
                rows[pair.task_id] = row
    return _usable(settings, made, rows, known_tasks)


def record(pairs: Iterable[PreferencePair]) -> dict[str, list[Any]]:
    """The pairs as a stage's result has them, to be found again by `recorded`."""
    found: dict[str, list[Any]] = {"turns": [], "votes": [], "imported": []}
    for pair in pairs:
        if pair.source is PairSource.IMPORTED:
            found["imported"].append(pair.episode_ids[0])
        elif pair.level is PairLevel.TURN:
            found["turns"].append([*pair.episode_ids, pair.chosen[0].index, str(pair.source)])
        else:
            found["votes"].append(list(pair.episode_ids))
    return found


def recorded(
    store: EpisodeStore, settings: RoundSettings, found: Mapping[str, Sequence[Any]]
) -> tuple[list[PreferencePair], dict[str, TaskRow]]:
    """The pairs that a stage's result has, and their tasks by id."""
    pairs = []
    for chosen, rejected, index, source in found["turns"]:
        sides = store.whole_episode(chosen), store.whole_episode(rejected)
        pair = turn_pair(sides[0].row, sides[0].episode, sides[1].episode, index)
        pairs.append(replace(pair, source=PairSource(source)))
    for chosen, rejected in found["votes"]:
        pairs.append(voted_pair(store.whole_episode(chosen), store.whole_episode(rejected)))
    rows = {id: store.task_row(id) for id in dict.fromkeys(pair.task_id for pair in pairs)}
    if wanted := set(found["imported"]):
        for pair, row in _imported(store):
            if pair.episode_ids[0] in wanted:
                pairs.append(pair)
                rows[pair.task_id] = row
    return [_weighted(pair, settings) for pair in pairs], rows


def log_filter(settings: RoundSettings) -> EpisodeFilter:
    """The log's episodes that the settings ask for."""
    return EpisodeFilter(
        task_set=settings.from_tasks,
        policy_id=settings.from_policy,
        collaborator=settings.from_collaborator,
        since=settings.since,
        until=settings.until,
    )


def unlearnable(row: TaskRow, kind: TaskKind) -> str:
    """Why nothing can be learned from a task in a round for that kind; empty where it can."""
    if row.task.split in HELD_OUT:
        return "task held out for measuring"
    return "" if row.task.kind is kind else _NAMES[row.task.kind]


def by_source(pairs: Iterable[PreferencePair], level: PairLevel) -> dict[str, int]:
    """How many pairs of that level each source made."""
    return dict(Counter(str(pair.source) for pair in pairs if pair.level is level))


def turns_alone(pairs: Iterable[PreferencePair]) -> str:
    """What can be done with pairs of turns where there is nothing else; empty where none is."""
    n = sum(pair.level is PairLevel.TURN for pair in pairs)
    if not n:
        return ""
    return (
        f" People made {n} {'pair' if n == 1 else 'pairs'} of turns, which teach the policy "
        f"without anything else: --algorithm {Algorithm.TURNS}."
    )


def _usable(
    settings: RoundSettings,
    made: Iterable[PreferencePair],
    rows: Mapping[str, TaskRow],
    known_tasks: Collection[str],
) -> Preferred:
    pairs, left_out = [], Counter[str]()
    for pair in made:
        if pair.level not in settings.kind.pair_levels:
            continue
        row = rows[pair.task_id]
        why = unlearnable(row, settings.task_kind)
        is_read = pair.level is PairLevel.TRAJECTORY and settings.kind.reads_hidden
        if not why and is_read and row.hidden is None and row.task.id not in known_tasks:
            why = NO_HIDDEN
        if why:
            left_out[why] += 1
        else:
            pairs.append(_weighted(pair, settings))
    return Preferred(tuple(pairs), rows, left_out)


def _weighted(pair: PreferencePair, settings: RoundSettings) -> PreferencePair:
    return replace(pair, weight=settings.weight_of(pair.source))


def _not_said_outright(
    voted: Iterable[PreferencePair], made: Iterable[PreferencePair]
) -> Iterator[PreferencePair]:
    """Votes' pairs; of turns only where nobody liked, edited or retried either message there.

    A vote is on two whole episodes: what was said about the very turn counts more.
    """
    places = {_place(pair) for pair in made}
    for pair in voted:
        if shape.says_something(shape.to_line(pair)) and _place(pair) not in places:
            yield pair


def _place(pair: PreferencePair) -> object:
    """What a pair of turns is about, whichever side was preferred; of episodes, itself."""
    if pair.level is not PairLevel.TURN:
        return id(pair)
    sides = frozenset(spoken(side[0].action.raw) for side in (pair.chosen, pair.rejected))
    return pair.task_id, pair.observation, sides


def _imported(store: EpisodeStore) -> Iterator[tuple[PreferencePair, TaskRow]]:
    """Imported pairs, known by the id of the import in place of an episode's, and their tasks.

    A task of this log is meant only where its description is the same: ids are each log's own.
    """
    tasks: dict[str, TaskRow | None] = {}
    held_out: set[str] | None = None
    for id, content in store.iter_preferences():
        pair = shape.from_line(content)
        if pair.task_id not in tasks:
            tasks[pair.task_id] = _row(store, pair.task_id)
        row, seen = tasks[pair.task_id], pair.observation
        if row is None or (row.task.kind, row.task.description) != (seen.kind, seen.description):
            held_out = _held_out(store) if held_out is None else held_out
            split = HELD_OUT[0] if seen.description in held_out else shape.IMPORTED_TASK
            name = f"{shape.IMPORTED_TASK}-{id}"
            task = Task(name, seen.kind, seen.description, split, shape.IMPORTED_TASK)
            row = TaskRow(task, None)
        yield (
            replace(pair, task_id=row.task.id, source=PairSource.IMPORTED, episode_ids=(id, None)),
            row,
        )


def _row(store: EpisodeStore, task_id: str) -> TaskRow | None:
    try:
        return store.task_row(task_id)
    except StoreError:
        return None


def _held_out(store: EpisodeStore) -> set[str]:
    """What the log's tasks for measuring say: a pair without its task's id may be of one."""
    sets = [one for one in store.task_sets() if one.split in HELD_OUT]
    return {
        task.description for s in sets for task in store.tasks(s.source, s.split, limit=s.count)
    }
