"""Rounds that were run, two of them side by side, and the versions they gave → HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sweet.registry import Manifest, Promotion, plays, served_for
from sweet.store import Round, RoundState
from sweet.types import PolicyVersion, TaskKind
from sweet.validation import OUTCOME, Validation, validation
from ui.figures import OUTCOME_SHOWS, figure
from ui.format import NA, esc, notice, number, percent, pill, when
from ui.train_form import ALGORITHMS

STATES = {
    RoundState.RUNNING: ("open", "… running"),
    RoundState.DONE: ("pass", "✓ done"),
    RoundState.FAILED: ("wrong", "! failed"),
    RoundState.LOST: ("timeout", "□ stopped"),
}
Figures = Mapping[str, Any]
BESIDE = {
    TaskKind.BACKEND: ("tests passed", "tests_passed"),
    TaskKind.FRONTEND: ("all as wanted", "success_rate"),
}
"""What is told beside the outcome: the share's name, and its name among the figures."""
REACHED = (
    "Parent and child on the same validation tasks: functions by success, web pages by their mean "
    "reward; with n and 95 % intervals. Gain: child minus parent."
)


def history(rounds: Sequence[Round], opened: str | None, compared: Sequence[str]) -> str:
    """The rounds, the newest first, each to be opened and to be compared with another."""
    if not rounds:
        return notice(
            "No round yet",
            "Choose the settings above and press Retrain. A round never changes the log, and the "
            "version that is served now stays until a better one is found.",
        )
    heads = ("Round", "Algorithm", "Version", "State", "Parent", "Child", "Gain", "Compare")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    body = "".join(_history_row(one, one.id == opened, one.id in compared) for one in rounds)
    return (
        f'<div class="scroll"><table class="log rounds"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
        f'<p class="meta">{REACHED}</p>'
    )


def _history_row(one: Round, is_open: bool, is_compared: bool) -> str:
    kind, words = STATES[one.state]
    found = validation(one.settings, one.figures)
    parent, child, gain = reached(found)
    algorithm = esc(ALGORITHMS.get(one.algorithm, one.algorithm))
    current = ' aria-current="true"' if is_open else ""
    link = (
        f'<a href="?round={esc(one.id)}" data-action="open" data-round="{esc(one.id)}" '
        f'data-key="open-{esc(one.id)}"{current}>{esc(one.id)}</a> '
        f'<span class="meta">{when(one.created_at)}</span>'
    )
    toggle = (
        f'<button type="button" data-action="compare" data-round="{esc(one.id)}" '
        f'data-key="compare-{esc(one.id)}" aria-pressed="{str(is_compared).lower()}" '
        f'aria-label="Compare {esc(one.id)}">Compare</button>'
    )
    promoted = pill("pass", "promoted") if one.is_promoted else ""
    cells = (
        ("Round", link),
        ("Algorithm", f'{algorithm} <span class="meta">{found.kind.things}</span>'),
        ("Version", f"{esc(one.policy_id)} → {esc(one.version_id or NA)} {promoted}"),
        ("State", pill(kind, words)),
        ("Parent", parent),
        ("Child", child),
        ("Gain", gain),
        ("", toggle),
    )
    tds = "".join(f'<td data-label="{name}">{text}</td>' for name, text in cells)
    return f"<tr>{tds}</tr>"


def comparison(pair: Sequence[Round]) -> str:
    """Two rounds side by side: the settings that differ, and all figures."""
    if len(pair) < 2:
        chosen = f"{pair[0].id} is chosen. " if pair else ""
        return f'<p class="meta">{chosen}Press Compare at two rounds to see them side by side.</p>'
    first, second = pair
    rows = [*_differing(first, second), *_both_figures(first, second)]
    body = "".join(
        f'<tr><th scope="row">{esc(name)}</th><td data-label="{esc(first.id)}">{a}</td>'
        f'<td data-label="{esc(second.id)}">{b}</td></tr>'
        for name, a, b in rows
    )
    return (
        f'<div class="scroll"><table class="compared"><caption>{esc(first.id)} and '
        f"{esc(second.id)}: the settings that differ, and the figures</caption><thead><tr>"
        f'<th scope="col">What</th><th scope="col">{esc(first.id)}</th>'
        f'<th scope="col">{esc(second.id)}</th></tr></thead><tbody>{body}</tbody></table></div>'
    )


def _differing(first: Round, second: Round) -> list[tuple[str, str, str]]:
    names = [*first.settings, *(n for n in second.settings if n not in first.settings)]
    both = [(n, first.settings.get(n, NA), second.settings.get(n, NA)) for n in names]
    different = [(n, _setting(a), _setting(b)) for n, a, b in both if a != b]
    return different or [("settings", "the same", "the same")]


def _setting(value: object) -> str:
    return f"<code>{esc(value)}</code>" if value != "" else "any"


def reached(found: Validation) -> tuple[str, str, str]:
    """What the parent reached, and the child, and the gain; each with its n and interval."""
    shows, shows_gain = OUTCOME_SHOWS[found.kind]
    return figure(found.parent, shows), figure(found.child, shows), figure(found.gain, shows_gain)


def _both_figures(first: Round, second: Round) -> list[tuple[str, str, str]]:
    found = [validation(one.settings, one.figures) for one in (first, second)]
    (parent, child, gain), (parent2, child2, gain2) = map(reached, found)
    kind, kind2 = (one.kind for one in found)
    kinds = dict.fromkeys((kind, kind2))
    told = " or ".join(OUTCOME[kind] for kind in kinds)
    rows = [("gain", gain, gain2)]
    for side, outcome, outcome2 in (("child", child, child2), ("parent", parent, parent2)):
        a, b = (dict((one.figures or {}).get(side) or {}) for one in (first, second))
        rows.append((f"{side}: {told}", outcome, outcome2))
        for told_of in kinds:
            shares = _beside(a, kind, told_of), _beside(b, kind2, told_of)
            rows.append((f"{side}: {BESIDE[told_of][0]}", *shares))
        rows.append((f"{side}: turns", _turns(a), _turns(b)))
        rows.append((f"{side}: not scored", _unscored(a), _unscored(b)))
    return rows


def _beside(figures: Figures, kind: TaskKind, told_of: TaskKind) -> str:
    """What is told beside the outcome of tasks of that kind; n/a for a round of the other."""
    return _of(percent(figures.get(BESIDE[kind][1])), figures) if kind is told_of else NA


def _turns(figures: Figures) -> str:
    n = int(figures.get("n") or 0) + int(figures.get("unscored") or 0)
    return _of(number(figures.get("mean_turns"), 1), {"n": n})


def _unscored(figures: Figures) -> str:
    return NA if figures.get("unscored") is None else str(figures["unscored"])


def _of(shown: str, figures: Figures) -> str:
    """A figure with its n; without one it is unknown."""
    if shown == NA or not figures.get("n"):
        return NA
    return f'{shown} <span class="meta">n = {int(figures["n"]):,}</span>'


def served(by_kind: Mapping[TaskKind, str], last: Promotion | None, can_roll_back: bool) -> str:
    """Which version plays for each kind of tasks, since when, and the way back."""
    since = f"since {when(last.at)}" if last else "the default"
    each = [
        f"<strong>{esc(id)}</strong> for {served_things(by_kind, id)}"
        for id in dict.fromkeys(by_kind.values())
    ]
    back = (
        '<button type="button" data-action="rollback" data-key="rollback" class="outlined">'
        "Roll back</button>"
    )
    return (
        f'<div class="served"><p role="status">Served now: {", ".join(each)} '
        f'<span class="meta">{since}</span></p>{back if can_roll_back else ""}</div>'
    )


def versions(
    found: Sequence[tuple[PolicyVersion, Manifest | None]],
    served: Mapping[TaskKind, str],
    broken: Mapping[str, str],
) -> str:
    """Every version with its figures, what it is served for, and the way to promote another."""
    body = "".join(_version_row(v, manifest, served) for v, manifest in found)
    errors = "".join(notice(f"{id} can't be read", why, "error") for id, why in broken.items())
    return (
        '<div class="scroll"><table class="log"><thead><tr><th scope="col">Version</th>'
        '<th scope="col">Parent</th><th scope="col">Made by</th><th scope="col">Reached</th>'
        '<th scope="col">Its parent’s</th><th scope="col">Gain</th><th scope="col">Serve</th>'
        f'</tr></thead><tbody>{body}</tbody></table></div><p class="meta">{REACHED}</p>{errors}'
    )


def _version_row(
    version: PolicyVersion, manifest: Manifest | None, served: Mapping[TaskKind, str]
) -> str:
    of_round = (manifest.settings, manifest.figures) if manifest else ({}, None)
    parent, child, gain = reached(validation(*of_round))
    made = f"{esc(manifest.round_id or NA)} " if manifest else ""
    made += when(version.created_at) if version.created_at else esc(version.note or "built in")
    things = served_things(served, version.id)
    action = pill("pass", f"✓ served for {things}") if things else ""
    mine = [kind for kind in TaskKind if plays(version, kind)]
    action += _promote(version.id) if {served.get(kind) for kind in mine} != {version.id} else ""
    cells = (
        ("Version", f"<strong>{esc(version.id)}</strong>"),
        ("Parent", esc(version.parent_id or "–")),
        ("Made by", made),
        ("Reached", child),
        ("Its parent’s", parent),
        ("Gain", gain),
        ("", action),
    )
    return "<tr>" + "".join(f'<td data-label="{n}">{text}</td>' for n, text in cells) + "</tr>"


def served_things(by_kind: Mapping[TaskKind, str], policy_id: str) -> str:
    """What a version makes for everybody now; "" where nothing."""
    return " and ".join(kind.things for kind in served_for(by_kind, policy_id))


def _promote(policy_id: str) -> str:
    return (
        f'<button type="button" data-action="promote" data-policy="{esc(policy_id)}" '
        f'data-key="promote-{esc(policy_id)}" class="outlined" '
        f'aria-label="Promote {esc(policy_id)}">Promote</button>'
    )
