"""TRL's shape of a preference pair: prompt, chosen and rejected as lists of messages.

The prompt is the bare dialogue before the turn, the person's request first; instructions to the
agent are not in it, they are each model's own. The chosen and the rejected side are one message of
the agent (level "turn") or the rest of an episode with the person's replies (level "trajectory").
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
from pydantic import TypeAdapter, ValidationError

from sweet.errors import PolicyError, TaskDataError
from sweet.exchange.own import first_problem
from sweet.parsing import parse_action, spoken
from sweet.types import (
    MAX_TURNS,
    Exchange,
    Observation,
    PairLevel,
    PairSource,
    PreferencePair,
    TaskKind,
    Turn,
)

NAME = "preferences"
IMPORTED_TASK = "imported"  # the task of a pair that came without one


@dataclass(frozen=True, slots=True)
class _Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class _Line:
    prompt: list[_Message]
    chosen: list[_Message]
    rejected: list[_Message]
    level: PairLevel | None = None
    source: PairSource = PairSource.HUMAN
    task_id: str = IMPORTED_TASK
    kind: TaskKind = TaskKind.BACKEND
    turns_left: int = MAX_TURNS
    chosen_score: float = 1.0
    rejected_score: float = 0.0
    chosen_episode: str | None = None
    rejected_episode: str | None = None


_LINE: TypeAdapter[_Line] = TypeAdapter(_Line)


def to_line(pair: PreferencePair) -> dict[str, Any]:
    """The pair as a JSON object; weights are a round's own and not in it."""
    observation = pair.observation
    prompt = [{"role": "user", "content": observation.description}]
    for exchange in observation.exchanges:
        prompt.append({"role": "assistant", "content": exchange.agent})
        prompt.append({"role": "user", "content": exchange.collaborator})
    return {
        "prompt": prompt,
        "chosen": _said(pair.chosen),
        "rejected": _said(pair.rejected),
        "level": str(pair.level),
        "source": str(pair.source),
        "task_id": pair.task_id,
        "kind": str(observation.kind),
        "turns_left": observation.turns_left,
        "chosen_score": pair.scores[0],
        "rejected_score": pair.scores[1],
        "chosen_episode": pair.episode_ids[0],
        "rejected_episode": pair.episode_ids[1],
    }


def from_line(value: dict[str, Any]) -> PreferencePair:
    """The pair an object stands for. Raises: TaskDataError naming what is wrong.

    A system message at the beginning is left out; any other field than the three lists may be
    missing.
    """
    given = {name: item for name, item in value.items() if item is not None}
    try:
        line = _LINE.validate_python(given)
    except ValidationError as e:
        raise TaskDataError(first_problem(e)) from e
    chosen, rejected = _turns("chosen", line.chosen), _turns("rejected", line.rejected)
    if line.chosen == line.rejected:
        raise TaskDataError("chosen and rejected are the same")
    single = all(len(side) == 1 and side[0].reply is None for side in (chosen, rejected))
    return PreferencePair(
        task_id=line.task_id,
        level=line.level or (PairLevel.TURN if single else PairLevel.TRAJECTORY),
        observation=_observation(line),
        chosen=chosen,
        rejected=rejected,
        scores=(line.chosen_score, line.rejected_score),
        source=line.source,
        episode_ids=(line.chosen_episode, line.rejected_episode),
    )


def id_of(line: dict[str, Any]) -> str:
    """The id of a pair: a hash of what makes it that pair."""
    said = [
        [[message["role"], message["content"]] for message in line[name]]
        for name in ("prompt", "chosen", "rejected")
    ]
    text = json.dumps([said, line["level"], line["source"]], ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def says_something(line: dict[str, Any]) -> bool:
    """Whether the two sides differ, and no message of the agent in them is empty."""
    messages = [*line["chosen"], *line["rejected"]]
    empty = any(m["role"] == "assistant" and not m["content"].strip() for m in messages)
    return bool(messages) and not empty and line["chosen"] != line["rejected"]


def _said(turns: Sequence[Turn]) -> list[dict[str, str]]:
    messages = []
    for turn in turns:
        messages.append({"role": "assistant", "content": spoken(turn.action.raw)})
        if turn.reply is not None:
            messages.append({"role": "user", "content": turn.reply})
    return messages


def _observation(line: _Line) -> Observation:
    messages = line.prompt[1:] if line.prompt and line.prompt[0].role == "system" else line.prompt
    _check_order("prompt", messages, "user")
    if len(messages) % 2 == 0:
        raise TaskDataError("prompt does not end with a message of the user")
    exchanges = tuple(
        Exchange(said.content, reply.content)
        for said, reply in zip(messages[1::2], messages[2::2], strict=True)
    )
    return Observation(line.kind, messages[0].content, exchanges, line.turns_left)


def _turns(name: str, messages: Sequence[_Message]) -> tuple[Turn, ...]:
    _check_order(name, messages, "assistant")
    turns = []
    for index, said in enumerate(messages[::2]):
        reply = messages[2 * index + 1].content if 2 * index + 1 < len(messages) else None
        try:
            action = parse_action(said.content)
        except PolicyError as e:
            raise TaskDataError(f"{name}.{2 * index}.content: {e}") from e
        turns.append(Turn(index, action, reply))
    return tuple(turns)


def _check_order(name: str, messages: Sequence[_Message], first: str) -> None:
    if not messages:
        raise TaskDataError(f"{name} has no message")
    for at, message in enumerate(messages):
        wanted = first if at % 2 == 0 else ({"user", "assistant"} - {first}).pop()
        if message.role != wanted:
            raise TaskDataError(f"{name}.{at}.role is {message.role!r}; expected {wanted!r}")


_MESSAGES = pa.list_(pa.struct({"role": pa.string(), "content": pa.string()}))

SCHEMA = pa.schema(
    {
        "prompt": _MESSAGES,
        "chosen": _MESSAGES,
        "rejected": _MESSAGES,
        "level": pa.string(),
        "source": pa.string(),
        "task_id": pa.string(),
        "kind": pa.string(),
        "turns_left": pa.int64(),
        "chosen_score": pa.float64(),
        "rejected_score": pa.float64(),
        "chosen_episode": pa.string(),
        "rejected_episode": pa.string(),
    }
)
"""The same as parquet's columns."""
