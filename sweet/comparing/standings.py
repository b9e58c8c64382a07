"""All that a leaderboard shows, measured at once: the table, votes, budgets, rounds; and as files.

An unknown figure is null in JSON and "n/a" in CSV, never 0.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from evaluators.figures import NONE, Figure
from sweet.comparing.leaderboard import (
    Leaderboard,
    Opinions,
    RoundPoint,
    Row,
    leaderboard,
    over_rounds,
    sorted_rows,
    turn_budgets,
)
from sweet.comparing.paper import BACKEND_N, FRONTEND_N, PAPER, PaperRow
from sweet.store import EpisodeStore
from sweet.types import EpisodeFilter

NA = "n/a"
HERE = "measured here"
PAPERS = "the paper's, not measured here"
PAPER_SETS = "ColBench"
_FIGURES = tuple(f.name for f in fields(Row) if isinstance(f.default, Figure))
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Standings:
    """What was measured, and what was asked for. `budgets`: success by turn budget, by row."""

    asked: Mapping[str, Any]
    board: Leaderboard
    budgets: Mapping[Key, Sequence[Figure]]
    rounds: Sequence[RoundPoint]

    def sorted_by(self, sort: str) -> Standings:
        """The same with the rows in another order. Raises: ConfigError for no such column."""
        rows = tuple(sorted_rows(self.board.rows, sort))
        return replace(self, board=replace(self.board, rows=rows))

    def as_json(self, *, paper: bool = False) -> dict[str, Any]:
        """All of it as JSON values; with the paper's rows, in percent, if asked for."""
        value = {"filter": dict(self.asked), **self.board.as_json()}
        value["turn_budgets"] = [
            {"policy_id": policy, "task_set": task_set, "evaluator": evaluator,
             "success": [asdict(figure) for figure in budgets]}
            for (policy, task_set, evaluator), budgets in self.budgets.items()
        ]  # fmt: skip
        value["rounds"] = [asdict(point) for point in self.rounds]
        if paper:
            value["paper"] = [asdict(row) for row in PAPER]
        return value

    def table_csv(self, *, paper: bool = False) -> str:
        """The table, a line a row, each figure with its interval and its n."""
        rows = [(HERE, row) for row in self.board.rows]
        rows += [(PAPERS, row) for row in paper_rows()] if paper else []
        columns = [f"{name}{end}" for name in _FIGURES for end in ("", "_low", "_high", "_n")]
        head = ("source", "policy_id", "task_set", "evaluator", "n", *columns)
        return _csv(head, (_line(source, row) for source, row in rows))

    def votes_csv(self) -> str:
        """What was voted, a line a version (its strength) and a line each two that met."""
        head = ("voters", "first", "second", "wins", "ties", "losses",
                "figure", "value", "low", "high", "n")  # fmt: skip
        both = (("people", self.board.people), ("judge", self.board.judge))
        return _csv(head, (line for who, said in both for line in _vote_lines(who, said)))


def standings(
    store: EpisodeStore,
    wanted: EpisodeFilter | None = None,
    *,
    sort: str = "success desc",
    blind_only: bool = False,
    evaluator: str = "",
) -> Standings:
    """What the filter lets through, measured now. `evaluator`: only what it has scored.

    Rounds have no episodes of their own in the filter: of them the task set and the version count.
    Raises: ConfigError for another sort, StoreError for a wrong filter.
    """
    wanted = wanted or EpisodeFilter()
    board = leaderboard(store, wanted, sort=sort, blind_only=blind_only)
    budgets = turn_budgets(store, wanted)
    if evaluator:
        rows = tuple(row for row in board.rows if row.evaluator == evaluator)
        board = replace(board, rows=rows)
        budgets = {key: found for key, found in budgets.items() if key[2] == evaluator}
    asked = {name: value for name, value in asdict(wanted).items() if value}
    asked |= {"evaluator": evaluator} if evaluator else {}
    asked |= {"votes": "blind"} if blind_only else {}
    rounds = [point for point in over_rounds(store) if _is_wanted(point, wanted)]
    return Standings(asked, board, budgets, rounds)


def paper_rows() -> list[Row]:
    """The paper's results in the shape of ours, as shares of 1; it gives no intervals."""
    return [_paper_row(row) for row in PAPER]


def _paper_row(row: PaperRow) -> Row:
    return Row(
        row.method,
        PAPER_SETS,
        "",
        BACKEND_N,
        success=_share(row.success, BACKEND_N),
        tests_passed=_share(row.tests_passed, BACKEND_N),
        cosine=_share(row.cosine, FRONTEND_N),
        win_rate=_share(row.win_rate, FRONTEND_N),
    )


def _share(percent: float | None, n: int) -> Figure:
    return NONE if percent is None else Figure(percent / 100, None, None, n)


def _is_wanted(point: RoundPoint, wanted: EpisodeFilter) -> bool:
    source = point.task_set.partition("/")[0]
    return (not wanted.task_set or wanted.task_set in (point.task_set, source)) and (
        not wanted.policy_id or wanted.policy_id in (point.version_id, point.parent_id)
    )


def _line(source: str, row: Row) -> list[object]:
    figures = [_cells(getattr(row, name)) for name in _FIGURES]
    about = [source, row.policy_id, row.task_set, row.evaluator or NA, row.n]
    return about + [cell for cells in figures for cell in cells]


def _cells(figure: Figure) -> list[object]:
    known = [NA if v is None else v for v in (figure.value, figure.low, figure.high)]
    return [*known, figure.n]


def _vote_lines(who: str, said: Opinions) -> Iterable[list[object]]:
    for name, strength in said.strengths.items():
        yield [who, name, "", "", "", "", "bradley_terry_strength", *_cells(strength)]
    for (first, second), met in sorted(said.wins.items()):
        counts = [met.wins, met.ties, met.losses]
        yield [who, first, second, *counts, "win_rate", *_cells(met.win_rate)]


def _csv(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """RFC 4180's text. What a spreadsheet would run as a formula is given as text."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(head)
    for line in lines:
        writer.writerow([_harmless(cell) if isinstance(cell, str) else cell for cell in line])
    return file.getvalue()


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
