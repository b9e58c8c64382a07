"""Deciding for the ways to begin a comparison: versions, a task, two sessions of the log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import gradio as gr

from sweet.errors import StoreError
from sweet.services import OWN, Services
from sweet.types import EpisodeFilter, EpisodeSummary, PolicyVersion
from ui import choose
from ui.batches import simulators
from ui.format import collaborator_name, notice
from ui.format import outcome as outcome_words
from ui.wire import SKIP

MAX_SESSIONS = 50
_LINKED = re.compile(r"(?:^|episode=)([0-9A-Za-z_-]{6,64})(?:&|$)")


class Begin(NamedTuple):
    """The outputs of the ways to begin; what a handler does not name stays as it is."""

    first: Any = SKIP
    second: Any = SKIP
    few: Any = SKIP
    tabs: Any = SKIP
    task_set: Any = SKIP
    task: Any = SKIP
    found: Any = SKIP
    card: Any = SKIP
    collaborator: Any = SKIP
    one: Any = SKIP
    other: Any = SKIP
    listed: Any = SKIP
    many_set: Any = SKIP
    many_seat: Any = SKIP


def open_page(services: Services, request: gr.Request) -> Begin:
    """What can be compared; two versions and a task are chosen, so that one click starts."""
    versions = services.policies()
    first = services.default_policy()
    second = _second(versions, first)
    options = [(f"{v.id} ({v.note})" if v.note else v.id, v.id) for v in versions]
    names = [n for n in services.task_set_names() if not n.startswith(f"{OWN}/")]
    preferred = next((n for n in names if n.endswith("/test")), names[0] if names else None)
    page = _chosen(choose.first_choice(services))
    wanted = request.query_params.get("one") or ""
    return _with_sessions(services, page, wanted)._replace(
        first=gr.update(choices=options, value=first),
        second=gr.update(choices=options, value=second),
        few="" if second else _FEW,
        tabs=gr.update(selected="sessions") if wanted else SKIP,
        many_set=gr.update(choices=names, value=preferred),
        many_seat=gr.update(choices=simulators(services), value=""),
    )


_FEW = notice(
    "There is only one version",
    "To compare, train another on the Train page, or connect a model with SWEET_AGENT__MODEL and "
    "SWEET_AGENT__BASE_URL. Two sessions of the log can be compared already.",
)


def _second(versions: Sequence[PolicyVersion], first: str) -> str | None:
    """What the first is compared with: the version it was made from, else the newest other one."""
    parent = next((v.parent_id for v in versions if v.id == first), None)
    others = [v.id for v in versions if v.id != first]
    return parent if parent in others else others[-1] if others else None


def choose_set(
    services: Services, name: str | None, text: str, first: str | None, collaborator: str | None
) -> Begin:
    """The tasks of a set that hold the words looked for; the first of them is chosen."""
    return _chosen(choose.choose_set(services, name, text, first, collaborator))


def choose_random(
    services: Services, name: str | None, first: str | None, collaborator: str | None
) -> Begin:
    """A task of the set, drawn at random."""
    return _chosen(choose.choose_random(services, name, first, collaborator))


def choose_task(
    services: Services, task_id: str | None, first: str | None, collaborator: str | None
) -> Begin:
    """The card of a task, and who can play its collaborator; who was chosen stays."""
    return _chosen(choose.choose_task(services, task_id, first, collaborator))


def _chosen(choice: choose.Choice) -> Begin:
    return Begin(
        first=choice.policy,
        task_set=choice.task_set,
        task=choice.task,
        found=choice.found,
        card=choice.card,
        collaborator=choice.collaborator,
    )


# Two sessions


def find_sessions(services: Services, text: str) -> Begin:
    """The sessions that hold the words, or the one whose id or link it is."""
    return _with_sessions(services, Begin(), text)


def choose_session(services: Services, one: str | None) -> Begin:
    """The other sessions of the same task, of which one can stand beside it."""
    if not one:
        return Begin(other=gr.update(choices=[], value=None), listed="")
    task_id = services.store.episode(one).task_id
    found = _over(services, EpisodeFilter(task_id=task_id))
    others = [(_label(row), row.id) for row in found if row.id != one]
    if not others:
        alone = notice("No other session of this task", "Play it again with another version.")
        return Begin(other=gr.update(choices=[], value=None), listed=alone)
    return Begin(other=gr.update(choices=others, value=others[0][1]), listed="")


def _with_sessions(services: Services, page: Begin, text: str) -> Begin:
    options = _linked(services, text) or [
        (_label(row), row.id) for row in _over(services, EpisodeFilter(text=text))
    ]
    if not options:
        hint = "Search for other words." if text else "Play some first; sessions must be over."
        return page._replace(
            one=gr.update(choices=[], value=None),
            other=gr.update(choices=[], value=None),
            listed=notice("No session is found", hint),
        )
    others = choose_session(services, options[0][1])
    return page._replace(
        one=gr.update(choices=options, value=options[0][1]),
        other=others.other,
        listed=others.listed,
    )


def _linked(services: Services, text: str) -> list[tuple[str, str]]:
    """The session whose id or link was typed; nothing where it is no such thing."""
    found = _LINKED.search(text.strip()) if text and len(text.split()) == 1 else None
    if found is None:
        return []
    try:
        episode = services.store.episode(found[1])
    except StoreError:
        return []
    return [(f"{episode.policy_id} · {episode.created_at[:16]} · {episode.id}", episode.id)]


def _over(services: Services, wanted: EpisodeFilter) -> list[EpisodeSummary]:
    """The newest sessions that are over."""
    page = services.store.search(wanted, limit=MAX_SESSIONS * 2)
    return [row for row in page.rows if row.stop_reason is not None][:MAX_SESSIONS]


def _label(row: EpisodeSummary) -> str:
    words = outcome_words(row.stop_reason, row.reward, row.rating)[1]
    who = collaborator_name(row.collaborator)
    text = choose.short(row.description, 70)
    return f"{row.policy_id} · {words} · {row.turns} turns · {who} · {row.created_at[:16]} · {text}"
