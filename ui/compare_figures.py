"""Two versions over a task set → HTML: how far it is, what came of it, the tasks that differ."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import urlencode

from evaluators.figures import Figure
from sweet.comparing.compare import Compared, ComparePlan, Pair
from sweet.store import Batch, ScoredEpisode
from ui.format import NA, collaborator_name, duration, esc, notice, number, pill

SHOWN = 200
"""Differing tasks on the page; the command line has all."""


def query_of(plan: ComparePlan) -> str:
    """The query string of a link to a comparison over a set."""
    return urlencode(
        {
            "tasks": plan.tasks,
            "first": plan.first,
            "second": plan.second,
            "n": plan.n,
            "collaborator": plan.collaborator,
            "at_once": plan.concurrency,
            "seed": plan.seed,
        }
    )


def known(plans: Sequence[tuple[ComparePlan, bool]]) -> str:
    """The comparisons over sets that were begun since the studio started; whether each runs."""
    if not plans:
        return ""
    lines = "".join(
        f'<li><a href="compare?{esc(query_of(plan))}">{esc(plan.first)} and {esc(plan.second)} on '
        f"{esc(plan.tasks)}, {plan.n} tasks, seed {plan.seed}</a> "
        f"{pill('open', '… running') if runs else pill('none', 'ended')}</li>"
        for plan, runs in plans
    )
    return f"<h3>Begun since the studio started</h3><ul>{lines}</ul>"


def progress(
    plan: ComparePlan, batches: Sequence[Batch | None], *, running: bool, error: str = ""
) -> str:
    """What is compared, and how many episodes of each version are finished."""
    kind, words = ("open", "… running") if running else ("none", "not running")
    bars = "".join(
        _side(name, batch, running)
        for name, batch in zip((plan.first, plan.second), batches, strict=True)
    )
    who = collaborator_name(plan.collaborator or "the best for each task")
    asked = (
        f"{plan.tasks} · {plan.n} tasks · collaborator: {who} · {plan.concurrency} at once · "
        f"seed {plan.seed}"
    )
    broke = notice("The comparison broke off", error, "error") if error else ""
    return (
        f'<div class="panel run" data-address="{esc(query_of(plan))}">'
        f'<div class="outcome"><h2>Two versions on the same tasks</h2>{pill(kind, words)}</div>'
        f'{bars}<p class="meta">{esc(asked)}</p>{broke}{_command(plan)}</div>'
    )


def _side(name: str, batch: Batch | None, running: bool) -> str:
    title = f"<strong>{esc(name)}</strong>"
    if batch is None:
        why = "not begun yet, or nothing left to play" if running else "nothing was left to play"
        return f'<p class="run-side">{title} <span class="meta">{why}</span></p>'
    share = batch.finished / batch.total if batch.total else 1.0
    facts = f"{batch.succeeded} succeeded, {batch.errors} failed to run · {_time(batch)}"
    return (
        f'<p class="run-side">{title} <strong role="status">{batch.finished}/{batch.total}</strong>'
        f' <span class="meta">{esc(facts)}</span></p>'
        f'<div class="bar" role="progressbar" aria-label="Episodes of {esc(name)} finished" '
        f'aria-valuemin="0" aria-valuemax="{batch.total}" aria-valuenow="{batch.finished}">'
        f'<span style="width:{share:.1%}"></span></div>'
    )


def _time(batch: Batch) -> str:
    """Elapsed < remaining, as long as it runs."""
    began = datetime.fromisoformat(batch.created_at)
    end = datetime.fromisoformat(batch.ended_at) if batch.ended_at else datetime.now(UTC)
    elapsed = max(0.0, (end - began).total_seconds() * 1000)
    if batch.ended_at or not batch.finished:
        return duration(elapsed)
    left = elapsed / batch.finished * (batch.total - batch.finished)
    return f"{duration(elapsed)} < {duration(left)}"


def _command(plan: ComparePlan) -> str:
    """The command that does the same without the page."""
    words = [
        *("python", "-m", "sweet", "compare", plan.first, plan.second, "--tasks", plan.tasks),
        *("-n", str(plan.n), "--concurrency", str(plan.concurrency), "--seed", str(plan.seed)),
        *(("--collaborator", plan.collaborator) if plan.collaborator else ()),
    ]
    command = shlex.join(words)
    return (
        "<details><summary>The same from the command line</summary>"
        '<div class="code"><button type="button" class="copy" data-action="copy">Copy</button>'
        f'<pre tabindex="0" aria-label="Command"><code>{esc(command)}</code></pre></div></details>'
    )


def figures(done: Compared) -> str:
    """Wins, ties and losses, the paired differences with their intervals, and what differs."""
    plan, met = done.plan, done.met
    if not met.n:
        return _nothing(done)
    counts = "".join(
        f"<div><dt>{name}</dt><dd>{count}</dd></div>"
        for name, count in (
            (f"{esc(plan.first)} wins", met.wins),
            ("Ties", met.ties),
            (f"{esc(plan.second)} wins", met.losses),
            ("Pairs compared (n)", met.n),
            ("Without a reward", done.missing),
        )
    )
    rows = "".join(_figure_row(*row) for row in _rows(done))
    return (
        f'<section class="panel" aria-label="What came of it"><h2>What came of it</h2>'
        f'<dl class="facts">{counts}</dl>{_verdict(done)}</section>'
        '<div class="scroll"><table class="log figures"><thead><tr><th scope="col">Figure</th>'
        '<th scope="col">Value</th><th scope="col">95 % interval</th><th scope="col">n</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></div>{_differing(done)}"
    )


def _nothing(done: Compared) -> str:
    if done.missing:
        return notice(
            "No pair can be compared yet",
            f"{done.missing} of {done.plan.n} have no reward on both sides. A pair counts when "
            "both episodes were scored by the same evaluator.",
        )
    return notice("Nothing was played yet", "Press “Go on”.")


def _verdict(done: Compared) -> str:
    found, plan = done.difference, done.plan
    if found.low is None or found.high is None:
        return '<p class="meta">One pair has no interval. Compare more tasks.</p>'
    if found.low > 0 or found.high < 0:
        better = plan.first if found.low > 0 else plan.second
        return f"<p><strong>{esc(better)} is better</strong> here: the interval leaves out 0.</p>"
    return "<p>No difference is shown: the interval holds 0. More tasks would narrow it.</p>"


def _rows(done: Compared) -> list[tuple[str, Figure, str]]:
    minus = f"{done.plan.first} − {done.plan.second}"
    return [
        (f"Reward, {minus}, pair by pair", done.difference, "+"),
        (f"Tests passed, {minus}", done.tests_passed, "+"),
        (f"Turns, {minus}", done.turns, "+"),
        (f"Win rate of {done.plan.first} (a tie is half a win)", done.met.win_rate, ""),
    ]


def _figure_row(name: str, figure: Figure, sign: str) -> str:
    interval = NA
    if figure.low is not None and figure.high is not None:
        interval = f"{_signed(figure.low, sign)} to {_signed(figure.high, sign)}"
    return (
        f'<tr><th scope="row">{esc(name)}</th>'
        f'<td data-label="Value">{_signed(figure.value, sign)}</td>'
        f'<td data-label="95 % interval">{interval}</td><td data-label="n">{figure.n}</td></tr>'
    )


def _signed(value: float | None, sign: str) -> str:
    if value is None:
        return NA
    shown = f"{value:{sign}.3f}"
    return shown.replace("-", "\N{MINUS SIGN}")


def _differing(done: Compared) -> str:
    """The tasks on which the two came to something else, each with both sessions to look at."""
    if not done.differ:
        return notice("No task differs", "On every pair both got the same reward.")
    names = (esc(done.plan.first), esc(done.plan.second))
    rows = "".join(_pair_row(pair, *names) for pair in done.differ[:SHOWN])
    left = len(done.differ) - SHOWN
    more = f'<p class="meta">… and {left} more; the command line has all.</p>' if left > 0 else ""
    return (
        f"<h3>{len(done.differ)} task{' differs' if len(done.differ) == 1 else 's differ'}</h3>"
        '<div class="scroll"><table class="log"><thead><tr><th scope="col">Task</th>'
        f'<th scope="col">Seed</th><th scope="col">{names[0]}</th><th scope="col">{names[1]}</th>'
        f'<th scope="col">Turns</th></tr></thead><tbody>{rows}</tbody></table></div>{more}'
    )


def _pair_row(pair: Pair, one: str, other: str) -> str:
    first, second = pair.first, pair.second
    assert first is not None  # a differing pair has both
    assert second is not None
    link = f"compare?{urlencode({'one': first.id, 'other': second.id})}"
    return (
        f'<tr><td class="task" data-label="Task"><a href="{esc(link)}">{esc(pair.description)}</a>'
        f'</td><td data-label="Seed">{pair.seed}</td>'
        f'<td data-label="{one}">{_side_cell(first, second)}</td>'
        f'<td data-label="{other}">{_side_cell(second, first)}</td>'
        f'<td data-label="Turns">{first.turns}, {second.turns}</td></tr>'
    )


def _side_cell(side: ScoredEpisode, other: ScoredEpisode) -> str:
    kind, sign = ("pass", "✓") if side.reward > other.reward else ("wrong", "✗")
    return pill(kind, f"{sign} {number(side.reward)}")
