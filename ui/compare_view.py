"""Two sides of a comparison → HTML: what both said, the vote, and what is revealed after it.

Until a browser has voted, nothing here names a side, links to its episode, or tells its pace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sweet.parsing import page_in
from sweet.store import Comparison, EpisodeCredit, Vote
from sweet.types import Episode, Speaker, StopReason, Task, TaskKind, Turn
from ui.conversation import (
    agent_message,
    beside_page,
    reply_message,
    speaking,
    task_card,
    turn_figures,
)
from ui.credit import turn_credit
from ui.format import NA, collaborator_name, esc, notice, pill

LETTERS = ("A", "B")
ENDS = {
    StopReason.ANSWERED: "gave its answer",
    StopReason.TURN_LIMIT: "used all its turns without an answer",
    StopReason.STOPPED: "was stopped",
    StopReason.FAILED: "failed",
    StopReason.REPLACED: "went on in a fork",
}


@dataclass(frozen=True, slots=True)
class Side:
    """A side as one browser may see it; `credit` is what its latest critic said, None for none."""

    episode: Episode
    is_named: bool = False  # it said its own name
    credit: EpisodeCredit | None = None


@dataclass(frozen=True, slots=True)
class Duo:
    """A comparison in the eyes of one browser, which has voted or not."""

    comparison: Comparison
    sides: tuple[Side, Side]
    vote: Vote | None = None
    votes: Sequence[Vote] = field(default=())
    kind: TaskKind = TaskKind.BACKEND

    @property
    def shows_names(self) -> bool:
        """Whether the versions' names may be shown."""
        named = any(side.is_named for side in self.sides)
        return not self.comparison.is_blind or named or self.shows_figures

    @property
    def shows_figures(self) -> bool:
        """Whether rewards, advantages and times may be shown."""
        return self.vote is not None

    @property
    def is_over(self) -> bool:
        """Whether both sides are."""
        return all(side.episode.stop_reason is not None for side in self.sides)

    @property
    def failed(self) -> list[str]:
        """The letters of the sides that failed."""
        ends = [side.episode.stop_reason for side in self.sides]
        return [letter for letter, end in zip(LETTERS, ends, strict=True) if end is _FAILED]


_FAILED = StopReason.FAILED


def head(duo: Duo, task: Task) -> str:
    """The task, how it is compared, and who is who as far as that may be known."""
    first = duo.sides[0].episode
    who = {collaborator_name(side.episode.collaborator) for side in duo.sides}
    seeds = {side.episode.seed for side in duo.sides}
    facts = [f"collaborator {' and '.join(sorted(who))}"]
    facts.append(f"the same seed {first.seed}" if len(seeds) == 1 else "different seeds")
    facts.append("blind: names are shown after the vote" if not duo.shows_names else "names shown")
    line = f'<p class="meta">{esc(" · ".join(facts))}</p>'
    address = f' data-address="comparison={esc(duo.comparison.id)}"'
    return f"<div{address}>{task_card(task)}{line}{_named(duo)}</div>"


def _named(duo: Duo) -> str:
    told = [letter for letter, side in zip(LETTERS, duo.sides, strict=True) if side.is_named]
    if not told or not duo.comparison.is_blind:
        return ""
    who = " and ".join(f"Side {letter}" for letter in told)
    hint = "The names are shown now, and the vote is marked as one that was not blind."
    return notice(f"{who} said its own name", hint)


def transcript(duo: Duo, episodes: Sequence[Episode] | None = None) -> str:
    """The turns of both sides, each beside the same turn of the other.

    `episodes` are the sides cut to what may be seen while they are played.
    """
    left, right = episodes or [side.episode for side in duo.sides]
    rows = []
    for i in range(max(len(left.turns), len(right.turns))):
        pair = [e.turns[i] if i < len(e.turns) else None for e in (left, right)]
        said = "".join(
            _cell(letter, _agent(duo, side, turn) if turn else "")
            for letter, side, turn in zip(LETTERS, duo.sides, pair, strict=True)
        )
        rows.append(f'<li id="turn-{i + 1}">{said}{_replies(left, right, pair)}</li>')
    return f'{_names(duo)}<ol class="transcript duo">{"".join(rows)}</ol>'


def _names(duo: Duo) -> str:
    cells = []
    for letter, side in zip(LETTERS, duo.sides, strict=True):
        link = (
            f'<a href="sessions?episode={esc(side.episode.id)}">{esc(side.episode.policy_id)}</a>'
        )
        name = link if duo.shows_names else '<span class="meta">name hidden</span>'
        cells.append(f'<h2 class="side-name">Side {letter} {name}</h2>')
    return f'<div class="duo names">{"".join(cells)}</div>'


def _cell(letter: str, body: str) -> str:
    hidden = "" if body else " aria-hidden='true'"
    return (
        f'<div class="side" role="group" aria-label="Side {letter}" data-side="{letter}"{hidden}>'
        f"{body}</div>"
    )


def _agent(duo: Duo, side: Side, turn: Turn) -> str:
    of, body = f" of {side.episode.max_turns}", _body(duo, turn)
    if not duo.shows_figures:
        return agent_message(turn, of, "", "", body)
    credit = side.credit
    below = turn_credit(turn, credit) if credit else f'<p class="meta">advantage {NA}</p>'
    return agent_message(turn, of, turn_figures(turn), below, body)


def _body(duo: Duo, turn: Turn) -> str:
    """What was said beside a web page, which is shown live below; "" for every other message."""
    if duo.kind is TaskKind.BACKEND or page_in(turn.action.raw).html is None:
        return ""
    final = pill("open", "Final answer") if turn.action.is_final else ""
    return f"{beside_page(turn.action)}<p>{pill('none', f'Version {turn.index + 1}')} {final}</p>"


def _replies(left: Episode, right: Episode, pair: Sequence[Turn | None]) -> str:
    """The replies to a turn; one that went to both is shown once."""
    replies = [turn.reply if turn else None for turn in pair]
    first = pair[0]
    if first and replies[0] is not None and replies[0] == replies[1]:
        return f'<div class="to-both">{_reply(first, left)}</div>'
    return (
        "".join(
            _cell(letter, _reply(turn, episode) if turn and turn.reply is not None else "")
            for letter, turn, episode in zip(LETTERS, pair, (left, right), strict=True)
        )
        if any(reply is not None for reply in replies)
        else ""
    )


def _reply(turn: Turn, episode: Episode) -> str:
    return reply_message(_timeless(turn), episode.collaborator)


def _timeless(turn: Turn) -> Turn:
    """A turn without the time of its reply, which a page that compares does not show."""
    return Turn(turn.index, turn.action, turn.reply)


def live(
    episodes: Sequence[Episode],
    speakers: Sequence[Speaker],
    said: Sequence[str],
    kind: TaskKind = TaskKind.BACKEND,
) -> str:
    """What both sides are saying now, or what is waited for."""
    cells = []
    for letter, episode, speaker, text in zip(LETTERS, episodes, speakers, said, strict=True):
        moving = speaker is not Speaker.NOBODY
        body = speaking(episode, speaker, text, kind) if moving else _waits(episode)
        cells.append(_cell(letter, body))
    return f'<div class="duo live-row">{"".join(cells)}</div>'


def _waits(episode: Episode) -> str:
    end = ENDS.get(episode.stop_reason) if episode.stop_reason else None
    words = f"This side {end}." if end else "This side waits for the other."
    return f'<p class="meta" role="status">{words}</p>'


def waiting_for(duo: Duo) -> str:
    """What a person should know of a side that is over while the other one is not; "" else."""
    return "".join(
        f'<p class="meta" role="status">Side {letter} {ENDS[side.episode.stop_reason]}. '
        "What you say goes to the other one.</p>"
        for letter, side in zip(LETTERS, duo.sides, strict=True)
        if side.episode.stop_reason and not duo.is_over
    )


def send_label(duo: Duo) -> str:
    """To whom the person's next message goes."""
    open_ = [
        letter
        for letter, side in zip(LETTERS, duo.sides, strict=True)
        if side.episode.stop_reason is None
    ]
    return f"Send to {open_[0]}" if len(open_) == 1 else "Send to both"


def state(duo: Duo) -> str:
    """How each side ended, without telling how well."""
    pills = []
    for letter, side in zip(LETTERS, duo.sides, strict=True):
        end = side.episode.stop_reason
        turns = len(side.episode.turns)
        words = ENDS[end] if end else "in progress"
        kind = "wrong" if end is _FAILED else "none"
        pills.append(pill(kind, f"Side {letter} {words} · {turns} turn{'' if turns == 1 else 's'}"))
    return f'<p class="ends">{" ".join(pills)}</p>'
