"""Best of N: at each turn draw N messages and say the one that a critic scores highest.

A critic that reads hidden information makes this an oracle: what it reaches is an upper bound for
its ranking, not what any policy that could be served reaches. The policy itself is asked as ever,
with an observation and nothing else; the hidden information goes to the critic alone. Episodes are
kept in a log of their own, since nothing must learn from them.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweet.errors import ConfigError, PolicyError, TrainingError
from sweet.parsing import parse_action
from sweet.policy import EnginePolicy
from sweet.rollout import Assignment, Rollout, assignments
from sweet.seeds import derived_seed
from sweet.services import Services
from sweet.store import EpisodeStore
from sweet.types import (
    Action,
    Completion,
    Episode,
    EpisodeFilter,
    Evaluator,
    Observation,
    OnText,
    StopReason,
    TaskKind,
    TaskRow,
    Turn,
    Usage,
)
from sweet.validation import OUTCOME, OUTCOME_FORM, outcome
from trainer.candidates import Candidate
from trainer.critics import TurnCritic, ranking_critic
from trainer.figures import figures
from trainer.learner import use_threads
from trainer.settings import Algorithm, RoundSettings
from trainer.simulate import finished
from trainer.workbench import rounds_folder, settings_of

WITHOUT_ROUND = {"untrained": Algorithm.UNTRAINED, "judge": Algorithm.JUDGE}
"""Critics that nothing trains."""
ORACLE = "The critic reads hidden information: an upper bound, no policy that could be served."
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class BestOfPlan:
    """What is measured: whose critic, whose messages, how many of them, on which tasks."""

    critic: str
    tasks: str
    policy: str = ""
    n: int = 100
    candidates: int = 16  # arXiv:2503.15478: N = 16
    seed: int = 0
    concurrency: int = 8

    def __post_init__(self) -> None:
        """Raises: ConfigError."""
        for option in ("n", "candidates", "concurrency"):
            if getattr(self, option) < 1:
                raise ConfigError(f"--{option} is {getattr(self, option)}; it must be 1 or more.")


class BestOfN:
    """A policy in the agent's seat of one task, which says the best of its N messages."""

    def __init__(
        self,
        id: str,
        policy: EnginePolicy,
        critic: TurnCritic,
        row: TaskRow,
        n: int,
        turn_to_score: asyncio.Lock,
    ) -> None:
        self.id = id
        self._policy = policy
        self._critic = critic
        self._row = row
        self._n = n
        self._turn_to_score = turn_to_score

    async def act(
        self, observation: Observation, *, seed: int, on_text: OnText | None = None
    ) -> Action:
        """The best of N messages; the first of them is what the policy alone would say.

        Raises: PolicyError, also where no message got a score. Nothing is streamed: which message
        is said is known only at the end.
        """
        first = derived_seed(seed, len(observation.exchanges))
        seeds = [first, *(derived_seed(first, k) for k in range(1, self._n))]
        drawn = await asyncio.gather(*(self._policy.draw(observation, seed=s) for s in seeds))
        texts = Counter((c.text, c.finish_reason == "stop") for c in drawn)
        candidates = [Candidate(text, count, ended) for (text, ended), count in texts.items()]
        best = await self._best(observation, [one for one in candidates if one.said])
        duration_ms = max(c.duration_ms for c in drawn)
        return parse_action(best.text, _usage(drawn), duration_ms)

    async def _best(self, observation: Observation, candidates: list[Candidate]) -> Candidate:
        if not candidates:
            raise PolicyError(f"The policy {self._policy.id!r} said nothing in {self._n} tries.")
        episode = _so_far(self._row, observation, candidates[0])
        asked = [*([] for _ in observation.exchanges), candidates]
        async with self._turn_to_score:  # one model, whose adapters are switched while it scores
            scores = await asyncio.to_thread(self._critic.scores, self._row, episode, asked)
        if scores is None:
            raise PolicyError("The dialogue is too long for the critic to read.")
        scored = [(s, c) for s, c in zip(scores[-1], candidates, strict=True) if s is not None]
        if not scored:
            raise PolicyError(f"The critic gave none of {len(candidates)} messages a score.")
        return max(scored, key=lambda one: one[0])[1]  # the first of equals


def best_of(services: Services, plan: BestOfPlan, progress: Progress) -> dict[str, Any]:
    """Figures of best-of-N play; what was played before by the same plan is not played again.

    Raises: SweetError.
    """
    settings, folder = _critic_settings(services, plan)
    policy = services.policy(plan.policy or settings.policy)
    critic = ranking_critic(services, settings, folder)
    use_threads(settings.threads)
    rows = services.task_rows(plan.tasks)
    rows = random.Random(plan.seed).sample(rows, min(plan.n, len(rows)))
    todo = list(assignments(rows, len(rows), plan.seed))
    name = f"best {plan.candidates} of {policy.id} by {getattr(critic, 'name', plan.critic)}"
    with EpisodeStore.open(services.settings.data / "bestof.db") as store:
        store.add_tasks(rows)
        known = finished(store, EpisodeFilter(policy_id=name))
        done = {k: e for k, e in known.items() if e.stop_reason is not StopReason.FAILED}
        left = [a for a in todo if (a.row.task.id, a.seed) not in done]
        lock = asyncio.Lock()

        def seat(row: TaskRow) -> BestOfN:
            return BestOfN(name, policy, critic, row, plan.candidates, lock)

        evaluator = services.evaluator(rows[0].task.kind)
        played = asyncio.run(_played(services, store, seat, evaluator, left, plan, progress))
        done |= {(e.task_id, e.seed): e for e in played}
    episodes = [done[a.row.task.id, a.seed] for a in todo]
    return {
        "policy": policy.id,
        "critic": plan.critic,
        "candidates": plan.candidates,
        "tasks": plan.tasks,
        "kind": settings.tasks,
        "reads_hidden": settings.kind.reads_hidden,
        "note": ORACLE if settings.kind.reads_hidden else "",
        **figures(episodes),
        "first_error": next((e.error for e in episodes if e.error), None),
    }


def in_words(found: Mapping[str, Any]) -> str:
    """The figures of `best_of`, for a person."""
    what = f"best {found['candidates']} of {found['policy']} by {found['critic']}"
    said = f"{what} on {found['tasks']}: n {found['n']}"
    if found["n"]:
        kind = TaskKind(found["kind"])
        reached = outcome(kind, found)
        form = OUTCOME_FORM[kind]
        ends = ["n/a" if e is None else format(e, form) for e in (reached.low, reached.high)]
        said += f", {OUTCOME[kind]} {reached.value:{form}} [{', '.join(ends)}]"
    if found["tests_passed"] is not None:
        said += f", tests passed {found['tests_passed']:.1%}"
    if found["unscored"]:
        said += f"; {found['unscored']} not scored, the first: {found['first_error']}"
    return f"{said}\n{ORACLE}" if found["reads_hidden"] else said


def _critic_settings(services: Services, plan: BestOfPlan) -> tuple[RoundSettings, Path | None]:
    """The settings that a critic was made by, and its round's folder. Raises: ConfigError."""
    if kind := WITHOUT_ROUND.get(plan.critic):
        tasks = services.kind_of(plan.tasks) or TaskKind.BACKEND
        policy = plan.policy or services.default_policy(tasks)
        return RoundSettings(algorithm=kind, policy=policy, tasks=tasks.value), None
    settings = settings_of(services, plan.critic)
    folder = rounds_folder(services) / plan.critic
    if not settings.kind.ranks_candidates:
        raise ConfigError(
            f"The round {plan.critic} ({settings.algorithm}) has no critic. Name one that has, or "
            f"{' or '.join(WITHOUT_ROUND)}."
        )
    if settings.kind.trains_critic and not (folder / "critic").is_dir():
        raise ConfigError(f"The critic of round {plan.critic} is not trained yet; resume it first.")
    return settings, folder


async def _played(
    services: Services,
    store: EpisodeStore,
    seat: Callable[[TaskRow], BestOfN],
    evaluator: Evaluator | None,
    left: list[Assignment],
    plan: BestOfPlan,
    progress: Progress,
) -> list[Episode]:
    """The episode of each assignment, each with a policy for its own task."""
    places = asyncio.Semaphore(plan.concurrency)
    episodes: list[Episode] = []

    async def play(assignment: Assignment) -> None:
        async with places:
            policy, turns = seat(assignment.row), services.settings.max_turns
            rollout = Rollout(store, policy, services.simulator_for, evaluator, turns)
            async for outcome in rollout.run([assignment], concurrency=1):
                if outcome.episode is None:
                    raise TrainingError(f"An episode could not be played: {outcome.error}")
                episodes.append(outcome.episode)
        progress(len(episodes), len(left))

    await asyncio.gather(*(play(assignment) for assignment in left))
    return episodes


def _so_far(row: TaskRow, observation: Observation, said: Candidate) -> Episode:
    """The dialogue as an episode, for the critic to read: it ends with what could be said."""
    done = [
        Turn(i, Action(e.agent, e.agent, False), e.collaborator)
        for i, e in enumerate(observation.exchanges)
    ]
    last = Turn(len(done), Action(said.text, said.said, False))
    left = observation.turns_left + len(done)
    return Episode("", row.task.id, "", "", 0, max_turns=left, turns=(*done, last))


def _usage(drawn: list[Completion]) -> Usage | None:
    """The tokens of all draws: what was said cost them all."""
    used = [c.usage for c in drawn if c.usage]
    if not used:
        return None
    return Usage(sum(u.prompt_tokens for u in used), sum(u.completion_tokens for u in used))
