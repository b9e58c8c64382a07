"""Rows of the log, and the records of the domain they stand for."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from sqlite_utils import Database

from sweet.store.base import Row, clean, insert, one, rows, to_json
from sweet.store.clock import now_iso
from sweet.store.connection import ContentError
from sweet.types import (
    Action,
    Episode,
    EpisodeSummary,
    Evaluation,
    Feedback,
    HiddenInfo,
    PolicyVersion,
    Reward,
    StopReason,
    Task,
    TaskKind,
    TestResult,
    Turn,
    Usage,
    Verdict,
)


def to_task(row: Row) -> Task:
    """The task a row stands for."""
    kind = TaskKind(row["kind"])
    return Task(row["id"], kind, row["description"], row["split"], row["source"])


def to_hidden(row: Row | None) -> HiddenInfo | None:
    """The hidden information a row stands for."""
    return HiddenInfo(row["reference"], tuple(json.loads(row["test_calls"]))) if row else None


def action_row(action: Action) -> Row:
    """The columns of `turns` that hold an action."""
    return {
        "raw": action.raw,
        "message": action.message,
        "is_final": int(action.is_final),
        "artifact": action.artifact,
        "prompt_tokens": action.usage.prompt_tokens if action.usage else None,
        "completion_tokens": action.usage.completion_tokens if action.usage else None,
        "duration_ms": action.duration_ms,
    }


def to_action(row: Row) -> Action:
    """The action in a row of `turns`."""
    usage = None
    if row["prompt_tokens"] is not None:
        usage = Usage(row["prompt_tokens"], row["completion_tokens"])
    return Action(
        row["raw"],
        row["message"],
        bool(row["is_final"]),
        row["artifact"],
        usage,
        row["duration_ms"],
    )


def to_turn(row: Row, advantage: float | None = None) -> Turn:
    """The turn a row stands for."""
    return Turn(
        row["turn_index"], to_action(row), row["reply"], row["reply_duration_ms"], advantage
    )


def to_episode(db: Database, row: Row) -> Episode:
    """The episode with its turns and its newest evaluation."""
    advantages = {
        found["turn_index"]: found["value"]
        for found in rows(
            db,
            "SELECT turn_index, value FROM advantages WHERE episode_id = ? ORDER BY seq",
            [row["id"]],
        )
    }
    turns = rows(db, "SELECT * FROM turns WHERE episode_id = ? ORDER BY turn_index", [row["id"]])
    return Episode(
        id=row["id"],
        task_id=row["task_id"],
        policy_id=row["policy_id"],
        collaborator=row["collaborator"],
        seed=row["seed"],
        max_turns=row["max_turns"],
        turns=tuple(to_turn(turn, advantages.get(turn["turn_index"])) for turn in turns),
        artifact=row["artifact"],
        stop_reason=_stop_reason(row),
        evaluation=_evaluation(db, row["evaluation_seq"]),
        error=row["error"],
        created_at=row["created_at"],
        parent_id=row["parent_id"],
        forked_at=row["forked_at"],
    )


def _stop_reason(row: Row) -> StopReason | None:
    return StopReason(row["stop_reason"]) if row["stop_reason"] else None


def _evaluation(db: Database, seq: int | None) -> Evaluation | None:
    if seq is None:
        return None
    row = one(db, "SELECT * FROM evaluations WHERE seq = ?", seq)
    assert row is not None  # a foreign key
    reward = None
    if row["reward"] is not None:
        reward = Reward(row["reward"], json.loads(row["components"]), row["evaluator"])
    results = rows(
        db, "SELECT * FROM test_results WHERE evaluation_seq = ? ORDER BY test_index", [seq]
    )
    tests = tuple(
        TestResult(r["call"], r["expected"], r["got"], Verdict(r["verdict"]), r["duration_ms"],
                   r["reason"])
        for r in results
    )  # fmt: skip
    return Evaluation(reward, Verdict(row["verdict"]), tests, row["sandbox_level"], row["error"])


def insert_evaluation(db: Database, episode_id: str, evaluation: Evaluation) -> None:
    """Append an evaluation; it is the episode's newest from now on."""
    reward = evaluation.reward
    if reward is not None and not 0 <= reward.value <= 1:
        raise ContentError(
            f"The reward of episode {episode_id} is {reward.value!r}; it must be from 0 to 1, or "
            "none at all where the scoring failed. Nothing was saved."
        )
    row = {
        "episode_id": episode_id,
        "reward": float(reward.value) if reward else None,
        "components": to_json(dict(reward.components)) if reward else None,
        "evaluator": reward.evaluator if reward else None,
        "verdict": str(evaluation.verdict),
        "sandbox_level": evaluation.sandbox_level,
        "error": evaluation.error,
        "created_at": now_iso(),
    }
    seq = insert(db, "evaluations", row)
    for index, test in enumerate(evaluation.tests):
        result = {
            "evaluation_seq": seq,
            "test_index": index,
            "call": test.call,
            "expected": test.expected,
            "got": test.got,
            "verdict": str(test.verdict),
            "duration_ms": test.duration_ms,
            "reason": test.reason,
        }
        insert(db, "test_results", result)
    db.execute("UPDATE episodes SET evaluation_seq = ? WHERE id = ?", [seq, episode_id])


def insert_advantages(
    db: Database, episode_id: str, critic: str, advantages: Mapping[int, float]
) -> None:
    """Append what a critic said of turns."""
    for index, value in advantages.items():
        if not math.isfinite(value):
            raise ContentError(
                f"The advantage of turn {index} of episode {episode_id} is {value!r}; it must be "
                "a finite number. Nothing was saved."
            )
        row = {"episode_id": episode_id, "turn_index": index, "critic": critic}
        insert(db, "advantages", row | {"value": float(value), "created_at": now_iso()})


def feedback_row(feedback: Feedback) -> Row:
    """The columns of `feedback` that hold what a person said."""
    return {
        "episode_id": feedback.episode_id,
        "turn_index": feedback.turn_index,
        "rating": feedback.rating,
        "tags": clean(to_json(list(feedback.tags))),
        "comment": clean(feedback.comment),
    }


def to_feedback(row: Row) -> Feedback:
    """What a person said, from its row."""
    tags = tuple(json.loads(row["tags"]))
    return Feedback(row["episode_id"], row["turn_index"], row["rating"], tags, row["comment"])


def to_summary(row: Row) -> EpisodeSummary:
    """A line of the log, from a row of the summary query."""
    return EpisodeSummary(
        id=row["id"],
        task_id=row["task_id"],
        task_set=row["task_set"],
        description=row["description"],
        policy_id=row["policy_id"],
        collaborator=row["collaborator"],
        turns=row["turns"],
        stop_reason=_stop_reason(row),
        reward=row["reward"],
        tests_passed=row["tests_passed"],
        error=row["error"],
        rating=row["rating"],
        created_at=row["created_at"],
        tags=tuple(json.loads(row["tags"])),
    )


def to_policy(row: Row) -> PolicyVersion:
    """The policy version a row stands for."""
    return PolicyVersion(
        row["id"],
        row["base_model"],
        row["adapter_path"],
        row["parent_id"],
        row["note"],
        row["created_at"],
    )


def differing(new: Row, old: Row, names: Sequence[str]) -> list[str]:
    """The names of the columns in which two rows differ."""
    return [name for name in names if clean(new[name]) != old[name]]
