"""A model compares two artifacts, in both orders, so that their places don't decide.

Where the two orders disagree it is a tie. An unusable reply is no verdict: nothing is made up.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from sweet.errors import SweetError
from sweet.prompts import compare_artifacts
from sweet.seeds import derived_seed
from sweet.store import Choice
from sweet.types import Engine, Episode, Sampling, TaskRow

_LEFT = {"FIRST": Choice.LEFT, "SECOND": Choice.RIGHT, "TIE": Choice.TIE}
_TURNED = {Choice.LEFT: Choice.RIGHT, Choice.RIGHT: Choice.LEFT, Choice.TIE: Choice.TIE}


@dataclass(frozen=True, slots=True)
class Judgement:
    """LEFT, RIGHT or TIE with what the judge wrote in both orders; None with why there is none."""

    choice: Choice | None
    reason: str


class Judge:
    """A model as judge. `name` is the voter's in the log."""

    def __init__(self, model: str, engine: Engine, sampling: Sampling) -> None:
        self.name = f"judge:{model}"
        self._engine = engine
        self._sampling = sampling

    async def compare(
        self, row: TaskRow, left: Episode, right: Episode, seed: int = 0
    ) -> Judgement:
        """Which artifact is better. A model that fails gives no verdict either.

        Two equal artifacts are a tie, and where neither side made one there is no verdict: the
        model is not asked.
        """
        if left.artifact is None and right.artifact is None:
            return Judgement(None, "Neither side made anything.")
        if left.artifact == right.artifact:
            return Judgement(Choice.TIE, "Both made the same.")
        replies = await asyncio.gather(
            self._ask(row, left.artifact, right.artifact, derived_seed(seed, "as is")),
            self._ask(row, right.artifact, left.artifact, derived_seed(seed, "turned")),
        )
        as_is, turned = (choice for choice, _ in replies)
        said = "\n\nThe other way round: ".join(text for _, text in replies)
        if as_is is None or turned is None:
            return Judgement(None, said)
        if as_is is not _TURNED[turned]:
            return Judgement(Choice.TIE, f"Its two orders disagree. {said}")
        return Judgement(as_is, said)

    async def _ask(
        self, row: TaskRow, first: str | None, second: str | None, seed: int
    ) -> tuple[Choice | None, str]:
        """The choice in this order, and what was written or went wrong."""
        task = row.task
        prompt = compare_artifacts.messages(task.kind, task.description, row.hidden, first, second)
        try:
            reply = await self._engine.complete(prompt, replace(self._sampling, seed=seed))
        except SweetError as e:
            return None, f"The judge could not answer: {e}"
        if reply.finish_reason == "length":
            return None, f"The judge was cut off: {reply.text}"
        verdict = compare_artifacts.parse(reply.text)
        if verdict is None:
            return None, f"No verdict in: {reply.text}"
        return _LEFT[verdict], reply.text.strip()
