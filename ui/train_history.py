"""Rounds that were run, two of them side by side, and the versions they gave → HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sweet.registry import Manifest, Promotion, plays, served_for
from sweet.store import Round, RoundState
from sweet.types import PolicyVersion, TaskKind
from ui.format import NA, esc, notice, number, percent, pill, points, when
from ui.train_form import ALGORITHMS

STATES = {
    RoundState.RUNNING: ("open", "… running"),
    RoundState.DONE: ("pass", "✓ done"),
    RoundState.FAILED: ("wrong", "! failed"),
    RoundState.LOST: ("timeout", "□ stopped"),
}
Figures = Mapping[str, Any]


def rate(figures: Figures | None) -> str:
    """A success rate with its 95 % interval and its n; n/a where nothing was scored."""
    if not figures or not figures.get("n") or figures.get("success_rate") is None:
        return NA
    interval = _interval(figures.get("success_ci95"), signed=False)
    return (
        f"<strong>{figures['success_rate']:.1%}</strong> "
        f'<span class="meta">{interval} n = {int(figures["n"]):,}</span>'
    )


def gain(figures: Figures | None) -> str:
    """The child's success minus its parent's on the same tasks, with interval and n."""
    if not figures or figures.get("gain") is None:
        return NA
    interval = _interval(figures.get("gain_ci95"), signed=True)
    shown = points(figures["gain"])
    return (
        f'<strong>{shown}</strong> <span class="meta">{interval} n = {figures["compared"]:,}</span>'
    )


def _interval(ends: Sequence[float] | None, *, signed: bool) -> str:
    if not ends:
        return f"[{NA}]"
    low, high = ((points(e) if signed else f"{e:.1%}") for e in ends)
    return f"[{low}, {high}]"


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
        '<p class="meta">Success on the same validation tasks, with 95 % intervals; gain: child '
        "minus parent, in points.</p>"
    )


def _history_row(one: Round, is_open: bool, is_compared: bool) -> str:
    kind, words = STATES[one.state]
    figures = one.figures or {}
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
        ("Algorithm", esc(ALGORITHMS.get(one.algorithm, one.algorithm))),
        ("Version", f"{esc(one.policy_id)} → {esc(one.version_id or NA)} {promoted}"),
        ("State", pill(kind, words)),
        ("Parent", rate(figures.get("parent"))),
        ("Child", rate(figures.get("child"))),
        ("Gain", gain(figures)),
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


def _both_figures(first: Round, second: Round) -> list[tuple[str, str, str]]:
    figures = (first.figures or {}, second.figures or {})
    rows = [("gain", gain(figures[0]), gain(figures[1]))]
    for side in ("child", "parent"):
        found = [dict(one.get(side) or {}) for one in figures]
        rows += [
            (f"{side}: success", rate(found[0]), rate(found[1])),
            (f"{side}: tests passed", _passed(found[0]), _passed(found[1])),
            (f"{side}: turns", _turns(found[0]), _turns(found[1])),
            (f"{side}: not scored", _unscored(found[0]), _unscored(found[1])),
        ]
    return rows


def _passed(figures: Figures) -> str:
    return _of(percent(figures.get("tests_passed")), figures)


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
        '<th scope="col">Parent</th><th scope="col">Made by</th><th scope="col">Success</th>'
        '<th scope="col">Its parent’s</th><th scope="col">Gain</th><th scope="col">Serve</th>'
        f"</tr></thead><tbody>{body}</tbody></table></div>{errors}"
    )


def _version_row(
    version: PolicyVersion, manifest: Manifest | None, served: Mapping[TaskKind, str]
) -> str:
    figures: Figures = manifest.figures if manifest else {}
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
        ("Success", rate(figures.get("child"))),
        ("Its parent’s", rate(figures.get("parent"))),
        ("Gain", gain(figures)),
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
