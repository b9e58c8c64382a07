"""Deciding for the Sessions page: searching the log, opening an episode, files out and in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import gradio as gr

from sweet.errors import StoreError
from sweet.exchange import PREFERENCES, VOTES
from sweet.services import Services
from sweet.types import EpisodeFilter
from ui import designs, tables, transfers
from ui.conversation import reference_card
from ui.credit import Critic
from ui.format import collaborator_name, esc, notice
from ui.opinions import latest_feedback
from ui.play import hidden_details
from ui.replay import replay
from ui.session import PAGE_ROWS, SORTS, LogView, log_view_of, positive
from ui.wire import SKIP

FORMATS = {
    f"{name} ({ending_name})": (kind, ending)
    for name, kind in (
        ("Episodes", "episodes"),
        ("Votes", VOTES),
        ("Preferences", PREFERENCES),
        ("ColBench’s shape", "colbench"),
    )
    for ending_name, ending in (("JSONL", ".jsonl"), ("parquet", ".parquet"))
}


class Asked(NamedTuple):
    """The inputs of a search, in the order the page wires them."""

    text: str
    task_set: str
    policy_id: str
    collaborator: str
    outcome: str
    feedback: str
    since: str
    until: str
    sort: str


class Found(NamedTuple):
    """The outputs of the Sessions page; what a handler does not name stays as it is."""

    view: Any = SKIP
    log: Any = SKIP
    table: Any = SKIP
    detail: Any = SKIP
    replay: Any = SKIP
    reveal: Any = SKIP
    hidden: Any = SKIP
    sort: Any = SKIP
    file: Any = SKIP


def open_page(services: Services, request: gr.Request) -> tuple[Any, ...]:
    """The filters and what is found, as the address asks; an episode where it names one."""
    view = log_view_of(request.query_params)
    return (*_filters(services, view), *_shown(services, view))


def search(services: Services, view: LogView, *asked: str) -> Found:
    """The first page of what the filters let through; nothing where they say what is shown."""
    words = Asked(*(value or "" for value in asked))
    wanted = EpisodeFilter(**{k: v.strip() for k, v in words._asdict().items() if k != "sort"})
    sort = words.sort if words.sort in SORTS.values() else view.sort
    if (wanted, sort) == (view.wanted, view.sort):
        return Found()
    return _listed(services, LogView(wanted, sort))


def clear(services: Services) -> tuple[Any, ...]:
    """The whole log again, and empty filters."""
    view = LogView()
    return (*_filters(services, view), *_shown(services, view))


def act(services: Services, view: LogView, event: gr.EventData) -> Found:
    """What a person does inside the table. The browser's data is not trusted."""
    asked: Mapping[str, Any] = event._data if isinstance(event._data, dict) else {}
    action = asked.get("action")
    if action == "sort" and asked.get("sort") in SORTS.values():
        return _listed(services, replace(view, sort=str(asked["sort"]), page=1))
    if action == "page":
        return _listed(services, replace(view, page=positive(asked.get("page"))))
    if action == "open":
        return _shown(services, view.opening(str(asked.get("episode"))))
    return Found()


def close(services: Services, view: LogView) -> Found:
    """Back to the log, as it was searched."""
    return _shown(services, view.opening(None))


def choose_critic(services: Services, view: LogView, event: gr.EventData) -> Found:
    """The open episode in the eyes of another critic, at the turn that is shown."""
    asked: Mapping[str, Any] = event._data if isinstance(event._data, dict) else {}
    if asked.get("action") != "critic" or view.episode_id is None:
        return Found()
    chosen = view.judged_by(str(asked.get("value")), positive(asked.get("turn")))
    return Found(view=chosen, replay=_replayed(services, chosen))


def reveal(services: Services, view: LogView, on: bool) -> str:
    """The hidden information of the open episode while the switch is on."""
    if not on or view.episode_id is None:
        return ""
    row = services.store.task_row(services.store.episode(view.episode_id).task_id)
    page = designs.wanted_drawn(services, row)
    return f'<div class="panel">{page or reference_card(row.hidden, hidden_details(row))}</div>'


def export(services: Services, view: LogView, format_name: str) -> Found:
    """A file of what is filtered, ready to be downloaded."""
    kind, ending = FORMATS.get(format_name, ("episodes", ".jsonl"))
    return Found(file=transfers.export(services, view.wanted, kind, ending))


def bring(services: Services, view: LogView, uploaded: str | None) -> tuple[Any, ...]:
    """What an import did, and the log with it."""
    told = transfers.bring(services, uploaded)
    return (*_filters(services, view), *_listed(services, view), told)


def _shown(services: Services, view: LogView) -> Found:
    if view.episode_id is None:
        return _listed(services, view)
    try:
        shown = _replayed(services, view)
    except StoreError as e:
        missing = notice("No such episode", f"{e} Go back to the log.", "error")
        shown = f'<span data-address="{esc(view.query)}"></span>{missing}'
    return Found(
        view=view,
        log=gr.update(visible=False),
        table="",
        detail=gr.update(visible=True),
        replay=shown,
        reveal=False,
        hidden="",
        file=gr.update(visible=False),
    )


def _replayed(services: Services, view: LogView) -> str:
    store = services.store
    episode = store.episode(str(view.episode_id))
    names = store.critics(episode.id)
    name = view.critic if view.critic in names else next(iter(names), None)
    return replay(
        episode,
        store.task(episode.task_id),
        latest_feedback(store.feedback(episode.id)),
        turn=view.turn,
        address=view.query,
        line=store.lineage(episode.id)[:-1],
        forks=store.children(episode.id),
        credit=store.credit(episode.id, name) if name else None,
        drawn=designs.drawn_turns(services, episode),
        critics=[_critic(services, name) for name in names],
    )


def _critic(services: Services, name: str) -> Critic:
    """A critic with its round's algorithm, where a round of the log trained it."""
    try:
        return Critic(name, services.store.round(name.removeprefix("round ")).algorithm)
    except StoreError:
        return Critic(name)


def _listed(services: Services, view: LogView) -> Found:
    page = services.store.search(view.wanted, view.sort, limit=PAGE_ROWS, offset=view.offset)
    last = tables.pages(page.count)
    if view.page > last:
        return _listed(services, replace(view, page=last))
    return Found(
        view=view,
        log=gr.update(visible=True),
        table=tables.log(page, view),
        detail=gr.update(visible=False),
        replay="",
        reveal=False,
        hidden="",
        sort=view.sort,
        file=gr.update(visible=False),
    )


def _filters(services: Services, view: LogView) -> tuple[Any, ...]:
    """The filters' values and choices, in the order of `Asked` without the sort."""
    values, wanted = services.store.filter_values(), view.wanted
    return (
        wanted.text,
        any_of("Any task set", values.task_sets, wanted.task_set),
        any_of("Any policy", values.policies, wanted.policy_id),
        anybody(values.collaborators, wanted.collaborator),
        wanted.outcome,
        wanted.feedback,
        wanted.since,
        wanted.until,
    )


def anybody(names: tuple[str, ...], chosen: str) -> Any:
    """The choices of a filter by collaborator, in words."""
    known = names if chosen in ("", *names) else (*names, chosen)
    seats = [(collaborator_name(name), name) for name in known]
    return gr.update(choices=[("Anybody", ""), *seats], value=chosen)


def any_of(name: str, values: tuple[str, ...], chosen: str) -> Any:
    """A filter's choices: `name` for all of them, then each; what a link chose is among them."""
    known = values if chosen in ("", *values) else (*values, chosen)
    return gr.update(choices=[(name, ""), *((value, value) for value in known)], value=chosen)
