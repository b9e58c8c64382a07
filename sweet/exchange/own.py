"""Our own shape of an episode: an object with task, turns, evaluation, feedback; nothing is lost.

The keys are the fields of the domain's records, so a newer field needs no change here.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter, ValidationError

from sweet.errors import TaskDataError
from sweet.store import LoggedEpisode

NAME = "episodes"
VERSION = 1

_WHOLE: TypeAdapter[LoggedEpisode] = TypeAdapter(LoggedEpisode)
_BESIDE = ("feedback", "failures", "fork_kind")


def to_line(whole: LoggedEpisode) -> dict[str, Any]:
    """The episode as a JSON object."""
    parts = _WHOLE.dump_python(whole, mode="json")
    beside = {name: parts[name] for name in _BESIDE}
    return {"version": VERSION, **parts["row"], **parts["episode"], **beside}


def from_line(line: dict[str, Any]) -> LoggedEpisode:
    """The episode an object stands for. Raises: TaskDataError naming the field that is wrong."""
    version = line.get("version", VERSION)
    if version != VERSION:
        raise TaskDataError(f"version is {version!r}; this studio reads {VERSION}")
    parts = {"row": line, "episode": line} | {k: line[k] for k in _BESIDE if k in line}
    try:
        whole = _WHOLE.validate_python(parts)
    except ValidationError as e:
        raise TaskDataError(first_problem(e)) from e
    _check(whole)
    return whole


def first_problem(error: ValidationError) -> str:
    """The first thing that is wrong, with the field it is in."""
    found = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in found["loc"] if part not in ("row", "episode"))
    value = "" if found["type"] == "missing" else f", not {_cut(found['input'])}"
    return f"{where or 'the object'}: {found['msg']}{value}"


def _check(whole: LoggedEpisode) -> None:
    """What types cannot say."""
    episode = whole.episode
    if not episode.id.strip():
        raise TaskDataError("id is empty")
    if whole.row.task.id != episode.task_id:
        raise TaskDataError(f"task_id is {episode.task_id!r}, the task's id {whole.row.task.id!r}")
    if [turn.index for turn in episode.turns] != list(range(len(episode.turns))):
        raise TaskDataError("the turns' indexes do not count up from 0")
    for turn in episode.turns[:-1]:
        if turn.reply is None or turn.action.is_final:
            raise TaskDataError(f"turn {turn.index} has no reply, or is final, but is not the last")
    for feedback in whole.feedback:
        index = feedback.turn_index
        if index is not None and not 0 <= index < len(episode.turns):
            raise TaskDataError(f"feedback is on turn {index}, which the episode has not")


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


def _struct(**fields: pa.DataType) -> pa.StructType:
    return pa.struct(list(fields.items()))


_TEXT, _INT, _REAL = pa.string(), pa.int64(), pa.float64()
_TEXTS = pa.list_(_TEXT)
_USAGE = _struct(prompt_tokens=_INT, completion_tokens=_INT)
_ACTION = _struct(
    raw=_TEXT,
    message=_TEXT,
    is_final=pa.bool_(),
    artifact=_TEXT,
    usage=_USAGE,
    duration_ms=_REAL,
)
_TURN = _struct(index=_INT, action=_ACTION, reply=_TEXT, reply_duration_ms=_REAL, advantage=_REAL)
_REWARD = _struct(value=_REAL, components=pa.map_(_TEXT, _REAL), evaluator=_TEXT)
_TEST = _struct(
    call=_TEXT, expected=_TEXT, got=_TEXT, verdict=_TEXT, duration_ms=_REAL, reason=_TEXT
)
_EVALUATION = _struct(
    reward=_REWARD, verdict=_TEXT, tests=pa.list_(_TEST), sandbox_level=_TEXT, error=_TEXT
)
_FEEDBACK = _struct(episode_id=_TEXT, turn_index=_INT, rating=_REAL, tags=_TEXTS, comment=_TEXT)

SCHEMA = pa.schema(
    {
        "version": _INT,
        "task": _struct(id=_TEXT, kind=_TEXT, description=_TEXT, split=_TEXT, source=_TEXT),
        "hidden": _struct(reference=_TEXT, test_calls=_TEXTS),
        "id": _TEXT,
        "task_id": _TEXT,
        "policy_id": _TEXT,
        "collaborator": _TEXT,
        "seed": _INT,
        "max_turns": _INT,
        "turns": pa.list_(_TURN),
        "artifact": _TEXT,
        "stop_reason": _TEXT,
        "evaluation": _EVALUATION,
        "error": _TEXT,
        "created_at": _TEXT,
        "parent_id": _TEXT,
        "forked_at": _INT,
        "feedback": pa.list_(_FEEDBACK),
        "failures": pa.list_(_struct(episode_id=_TEXT, turns=_INT, error=_TEXT, created_at=_TEXT)),
        "fork_kind": _TEXT,
    }
)
"""The same as parquet's columns."""
