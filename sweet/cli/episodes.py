"""`rollout` and `evaluate`: simulated episodes, into the log."""

from __future__ import annotations

import argparse
import asyncio
import signal
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from statistics import fmean
from typing import Any

from tqdm import tqdm

from evaluators.figures import wilson_interval
from sweet.cli.output import Result, add_command, allow_unsafe, at_least, note, settings_of
from sweet.rollout import Outcome
from sweet.services import BatchPlan, Services
from sweet.types import Reward, StopReason


def add_commands(commands: Any) -> None:
    """Add `rollout` and `evaluate`."""
    rollout = add_command(commands, "rollout", run_rollout, "Simulate episodes, into the log.")
    evaluate = add_command(
        commands, "evaluate", run_evaluate, "Simulate episodes and give a policy's figures."
    )
    for command in (rollout, evaluate):
        command.add_argument(
            "--tasks",
            required=True,
            metavar="SET",
            help="mini-backend/{train,validation,test,families}, colbench-backend/{…}, file:PATH",
        )
        command.add_argument("--policy", metavar="ID", help="default: the version served now")
        command.add_argument(
            "--collaborator", default="", help="scripted or llm:MODEL; default: the best there is"
        )
        command.add_argument("-n", type=at_least(1), default=100, help="how many episodes")
        command.add_argument("--concurrency", type=at_least(1), default=16, help="how many at once")
        command.add_argument("--seed", type=int, default=0, help="the same seed, the same episodes")
        allow_unsafe(command)


def run_rollout(args: argparse.Namespace) -> Result:
    """What became of the episodes, by the reason they ended for."""
    batch_id, outcomes, seconds = _run(args)
    reasons = Counter(str(o.episode.stop_reason) for o in outcomes if o.episode)
    rewards = _rewards(outcomes)
    value = {
        "batch": batch_id,
        "n": len(outcomes),
        **{reason.value: reasons[reason] for reason in _ENDS},
        "not_started": sum(o.episode is None for o in outcomes),
        "scored": len(rewards),
        "success_rate": _mean([r.value for r in rewards]),
        "seconds": round(seconds, 3),
    }
    return Result(value, _lines(value), ok=_any_done(outcomes))


_ENDS = (StopReason.ANSWERED, StopReason.TURN_LIMIT, StopReason.FAILED, StopReason.STOPPED)


def run_evaluate(args: argparse.Namespace) -> Result:
    """A policy's figures over the scored episodes; the others are counted apart, not as 0."""
    batch_id, outcomes, seconds = _run(args)
    rewards = _rewards(outcomes)
    scored = [o.episode for o in outcomes if o.episode and o.episode.reward]
    succeeded = sum(r.value >= 1 for r in rewards)
    value = {
        "n": len(rewards),
        "success_rate": _mean([float(r.value >= 1) for r in rewards]),
        "success_ci95": list(wilson_interval(succeeded, len(rewards))) if rewards else None,
        "tests_passed": _component(rewards, "tests_passed"),
        "cosine": _component(rewards, "cosine"),
        "mean_turns": _mean([len(e.turns) for e in scored]),
        "episodes_per_s": round(len(outcomes) / seconds, 3),
        "without_reward": len(outcomes) - len(rewards),
        "tasks": args.tasks,
        "policy": args.policy,
        "seed": args.seed,
        "batch": batch_id,
    }
    return Result(value, _lines(value), ok=_any_done(outcomes))


def _run(args: argparse.Namespace) -> tuple[str, list[Outcome], float]:
    with Services(settings_of(args)) as services:
        args.policy = args.policy or services.default_policy(services.kind_of(args.tasks))
        plan = BatchPlan(
            args.tasks, args.policy, args.n, args.collaborator, args.concurrency, args.seed
        )
        return asyncio.run(_collect(services, plan))


async def _collect(services: Services, plan: BatchPlan) -> tuple[str, list[Outcome], float]:
    """Every outcome; the first interrupt (Ctrl-C) stops the batch and keeps what is done."""
    stop = asyncio.Event()
    stop_on_interrupt(stop)
    batch_id, outcomes_of = await services.open_batch(plan, stop)
    began = time.perf_counter()
    outcomes: list[Outcome] = []
    reasons: Counter[str] = Counter()
    with tqdm(total=plan.n, unit="episode") as bar:
        async for outcome in outcomes_of:
            outcomes.append(outcome)
            bar.update()
            if why := failure_of(outcome):
                reasons[why] += 1
    for why, count in reasons.most_common(3):
        note(f"{count} of {len(outcomes)} without a reward: {why}")
    return batch_id, outcomes, time.perf_counter() - began


def stop_on_interrupt(stop: asyncio.Event) -> None:
    """Set `stop` at the first interrupt (Ctrl-C) of this event loop; the next one breaks off."""
    loop = asyncio.get_running_loop()

    def first() -> None:
        note("Stopping; what is done is kept. Interrupt again to break off.")
        stop.set()
        loop.remove_signal_handler(signal.SIGINT)

    with suppress(NotImplementedError):  # Windows
        loop.add_signal_handler(signal.SIGINT, first)


def failure_of(outcome: Outcome) -> str:
    """Why an outcome has no reward; empty where it has one."""
    episode = outcome.episode
    if episode is None:
        return outcome.error or "it did not start"
    if episode.reward is not None:
        return ""
    scoring = episode.evaluation.error if episode.evaluation else None
    return episode.error or scoring or str(episode.stop_reason)


def _rewards(outcomes: list[Outcome]) -> list[Reward]:
    return [o.episode.reward for o in outcomes if o.episode and o.episode.reward]


def _any_done(outcomes: list[Outcome]) -> bool:
    return any(not failure_of(outcome) for outcome in outcomes)


def _component(rewards: list[Reward], name: str) -> float | None:
    return _mean([r.components[name] for r in rewards if name in r.components])


def _mean(values: list[float] | list[int]) -> float | None:
    return round(fmean(values), 6) if values else None


def _lines(value: Mapping[str, object]) -> str:
    return "\n".join(f"{name:15} {'n/a' if v is None else v}" for name, v in value.items())
