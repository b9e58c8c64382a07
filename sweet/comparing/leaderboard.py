"""Every policy version's figures, from the log: by task set and evaluator, never mixing two.

Each figure has its n and its 95 % interval. People's votes and the judge's are counted apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from evaluators.figures import NONE, Figure, mean, rate
from evaluators.preference import (
    Met,
    agreement,
    bradley_terry,
    matrix,
    side_bias,
    win_rates,
)
from sweet.errors import ConfigError
from sweet.store import Choice, EpisodeStore, Round, ScoredEpisode, Vote, Voter
from sweet.types import EpisodeFilter, TaskKind
from sweet.validation import validation

POINTS = {Choice.LEFT: 1.0, Choice.RIGHT: 0.0, Choice.TIE: 0.5, Choice.BOTH_BAD: 0.5}
"""The left side's points; a vote that is not here (skipped, failed) is no opinion."""


@dataclass(frozen=True, slots=True)
class Row:
    """A version's figures on a task set by one evaluator.

    `evaluator` is empty for a version that has votes there and no scores. `success` is a figure of
    backend tasks. `win_rate` is people's, against all other versions on the task set.
    """

    policy_id: str
    task_set: str
    evaluator: str
    n: int
    success: Figure = NONE
    reward: Figure = NONE
    tests_passed: Figure = NONE
    cosine: Figure = NONE
    visual: Figure = NONE
    turns: Figure = NONE
    tokens: Figure = NONE
    win_rate: Figure = NONE
    judge_win_rate: Figure = NONE


@dataclass(frozen=True, slots=True)
class Opinions:
    """What voters of one kind said: strengths, who beat whom, and whether sides matter."""

    votes: int
    strengths: Mapping[str, Figure]
    wins: Mapping[tuple[str, str], Met]
    left_side: Figure


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """All rows, best first, with what was voted. `agreed`: judge and people, where both voted."""

    rows: tuple[Row, ...]
    people: Opinions
    judge: Opinions
    agreed: Figure

    def as_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        value = asdict(self)
        for name, opinions in (("people", self.people), ("judge", self.judge)):
            value[name]["wins"] = [
                {"first": first, "second": second, **asdict(met), "win_rate": asdict(met.win_rate)}
                for (first, second), met in sorted(opinions.wins.items())
            ]
        return value


def leaderboard(
    store: EpisodeStore,
    wanted: EpisodeFilter | None = None,
    *,
    sort: str = "success desc",
    blind_only: bool = False,
) -> Leaderboard:
    """The figures of what the filter lets through. `sort`: a column of Row, then asc or desc.

    A vote is let through by either of its sides; `blind_only` leaves out those that knew who was
    who. Raises: ConfigError for another sort, StoreError for a wrong filter.
    """
    wanted = wanted or EpisodeFilter()
    votes = [v for v in store.iter_votes(wanted) if v.choice in POINTS]
    votes = [v for v in votes if v.was_blind] if blind_only else votes
    people = [vote for vote in votes if vote.by is Voter.PERSON]
    judge = [vote for vote in votes if vote.by is Voter.JUDGE]
    rows = _rows(store.scored(wanted), people, judge)
    if wanted.policy_id:
        rows = [row for row in rows if row.policy_id == wanted.policy_id]
    return Leaderboard(
        tuple(sorted_rows(rows, sort)), opinions(people), opinions(judge), _agreed(people, judge)
    )


def opinions(votes: Sequence[Vote]) -> Opinions:
    """What the votes say together; skipped ones and failed sides are left out."""
    kept = [vote for vote in votes if vote.choice in POINTS]
    wins = matrix(map(_outcome, kept))
    chosen = [vote.choice for vote in kept]
    bias = side_bias(chosen.count(Choice.LEFT), chosen.count(Choice.RIGHT))
    return Opinions(len(kept), bradley_terry(wins), wins, bias)


def sorted_rows(rows: Iterable[Row], sort: str) -> list[Row]:
    """The rows by a column; unknown ones last, set by set, those with the best outcome first.

    Raises: ConfigError for another column.
    """
    name, _, way = sort.strip().partition(" ")
    way = way.strip().lower() or "desc"
    columns = [field.name for field in fields(Row)]
    if name not in columns or way not in ("asc", "desc"):
        raise ConfigError(
            f"Cannot sort by {sort!r}. Sort by one of {', '.join(columns)}, then asc or desc."
        )
    tidy = sorted(rows, key=lambda r: (r.task_set, r.evaluator, -_outcome_of(r), r.policy_id))
    known = [row for row in tidy if _sortable(row, name) is not None]
    unknown = [row for row in tidy if _sortable(row, name) is None]
    known.sort(key=lambda row: _sortable(row, name), reverse=way == "desc")
    return known + unknown


def turn_budgets(
    store: EpisodeStore, wanted: EpisodeFilter | None = None
) -> dict[tuple[str, str, str], list[Figure]]:
    """Success by turn budget, from 1 on, for each (policy, task set, evaluator).

    Counted from the same episodes: one succeeds within k turns where it was solved with at most k
    messages of the agent. At budget k only those count that were allowed k turns.
    """
    found = {}
    for group, episodes in _grouped(store.scored(wanted)).items():
        backend = [e for e in episodes if e.kind is TaskKind.BACKEND]
        longest = max((e.max_turns for e in backend), default=0)
        if longest:
            found[group] = [_within(backend, budget) for budget in range(1, longest + 1)]
    return found


@dataclass(frozen=True, slots=True)
class RoundPoint:
    """A round's validation: its version and the parent's, on the same tasks."""

    round_id: str
    algorithm: str
    parent_id: str
    version_id: str
    task_set: str
    kind: TaskKind
    evaluator: str
    parent: Figure
    version: Figure
    gain: Figure


def over_rounds(store: EpisodeStore, limit: int = 1000) -> list[RoundPoint]:
    """What the finished rounds reached, oldest first."""
    rounds = [found for found in store.rounds(limit) if found.figures and found.version_id]
    return [_point(found) for found in reversed(rounds)]


def _rows(scored: Sequence[ScoredEpisode], people: list[Vote], judge: list[Vote]) -> list[Row]:
    by_people, by_judge = _by_set(people), _by_set(judge)
    groups = _grouped(scored)
    seen = {(policy, task_set) for policy, task_set, _ in groups}
    voted = [place for place in {**by_people, **by_judge} if place not in seen]
    keys = [*groups, *((policy, task_set, "") for policy, task_set in voted)]
    return [
        _row(
            key,
            groups.get(key, []),
            by_people.get(key[:2], NONE),
            by_judge.get(key[:2], NONE),
        )
        for key in keys
    ]


def _row(
    key: tuple[str, str, str], episodes: Sequence[ScoredEpisode], people: Figure, judge: Figure
) -> Row:
    backend = [e for e in episodes if e.kind is TaskKind.BACKEND]
    return Row(
        *key,
        n=len(episodes),
        success=rate(sum(e.reward >= 1 for e in backend), len(backend)),
        reward=mean([e.reward for e in episodes]),
        tests_passed=_component(episodes, "tests_passed"),
        cosine=_component(episodes, "cosine"),
        visual=_component(episodes, "visual"),
        turns=mean([float(e.turns) for e in episodes]),
        tokens=mean([float(e.tokens) for e in episodes if e.tokens is not None]),
        win_rate=people,
        judge_win_rate=judge,
    )


def _component(episodes: Sequence[ScoredEpisode], name: str) -> Figure:
    return mean([e.components[name] for e in episodes if name in e.components])


def _grouped(scored: Iterable[ScoredEpisode]) -> dict[tuple[str, str, str], list[ScoredEpisode]]:
    groups: dict[tuple[str, str, str], list[ScoredEpisode]] = {}
    for one in scored:
        groups.setdefault((one.policy_id, one.task_set, one.evaluator), []).append(one)
    return groups


def _within(episodes: Sequence[ScoredEpisode], budget: int) -> Figure:
    allowed = [e for e in episodes if e.max_turns >= budget]
    return rate(sum(e.reward >= 1 and e.turns <= budget for e in allowed), len(allowed))


def _outcome(vote: Vote) -> tuple[str, str, float]:
    comparison = vote.comparison
    return comparison.left_policy, comparison.right_policy, POINTS[vote.choice]


def _by_set(votes: Iterable[Vote]) -> dict[tuple[str, str], Figure]:
    """Win rates by policy and task set."""
    sets: dict[str, list[Vote]] = {}
    for vote in votes:
        sets.setdefault(vote.comparison.task_set, []).append(vote)
    return {
        (policy, task_set): figure
        for task_set, cast in sets.items()
        for policy, figure in win_rates(matrix(map(_outcome, cast))).items()
    }


def _agreed(people: Iterable[Vote], judge: Iterable[Vote]) -> Figure:
    """How often a person's vote and a judge's on the same comparison are the same."""
    said: dict[str, list[float]] = {}
    for vote in judge:
        said.setdefault(vote.comparison.id, []).append(POINTS[vote.choice])
    return agreement(
        (POINTS[vote.choice], points)
        for vote in people
        for points in said.get(vote.comparison.id, [])
    )


def _outcome_of(row: Row) -> float:
    """By what versions on a task set compare; below all that is known where it is not."""
    known = (figure.value for figure in (row.success, row.cosine, row.visual))
    return next((value for value in known if value is not None), -1.0)


def _sortable(row: Row, name: str) -> Any:
    value = getattr(row, name)
    return value.value if isinstance(value, Figure) else value


def _point(done: Round) -> RoundPoint:
    found = validation(done.settings, done.figures)
    return RoundPoint(
        done.id,
        done.algorithm,
        done.policy_id,
        done.version_id or "",
        str(done.settings.get("validation_set", "")),
        found.kind,
        found.evaluator,
        found.parent,
        found.child,
        found.gain,
    )
