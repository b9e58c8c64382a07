"""A model compares two artifacts, in both orders, so that their places don't decide.

Where the two orders disagree it is a tie. An unusable reply is no verdict: nothing is made up.
Web pages are compared by their pictures, so the model must take some.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from sweet.errors import EvaluatorError, SweetError
from sweet.parsing import page_in
from sweet.prompts import compare_artifacts
from sweet.seeds import derived_seed
from sweet.store import Choice
from sweet.types import DrawsPages, Engine, Episode, Message, Sampling, TaskKind, TaskRow

_LEFT = {"FIRST": Choice.LEFT, "SECOND": Choice.RIGHT, "TIE": Choice.TIE}
_TURNED = {Choice.LEFT: Choice.RIGHT, Choice.RIGHT: Choice.LEFT, Choice.TIE: Choice.TIE}


@dataclass(frozen=True, slots=True)
class Judgement:
    """LEFT, RIGHT or TIE with what the judge wrote in both orders; None with why there is none."""

    choice: Choice | None
    reason: str


class Judge:
    """A model as judge. `name` is the voter's in the log."""

    def __init__(
        self, model: str, engine: Engine, sampling: Sampling, renderer: DrawsPages
    ) -> None:
        self.name = f"judge:{model}"
        self._engine = engine
        self._sampling = sampling
        self._renderer = renderer

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
        try:
            prompt = await self._prompts(row, left.artifact, right.artifact)
        except SweetError as e:
            return Judgement(None, f"The pages could not be compared: {e}")
        replies = await asyncio.gather(
            self._ask(prompt(0, 1), derived_seed(seed, "as is")),
            self._ask(prompt(1, 0), derived_seed(seed, "turned")),
        )
        as_is, turned = (choice for choice, _ in replies)
        said = "\n\nThe other way round: ".join(text for _, text in replies)
        if as_is is None or turned is None:
            return Judgement(None, said)
        if as_is is not _TURNED[turned]:
            return Judgement(Choice.TIE, f"Its two orders disagree. {said}")
        return Judgement(as_is, said)

    async def _prompts(
        self, row: TaskRow, left: str | None, right: str | None
    ) -> Callable[[int, int], tuple[Message, ...]]:
        """What makes the prompt for an order of the two sides. Raises: EvaluatorError."""
        task = row.task
        if task.kind is not TaskKind.FRONTEND:
            made = (left, right)
            return lambda first, second: compare_artifacts.messages(
                task.kind, task.description, row.hidden, made[first], made[second]
            )
        wanted = await self._picture(row.hidden.reference if row.hidden else None)
        shown = [await self._picture(left), await self._picture(right)]
        if shown == [None, None]:
            raise EvaluatorError("neither side made one.")
        return lambda first, second: compare_artifacts.drawn(
            task.description, wanted, shown[first], shown[second]
        )

    async def _picture(self, artifact: str | None) -> bytes | None:
        """How a page looks; None where there is no page to look at."""
        html = page_in(artifact).html if artifact else None
        if html is None:
            return None
        return (await asyncio.to_thread(self._renderer.render, html)).png

    async def _ask(self, prompt: tuple[Message, ...], seed: int) -> tuple[Choice | None, str]:
        """The choice in this order, and what was written or went wrong."""
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
