"""A critic's credit → HTML: which turns helped, and what else could have been said.

Above and below zero differ in side, sign, shape and word, never in colour alone. All bars of an
episode have one scale. Candidates are a model's text like any other, and shown by the same pieces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sweet.errors import PolicyError
from sweet.parsing import parse_action, spoken
from sweet.store import EpisodeCredit, RankedCandidate
from sweet.types import Turn
from ui.conversation import message_body
from ui.format import NA, esc, pill

LEAST_SCALE = 0.01
"""A full bar is at least so long, or a critic that learned nothing would look as if it had."""
CANDIDATE_CHARS = 4_000
"""Of a candidate on the page; a turn has many of them."""

_LOG_RATIO = (
    "how much more likely the critic finds the message than before it was trained: the difference "
    "of log-probabilities, as a mean over the message's tokens"
)
_MEANING: Mapping[str, str] = {
    "sweet": f"{_LOG_RATIO}. The critic also reads the hidden information, which the agent never "
    "sees, and learned from whole episodes which ones ended better",
    "sweet-nohidden": f"{_LOG_RATIO}. It reads what the agent reads, and learned from whole "
    "episodes which ones ended better",
    "sweet-untrained": "how much more likely the message is to who knows the hidden information: "
    "the difference of log-probabilities, as a mean over the message's tokens. Nothing was trained "
    "for it",
    "sweet-value": "what the critic's value head says after the message",
    "sweet-judge": "the score, from -5 to 5, that a model gave which was asked for it",
}
_UNKNOWN_MEANING = "what the critic said of the turn; the log does not know more of it"
_UNSCORED = (
    "No critic has read this episode. A round of training scores the episodes it learns from; it "
    "leaves out those in progress or replaced, tasks for measuring, and what has no outcome, no "
    "hidden information, or no room in its critic."
)
_KINDS = {1: "up", 0: "even", -1: "down"}
_DID = {"up": "helped", "even": "neutral", "down": "hurt"}
_WOULD = {"up": "would help", "even": "neutral", "down": "would hurt"}


@dataclass(frozen=True, slots=True)
class Critic:
    """One of an episode's critics, as the page names it; `algorithm` "" where it is not known."""

    name: str
    algorithm: str = ""

    @property
    def label(self) -> str:
        """Its name with what it is."""
        return f"{self.name} ({self.algorithm})" if self.algorithm else self.name


@dataclass(frozen=True, slots=True)
class Scale:
    """What a full bar stands for, and how many decimals tell its values apart."""

    top: float
    digits: int

    @classmethod
    def of(cls, credit: EpisodeCredit) -> Scale:
        """One scale for all advantages and scores of an episode."""
        scores = [c.score for turn in credit.candidates.values() for c in turn]
        values = [abs(value) for value in (*credit.advantages.values(), *scores)]
        top = max([LEAST_SCALE, *values])
        return cls(top, 2 if top >= 0.1 else 3)

    def sign(self, value: float) -> int:
        """1, 0 or -1: of the value as it is shown."""
        shown = round(value, self.digits)
        return (shown > 0) - (shown < 0)

    def kind(self, value: float) -> str:
        """What marks the value: above zero, below, or neither."""
        return _KINDS[self.sign(value)]

    def number(self, value: float) -> str:
        """The value with its sign."""
        mark = {1: "+", 0: "", -1: "\N{MINUS SIGN}"}[self.sign(value)]
        return f"{mark}{abs(value):.{self.digits}f}"

    def share(self, value: float) -> str:
        """The value's share of a full bar, as CSS takes it."""
        return f"{min(1.0, abs(value) / self.top):.1%}"


def overview(
    turns: Sequence[Turn], credit: EpisodeCredit | None, critics: Sequence[Critic] = ()
) -> str:
    """Which turns helped, as a strip over the whole episode; or why nobody knows."""
    if credit is None:
        return (
            '<section class="panel credit-strip" aria-label="Which turns helped">'
            f'<p class="meta">advantage {NA}: {_UNSCORED}</p></section>'
        )
    scale = Scale.of(credit)
    columns = "".join(_column(turn.index, credit, scale) for turn in turns)
    now = next((c for c in critics if c.name == credit.critic), Critic(credit.critic))
    return (
        '<section class="panel credit-strip" aria-label="Which turns helped">'
        f'<div class="outcome"><h2>Which turns helped</h2>{_choice(now, critics)}</div>'
        f"<p>{_summary(credit, scale)}</p>"
        f'<ol class="strip">{columns}</ol>{_explained(now, scale)}</section>'
    )


def turn_credit(turn: Turn, credit: EpisodeCredit) -> str:
    """A turn's advantage as a bar with its number, and the candidates in a fold."""
    scale = Scale.of(credit)
    value = credit.advantages.get(turn.index)
    candidates = credit.candidates.get(turn.index, ())
    bar = f'<span class="name">advantage</span>{_bar(value, scale)}'
    fold = _fold(turn, value, candidates, scale) if candidates else ""
    return f'<div class="credit">{bar}</div>{fold}'


def _column(index: int, credit: EpisodeCredit, scale: Scale) -> str:
    value = credit.advantages.get(index)
    if value is None:
        kind, shown, said, size = "none", NA, f"advantage {NA}", "0%"
    else:
        kind, shown, size = scale.kind(value), scale.number(value), scale.share(value)
        said = f"advantage {shown}, {_DID[kind]}"
    said = f"Turn {index + 1}: {said}"
    return (
        f'<li><button type="button" class="{kind}" data-action="goto" data-to="{index + 1}" '
        f'aria-label="{said}" title="{said}"><span class="column"><i style="--size:{size}"></i>'
        f'</span><b>{shown}</b><span class="turn">{index + 1}</span></button></li>'
    )


def _choice(now: Critic, critics: Sequence[Critic]) -> str:
    if len(critics) < 2:
        return f'<span class="meta">in the eyes of {esc(now.label)}</span>'
    options = "".join(
        f'<option value="{esc(c.name)}"{" selected" if c.name == now.name else ""}>'
        f"{esc(c.label)}</option>"
        for c in critics
    )
    return (
        '<label class="critic">in the eyes of <select data-action="critic" data-key="critic">'
        f"{options}</select></label>"
    )


def _summary(credit: EpisodeCredit, scale: Scale) -> str:
    """The turns that stand out, in a sentence."""
    values = credit.advantages
    best, worst = (pick(values, key=values.__getitem__) for pick in (max, min))
    parts = []
    if scale.sign(values[best]) > 0:
        parts.append(f"Turn {best + 1} helped most ({scale.number(values[best])}).")
    if scale.sign(values[worst]) < 0:
        parts.append(f"Turn {worst + 1} hurt most ({scale.number(values[worst])}).")
    return " ".join(parts) or "No turn helped or hurt."


def _explained(critic: Critic, scale: Scale) -> str:
    meaning = _MEANING.get(critic.algorithm, _UNKNOWN_MEANING)
    return (
        '<details class="explained"><summary>What do the bars mean?</summary>'
        f"<p>A turn's advantage is {meaning}. Above zero it helped, below zero it hurt, in this "
        "critic's opinion; no person said so. Scores of candidates are the same number for what "
        "could have been said instead.</p>"
        f"<p>All bars of this episode have one scale: a full one is {scale.top:.{scale.digits}f}. "
        "Compare the turns of an episode and the candidates of a turn; two critics have two "
        "scales.</p></details>"
    )


def _bar(value: float | None, scale: Scale, words: Mapping[str, str] = _DID) -> str:
    """A bar from zero to the right or to the left, its number and its word."""
    if value is None:
        return f'<span class="score none"><b>{NA}</b></span>'
    kind = scale.kind(value)
    return (
        f'<span class="score-bar {kind}" aria-hidden="true">'
        f'<i style="--size:{scale.share(value)}"></i></span>'
        f'<span class="score {kind}"><b>{scale.number(value)}</b> {words[kind]}</span>'
    )


def _fold(
    turn: Turn, value: float | None, candidates: Sequence[RankedCandidate], scale: Scale
) -> str:
    said = _said_as(turn, candidates)
    rows = [
        (c.score, _candidate(rank, c, c is said, scale)) for rank, c in enumerate(candidates, 1)
    ]
    if said is None and value is not None:  # where what was said would stand
        place = sum(score >= value for score, _ in rows)
        rows.insert(place, (value, _not_drawn(value, scale)))
    drawn, count = sum(c.drawn for c in candidates), len(candidates)
    messages = f"{count} different message{'' if count == 1 else 's'} in {drawn} draws"
    return (
        '<details class="candidates"><summary>What else could have been said: '
        f"{messages}, ranked</summary><ol>{''.join(row for _, row in rows)}</ol></details>"
    )


def _said_as(turn: Turn, candidates: Sequence[RankedCandidate]) -> RankedCandidate | None:
    """The candidate that is the logged message; the finished one before the cut one."""
    text = spoken(turn.action.raw)
    same = [c for c in candidates if c.text == text]
    return next((c for c in same if c.is_ended), same[0] if same else None)


def _candidate(rank: int, candidate: RankedCandidate, is_said: bool, scale: Scale) -> str:
    pills = [pill("open", "what was said")] if is_said else []
    if candidate.chosen:
        pills.append(pill("pass", f"✓ chosen in {_pairs(candidate.chosen)}"))
    if candidate.rejected:
        pills.append(pill("wrong", f"✗ rejected in {_pairs(candidate.rejected)}"))
    if not candidate.is_ended:
        pills.append(pill("timeout", "… cut by the token limit"))
    drawn = f'<span class="drawn" title="drawn {candidate.drawn} times">×{candidate.drawn}</span>'
    bar = _bar(candidate.score, scale, _DID if is_said else _WOULD)
    head = f'<span class="rank">{rank}</span>{bar}{drawn}{"".join(pills)}'
    kind = " said-so" if is_said else ""
    return (
        f'<li class="candidate{kind}"><div class="credit">{head}</div>'
        f'<div class="body">{_body(candidate.text)}</div></li>'
    )


def _not_drawn(value: float, scale: Scale) -> str:
    head = f'<span class="rank">·</span>{_bar(value, scale)}{pill("open", "what was said")}'
    note = '<span class="meta">not among the draws</span>'
    return f'<li class="candidate said-so"><div class="credit">{head}{note}</div></li>'


def _body(text: str) -> str:
    """A candidate's text as the message or the answer that it would have been."""
    left = len(text) - CANDIDATE_CHARS
    more = f'<p class="meta">… {left:,} more characters are in the log</p>' if left > 0 else ""
    try:
        return message_body(parse_action(text[:CANDIDATE_CHARS])) + more
    except PolicyError:
        return f'<p class="meta">(nothing){more}</p>'


def _pairs(count: int) -> str:
    return f"{count} pair{'' if count == 1 else 's'}"
