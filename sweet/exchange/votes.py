"""Our own shape of a vote: who chose what, with both episodes whole, so that it stands alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter, ValidationError

from sweet.errors import TaskDataError
from sweet.exchange import own
from sweet.store import Choice, Comparison, LoggedEpisode, Vote, Voter

NAME = "votes"
VERSION = 1


@dataclass(frozen=True, slots=True)
class _Line:
    comparison: str
    choice: Choice
    voter: str
    by: Voter
    is_blind: bool
    compared_at: str
    created_at: str
    left: dict[str, Any]
    right: dict[str, Any]
    reason: str = ""
    side_named: bool = False


_LINE: TypeAdapter[_Line] = TypeAdapter(_Line)


def to_line(vote: Vote, left: LoggedEpisode, right: LoggedEpisode) -> dict[str, Any]:
    """The vote as a JSON object."""
    comparison = vote.comparison
    return {
        "version": VERSION,
        "comparison": comparison.id,
        "choice": str(vote.choice),
        "voter": vote.voter,
        "by": str(vote.by),
        "reason": vote.reason,
        "is_blind": comparison.is_blind,
        "side_named": vote.side_named,
        "compared_at": comparison.created_at,
        "created_at": vote.created_at,
        "left_policy": comparison.left_policy,
        "right_policy": comparison.right_policy,
        "left": own.to_line(left),
        "right": own.to_line(right),
    }


def from_line(value: dict[str, Any]) -> tuple[Vote, LoggedEpisode, LoggedEpisode]:
    """The vote an object stands for, and its sides. Raises: TaskDataError naming what is wrong."""
    version = value.get("version", VERSION)
    if version != VERSION:
        raise TaskDataError(f"version is {version!r}; this studio reads {VERSION}")
    try:
        line = _LINE.validate_python(value)
    except ValidationError as e:
        raise TaskDataError(own.first_problem(e)) from e
    if not (line.comparison.strip() and line.voter.strip()):
        raise TaskDataError("comparison and voter must not be empty")
    left, right = _side("left", line.left), _side("right", line.right)
    comparison = Comparison(
        id=line.comparison,
        task_id=left.episode.task_id,
        task_set=left.row.task.source,
        left=left.episode.id,
        right=right.episode.id,
        left_policy=left.episode.policy_id,
        right_policy=right.episode.policy_id,
        is_blind=line.is_blind,
        created_at=line.compared_at,
    )
    vote = Vote(
        comparison,
        line.choice,
        line.voter,
        line.by,
        line.reason,
        line.side_named,
        line.created_at,
    )
    return vote, left, right


def _side(name: str, value: dict[str, Any]) -> LoggedEpisode:
    try:
        return own.from_line(value)
    except TaskDataError as e:
        raise TaskDataError(f"{name}: {e}") from e


_TEXT, _FLAG = pa.string(), pa.bool_()

SCHEMA = pa.schema(
    {
        "version": pa.int64(),
        "comparison": _TEXT,
        "choice": _TEXT,
        "voter": _TEXT,
        "by": _TEXT,
        "reason": _TEXT,
        "is_blind": _FLAG,
        "side_named": _FLAG,
        "compared_at": _TEXT,
        "created_at": _TEXT,
        "left_policy": _TEXT,
        "right_policy": _TEXT,
        "left": pa.struct(list(own.SCHEMA)),
        "right": pa.struct(list(own.SCHEMA)),
    }
)
"""The same as parquet's columns."""
