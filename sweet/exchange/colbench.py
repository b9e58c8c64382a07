"""ColBench's shape of an episode: {task, dialogue_history, answer, reward}.

`task` is a row of its task files; `dialogue_history` begins with the user's request, then agent
and user take turns, and an agent's message has the model's whole `output` beside the `content`
that the user saw. `reward` is the fraction of tests passed (of a page: the similarity); it is left
out where there is none. Seeds, times, forks and feedback have no place in it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter, ValidationError

from sweet.errors import PolicyError, TaskDataError
from sweet.exchange.own import first_problem
from sweet.parsing import last_page, parse_action, spoken
from sweet.store import LoggedEpisode
from sweet.types import (
    ANSWER_MARK,
    MAX_TURNS,
    Action,
    Episode,
    Evaluation,
    HiddenInfo,
    Reward,
    StopReason,
    Task,
    TaskKind,
    TaskRow,
    Turn,
    Verdict,
)

NAME = "colbench"
SOURCE = "imported"  # the task set of what came without one
NO_ANSWER = "No answer"  # what ColBench writes where the agent gave none
_THOUGHT_END = "OUTPUT:"  # ColBench's agents think before it; the user sees what follows
_AGENT = ("assistant", "agent")
_USER = ("user", "human", "human_collaborator", "collaborator")
_ENDS = (StopReason.ANSWERED, StopReason.TURN_LIMIT)


@dataclass(frozen=True, slots=True)
class _Task:
    problem_description: str
    ground_truth: str
    test_cases: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _Message:
    role: str
    content: str
    output: str | None = None


@dataclass(frozen=True, slots=True)
class _Line:
    task: _Task
    dialogue_history: list[_Message] = field(default_factory=list)
    answer: str | None = None
    reward: float | None = None


_LINE: TypeAdapter[_Line] = TypeAdapter(_Line)

SCHEMA = pa.schema(
    {
        "task": pa.struct(
            {
                "problem_description": pa.string(),
                "ground_truth": pa.string(),
                "test_cases": pa.map_(pa.string(), pa.string()),
            }
        ),
        "dialogue_history": pa.list_(
            pa.struct({"role": pa.string(), "content": pa.string(), "output": pa.string()})
        ),
        "answer": pa.string(),
        "reward": pa.float64(),
    }
)
"""The same as parquet's columns."""


# Out


def to_line(whole: LoggedEpisode) -> dict[str, Any] | None:
    """The episode in ColBench's shape; None for what that has no place for.

    That is an episode that is not over, broke off or was replaced, and a task without reference.
    """
    episode, hidden = whole.episode, whole.row.hidden
    if hidden is None or episode.stop_reason not in _ENDS:
        return None
    task = {
        "problem_description": whole.row.task.description,
        "ground_truth": hidden.reference,
    } | _test_cases(whole.row.task.kind, hidden)
    line: dict[str, Any] = {
        "task": task,
        "dialogue_history": _history(whole),
        "answer": episode.artifact if episode.artifact is not None else NO_ANSWER,
    }
    if episode.reward is not None:
        parts = episode.reward.components
        line["reward"] = parts.get("tests_passed", episode.reward.value)
    return line


def _test_cases(kind: TaskKind, hidden: HiddenInfo) -> dict[str, Any]:
    if kind is TaskKind.FRONTEND:
        return {}
    return {"test_cases": {f"test{n}": call for n, call in enumerate(hidden.test_calls, 1)}}


def _history(whole: LoggedEpisode) -> list[dict[str, str]]:
    history = [{"role": "user", "content": whole.row.task.description}]
    for turn in whole.episode.turns:
        said = {"role": "assistant", "content": _seen(turn.action), "output": turn.action.raw}
        history.append(said)
        if turn.reply is not None:
            history.append({"role": "user", "content": turn.reply})
    return history


def _seen(action: Action) -> str:
    """What the user saw; of a final message the mark and the answer too."""
    if not action.is_final:
        return action.message
    said = spoken(action.raw)
    thought, end, rest = said.partition(_THOUGHT_END)
    return rest if end and ANSWER_MARK in rest and ANSWER_MARK not in thought else said


# In


def from_line(value: dict[str, Any], policy_id: str) -> LoggedEpisode:
    """The episode a line stands for. Raises: TaskDataError naming what is wrong.

    Its id comes from its content, so that the same line again is the same episode.
    """
    try:
        line = _LINE.validate_python(value)
    except ValidationError as e:
        raise TaskDataError(first_problem(e)) from e
    row = _task_row(line.task)
    turns = _turns(line.dialogue_history)
    final = bool(turns) and turns[-1].action.is_final
    artifact = turns[-1].action.artifact if final else None
    if final and row.task.kind is TaskKind.BACKEND and line.answer is not None:
        artifact = line.answer  # of a page, ColBench has a screenshot's path there
    if not final and row.task.kind is TaskKind.FRONTEND:
        artifact = last_page(turns)
    episode = Episode(
        id=_digest("colbench", value["task"], value["dialogue_history"], value.get("answer")),
        task_id=row.task.id,
        policy_id=policy_id,
        collaborator="llm:unknown",
        seed=0,
        max_turns=max(MAX_TURNS, len(turns)),
        turns=turns,
        artifact=artifact,
        stop_reason=StopReason.ANSWERED if final else StopReason.TURN_LIMIT,
        evaluation=_evaluation(line.reward, row.task.kind),
    )
    return LoggedEpisode(row, episode)


def _task_row(task: _Task) -> TaskRow:
    for name in ("problem_description", "ground_truth"):
        if not getattr(task, name).strip():
            raise TaskDataError(f"task.{name} is empty")
    calls = tuple((task.test_cases or {}).values())
    is_page = not calls and task.ground_truth.lstrip().startswith("<")
    kind = TaskKind.FRONTEND if is_page else TaskKind.BACKEND
    task_id = _digest(SOURCE, task.problem_description, task.ground_truth, calls)
    hidden = HiddenInfo(task.ground_truth, calls)
    return TaskRow(Task(task_id, kind, task.problem_description, SOURCE, SOURCE), hidden)


def _turns(history: list[_Message]) -> tuple[Turn, ...]:
    """The turns of a dialogue, whose first message may be the request itself."""
    roles = [_role(message, at) for at, message in enumerate(history)]
    begin = 1 if roles and not roles[0] else 0
    if begin == len(history):
        raise TaskDataError("dialogue_history has no message of the agent")
    for at in range(begin, len(history)):
        if roles[at] != ((at - begin) % 2 == 0):
            who = "the agent" if roles[at] else "the user"
            raise TaskDataError(f"dialogue_history.{at}: two messages of {who} in a row")
    said, replies = history[begin::2], [m.content for m in history[begin + 1 :: 2]]
    turns = []
    for index, message in enumerate(said):
        reply = replies[index] if index < len(replies) else None
        action = _action(message, may_end=index == len(said) - 1 and reply is None)
        turns.append(Turn(index, action, reply))
    return tuple(turns)


def _role(message: _Message, at: int) -> bool:
    """Whether the agent said it."""
    if message.role not in _AGENT + _USER:
        known = ", ".join(_AGENT + _USER)
        raise TaskDataError(f"dialogue_history.{at}.role is {message.role!r}; expected {known}")
    return message.role in _AGENT


def _action(message: _Message, *, may_end: bool) -> Action:
    raw = message.content if message.output is None else message.output
    try:
        action = parse_action(message.content)
    except PolicyError:  # it said nothing: kept as it is
        return Action(raw, message.content, is_final=False)
    if action.is_final and may_end:
        return Action(raw, action.message, True, action.artifact)
    return Action(raw, message.content, is_final=False)


def _evaluation(reward: float | None, kind: TaskKind) -> Evaluation | None:
    if reward is None:
        return None
    if not 0 <= reward <= 1:
        raise TaskDataError(f"reward is {reward!r}; expected a number from 0 to 1")
    value, name = reward, "similarity"
    if kind is TaskKind.BACKEND:
        value, name = float(reward >= 1), "tests_passed"
    verdict = Verdict.PASS if value >= 1 else Verdict.WRONG
    return Evaluation(Reward(value, {name: reward}, "imported"), verdict)


def _digest(prefix: str, *content: object) -> str:
    text = json.dumps(content, sort_keys=True, default=str)
    return f"{prefix}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
