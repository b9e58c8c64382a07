"""What was voted → HTML: strengths, who beat whom, whether the side decided, agreement."""

from __future__ import annotations

from collections.abc import Sequence

from evaluators.figures import Figure
from evaluators.preference import Met
from sweet.comparing.leaderboard import Opinions
from sweet.comparing.standings import Standings
from ui.figures import figure, share
from ui.format import NA, esc, notice, pill


def strength(value: float) -> str:
    """A log-strength."""
    return f"{value:+.2f}".replace("-", "−")


def votes(found: Standings) -> str:
    """What people and the judge voted: strengths, who beat whom, sides, agreement."""
    board = found.board
    if not board.people.votes + board.judge.votes:
        return notice(
            "No vote yet", "Strengths and wins appear with votes: compare two versions in Compare."
        )
    agreed = figure(board.agreed, share)
    return (
        _opinions("People", board.people)
        + _opinions("The judge", board.judge)
        + f'<p class="agreed">The judge and people gave the same verdict: {agreed} '
        '<span class="meta">of the pairs of a person’s and a judge’s vote on the same '
        "comparison</span></p>"
    )


def _opinions(who: str, said: Opinions) -> str:
    if not said.votes:
        return f'<section class="votes"><h3>{who}</h3><p>No vote yet: {NA}</p></section>'
    s = "" if said.votes == 1 else "s"
    return (
        f'<section class="votes"><h3>{who} <span class="meta">{said.votes:,} vote{s}</span></h3>'
        f'<div class="two">{_strengths(who, said)}{_matrix(who, said)}</div>'
        f"<p>{_sides(said.left_side)}</p></section>"
    )


def _ranked(said: Opinions) -> list[str]:
    """Everybody who met others, the strongest first, those without a strength last."""

    def key(name: str) -> tuple[bool, float, str]:
        value = said.strengths[name].value
        return value is None, -(value or 0.0), name

    return sorted(said.strengths, key=key)


def _strengths(who: str, said: Opinions) -> str:
    if not said.strengths:
        return "<p>Only votes on a version against itself: they say nothing about it.</p>"
    rows = "".join(
        f'<tr><th scope="row">{esc(name)}</th><td data-label="Strength">'
        f"{figure(said.strengths[name], strength)}</td></tr>"
        for name in _ranked(said)
    )
    return (
        '<div class="scroll"><table class="compared"><caption>Bradley-Terry strength: log of the '
        "odds against the mean of all, with 95 % interval. n/a: never lost, never won, or never "
        f'met the others.</caption><thead><tr><th scope="col">Version</th><th scope="col">Strength'
        f"</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _matrix(who: str, said: Opinions) -> str:
    names = _ranked(said)
    if not names:
        return ""
    head = "".join(f'<th scope="col">{esc(name)}</th>' for name in names)
    rows = "".join(_matrix_row(first, names, said) for first in names)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="Pairwise wins, {who.lower()}">'
        '<table class="compared matrix"><caption>Wins – ties – losses of the row against the '
        "column, and the row’s share of the points</caption><thead><tr>"
        f'<th scope="col">Version</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _matrix_row(first: str, names: Sequence[str], said: Opinions) -> str:
    cells = []
    for second in names:
        met = said.wins.get((first, second), Met())
        if first == second:
            cells.append('<td class="self" aria-label="itself">·</td>')
            continue
        counts = f"{met.wins:,} – {met.ties:,} – {met.losses:,}"
        counts = f'<span class="counts">{counts}</span> ' if met.n else ""
        label = f"against {esc(second)}"
        cells.append(f'<td data-label="{label}">{counts}{figure(met.win_rate, share)}</td>')
    return f'<tr><th scope="row">{esc(first)}</th>{"".join(cells)}</tr>'


def _sides(left: Figure) -> str:
    """Whether the side decided, not the answer."""
    shown = f"The left side won {figure(left, share)} of the decided votes"
    if left.value is None or left.low is None or left.high is None:
        return f"Side check: {NA}, no vote was decided."
    if left.low <= 0.5 <= left.high:
        return f"{shown}: {pill('pass', '✓ no sign that the side decides')}"
    side = "left" if left.value > 0.5 else "right"
    return (
        f"{shown}: {pill('wrong', f'! the {side} side wins too often')} Read the votes with care."
    )
