"""Deciding for the Leaderboard page: measuring what is asked for, sorting it, giving it out.

What was measured is kept with the view, so that sorting and exporting are of what is shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import gradio as gr

from sweet.comparing.standings import Standings, standings
from sweet.errors import StoreError
from sweet.services import Services
from ui import leaderboard_plots, leaderboard_tables, leaderboard_votes, transfers
from ui.find import any_of, anybody
from ui.format import notice
from ui.session import BOARD_SORTS, BoardView, board_view_of
from ui.wire import SKIP

BLIND = "blind"
VOTES = {"All votes": "", "Only of who could not know": BLIND}
TABLE, SAID, ALL = "The table (CSV)", "The votes (CSV)", "All that is shown (JSON)"
FORMATS = (TABLE, SAID, ALL)


class Asked(NamedTuple):
    """The inputs of the page, in the order it wires them."""

    task_set: str
    policy_id: str
    collaborator: str
    evaluator: str
    votes: str
    since: str
    until: str
    paper: bool
    sort: str


class Shown(NamedTuple):
    """The outputs; what a handler does not name stays as it is."""

    view: Any = SKIP
    found: Any = SKIP
    table: Any = SKIP
    votes: Any = SKIP
    rounds: Any = SKIP
    budgets: Any = SKIP
    sort: Any = SKIP
    file: Any = SKIP


def open_page(services: Services, request: gr.Request) -> tuple[Any, ...]:
    """The filters and what they let through, as the address asks."""
    view = board_view_of(request.query_params)
    fields = _fields(services, view)
    try:
        return (*fields, *_measured(services, view))
    except StoreError as e:  # an address can ask for anything
        wrong = notice("That can’t be shown", f"{e} Change or clear the filters.", "error")
        return (*fields, *Shown(view=view, found=None, table=wrong, votes="", rounds="",
                                budgets="", sort=view.sort))  # fmt: skip


def refresh(services: Services, view: BoardView) -> tuple[Any, ...]:
    """The same filters, counted anew: there may be more in the log."""
    return (*_fields(services, view), *_measured(services, view))


def clear(services: Services) -> tuple[Any, ...]:
    """All of the log, and empty filters."""
    return refresh(services, BoardView())


def search(
    services: Services, view: BoardView, found: Standings | None, *values: str | bool | None
) -> Shown:
    """What the fields ask for; only what that changes is measured and drawn anew."""
    asked = Asked(*(value or "" for value in values))  # type: ignore[arg-type]
    wanted = replace(  # what only an address can ask for stays
        view.wanted,
        task_set=asked.task_set,
        policy_id=asked.policy_id,
        collaborator=asked.collaborator,
        since=asked.since.strip(),
        until=asked.until.strip(),
    )
    sort = asked.sort if asked.sort in BOARD_SORTS.values() else view.sort
    blind = asked.votes == BLIND
    asks = BoardView(wanted, asked.evaluator, blind, sort, bool(asked.paper))
    if asks == view and found is not None:
        return Shown()
    if found is None or replace(asks, sort=view.sort, paper=view.paper) != view:
        return _measured(services, asks)
    return _ordered(services, asks, found)


def act(services: Services, view: BoardView, found: Standings | None, event: gr.EventData) -> Shown:
    """The table in the order of a head that was clicked. The browser's data is not trusted."""
    asked: Mapping[str, Any] = event._data if isinstance(event._data, dict) else {}
    if asked.get("action") != "sort" or asked.get("sort") not in BOARD_SORTS.values():
        return Shown()
    view = replace(view, sort=str(asked["sort"]))
    return _measured(services, view) if found is None else _ordered(services, view, found)


def export(services: Services, view: BoardView, found: Standings | None, format_name: str) -> Any:
    """A file of what is shown, ready to be downloaded."""
    found = found or _standings(services, view)
    if format_name == ALL:
        text = json.dumps(found.as_json(paper=view.paper), ensure_ascii=False, indent=1) + "\n"
    else:
        text = found.votes_csv() if format_name == SAID else found.table_csv(paper=view.paper)
    ending = ".json" if format_name == ALL else ".csv"
    path = transfers.new_file(services, "votes" if format_name == SAID else "leaderboard", ending)
    path.write_bytes(text.encode())
    return transfers.download(path, f"Download {path.suffix[1:].upper()}")


def _ordered(services: Services, view: BoardView, found: Standings) -> Shown:
    """The same figures in another order, or with the paper's rows."""
    found = found.sorted_by(view.sort)
    versions = [version.id for version in services.policies()]
    return Shown(
        view=view,
        found=found,
        table=leaderboard_tables.table(found, view, versions),
        budgets=leaderboard_plots.by_budget(found),
        sort=view.sort,
        file=gr.update(visible=False),
    )


def _measured(services: Services, view: BoardView) -> Shown:
    found = _standings(services, view)
    return _ordered(services, view, found)._replace(
        votes=leaderboard_votes.votes(found),
        rounds=leaderboard_plots.over_rounds(found.rounds),
    )


def _standings(services: Services, view: BoardView) -> Standings:
    return standings(
        services.store,
        view.wanted,
        sort=view.sort,
        blind_only=view.blind_only,
        evaluator=view.evaluator,
    )


def _fields(services: Services, view: BoardView) -> tuple[Any, ...]:
    """The fields' values and choices, in the order of `Asked` without the sort."""
    values, wanted = services.store.filter_values(), view.wanted
    return (
        any_of("Any task set", values.task_sets, wanted.task_set),
        any_of("Any version", values.policies, wanted.policy_id),
        anybody(values.collaborators, wanted.collaborator),
        any_of("Any evaluator", values.evaluators, view.evaluator),
        BLIND if view.blind_only else "",
        wanted.since,
        wanted.until,
        view.paper,
    )
