"""The designs of an episode, from the log: its versions, and the panel that shows them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from evaluators.visual import Similarity, similarity
from sweet.errors import RenderError, SweetError
from sweet.parsing import FoundPage, page_in
from sweet.services import Services
from sweet.types import Action, Episode, EpisodeSummary, HiddenInfo, TaskKind, TaskRow
from ui.conversation import beside_page
from ui.design import Figures, Version, as_drawn, design, similarities, wanted_only
from ui.sealed import sealed_document


def panel(
    services: Services,
    episode: Episode,
    *,
    key: str,
    label: str = "The design",
    wanted: bool = True,
) -> str:
    """The versions of an episode's design; `wanted` shows the page that is wanted beside it.

    Empty while there is no version. Raises: StoreError where a page can't be kept.
    """
    hidden = services.store.hidden(episode.task_id) if wanted else None
    return design(
        versions_of(services, episode), key=key, label=label, wanted=wanted_page(services, hidden)
    )


def versions_of(services: Services, episode: Episode) -> list[Version]:
    """A version a turn; where a message had no complete page, it says why."""
    return [version_of(services, turn.action, turn.index) for turn in episode.turns]


def version_of(services: Services, action: Action, index: int) -> Version:
    """What the agent drew in the turn `index`, kept."""
    name, found = f"Version {index + 1}", page_of(action)
    if found.html is None:
        return Version(name, None, why=found.why)
    page = services.gallery.keep(found.html)
    try:
        return Version(name, found.html, _sealed(found.html), page)
    except RenderError as e:
        return Version(name, found.html, "", page, str(e))


def page_of(action: Action) -> FoundPage:
    """The page in a message of the agent; of a final answer, in the answer."""
    return page_in(action.raw if action.artifact is None else action.artifact)


def wanted_page(services: Services, hidden: HiddenInfo | None) -> str:
    """The name of the wanted page, kept; "" where there is none."""
    found = page_in(hidden.reference).html if hidden else None
    return services.gallery.keep(found) if found else ""


def drawn_turns(services: Services, episode: Episode) -> dict[int, str]:
    """Each turn's page as it looked, with what was said beside it; empty where no page is made."""
    if services.store.task(episode.task_id).kind is not TaskKind.FRONTEND:
        return {}
    return {
        turn.index: beside_page(turn.action)
        + as_drawn(version_of(services, turn.action, turn.index))
        for turn in episode.turns
    }


def scored_pages(services: Services, rows: Sequence[EpisodeSummary]) -> dict[str, str]:
    """The page that each episode was scored by, of those that make one, kept; "" where none was."""
    return {
        row.id: _scored_page(services, row)
        for row in rows
        if services.store.task(row.task_id).kind is TaskKind.FRONTEND
    }


def _scored_page(services: Services, row: EpisodeSummary) -> str:
    if row.reward is None:
        return ""
    found = page_in(services.store.episode(row.id).artifact or "").html
    return services.gallery.keep(found) if found else ""


def wanted_drawn(services: Services, row: TaskRow) -> str:
    """The page that is wanted, as it looks; "" where it is no page."""
    found = page_in(row.hidden.reference).html if row.hidden else None
    if found is None or row.task.kind is not TaskKind.FRONTEND:
        return ""
    return as_drawn(Version("The page that is wanted", found, page=services.gallery.keep(found)))


def wanted_alone(services: Services, hidden: HiddenInfo | None) -> str:
    """The page that is wanted, while there is no other."""
    page = wanted_page(services, hidden)
    return wanted_only(page) if page else ""


def figures(services: Services, episode: Episode) -> str:
    """How like the wanted page each version is, part by part; "" where nothing can be compared."""
    hidden = services.store.hidden(episode.task_id)
    target = page_in(hidden.reference).html if hidden else None
    if target is None or services.store.task(episode.task_id).kind is not TaskKind.FRONTEND:
        return ""
    rows = [_measured(services, turn.index, page_of(turn.action), target) for turn in episode.turns]
    return similarities(rows)


def _measured(services: Services, index: int, found: FoundPage, target: str) -> Figures:
    name = f"Version {index + 1}"
    if found.html is None:
        return Figures(name, why=found.why)
    try:
        alike = _similarity(services, found.html, target)
    except SweetError as e:
        return Figures(name, why=str(e))
    return Figures(name, {"overall": alike.overall, **alike.parts()})


def _similarity(services: Services, html: str, target: str) -> Similarity:
    wanted, shown = (services.gallery.render(page) for page in (target, html))
    return similarity(wanted, shown)


@lru_cache(maxsize=64)
def _sealed(html: str) -> str:
    return sealed_document(html)
