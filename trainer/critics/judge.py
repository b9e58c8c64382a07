"""A model that is asked for scores, as a critic: nothing is trained, so it can be compared with.

It reads hidden information. A candidate whose score can't be had, because the reply isn't as asked
for or the call failed, has no score; none is made up. Where no call of an episode succeeds, the
judge is out of order, and that is an error.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from sweet.episode import observation_of
from sweet.errors import SweetError, TrainingError
from sweet.prompts import judge_backend
from sweet.types import Engine, Episode, HiddenInfo, Message, Observation, Sampling, TaskRow
from trainer.candidates import Candidate
from trainer.lines import Lines
from trainer.pairs import hidden_of

Score = float | None


class JudgeCritic:
    """What a turn was worth: the judge's score of it, 0 to 10, less the middle of that scale.

    With a `memo` file every reply's score is kept there, so that a round which was killed asks
    for none of them again.
    """

    def __init__(
        self,
        model: str,
        engine: Engine,
        sampling: Sampling,
        memo: Path | None = None,
        at_once: int = 16,
    ) -> None:
        self.name = f"judge:{model}"
        self._engine = engine
        self._sampling = sampling
        self._memo = Lines(memo) if memo else None
        self._known: dict[str, Score] = dict(self._memo.read()) if self._memo else {}
        self._at_once = at_once

    def scores(
        self, row: TaskRow, episode: Episode, candidates: Sequence[Sequence[Candidate]]
    ) -> list[list[Score]]:
        """The score of each candidate of each turn; None where the judge gave no usable one.

        Raises: TrainingError where there is no hidden information, or no call succeeded.
        """
        hidden = hidden_of({row.task.id: row}, [row.task.id])[row.task.id]
        asked = [
            self._prompt(observation_of(row.task, _until(episode, index)), candidate, hidden)
            for index, turn in enumerate(candidates)
            for candidate in turn
        ]
        given = asyncio.run(self._all(asked))
        found = iter([None if score is None else score - judge_backend.MIDDLE for score in given])
        return [[next(found) for _ in turn] for turn in candidates]

    def advantages(
        self, rows: Mapping[str, TaskRow], episodes: Sequence[Episode]
    ) -> list[dict[int, float] | None]:
        """The score of each logged turn that got one; None for an episode without any."""
        found: list[dict[int, float] | None] = []
        for episode in episodes:
            said = [[Candidate(turn.action.raw)] for turn in episode.turns]
            scores = self.scores(rows[episode.task_id], episode, said)
            turns = zip(episode.turns, scores, strict=True)
            found.append({t.index: s for t, (s,) in turns if s is not None} or None)
        return found

    def _prompt(
        self, observation: Observation, candidate: Candidate, hidden: HiddenInfo
    ) -> tuple[Message, ...]:
        return judge_backend.messages(observation, candidate.said, hidden)

    async def _all(self, asked: Sequence[tuple[Message, ...]]) -> list[Score]:
        """The score of each prompt. Raises: TrainingError where every call failed."""
        places = asyncio.Semaphore(self._at_once)
        failures: list[SweetError] = []

        async def one(prompt: tuple[Message, ...]) -> Score:
            async with places:
                try:
                    return await self._score(prompt)
                except SweetError as e:
                    failures.append(e)
                    return None

        different = list(dict.fromkeys(asked))
        found = dict(zip(different, await asyncio.gather(*map(one, different)), strict=True))
        if different and len(failures) == len(different):
            raise TrainingError(
                f"{self.name} answered none of {len(different)} calls. Set it right "
                f"(SWEET_JUDGE__…), then resume. The first failed so: {failures[0]}"
            )
        return [found[prompt] for prompt in asked]

    async def _score(self, prompt: tuple[Message, ...]) -> Score:
        key = self._key(prompt)
        if key not in self._known:
            reply = await self._engine.complete(prompt, replace(self._sampling, seed=0))
            is_whole = reply.finish_reason == "stop"  # a cut 10 would be a 1
            self._known[key] = judge_backend.parse_score(reply.text) if is_whole else None
            if self._memo:
                self._memo.add([key, self._known[key]])
        return self._known[key]

    def _key(self, prompt: tuple[Message, ...]) -> str:
        asked = [self.name, asdict(self._sampling), [[m.role, m.content] for m in prompt]]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]


def _until(episode: Episode, index: int) -> Episode:
    return replace(episode, turns=episode.turns[:index])
