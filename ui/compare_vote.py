"""The vote on a comparison → HTML: the ballot, and what is revealed after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from sweet.store import Choice, Vote, Voter
from ui.compare_view import ENDS, LETTERS, Duo, Side
from ui.format import NA, duration, esc, notice, number, percent

CHOICES: Mapping[Choice, tuple[str, str]] = {
    Choice.LEFT: ("1", "A is better"),
    Choice.RIGHT: ("2", "B is better"),
    Choice.TIE: ("3", "Equally good"),
    Choice.BOTH_BAD: ("4", "Both bad"),
    Choice.SKIP: ("s", "Skip and show the names"),
}
"""What a person may vote: the key, and the words."""

_SAID = {choice: words for choice, (_, words) in CHOICES.items()} | {
    Choice.SKIP: "Skipped",
    Choice.FAILED: "A side failed",
}


def ballot(duo: Duo) -> str:
    """The five choices and their keys; off, with what was chosen, once this browser has voted."""
    if duo.failed:
        return _failure(duo)
    if not duo.is_over:
        return ""
    off = " disabled" if duo.vote else ""
    buttons = "".join(_choice(duo, choice, off) for choice in CHOICES)
    title = _voted(duo.vote) if duo.vote else "<h2>Which side is better?</h2>"
    return (
        '<section class="ballot panel" aria-label="Your vote">'
        f'{title}<div class="choices" role="group" aria-label="Vote">{buttons}</div></section>'
    )


def _choice(duo: Duo, choice: Choice, off: str) -> str:
    key, words = CHOICES[choice]
    chosen = "" if duo.vote is None else f' aria-pressed="{str(duo.vote.choice is choice).lower()}"'
    return (
        f'<button type="button" class="outlined" data-action="vote" data-choice="{choice}" '
        f'data-press="{key}" data-key="vote-{choice}" aria-keyshortcuts="{key}"{chosen}{off}>'
        f"{esc(words)} <kbd>{key}</kbd></button>"
    )


def _voted(vote: Vote) -> str:
    blind = "It was blind." if vote.was_blind else "It was not blind: the names were known."
    reason = f"<p><q>{esc(vote.reason)}</q></p>" if vote.reason else ""
    return (
        f'<h2>Your vote: {esc(_SAID[vote.choice])}</h2><p class="meta" role="status">{blind}</p>'
        f"{reason}"
    )


def _failure(duo: Duo) -> str:
    who = " and ".join(f"Side {letter}" for letter in duo.failed)
    parts = [
        notice(
            f"{who} failed", "That is recorded, and not voted on: it says nothing about answers."
        )
    ]
    for letter, side in zip(LETTERS, duo.sides, strict=True):
        if side.episode.error:
            parts.append(notice(f"Why side {letter} failed", side.episode.error, "error"))
    return f'<section class="ballot panel" aria-label="Your vote">{"".join(parts)}</section>'


# What is revealed


def revealed(duo: Duo) -> str:
    """Names, rewards and advantages of both sides; "" before the vote."""
    if not duo.shows_figures:
        return ""
    rows = [_fact_row(name, of, duo) for name, of in _FACTS]
    heads = "".join(f'<th scope="col">Side {letter}</th>' for letter in LETTERS)
    others = _others(duo.votes)
    return (
        '<section class="revealed" aria-label="Who was who"><h2>Who was who</h2>'
        '<div class="scroll">'
        f'<table class="compared"><thead><tr><td></td>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{others}</section>"
    )


def _fact_row(name: str, of: Callable[[Side], str], duo: Duo) -> str:
    cells = "".join(
        f'<td data-label="{letter}">{of(side)}</td>'
        for letter, side in zip(LETTERS, duo.sides, strict=True)
    )
    return f'<tr><th scope="row">{name}</th>{cells}</tr>'


def _version(side: Side) -> str:
    e = side.episode
    return f'<strong>{esc(e.policy_id)}</strong> <a href="sessions?episode={esc(e.id)}">session</a>'


def _reward(side: Side) -> str:
    return number(side.episode.reward.value if side.episode.reward else None)


def _parts(side: Side) -> str:
    reward = side.episode.reward
    found = reward.components if reward else {}
    return "<br>".join(f"{esc(k.replace('_', ' '))}: {percent(v)}" for k, v in found.items()) or NA


def _advantages(side: Side) -> str:
    if side.credit is None or not side.credit.advantages:
        return f"{NA} (no critic has read it)"
    values = side.credit.advantages
    shown = ", ".join(
        f"{values[t.index]:+.2f}" if t.index in values else NA for t in side.episode.turns
    )
    return f'{shown} <span class="meta">{esc(side.credit.critic)}</span>'


def _time(side: Side) -> str:
    times = [turn.action.duration_ms for turn in side.episode.turns]
    known = [ms for ms in times if ms is not None]
    return duration(sum(known)) if known and len(known) == len(times) else NA


def _tokens(side: Side) -> str:
    used = [turn.action.usage for turn in side.episode.turns]
    known = [usage.completion_tokens for usage in used if usage is not None]
    return f"{sum(known):,}" if known and len(known) == len(used) else NA


def _end(side: Side) -> str:
    return esc(ENDS[side.episode.stop_reason]) if side.episode.stop_reason else "in progress"


_FACTS = (
    ("Version", _version),
    ("Reward", _reward),
    ("Its parts", _parts),
    ("Advantage of each turn", _advantages),
    ("End", _end),
    ("Turns", lambda side: str(len(side.episode.turns))),
    ("Tokens written", _tokens),
    ("Time of the agent", _time),
)


def _others(votes: Sequence[Vote]) -> str:
    """All votes on this comparison, people's and the judge's apart."""
    lines = []
    for by, name in ((Voter.PERSON, "People"), (Voter.JUDGE, "Judge")):
        cast = Counter(v.choice for v in votes if v.by is by and v.choice is not Choice.FAILED)
        if cast:
            words = ", ".join(f"{_SAID[choice]} ×{n}" for choice, n in cast.items())
            lines.append(f"{name}: {words}")
    shown = " · ".join(lines)
    return f'<p class="meta">All votes on this comparison. {esc(shown)}</p>' if lines else ""
