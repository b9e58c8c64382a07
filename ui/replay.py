"""An episode of the log → HTML that the keys walk through, turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from sweet.store import EpisodeCredit
from sweet.types import Episode, Feedback, Task, Turn
from ui.conversation import agent_message, feedback_line, players, reply_message, turn_figures
from ui.credit import Critic, overview, turn_credit
from ui.format import NA, esc, notice, outcome, pill, when
from ui.results import is_graded, result

_STEPS = (("first", "First"), ("previous", "Previous"), ("next", "Next"), ("last", "Last"))
_KEYS = (
    '<span class="meta hint"><kbd>←</kbd> <kbd>→</kbd> or <kbd>j</kbd> <kbd>k</kbd>, '
    "<kbd>Home</kbd> <kbd>End</kbd>, <kbd>p</kbd> plays</span>"
)


def replay(
    episode: Episode,
    task: Task,
    feedback: Mapping[int | None, Feedback],
    *,
    turn: int = 1,
    address: str = "",
    line: Sequence[str] = (),
    forks: Sequence[str] = (),
    credit: EpisodeCredit | None = None,
    critics: Sequence[Critic] = (),
    drawn: Mapping[int, str] = MappingProxyType({}),
) -> str:
    """The whole episode; the page shows it up to `turn` (from 1) and has the keys for the rest.

    `address` is the query string of a link to it; `line` the episodes it was forked from;
    `credit` what one of its `critics` said, None where none did; `drawn` the turns whose message
    is a web page, as they looked.
    """
    steps = "".join(
        _step(episode, t, feedback.get(t.index), credit, drawn.get(t.index, ""))
        for t in episode.turns
    )
    turns = f'<ol class="transcript">{steps}</ol>' if steps else _silent(episode)
    helped = overview(episode.turns, credit, critics) if steps else ""
    end = result(episode, feedback.get(None), forks=forks)
    at = min(max(1, turn), max(1, len(episode.turns)))
    return (
        f'<div class="replay" data-turn="{at}" data-address="{esc(address)}">'
        f"{_head(episode, task, line)}{helped}{_keys(len(episode.turns))}{turns}"
        f'<div class="at-end">{end}</div></div>'
    )


def _head(episode: Episode, task: Task, line: Sequence[str]) -> str:
    reward = episode.reward.value if episode.reward else None
    kind, words = outcome(episode.stop_reason, reward, graded=is_graded(episode))
    forked = f"<p class='meta'>Forked from {_links(line)}</p>" if line else ""
    open_it = (
        f'<a href="./?episode={esc(episode.id)}">Open in Collaborate</a> · '
        f'<a href="compare?one={esc(episode.id)}">Compare with another</a>'
    )
    return (
        f'<div class="panel"><div class="outcome"><h2>Episode {esc(episode.id)}</h2>'
        f"{pill(kind, words)}</div><p>{esc(task.description)}</p>"
        f'<p class="meta">{esc(task.source)}/{esc(task.split)} · {when(episode.created_at)} UTC · '
        f"{players(episode)} · seed {episode.seed} · {open_it}</p>{forked}</div>"
    )


def _links(ids: Sequence[str]) -> str:
    links = (f'<a href="sessions?episode={esc(id)}">{esc(id)}</a>' for id in ids)
    return ", ".join(links)


def _keys(turns: int) -> str:
    if turns == 0:
        return ""
    buttons = "".join(_key(action, name) for action, name in _STEPS)
    return (
        '<nav class="replay-keys" aria-label="Turns of the episode">'
        f'{buttons}{_key("play", "Play")}<span class="where" role="status"></span>'
        f"{_key('link', 'Copy link to this turn')}{_KEYS}</nav>"
    )


def _key(action: str, name: str) -> str:
    return f'<button type="button" data-action="{action}">{name}</button>'


def _silent(episode: Episode) -> str:
    hint = episode.error or "The agent has not said anything yet. Open it in Collaborate to go on."
    return notice("No turn", hint, "error" if episode.error else "empty")


def _step(
    episode: Episode, turn: Turn, said: Feedback | None, credit: EpisodeCredit | None, drawn: str
) -> str:
    figures, below = turn_figures(turn), feedback_line(said)
    if credit is None:
        figures += f" · advantage {NA}"
    else:
        below += turn_credit(turn, credit)
    agent = agent_message(turn, "", figures, below, drawn)
    reply = "" if turn.reply is None else reply_message(turn, episode.collaborator)
    return f'<li id="turn-{turn.index + 1}" data-step="{turn.index + 1}">{agent}{reply}</li>'
