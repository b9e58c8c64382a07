"""A policy's results against a stored set of answers, as the paper compares with one model's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from evaluators.preference import Met
from sweet.cli.scoring import read_answers
from sweet.errors import TaskDataError
from sweet.rollout import Outcome
from sweet.services import Services
from sweet.types import TaskRow


def read_stored(path: Path, rows: Sequence[TaskRow]) -> dict[str, str]:
    """The stored answers by task id; a row names its task by its place in the set.

    Raises: TaskDataError naming the row that has none, or no answer.
    """
    stored = {}
    for row in read_answers(path):
        index, answer = row["task_index"], row["answer"]
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(rows):
            raise TaskDataError(
                f"{path}: task_index {index!r} names no task of the set: there are {len(rows)}, "
                "from 0 on."
            )
        if not isinstance(answer, str):
            raise TaskDataError(f"{path}: the answer to task {index} is no text.")
        stored[rows[index].task.id] = answer
    if not stored:
        raise TaskDataError(f"There is no answer in {path}.")
    return stored


async def met(services: Services, outcomes: Sequence[Outcome], stored: Mapping[str, str]) -> Met:
    """How often the episodes did better, the same and worse than the stored answers.

    Both are scored by the same evaluator; what one of the two has no reward for is left out.
    """
    rows = {o.assignment.row.task.id: o.assignment.row for o in outcomes}
    scored = {}
    for task_id, answer in stored.items():
        if task_id in rows and (hidden := rows[task_id].hidden) is not None:
            evaluator = services.evaluator(rows[task_id].task.kind)
            scored[task_id] = await asyncio.to_thread(evaluator.score, hidden, answer)
    total = Met()
    for outcome in outcomes:
        ours = outcome.episode.reward if outcome.episode else None
        found = scored.get(outcome.assignment.row.task.id)
        theirs = found.reward if found else None
        if ours is None or theirs is None or ours.evaluator != theirs.evaluator:
            continue
        apart = ours.value - theirs.value
        total += Met(int(apart > 0), int(apart == 0), int(apart < 0))
    return total
