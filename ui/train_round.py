"""What a round would learn from, and how far one is → HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sweet.store import Round, RoundState
from sweet.types import TaskKind
from sweet.validation import OUTCOME, validation
from trainer.jobs import Preview, StageProgress
from trainer.schedule import ScheduleState
from ui.figures import OUTCOME_SHOWS
from ui.format import MAX_SHOWN_CHARS, NA, duration, esc, notice, number, percent, pill, when
from ui.train_form import ALGORITHMS
from ui.train_history import BESIDE, STATES, reached

_STAGES = {
    "collect": "Collect episodes",
    "pairs": "Pair episodes",
    "critic": "Train the critic",
    "candidates": "Draw candidates",
    "rank": "Rank candidates",
    "policy": "Train the policy",
    "evaluate": "Compare with the parent",
    "register": "Register the version",
}
_MARKS = {"done": "✓", "running": "…", "waiting": "○", "stopped": "□"}
_SHOWN_RESULTS = {
    "collect": ("chosen", "fresh", "tasks", "success_rate", "reward"),
    "pairs": ("pairs", "turn_pairs", "tasks"),
    "critic": ("loss", "accuracy"),
    "candidates": ("drawn", "different"),
    "rank": ("ranked", "pairs", "too_long"),
    "policy": ("loss", "margin", "accuracy"),
    "evaluate": ("compared",),
    "register": ("version",),
}
_SHARES = ("success_rate", "accuracy")
_SOURCES = {
    "outcome": "rewards",
    "human": "grades, likes, edits",
    "vote": "votes",
    "imported": "imported files",
}


def preview(found: Preview) -> str:
    """What a round would learn from if it began now, by source, and what is left out."""
    counts = [
        ("Episodes of the log", f"{found.episodes:,}"),
        ("Their tasks", f"{found.tasks:,}"),
        ("Pairs of episodes", f"{found.pairs:,}"),
        ("Pairs of turns", f"{found.turn_pairs:,}"),
        (OUTCOME[found.kind].capitalize(), _outcome(found)),
        ("Fresh, played first", f"{found.fresh:,}"),
    ]
    facts = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in counts)
    kinds = (
        ("Task sets", found.by_source),
        ("Collaborators", found.by_collaborator),
        ("Versions", found.by_policy),
        ("Pairs of episodes by", _in_words(found.pairs_by_source)),
        ("Pairs of turns by", _in_words(found.turn_pairs_by_source)),
        ("Episodes left out", found.left_out),
        ("Preferences left out", found.people_left_out),
    )
    lists = "".join(_counted(title, counted) for title, counted in kinds if counted)
    problem = notice("Such a round would end at once", found.problem, "error")
    return (
        f'<div class="panel preview"><h2>What it will learn from</h2><dl class="facts">{facts}'
        f"</dl>{lists}{problem if found.problem else ''}</div>"
    )


def _outcome(found: Preview) -> str:
    shows, _ = OUTCOME_SHOWS[found.kind]
    known = found.outcome
    return NA if known.value is None else f"{shows(known.value)} of {known.n:,}"


def no_preview(why: str) -> str:
    """Settings that no round can have, and why."""
    return notice("These settings can't be used", why, "error")


def _in_words(counted: Mapping[str, int]) -> dict[str, int]:
    return {_SOURCES.get(source, source): n for source, n in counted.items()}


def _counted(title: str, counted: Mapping[str, int]) -> str:
    items = sorted(counted.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{esc(name)}&nbsp;<b>{n:,}</b>" for name, n in items)
    return f'<p class="meta"><span>{title}:</span> {listed}</p>'


def round_panel(one: Round, stages: Sequence[StageProgress], address: str) -> str:
    """A round: its state, each phase with its count and times, and what came of it."""
    kind, words = STATES[one.state]
    elapsed_s = sum(stage.seconds or 0.0 for stage in stages)
    rows = "".join(_stage(stage, one) for stage in stages)
    algorithm = ALGORITHMS.get(one.algorithm, one.algorithm)
    things = validation(one.settings, None).kind.things
    return (
        f'<div class="panel round" data-address="{esc(address)}"><div class="outcome">'
        f"<h2>Round {esc(one.id)}</h2>{pill(kind, words)}"
        f'<span class="meta">{esc(algorithm)} on {things} from {esc(one.policy_id)} · begun '
        f"{when(one.created_at)} · at work {duration(elapsed_s * 1000)}</span></div>"
        f'<ol class="stages" aria-label="Phases">{rows}</ol>{_end(one, stages)}</div>'
    )


def no_round() -> str:
    """What stands where no round was ever run."""
    return notice(
        "No round is running",
        "Press Retrain. A round plays fresh episodes if asked, learns from them and the log, and "
        "serves the new version if it beats its parent.",
    )


def _stage(stage: StageProgress, one: Round) -> str:
    state = stage.state
    count = f"{stage.done:,}/{stage.total:,}" if stage.total else ""
    name = _STAGES.get(stage.name, stage.name)
    is_ending = state == "running" and one.keep_stage == one.stage
    notes = (stage.note, "ended early" * stage.ended_early, "ends with what it has" * is_ending)
    note = "".join(f' <span class="meta">{esc(text)}</span>' for text in notes if text)
    current = ' aria-current="step"' if state == "running" else ""
    return (
        f'<li class="{esc(state)}" data-stage="{esc(stage.name)}"{current}>'
        f'<span class="mark" aria-hidden="true">{_MARKS.get(state, "")}</span>'
        f'<span class="name">{esc(name)}<span class="hear">, {esc(state)}</span>{note}</span>'
        f'<span class="count">{count}</span>'
        f'<span class="time meta">{_times(stage)}</span>'
        f'<span class="gave meta">{_gave(stage)}</span>{_bar(stage)}</li>'
    )


def _times(stage: StageProgress) -> str:
    if stage.seconds is None:
        return ""
    elapsed = duration(stage.seconds * 1000)
    if stage.state != "running":
        return elapsed
    left = NA if stage.remaining_s is None else duration(stage.remaining_s * 1000)
    return f'<span title="elapsed, and what remains of this phase">{elapsed} &lt; {left}</span>'


def _bar(stage: StageProgress) -> str:
    if stage.state != "running" or not stage.total:
        return ""
    return (
        f'<div class="bar" role="progressbar" aria-label="{esc(_STAGES.get(stage.name, "Phase"))}" '
        f'aria-valuemin="0" aria-valuemax="{stage.total}" aria-valuenow="{stage.done}">'
        f'<span style="width:{min(1.0, stage.done / stage.total):.1%}"></span></div>'
    )


def _gave(stage: StageProgress) -> str:
    result = stage.result or {}
    names = _SHOWN_RESULTS.get(stage.name, ())
    shown = [(n, result[n]) for n in names if result.get(n) is not None]
    if stage.ended_early and shown and "planned" in result:
        (name, reached), *others = shown  # what was reached comes first
        shown = [(name, f"{reached} of {result['planned']}"), *others]
    return esc(" · ".join(f"{name.replace('_', ' ')} {_value(name, v)}" for name, v in shown))


def _value(name: str, value: object) -> str:
    if name in _SHARES and isinstance(value, int | float):
        return f"{value:.0%}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _end(one: Round, stages: Sequence[StageProgress]) -> str:
    """What came of a round, and what can be done now."""
    if one.state is RoundState.RUNNING:
        return ""
    if one.state is RoundState.DONE:
        return _verdict(one, stages)
    if one.state is RoundState.FAILED:
        hint = f"{one.error} The log and the served version are as they were."
        return notice("The round failed", hint, "error")
    hint = "Resume goes on from its last checkpoint; or choose other settings and press Retrain."
    return notice("The round was stopped before its end", f"{one.error or ''} {hint}".strip())


def _verdict(one: Round, stages: Sequence[StageProgress]) -> str:
    found = validation(one.settings, one.figures)
    parent, child, gain = reached(found)
    name, key = BESIDE[found.kind]
    by = f" ({found.evaluator})" if found.kind is TaskKind.FRONTEND else ""
    heads = f"{OUTCOME[found.kind].capitalize()}{by}", name.capitalize()
    results = {stage.name: stage.result or {} for stage in stages}
    why = str(results.get("register", {}).get("why", ""))
    rows = (
        (f"{one.policy_id} (parent)", parent, _beside(one, "parent", key)),
        (f"{one.version_id} (child)", child, _beside(one, "child", key)),
    )
    body = "".join(
        f'<tr><th scope="row">{esc(version)}</th><td data-label="{esc(heads[0])}">{outcome}</td>'
        f'<td data-label="{heads[1]}">{share}</td></tr>'
        for version, outcome, share in rows
    )
    state = pill("pass", "✓ promoted") if one.is_promoted else pill("none", "not promoted")
    return (
        f'<div class="verdict" role="status"><h3>{esc(one.version_id or NA)} {state}</h3>'
        f'<p>{esc(why)}</p><div class="scroll"><table><thead><tr><th scope="col">On the same '
        f'validation tasks</th><th scope="col">{esc(heads[0])}</th>'
        f'<th scope="col">{heads[1]}</th></tr>'
        f"</thead><tbody>{body}</tbody></table></div>"
        f'<p class="meta">Gain: {gain}</p></div>'
    )


def _beside(one: Round, side: str, name: str) -> str:
    found = (one.figures or {}).get(side) or {}
    if not found.get("n"):
        return NA
    turns = number(found.get("mean_turns"), 1)
    return f'{percent(found.get(name))} <span class="meta">{turns} turns</span>'


def log(text: str) -> str:
    """The last lines that a round printed, the newest in view."""
    if not text.strip():
        return notice("Nothing was printed yet")
    newest = esc(text[-MAX_SHOWN_CHARS:])
    return f'<div class="log-tail" tabindex="0" aria-label="Log"><pre>{newest}</pre></div>'


def command(text: str) -> str:
    """A shell command to copy."""
    return (
        '<div class="code"><button type="button" class="copy" data-action="copy">Copy</button>'
        f'<pre tabindex="0" aria-label="Command"><code>{esc(text)}</code></pre></div>'
    )


def schedule(state: ScheduleState) -> str:
    """Whether rounds start by themselves, the next one and the last one."""
    said = pill("open", "on") if state.is_on else pill("none", "off")
    facts = [
        ("New episodes since the last round", f"{state.new_episodes:,}"),
        ("Next", _next(state)),
        ("Last", when(state.last_at) if state.last_at else "never"),
    ]
    if state.last_round:
        _, words = STATES[state.last_round.state]
        facts.append(("Last round", f"{esc(state.last_round.id)} {esc(words)}"))
    listed = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    error = notice("The last scheduled round", state.last_error, "error")
    return (
        f'<div class="schedule" role="status">{said} <dl class="facts">{listed}</dl>'
        f"{error if state.last_error else ''}</div>"
    )


def _next(state: ScheduleState) -> str:
    if not state.is_on:
        return "–"
    at = when(state.next_at) if state.next_at else ""
    return " ".join(part for part in (at, esc(state.waiting_for)) if part) or NA
