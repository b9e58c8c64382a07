"""A task, its hidden information and its turns → HTML, by the pieces of `ui.format`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sweet.parsing import page_in, without_page
from sweet.types import Action, Episode, Feedback, HiddenInfo, Speaker, Task, TaskKind, Turn
from ui.format import (
    MAX_SHOWN_CHARS,
    NA,
    code,
    collaborator_name,
    duration,
    esc,
    field_text,
    growing,
    markdown,
    notice,
    pill,
)

TAGS = ("good question", "asks too much", "wrong assumption", "repeats itself", "unclear")
"""Tags that a person need only tick."""


def task_card(task: Task) -> str:
    """The task as both sides see it."""
    return (
        f'<div class="task"><h2>Task</h2><p>{esc(task.description)}</p>'
        f'<p class="meta">{esc(task.source)}/{esc(task.split)} · {esc(task.id)}</p></div>'
    )


def players(episode: Episode) -> str:
    """Who plays."""
    who = collaborator_name(episode.collaborator)
    return f"agent {esc(episode.policy_id)} · collaborator {esc(who)}"


def episode_line(episode: Episode) -> str:
    """Who plays, and the way to this episode in the log."""
    link = f'<a href="sessions?episode={esc(episode.id)}">Episode {esc(episode.id)} in the log</a>'
    return f'<p class="meta">{players(episode)} · {link}</p>'


def reference_card(hidden: HiddenInfo | None, details: Sequence[str] = ()) -> str:
    """The hidden information as its holder sees it; `details` are its points in plain words."""
    if hidden is None:
        return notice("No reference", "This is your own task: you know what you want.")
    points = "".join(f"<li>{esc(line)}</li>" for line in details)
    known = f"<h3>What the agent has to find out</h3><ul>{points}</ul>" if points else ""
    calls = "".join(f"<li><code>{esc(call)}</code></li>" for call in hidden.test_calls)
    return (
        f'<div class="reference">{known}<h3>Reference</h3>{code(hidden.reference)}'
        f"<details><summary>{len(hidden.test_calls)} test calls</summary><ul>{calls}</ul>"
        "</details></div>"
    )


def transcript(
    episode: Episode,
    feedback: Mapping[int, Feedback] | None = None,
    *,
    tools: bool = False,
    kind: TaskKind = TaskKind.BACKEND,
) -> str:
    """The turns so far. `tools` adds what a person may do to each."""
    rows, of = [], f" of {episode.max_turns}"
    for turn in episode.turns:
        said = feedback.get(turn.index) if feedback else None
        below = _tools(turn, said) if tools else ""
        body = message_body(turn.action) if kind is TaskKind.BACKEND else _design_body(turn)
        agent = agent_message(turn, of, turn_figures(turn), below + feedback_line(said), body)
        reply = "" if turn.reply is None else _reply(episode, turn, tools)
        rows.append(f'<li id="turn-{turn.index + 1}">{agent}{reply}</li>')
    address = f' data-address="episode={esc(episode.id)}"'
    return f'<ol class="transcript"{address}>{"".join(rows)}</ol>'


def agent_message(turn: Turn, of: str, figures: str, below: str = "", body: str = "") -> str:
    """What the agent said in a turn; `body` is it in another form than text."""
    place = f"Turn {turn.index + 1}{of}"
    shown = body or message_body(turn.action)
    return _message("agent", "Agent", place, figures, shown, below)


def message_body(action: Action) -> str:
    """A message of the agent; an answer's code is marked as the answer."""
    body = markdown(action.message)
    if action.is_final:
        answer = action.artifact or ""
        shown = markdown(answer) if "```" in answer else code(answer)
        body += f"<p>{pill('open', 'Final answer')}</p>{shown}"
    return body


def _design_body(turn: Turn) -> str:
    """What the agent said beside its page, and the way to the page among the versions."""
    n = turn.index + 1
    final = pill("open", "Final answer") if turn.action.is_final else ""
    show = f'<button type="button" class="outlined" data-do="goto" data-value="{n}">'
    if page_in(turn.action.raw).html is None:
        return message_body(turn.action)
    return f"{beside_page(turn.action)}<p>{show}Show version {n}</button> {final}</p>"


def beside_page(action: Action) -> str:
    """What a message says beside its page."""
    return markdown(without_page(action.raw))


def reply_message(turn: Turn, collaborator: str, below: str = "") -> str:
    """The reply to a turn."""
    figures = "" if turn.reply_duration_ms is None else duration(turn.reply_duration_ms)
    who = collaborator_name(collaborator)
    return _message("collaborator", "Collaborator", who, figures, markdown(turn.reply or ""), below)


def turn_figures(turn: Turn) -> str:
    """Tokens and time of a turn."""
    usage = turn.action.usage
    tokens = f"{usage.completion_tokens:,} tokens" if usage else f"tokens {NA}"
    return f"{tokens} · {duration(turn.action.duration_ms)}"


def speaking(
    episode: Episode, speaker: Speaker, text: str, kind: TaskKind = TaskKind.BACKEND
) -> str:
    """The message that a model is still speaking, or what is waited for."""
    if speaker is Speaker.NOBODY:
        return '<p class="dots" role="status">Scoring the answer …</p>'
    if speaker is Speaker.COLLABORATOR:
        return '<p class="dots live" role="status">The collaborator is answering …</p>'
    said = markdown if kind is TaskKind.BACKEND else growing
    body = said(text) if text else '<p class="dots" role="status">The agent is thinking …</p>'
    place = f"Turn {len(episode.turns) + 1} of {episode.max_turns}"
    return _message("agent live", "Agent", place, "", body, "")


def feedback_line(said: Feedback | None) -> str:
    """What a person thought of a turn, as text."""
    if said is None:
        return ""
    parts = [pill("none", tag) for tag in said.tags]
    if said.rating:
        parts.insert(0, pill("pass", "✓ liked") if said.rating > 0 else pill("wrong", "✗ disliked"))
    if said.comment:
        parts.append(f"<q>{esc(said.comment)}</q>")
    return f'<p class="said">{" ".join(parts)}</p>' if parts else ""


def _message(kind: str, name: str, place: str, figures: str, body: str, below: str) -> str:
    busy = ' aria-busy="true"' if "live" in kind else ""
    return (
        f'<article class="message {kind}" aria-label="{name}, {esc(place)}"{busy}>'
        f'<header><strong>{name}</strong><span class="meta">{esc(place)}</span>'
        f'<span class="meta">{esc(figures)}</span></header>'
        f'<div class="body">{body}</div>{below}</article>'
    )


def _reply(episode: Episode, turn: Turn, tools: bool) -> str:
    below = ""
    if tools and episode.collaborator == "person":
        button = _unfold(f"edit-collaborator-{turn.index}", "Edit")
        form = _edit_form(turn.index, "collaborator", turn.reply or "")
        below = f'<div class="tools">{button}</div>{form}'
    return reply_message(turn, episode.collaborator, below)


def _tools(turn: Turn, said: Feedback | None) -> str:
    rating = said.rating if said and said.rating else 0
    i = turn.index
    buttons = (
        _button("like", i, "Like", rating > 0),
        _button("dislike", i, "Dislike", rating < 0),
        _unfold(f"note-{i}", "Comment"),
        _button("retry", i, "Retry"),
        _unfold(f"edit-agent-{i}", "Edit"),
    )
    forms = _note_form(i, said) + _edit_form(i, "agent", turn.action.raw)
    return f'<div class="tools">{"".join(buttons)}</div>{forms}'


def _button(action: str, turn: int, label: str, pressed: bool | None = None) -> str:
    state = "" if pressed is None else f' aria-pressed="{str(pressed).lower()}"'
    return (
        f'<button type="button" data-action="{action}" data-turn="{turn}" '
        f'data-key="{action}-{turn}"{state}>{esc(label)}</button>'
    )


def _unfold(form_id: str, label: str) -> str:
    """A button that shows and hides a form."""
    return (
        f'<button type="button" data-action="unfold" data-key="{form_id}" '
        f'aria-controls="{form_id}" aria-expanded="false">{label}</button>'
    )


def _form(form_id: str, action: str, turn: int, fields: str, submit: str, more: str = "") -> str:
    names = f'id="{form_id}" data-key="{form_id}" data-action="{action}" data-turn="{turn}"'
    return (
        f"<form {names}{more} hidden>"
        f'{fields}<button type="submit" class="primary">{submit}</button></form>'
    )


def _edit_form(turn: int, who: str, text: str) -> str:
    whose = "agent should have said" if who == "agent" else "reply should have been"
    rows = min(12, max(3, text.count("\n") + 2))
    field = (
        f'<label>What the {whose}<textarea name="text" rows="{rows}" '
        f'maxlength="{MAX_SHOWN_CHARS}" required>{field_text(text)}</textarea></label>'
    )
    more = f' data-who="{who}"'
    return _form(f"edit-{who}-{turn}", "edit", turn, field, "Save and go on from here", more)


def _note_form(turn: int, said: Feedback | None) -> str:
    chosen = said.tags if said else ()
    own = esc(", ".join(tag for tag in chosen if tag not in TAGS))
    comment = field_text(said.comment) if said else ""
    boxes = "".join(_tag_box(tag, tag in chosen) for tag in TAGS)
    fields = (
        f"<fieldset><legend>Tags</legend>{boxes}</fieldset>"
        f'<label>Other tags, with commas between<input name="own" maxlength="200" value="{own}">'
        '</label><label>Comment<textarea name="comment" rows="2" maxlength="2000">'
        f"{comment}</textarea></label>"
    )
    return _form(f"note-{turn}", "note", turn, fields, "Save comment")


def _tag_box(tag: str, ticked: bool) -> str:
    on = " checked" if ticked else ""
    return (
        f'<label class="check"><input type="checkbox" name="tags" value="{esc(tag)}"{on}>'
        f"{esc(tag)}</label>"
    )
