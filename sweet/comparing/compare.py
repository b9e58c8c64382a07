"""Two policies over a task set, with the same seeds and collaborator, and what came of it.

An episode that the log has already (same policy, task, seed, collaborator) is not played again: a
comparison that broke off goes on where it was when it is asked for again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any

from evaluators.figures import NONE, Figure, mean
from evaluators.judge import Judge, Judgement
from evaluators.preference import Met
from sweet.errors import ConfigError
from sweet.rollout import Assignment, Outcome, assignments
from sweet.services import BatchPlan, Services
from sweet.store import ScoredEpisode, Voter
from sweet.types import EpisodeFilter, TaskKind

OnOutcome = Callable[[str, Outcome], None]
"""Called with the policy's id and what became of one of its episodes."""


@dataclass(frozen=True, slots=True)
class ComparePlan:
    """`n` tasks for each of two policies. `collaborator` empty: the best that can play each."""

    tasks: str
    first: str
    second: str
    n: int
    collaborator: str = ""
    concurrency: int = 8
    seed: int = 0

    def batch(self, policy_id: str) -> BatchPlan:
        """The episodes of one of the two; both run at once."""
        at_once = max(1, self.concurrency // 2)
        return BatchPlan(self.tasks, policy_id, self.n, self.collaborator, at_once, self.seed)


@dataclass(frozen=True, slots=True)
class Pair:
    """The two episodes of one task and seed; None where there is no reward (yet)."""

    task_id: str
    description: str
    seed: int
    first: ScoredEpisode | None
    second: ScoredEpisode | None

    @property
    def is_comparable(self) -> bool:
        """Whether both have a reward, by the same evaluator."""
        both = self.first is not None and self.second is not None
        return both and _of(self.first).evaluator == _of(self.second).evaluator

    @property
    def difference(self) -> float:
        """The first's reward minus the second's."""
        return _of(self.first).reward - _of(self.second).reward


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of it, from the first policy's side, over the comparable pairs.

    `difference` is of rewards (backend: of success), pair by pair, `tests_passed`, `turns`,
    `cosine` and `visual` likewise; `differ` are the pairs with different rewards, `missing` those
    without one to compare. All are scores of one `evaluator`, that of the most pairs.
    """

    plan: ComparePlan
    met: Met
    difference: Figure
    tests_passed: Figure
    turns: Figure
    differ: tuple[Pair, ...]
    comparable: tuple[Pair, ...]
    missing: int
    played: int
    evaluator: str = ""
    cosine: Figure = NONE
    visual: Figure = NONE

    def as_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            **asdict(self.plan),
            "evaluator": self.evaluator or None,
            "compared": self.met.n,
            **asdict(self.met),
            "win_rate": asdict(self.met.win_rate),
            "difference": asdict(self.difference),
            "tests_passed_difference": asdict(self.tests_passed),
            "turns_difference": asdict(self.turns),
            "cosine_difference": asdict(self.cosine),
            "visual_difference": asdict(self.visual),
            "without_reward": self.missing,
            "played": self.played,
            "differ": [_as_json(pair) for pair in self.differ],
        }


async def play_both(
    services: Services,
    plan: ComparePlan,
    *,
    stop: asyncio.Event | None = None,
    on_outcome: OnOutcome | None = None,
) -> Compared:
    """What came of the comparison, after playing the episodes that the log does not have.

    `stop` ends it early; the figures are then of what is there. Raises: SweetError where it can't
    begin (no such set, policy or collaborator, or one policy twice).
    """
    todo, names = await asyncio.to_thread(_prepared, services, plan)
    evaluator = await asyncio.to_thread(_evaluator_of, services, todo)
    before = await asyncio.to_thread(_pairs, services, plan, todo, names, evaluator)
    streams = []
    played = 0
    for policy_id, side in ((plan.first, "first"), (plan.second, "second")):
        done = {a.index for a, pair in zip(todo, before, strict=True) if getattr(pair, side)}
        if len(done) < len(todo):
            batch = plan.batch(policy_id)
            _, outcomes = await services.open_batch(batch, stop, kind="compare", done=done)
            streams.append(_drained(policy_id, outcomes, on_outcome))
            played += len(todo) - len(done)
    await _all_of(streams)
    pairs = await asyncio.to_thread(_pairs, services, plan, todo, names, evaluator)
    return compared(plan, pairs, played)


def so_far(services: Services, plan: ComparePlan) -> Compared:
    """What came of the comparison by now, from the log; nothing is played.

    Raises: SweetError as `play_both`, but a policy that is gone does not matter here.
    """
    _check(plan)
    todo, names = _assigned(services, plan)
    return compared(plan, _pairs(services, plan, todo, names))


def compared(plan: ComparePlan, pairs: Sequence[Pair], played: int = 0) -> Compared:
    """The figures of the pairs."""
    both = [(_of(pair.first).evaluator, pair) for pair in pairs if pair.is_comparable]
    counted = Counter(name for name, _ in both)
    evaluator = max(counted, key=counted.__getitem__, default="")
    able = tuple(pair for name, pair in both if name == evaluator)
    differ = tuple(pair for pair in able if pair.difference)
    wins = sum(pair.difference > 0 for pair in differ)
    return Compared(
        plan,
        Met(wins, len(able) - len(differ), len(differ) - wins),
        mean([pair.difference for pair in able]),
        _component(able, "tests_passed"),
        mean([float(_of(pair.first).turns - _of(pair.second).turns) for pair in able]),
        differ,
        able,
        len(pairs) - len(able),
        played,
        evaluator,
        _component(able, "cosine"),
        _component(able, "visual"),
    )


def judge_of(services: Services) -> Judge:
    """The configured judge. Raises: ConfigError where there is none."""
    return Judge(*services.judge(), services.gallery)


async def judge_comparison(services: Services, judge: Judge, comparison_id: str) -> Judgement:
    """What the judge says of a comparison; a verdict becomes its vote.

    Where it has voted already that is what it says. Raises: StoreError.
    """
    store = services.store
    comparison = await asyncio.to_thread(store.comparison, comparison_id)
    for vote in await asyncio.to_thread(store.votes, comparison_id):
        if vote.voter == judge.name:
            return Judgement(vote.choice, vote.reason)
    row = await asyncio.to_thread(store.task_row, comparison.task_id)
    left = await asyncio.to_thread(store.episode, comparison.left)
    right = await asyncio.to_thread(store.episode, comparison.right)
    found = await judge.compare(row, left, right)
    if found.choice is not None:
        cast = (comparison_id, found.choice, judge.name)
        await asyncio.to_thread(store.vote, *cast, by=Voter.JUDGE, reason=found.reason)
    return found


async def judge_pairs(services: Services, pairs: Sequence[Pair], concurrency: int) -> int:
    """How many of the pairs got the judge's verdict, which is now a vote in the log.

    Raises: ConfigError where no judge is configured, StoreError.
    """
    judge, places = judge_of(services), asyncio.Semaphore(concurrency)

    async def one(pair: Pair) -> bool:
        async with places:
            ids = sorted((_of(pair.first).id, _of(pair.second).id))
            made = await asyncio.to_thread(
                services.store.start_comparison, *ids, key=f"compare/{ids[0]}/{ids[1]}"
            )
            return (await judge_comparison(services, judge, made.id)).choice is not None

    return sum(await asyncio.gather(*(one(pair) for pair in pairs if pair.is_comparable)))


async def _all_of(streams: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run all; where one breaks off the others are ended too."""
    running = [asyncio.create_task(stream) for stream in streams]
    try:
        await asyncio.gather(*running)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _drained(
    policy_id: str, outcomes: AsyncIterator[Outcome], on_outcome: OnOutcome | None
) -> None:
    async with aclosing(outcomes) as stream:  # type: ignore[type-var]  # it is a generator
        async for outcome in stream:
            if on_outcome:
                on_outcome(policy_id, outcome)


def _prepared(services: Services, plan: ComparePlan) -> tuple[list[Assignment], list[str]]:
    """What is to be played, by policies that can."""
    _check(plan)
    for policy_id in (plan.first, plan.second):
        services.policy(policy_id)
    return _assigned(services, plan)


def _check(plan: ComparePlan) -> None:
    if plan.first == plan.second:
        raise ConfigError(f"{plan.first!r} cannot be compared with itself. Name two versions.")
    if plan.n < 1 or plan.concurrency < 1:
        raise ConfigError(f"{plan.n} tasks, {plan.concurrency} at once: both must be at least 1.")


def _assigned(services: Services, plan: ComparePlan) -> tuple[list[Assignment], list[str]]:
    """The tasks with their seeds, and who plays the collaborator of each."""
    todo = list(assignments(services.task_rows(plan.tasks), plan.n, plan.seed))
    return todo, [services.simulator_for(a.row, plan.collaborator).name for a in todo]


def _evaluator_of(services: Services, todo: Sequence[Assignment]) -> str:
    """What scores web pages now; of programs, which are always scored the same way, nothing."""
    are_pages = any(a.row.task.kind is TaskKind.FRONTEND for a in todo)
    return services.frontend_evaluator().name if are_pages else ""


def _pairs(
    services: Services,
    plan: ComparePlan,
    todo: Sequence[Assignment],
    names: Sequence[str],
    evaluator: str = "",
) -> list[Pair]:
    """The two episodes of each assignment, as far as the log has them, by that evaluator.

    Where none is named, by one that both have, if there is one.
    """
    turns = services.settings.max_turns
    first, second = (_by_key(services, policy) for policy in (plan.first, plan.second))
    pairs = []
    for assignment, name in zip(todo, names, strict=True):
        task, seed = assignment.row.task, assignment.seed
        key = (task.id, seed, name, turns)
        sides = _sides(first.get(key, {}), second.get(key, {}), evaluator)
        pairs.append(Pair(task.id, task.description, seed, *sides))
    return pairs


_Key = tuple[str, int, str, int]
_Scored = dict[str, ScoredEpisode]  # by evaluator, the newest last


def _by_key(services: Services, policy_id: str) -> dict[_Key, _Scored]:
    found: dict[_Key, _Scored] = {}
    for e in services.store.scored(EpisodeFilter(policy_id=policy_id)):
        by_evaluator = found.setdefault((e.task_id, e.seed, e.collaborator, e.max_turns), {})
        by_evaluator.pop(e.evaluator, None)
        by_evaluator[e.evaluator] = e
    return found


def _sides(
    first: _Scored, second: _Scored, evaluator: str
) -> tuple[ScoredEpisode | None, ScoredEpisode | None]:
    shared = [name for name in first if name in second]
    chosen = evaluator or (shared[-1] if shared else "")
    if chosen:
        return first.get(chosen), second.get(chosen)
    newest = [next(reversed(side.values()), None) for side in (first, second)]
    return newest[0], newest[1]


def _component(pairs: Sequence[Pair], name: str) -> Figure:
    both = [(_of(pair.first).components, _of(pair.second).components) for pair in pairs]
    return mean([a[name] - b[name] for a, b in both if name in a and name in b])


def _of(side: ScoredEpisode | None) -> ScoredEpisode:
    assert side is not None  # only asked of pairs that are comparable
    return side


def _as_json(pair: Pair) -> dict[str, Any]:
    sides = {"first": _of(pair.first), "second": _of(pair.second)}
    return {"task": pair.task_id, "seed": pair.seed, "description": pair.description} | {
        name: {
            "episode": side.id,
            "reward": side.reward,
            "success": side.reward >= 1 if side.kind is TaskKind.BACKEND else None,
            **side.components,
            "turns": side.turns,
        }
        for name, side in sides.items()
    }
