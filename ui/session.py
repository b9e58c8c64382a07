"""What one browser is doing, as plain dataclasses; each lives in a `gr.State` of its own.

Nothing of a browser is kept anywhere else: the log is the truth, and these say which part of it
is on the screen. What is worth a link has a query string, and can be read back from one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from urllib.parse import urlencode

from sweet.types import EpisodeFilter

PAGE_ROWS = 20
DEFAULT_SORT = "created_at desc"
SORTS = {
    "Newest first": DEFAULT_SORT,
    "Oldest first": "created_at asc",
    "Most turns": "turns desc",
    "Fewest turns": "turns asc",
    "Best reward": "reward desc",
    "Worst reward": "reward asc",
    "Most tests passed": "tests_passed desc",
    "Fewest tests passed": "tests_passed asc",
    "Best rated": "rating desc",
    "Worst rated": "rating asc",
    "Policy": "policy_id asc",
    "Collaborator": "collaborator asc",
    "Task set": "task_set asc",
}
OUTCOMES = {
    "Any outcome": "",
    "Success": "success",
    "Fail": "fail",
    "Not scored": "unscored",
    "In progress": "in_progress",
    "Error": "error",
}
FEEDBACKS = {
    "With or without": "",
    "Liked": "liked",
    "Disliked": "disliked",
    "Any feedback": "any",
    "No feedback": "none",
}
BOARD_COLUMNS = {
    "policy_id": "Version",
    "task_set": "Task set",
    "evaluator": "Evaluator",
    "n": "n",
    "success": "Success",
    "tests_passed": "Tests passed",
    "cosine": "Cosine",
    "visual": "Visual",
    "win_rate": "Win rate",
    "judge_win_rate": "Win rate, judge",
    "turns": "Turns",
    "tokens": "Tokens",
}
DEFAULT_BOARD_SORT = "success desc"
BOARD_SORTS = {
    f"{name} {arrow}": f"{column} {way}"
    for column, name in BOARD_COLUMNS.items()
    for arrow, way in (("↓", "desc"), ("↑", "asc"))
}


@dataclass(frozen=True, slots=True)
class Seat:
    """The Collaborate page: the open episode, and whether its next move is due from a model."""

    episode_id: str | None = None
    due: bool = False


@dataclass(frozen=True, slots=True)
class WatchView:
    """The Watch page: which batch this browser follows."""

    batch_id: str | None = None


@dataclass(frozen=True, slots=True)
class CompareView:
    """The Compare page: the open comparison, and whether a move of a side is due from a model."""

    comparison_id: str | None = None
    due: bool = False


@dataclass(frozen=True, slots=True)
class TrainView:
    """The Train page: the open round, None for the newest, and the ones to compare."""

    round_id: str | None = None
    compared: tuple[str, ...] = ()

    def comparing(self, round_id: str) -> TrainView:
        """With one more round to compare, the last two of them, or without it if it was there."""
        others = tuple(id for id in self.compared if id != round_id)
        is_new = len(others) == len(self.compared)
        return replace(self, compared=(*others, round_id)[-2:] if is_new else others)


@dataclass(frozen=True, slots=True)
class LogView:
    """The Sessions page: what is searched for, which page of it, which episode and turn is open."""

    wanted: EpisodeFilter = field(default_factory=EpisodeFilter)
    sort: str = DEFAULT_SORT
    page: int = 1
    episode_id: str | None = None
    turn: int = 1
    critic: str = ""  # of the open episode; "" for the latest

    @property
    def offset(self) -> int:
        """How many rows come before this page."""
        return (self.page - 1) * PAGE_ROWS

    @property
    def query(self) -> str:
        """The query string of a link to what is shown."""
        asked = {f.name: getattr(self.wanted, f.name) for f in fields(self.wanted)}
        shown = {name: value for name, value in asked.items() if value}
        if self.sort != DEFAULT_SORT:
            shown["sort"] = self.sort
        if self.page > 1:
            shown["page"] = str(self.page)
        if self.episode_id:
            shown |= {"episode": self.episode_id, "turn": str(self.turn)}
            shown |= {"critic": self.critic} if self.critic else {}
        return urlencode(shown)

    def opening(self, episode_id: str | None, turn: int = 1) -> LogView:
        """The same log with another episode open, or none."""
        return replace(self, episode_id=episode_id, turn=turn, critic="")

    def judged_by(self, critic: str, turn: int) -> LogView:
        """The same episode at a turn, in the eyes of one of its critics."""
        return replace(self, critic=critic, turn=turn)


@dataclass(frozen=True, slots=True)
class BoardView:
    """The Leaderboard page: what is counted, in which order, whether the paper's rows are shown."""

    wanted: EpisodeFilter = field(default_factory=EpisodeFilter)
    evaluator: str = ""
    blind_only: bool = False
    sort: str = DEFAULT_BOARD_SORT
    paper: bool = False

    @property
    def query(self) -> str:
        """The query string of a link to what is shown."""
        asked = {f.name: getattr(self.wanted, f.name) for f in fields(self.wanted)}
        shown = {name: value for name, value in asked.items() if value}
        shown |= {"evaluator": self.evaluator} if self.evaluator else {}
        shown |= {"votes": "blind"} if self.blind_only else {}
        shown |= {"sort": self.sort} if self.sort != DEFAULT_BOARD_SORT else {}
        shown |= {"paper": "1"} if self.paper else {}
        return urlencode(shown)


def board_view_of(params: Mapping[str, str]) -> BoardView:
    """The view that a link asks for; what is no such name is left out."""
    return BoardView(
        _filter_of(params),
        str(params.get("evaluator", "")),
        params.get("votes") == "blind",
        _one_of(str(params.get("sort")), BOARD_SORTS.values(), DEFAULT_BOARD_SORT),
        params.get("paper") == "1",
    )


def log_view_of(params: Mapping[str, str]) -> LogView:
    """The view that a link asks for; what is no such name or number is left out."""
    return LogView(
        _filter_of(params),
        _one_of(str(params.get("sort")), SORTS.values(), DEFAULT_SORT),
        positive(params.get("page")),
        params.get("episode") or None,
        positive(params.get("turn")),
        str(params.get("critic", "")),
    )


def _filter_of(params: Mapping[str, str]) -> EpisodeFilter:
    given = {f.name: str(params.get(f.name, "")) for f in fields(EpisodeFilter)}
    given["outcome"] = _one_of(given["outcome"], OUTCOMES.values(), "")
    given["feedback"] = _one_of(given["feedback"], FEEDBACKS.values(), "")
    return EpisodeFilter(**given)  # type: ignore[arg-type]


def positive(text: object) -> int:
    """`text` as a whole number from 1 on; 1 for anything else."""
    shown = str(text)
    return max(1, int(shown)) if shown.isascii() and shown.isdigit() and len(shown) < 8 else 1


def _one_of(value: str, known: object, otherwise: str) -> str:
    return value if value in list(known) else otherwise  # type: ignore[call-overload]
