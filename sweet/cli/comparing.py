"""`compare` and `leaderboard`: which version is better."""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from typing import Any

from tqdm import tqdm

from evaluators.figures import Figure
from sweet.cli.episodes import failure_of, stop_on_interrupt
from sweet.cli.log import add_filter, wanted_by
from sweet.cli.output import Result, add_command, allow_unsafe, at_least, note, settings_of, table
from sweet.comparing.compare import Compared, ComparePlan, judge_of, judge_pairs, play_both
from sweet.comparing.leaderboard import Leaderboard
from sweet.comparing.paper import PAPER
from sweet.comparing.standings import standings
from sweet.rollout import Outcome
from sweet.services import Services
from sweet.settings import load_settings

SHOWN = 20  # differing tasks without --json


def add_commands(commands: Any) -> None:
    """Add `compare` and `leaderboard`."""
    compare = add_command(
        commands, "compare", run_compare, "Play two versions on the same tasks with the same seeds."
    )
    compare.add_argument("first", metavar="A", help="a version, as `policies list` shows it")
    compare.add_argument("second", metavar="B", help="another")
    compare.add_argument("--tasks", required=True, metavar="SET", help="as for `evaluate`")
    compare.add_argument("-n", type=at_least(1), default=100, help="how many tasks")
    compare.add_argument("--collaborator", default="", help="scripted or llm:MODEL")
    compare.add_argument("--concurrency", type=at_least(1), default=16, help="how many at once")
    compare.add_argument("--seed", type=int, default=0, help="another seed, other episodes")
    compare.add_argument("--judge", action="store_true", help="have the judge vote on each pair")
    allow_unsafe(compare)
    board = add_command(
        commands, "leaderboard", run_leaderboard, "Every version's figures, from the log."
    )
    board.add_argument("--sort", default="success desc", metavar="COLUMN", help="then asc or desc")
    board.add_argument("--blind", action="store_true", help="only votes of who could not know")
    board.add_argument("--paper", action="store_true", help="the paper's rows beneath")
    add_filter(board)


def run_compare(args: argparse.Namespace) -> Result:
    """Wins, ties and losses of the first, with intervals, and the tasks that differ."""
    plan = ComparePlan(
        args.tasks, args.first, args.second, args.n, args.collaborator, args.concurrency, args.seed
    )
    with Services(settings_of(args)) as services:
        done, judged, stopped = asyncio.run(_compare(services, plan, args.judge))
    value = done.as_json() | {"judged": judged, "interrupted": stopped}
    if stopped:
        note("Stopped early; the same command again goes on where it was.")
    return Result(value, _compare_text(done), ok=bool(done.met.n))


async def _compare(
    services: Services, plan: ComparePlan, with_judge: bool
) -> tuple[Compared, int | None, bool]:
    if with_judge:
        judge_of(services)  # before anything is played
    stop, reasons = asyncio.Event(), Counter[str]()
    stop_on_interrupt(stop)
    with tqdm(unit="episode") as bar:

        def seen(policy_id: str, outcome: Outcome) -> None:
            bar.update()
            if why := failure_of(outcome):
                reasons[f"{policy_id}: {why}"] += 1

        done = await play_both(services, plan, stop=stop, on_outcome=seen)
    for why, count in reasons.most_common(4):
        note(f"{count} without a reward: {why}")
    judged = None
    if with_judge and not stop.is_set():
        judged = await judge_pairs(services, done.comparable, plan.concurrency)
        note(f"The judge gave a verdict on {judged} of {len(done.comparable)}.")
    return done, judged, stop.is_set()


def run_leaderboard(args: argparse.Namespace) -> Result:
    """Every version's figures by task set and evaluator; what was voted; success over rounds."""
    wanted = wanted_by(args)
    with Services(load_settings()) as services:
        found = standings(services.store, wanted, sort=args.sort, blind_only=args.blind)
    return Result(found.as_json(paper=args.paper), _board_text(found.board, args.paper))


def _compare_text(done: Compared) -> str:
    plan, met = done.plan, done.met
    lines = [
        f"{plan.first} against {plan.second} on {plan.tasks}, seed {plan.seed}:",
        f"{met.wins} wins, {met.ties} ties, {met.losses} losses "
        f"(n {met.n}; {done.missing} without a reward; {done.played} played now)",
        f"reward        {_cell(done.difference, sign='+')}",
        f"tests passed  {_cell(done.tests_passed, sign='+')}",
        f"turns         {_cell(done.turns, sign='+')}",
    ]
    for name, figure in (("cosine", done.cosine), ("visual", done.visual)):
        if figure.n:
            lines.append(f"{name:13} {_cell(figure, sign='+')} (scored by {done.evaluator})")
    rows = [
        (
            pair.task_id,
            pair.seed,
            *(f"{side.reward:g}" for side in (pair.first, pair.second) if side),
        )
        for pair in done.differ[:SHOWN]
    ]
    if rows:
        lines += ["", table(("task", "seed", plan.first, plan.second), rows)]
    if len(done.differ) > SHOWN:
        lines.append(f"… and {len(done.differ) - SHOWN} more (--json has all)")
    return "\n".join(lines)


_COLUMNS = ("success", "tests_passed", "cosine", "visual", "turns", "tokens", "win_rate")


def _board_text(board: Leaderboard, with_paper: bool) -> str:
    rows = [
        (r.policy_id, r.task_set, r.evaluator or None, r.n,
         *(_cell(getattr(r, name)) for name in _COLUMNS))
        for r in board.rows
    ]  # fmt: skip
    names = (name.replace("_", " ") for name in _COLUMNS)
    parts = [table(("policy", "task set", "evaluator", "n", *names), rows)]
    for who, said in (("people", board.people), ("the judge", board.judge)):
        if said.votes:
            strengths = [(name, _cell(figure)) for name, figure in said.strengths.items()]
            parts.append(f"{said.votes} votes of {who}; went left: {_cell(said.left_side)}")
            parts.append(table(("policy", "Bradley-Terry strength"), strengths))
    if board.agreed.n:
        parts.append(f"The judge agrees with people: {_cell(board.agreed)}")
    if with_paper:
        head = ("the paper's, not measured here (%)", "% tests", "success", "cosine", "win rate")
        paper = [(r.method, r.tests_passed, r.success, r.cosine, r.win_rate) for r in PAPER]
        parts.append(table(head, paper))
    return "\n\n".join(parts)


def _cell(figure: Figure, sign: str = "") -> str | None:
    """Value, interval and n, as text; None where it is unknown."""
    if figure.value is None:
        return None
    shown = f"{figure.value:{sign}.3g}"
    if figure.low is not None and figure.high is not None:
        shown += f" [{figure.low:{sign}.3g}, {figure.high:{sign}.3g}]"
    return f"{shown} n={figure.n}"
