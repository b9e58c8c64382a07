"""`rollout` and `evaluate`: simulated episodes, into the log."""

from __future__ import annotations

import argparse
import asyncio
import signal
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from tqdm import tqdm

from evaluators.figures import Figure, mean, rate
from evaluators.preference import Met
from sweet.cli.against import met as met_stored
from sweet.cli.against import read_stored
from sweet.cli.output import Result, add_command, allow_unsafe, at_least, note, settings_of
from sweet.rollout import Outcome
from sweet.services import BatchPlan, Services
from sweet.types import Reward, StopReason, TaskKind


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
            help="mini-backend/… or mini-frontend/{train,validation,test,families}, "
            "colbench-backend/… or colbench-frontend/{train,test}, file:PATH",
        )
        command.add_argument("--policy", metavar="ID", help="default: the version served now")
        command.add_argument(
            "--collaborator", default="", help="scripted or llm:MODEL; default: the best there is"
        )
        command.add_argument("-n", type=at_least(1), default=100, help="how many episodes")
        command.add_argument("--concurrency", type=at_least(1), default=16, help="how many at once")
        command.add_argument("--seed", type=int, default=0, help="the same seed, the same episodes")
        allow_unsafe(command)
    evaluate.add_argument(
        "--against",
        metavar="FILE",
        help="also the win rate against stored answers: rows of {task_index, answer}",
    )
    rollout.set_defaults(against=None)


def run_rollout(args: argparse.Namespace) -> Result:
    """What became of the episodes, by the reason they ended for."""
    batch_id, outcomes, seconds, _ = _run(args)
    reasons = Counter(str(o.episode.stop_reason) for o in outcomes if o.episode)
    rewards = _rewards(outcomes)
    value = {
        "batch": batch_id,
        "n": len(outcomes),
        **{reason.value: reasons[reason] for reason in _ENDS},
        "not_started": sum(o.episode is None for o in outcomes),
        "scored": len(rewards),
        "success_rate": _rounded(_success(outcomes).value),
        "mean_reward": _mean([r.value for r in rewards]),
        "seconds": round(seconds, 3),
    }
    return Result(value, _lines(value), ok=_any_done(outcomes))


_ENDS = (StopReason.ANSWERED, StopReason.TURN_LIMIT, StopReason.FAILED, StopReason.STOPPED)


def run_evaluate(args: argparse.Namespace) -> Result:
    """A policy's figures over the scored episodes; the others are counted apart, not as 0."""
    batch_id, outcomes, seconds, met = _run(args)
    rewards = _rewards(outcomes)
    scored = [o.episode for o in outcomes if o.episode and o.episode.reward]
    success = _success(outcomes)
    value = {
        "n": len(rewards),
        "evaluator": ", ".join(sorted({r.evaluator for r in rewards})) or None,
        "success_rate": _rounded(success.value),
        "success_ci95": _interval(success),
        "tests_passed": _component(rewards, "tests_passed").value,
        **_with_interval("cosine", _component(rewards, "cosine")),
        **_with_interval("visual", _component(rewards, "visual")),
        **({} if met is None else _against(met)),
        "mean_turns": _mean([len(e.turns) for e in scored]),
        "episodes_per_s": round(len(outcomes) / seconds, 3),
        "without_reward": len(outcomes) - len(rewards),
        "tasks": args.tasks,
        "policy": args.policy,
        "seed": args.seed,
        "batch": batch_id,
    }
    return Result(value, _lines(value), ok=_any_done(outcomes))


def _run(args: argparse.Namespace) -> tuple[str, list[Outcome], float, Met | None]:
    with Services(settings_of(args)) as services:
        rows = services.task_rows(args.tasks)
        kind = rows[0].task.kind if rows else None
        args.policy = args.policy or services.default_policy(kind)
        stored = read_stored(Path(args.against).expanduser(), rows) if args.against else None
        if kind is TaskKind.FRONTEND and (why := services.frontend_evaluator().why_visual):
            note(f"Pages are scored by visual similarity. {why}")
        plan = BatchPlan(
            args.tasks, args.policy, args.n, args.collaborator, args.concurrency, args.seed
        )
        return asyncio.run(_collect(services, plan, stored))


async def _collect(
    services: Services, plan: BatchPlan, stored: Mapping[str, str] | None
) -> tuple[str, list[Outcome], float, Met | None]:
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
    seconds = time.perf_counter() - began
    met = await met_stored(services, outcomes, stored) if stored is not None else None
    return batch_id, outcomes, seconds, met


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


def _success(outcomes: list[Outcome]) -> Figure:
    """The share of programs that pass every test; pages have no such thing."""
    programs = [o for o in outcomes if o.assignment.row.task.kind is TaskKind.BACKEND]
    rewards = _rewards(programs)
    return rate(sum(r.value >= 1 for r in rewards), len(rewards))


def _component(rewards: list[Reward], name: str) -> Figure:
    figure = mean([r.components[name] for r in rewards if name in r.components])
    return replace(figure, value=_rounded(figure.value))


def _with_interval(name: str, figure: Figure) -> dict[str, object]:
    return {name: figure.value, f"{name}_ci95": _interval(figure), f"{name}_n": figure.n}


def _against(met: Met) -> dict[str, object]:
    rate = met.win_rate
    value: dict[str, object] = {"win_rate": _rounded(rate.value), "win_ci95": _interval(rate)}
    return value | {"wins": met.wins, "ties": met.ties, "losses": met.losses}


def _interval(figure: Figure) -> list[float] | None:
    low, high = figure.low, figure.high
    return None if low is None or high is None else [round(low, 6), round(high, 6)]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _mean(values: list[float] | list[int]) -> float | None:
    return round(fmean(values), 6) if values else None


def _lines(value: Mapping[str, object]) -> str:
    return "\n".join(f"{name:15} {'n/a' if v is None else v}" for name, v in value.items())
