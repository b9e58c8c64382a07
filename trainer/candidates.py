"""Candidates: what else the policy could have said at each logged turn, and pairs of them."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from sweet.episode import observation_of
from sweet.errors import SweetError, TrainingError
from sweet.parsing import spoken
from sweet.policy import EnginePolicy
from sweet.seeds import derived_seed
from sweet.store import RankedCandidate
from sweet.types import Episode, TaskRow

CANDIDATES = 16  # arXiv:2503.15478, section 4: N = 16 actions a turn
TEMPERATURE = 1.0  # the same
PAIRS = 4  # the same: 4 pairs a turn


@dataclass(frozen=True, slots=True)
class Candidate:
    """A message, how often it was drawn, and whether the model ended it (else it was cut)."""

    text: str
    count: int = 1
    is_ended: bool = True

    @property
    def said(self) -> str:
        """What of it is the message: without thoughts."""
        return spoken(self.text)


async def sample_candidates(
    policy: EnginePolicy, row: TaskRow, episode: Episode, *, seed: int, n: int = CANDIDATES
) -> list[list[Candidate]]:
    """For each turn of the episode, the different messages among `n` that the policy says there.

    Seeds come from `seed`, the task and the episode's own seed, so the same episode played again
    gets the same ones. An empty message is no candidate. Raises: PolicyError, TrainingError.
    """

    async def turn(index: int) -> list[Candidate]:
        observed = observation_of(row.task, replace(episode, turns=episode.turns[:index]))
        seeds = [derived_seed(seed, episode.task_id, episode.seed, index, k) for k in range(n)]
        calls = [policy.draw(observed, seed=s, temperature=TEMPERATURE) for s in seeds]
        done = await asyncio.gather(*calls)
        drawn = Counter((c.text.strip(), c.finish_reason == "stop") for c in done)
        found = [Candidate(text, count, ended) for (text, ended), count in drawn.items()]
        return [candidate for candidate in found if candidate.said]

    try:
        return list(await asyncio.gather(*(turn(i) for i in range(len(episode.turns)))))
    except SweetError as e:
        raise TrainingError(f"Candidates for episode {episode.id} could not be drawn: {e}") from e


def rank_pairs(
    scores: Sequence[float | None],
    counts: Sequence[int],
    rng: random.Random,
    pairs: int = PAIRS,
) -> list[tuple[int, int]]:
    """(chosen, rejected) candidates of one turn, as their indices; at most `pairs`.

    Every draw has a place of its own in the ranking, so a message that was drawn often is in as
    many pairs as it would be if it had not been merged. Chosen is from the better half of the
    draws, rejected from the worse half (the middle one of an odd number is in neither). Equal
    scores make no pair, and neither does a candidate without one.
    """
    known = {index: score for index, score in enumerate(scores) if score is not None}
    draws = [index for index in known for _ in range(counts[index])]
    draws.sort(key=lambda index: (-known[index], index))
    half = len(draws) // 2
    possible = [
        (chosen, rejected)
        for chosen, rejected in product(draws[:half], draws[len(draws) - half :])
        if known[chosen] > known[rejected]
    ]
    return rng.sample(possible, min(pairs, len(possible)))


def ranked_turns(
    turns: Sequence[Sequence[Candidate]], ranked: Sequence[Mapping[str, Any]]
) -> dict[int, list[RankedCandidate]]:
    """The candidates of an episode as the log keeps them, by turn; left out where there is none.

    `ranked` holds each turn's `scores` and `pairs`; what got no score is left out. Candidates that
    differ in their thoughts alone are one message, and become one.
    """
    return {
        index: _merged(candidates, turn["scores"], turn["pairs"])
        for index, (candidates, turn) in enumerate(zip(turns, ranked, strict=True))
        if candidates
    }


def _merged(
    candidates: Sequence[Candidate],
    scores: Sequence[float | None],
    pairs: Sequence[tuple[int, int]],
) -> list[RankedCandidate]:
    chosen = Counter(side for side, _ in pairs)
    rejected = Counter(side for _, side in pairs)
    found: dict[tuple[str, bool], RankedCandidate] = {}
    for index, (candidate, score) in enumerate(zip(candidates, scores, strict=True)):
        if score is None:
            continue
        same = (candidate.said, candidate.is_ended)
        one = found.get(same) or RankedCandidate(same[0], 0, score, is_ended=same[1])
        found[same] = replace(
            one,
            drawn=one.drawn + candidate.count,
            chosen=one.chosen + chosen[index],
            rejected=one.rejected + rejected[index],
        )
    return list(found.values())
