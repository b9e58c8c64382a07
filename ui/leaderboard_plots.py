"""Outcomes over rounds, success by turn budget → plots with 95 % intervals, and their figures."""

from __future__ import annotations

from collections.abc import Sequence

from evaluators.figures import Figure
from sweet.comparing.leaderboard import RoundPoint
from sweet.comparing.standings import Key, Standings
from sweet.types import TaskKind
from sweet.validation import OUTCOME
from ui.figures import OUTCOME_SHOWS, Shows, ends, figure, share
from ui.format import NA, esc, notice
from ui.plots import SHARES, Axes, framed, svg, ticks

MOST_ROUNDS = 24
"""In a plot; the latest ones."""
MOST_PLOTS = 12
"""Of turn budgets; the first rows of the table."""
NAMED_ROUNDS = 5
"""More names would not fit under the axis."""


def over_rounds(found: Sequence[RoundPoint]) -> str:
    """A plot a task set and evaluator, with each round’s version and its parent; then a table."""
    if not found:
        return notice(
            "No round to show",
            "Each finished round of training adds its version and its parent here, if the filters "
            "of task set and version let it through.",
        )
    sets: dict[tuple[str, str], list[RoundPoint]] = {}
    for point in found:
        sets.setdefault((point.task_set, point.evaluator), []).append(point)
    drawn = "".join(_rounds_plot(points) for points in sets.values())
    legend = (
        '<p class="meta legend"><span class="key dot"></span>the round’s version '
        '<span class="key ring"></span>its parent, on the same validation tasks; '
        "upright lines are 95 % intervals</p>"
    )
    return f'{legend}<div class="plots">{drawn}</div>{_rounds_table(found)}'


def _rounds_plot(found: Sequence[RoundPoint]) -> str:
    shown, last = found[-MOST_ROUNDS:], found[-1]
    shows, _ = OUTCOME_SHOWS[last.kind]
    is_share = last.kind is TaskKind.BACKEND
    axes = Axes(-0.5, len(shown) - 0.5, _rows(shown), is_share)
    marks = "".join(_pair(axes, at, point) for at, point in enumerate(shown))
    named = range(len(shown)) if len(shown) <= NAMED_ROUNDS else ()
    below = "".join(axes.below(at, shown[at].version_id) for at in named)
    if not named:
        below = axes.below(axes.first, shown[0].version_id, "start")
        below += axes.below(axes.last, shown[-1].version_id, "end")
    now = _said(last.version, shows)
    cut = f", the latest {len(shown)} of {len(found)} rounds" if len(shown) < len(found) else ""
    what = f"{OUTCOME[last.kind].capitalize()} over rounds on {last.task_set}{cut}"
    drawing = svg(f"{what}: {last.version_id} {now}", f"{axes.grid}{below}{marks}")
    by = f" by {last.evaluator}" if last.kind is TaskKind.FRONTEND else ""
    meaning = f"{OUTCOME[last.kind]}{by}; {last.version_id}: {now}{cut}"
    return framed(last.task_set or NA, _alone(last.version, shows), meaning, drawing)


def _rows(shown: Sequence[RoundPoint]) -> list[float]:
    """Round figures that hold all intervals: rounds differ by little."""
    figures = [f for point in shown for f in (point.parent, point.version)]
    known = [v for f in figures for v in (f.value, f.low, f.high) if v is not None]
    return ticks(min(known), max(known)) if known else list(SHARES)


def _alone(found: Figure, shows: Shows) -> str:
    """A figure alone, for a caption that has its n elsewhere."""
    return NA if found.value is None else shows(found.value)


def _said(found: Figure, shows: Shows) -> str:
    """A figure with its interval and n, without markup."""
    if found.value is None:
        return NA
    return f"{shows(found.value)} {ends(found, shows)} n = {found.n:,}"


def _pair(axes: Axes, at: int, point: RoundPoint) -> str:
    shows, _ = OUTCOME_SHOWS[point.kind]
    before = f"{point.parent_id}, before {point.round_id}"
    after = f"{point.version_id} of {point.round_id}"
    parent = _mark(axes, at - 0.14, point.parent, shows, "ring", before)
    return parent + _mark(axes, at + 0.14, point.version, shows, "dot", after)


def _mark(axes: Axes, position: float, found: Figure, shows: Shows, kind: str, name: str) -> str:
    """A point with its interval; nothing where it is unknown."""
    if found.value is None:
        return ""
    x = axes.x(position)
    line = ""
    if found.low is not None and found.high is not None:
        low, high = axes.y(found.low), axes.y(found.high)
        line = f'<path class="interval" d="M{x:.1f},{low:.1f}V{high:.1f}"/>'
    return (
        f'<g class="{kind}"><title>{esc(name)}: {_said(found, shows)}</title>{line}'
        f'<circle cx="{x:.1f}" cy="{axes.y(found.value):.1f}" r="3.5"/></g>'
    )


def _rounds_table(found: Sequence[RoundPoint]) -> str:
    body = "".join(_rounds_row(point) for point in reversed(found))
    heads = ("Round", "Algorithm", "Validation tasks", "Parent", "Version", "Gain")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return (
        '<details class="figures"><summary>The figures of all rounds</summary><div class="scroll">'
        f'<table class="log"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        "</details>"
    )


def _rounds_row(point: RoundPoint) -> str:
    link = f'<a href="train?round={esc(point.round_id)}">{esc(point.round_id)}</a>'
    shows, shows_gain = OUTCOME_SHOWS[point.kind]
    cells = (
        ("Round", link),
        ("Algorithm", esc(point.algorithm)),
        ("Validation tasks", esc(point.task_set or NA)),
        ("Parent", f"{esc(point.parent_id)} {figure(point.parent, shows)}"),
        ("Version", f"{esc(point.version_id)} {figure(point.version, shows)}"),
        ("Gain", figure(point.gain, shows_gain)),
    )
    return "<tr>" + "".join(f'<td data-label="{n}">{text}</td>' for n, text in cells) + "</tr>"


def by_budget(found: Standings) -> str:
    """A plot a row of the table, all on one scale; then the same as a table."""
    rows = [(row.policy_id, row.task_set, row.evaluator) for row in found.board.rows]
    keys = [key for key in rows if key in found.budgets]
    if not keys:
        return notice("No turn budget yet", "It is counted from scored episodes of backend tasks.")
    drawn = "".join(_budget_plot(key, found.budgets[key]) for key in keys[:MOST_PLOTS])
    cut = f" The first {MOST_PLOTS} of {len(keys)} rows." if len(keys) > MOST_PLOTS else ""
    legend = (
        '<p class="meta legend"><span class="key smooth first"></span>solved within so many '
        'messages of the agent <span class="key band"></span>95 % interval. Counted from the same '
        f"episodes; at each budget those that were allowed as many.{cut}</p>"
    )
    return f'{legend}<div class="plots">{drawn}</div>{_budget_table(keys, found)}'


def _budget_plot(key: Key, budgets: Sequence[Figure]) -> str:
    policy_id, task_set, evaluator = key
    axes = Axes(1, max(2, len(budgets)), SHARES, is_share=True)
    known = [(k, f) for k, f in enumerate(budgets, start=1) if f.value is not None]
    line = [axes.place(k, f.value or 0.0) for k, f in known]
    upper = [axes.place(k, f.high) for k, f in known if f.high is not None]
    lower = [axes.place(k, f.low) for k, f in known if f.low is not None]
    dots = "".join(
        f'<g class="dot"><title>within {k}: {_said(f, share)}</title>'
        f'<circle cx="{axes.x(k):.1f}" cy="{axes.y(f.value or 0.0):.1f}" r="2.5"/></g>'
        for k, f in known
    )
    below = axes.below(1, "1", "start")
    below += axes.below(axes.last, f"{len(budgets)} turns", "end") if len(budgets) > 1 else ""
    now = _said(budgets[-1], share)
    summary = f"Success of {policy_id} on {task_set} within {len(budgets)} turns: {now}"
    drawing = svg(
        summary,
        f'{axes.grid}{below}<polygon class="band" points="{" ".join(upper + lower[::-1])}"/>'
        f'<polyline class="smooth" points="{" ".join(line)}"/>{dots}',
    )
    about = f"{task_set} · {evaluator} · {_counted(budgets)}"
    return framed(policy_id, _alone(budgets[-1], share), about, drawing)


def _counted(budgets: Sequence[Figure]) -> str:
    least, most = min(f.n for f in budgets), max(f.n for f in budgets)
    return f"n = {most:,}" if least == most else f"n = {least:,} to {most:,}"


def _budget_table(keys: Sequence[Key], found: Standings) -> str:
    most = max(len(found.budgets[key]) for key in keys)
    head = "".join(f'<th scope="col">{k}</th>' for k in range(1, most + 1))
    body = "".join(_budget_row(key, found.budgets[key], most) for key in keys)
    return (
        '<details class="figures"><summary>The figures of all turn budgets</summary>'
        '<div class="scroll" tabindex="0" role="region" aria-label="Success by turn budget">'
        '<table class="compared"><caption>Success within so many messages of the agent</caption>'
        f'<thead><tr><th scope="col">Version</th>{head}</tr></thead><tbody>{body}</tbody></table>'
        "</div></details>"
    )


def _budget_row(key: Key, budgets: Sequence[Figure], most: int) -> str:
    policy_id, *where = key
    cells = "".join(
        f'<td data-label="within {k}">{figure(f, share)}</td>' for k, f in enumerate(budgets, 1)
    )
    cells += f"<td>{NA}</td>" * (most - len(budgets))
    about = f'<span class="meta">{esc(" · ".join(where))}</span>'
    return f'<tr><th scope="row">{esc(policy_id)} {about}</th>{cells}</tr>'
