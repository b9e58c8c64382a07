"""Deciding how a comparison begins: two versions on a task, or two sessions of the log."""

from __future__ import annotations

import random
from collections.abc import Sequence

import gradio as gr

from sweet.errors import ConfigError, StoreError, TaskDataError
from sweet.registry import plays
from sweet.services import PERSON, Services
from sweet.store import Comparison
from sweet.types import TaskKind, TaskRow
from ui.compare_live import Duels
from ui.compare_shown import Shown, fresh, opened, setup, shown
from ui.format import esc
from ui.play import MAX_TEXT_CHARS
from ui.session import CompareView


def open_page(duels: Duels, request: gr.Request) -> Shown:
    """The comparison, or the two sessions, that the address names; else the ways to begin."""
    wanted = request.query_params
    if wanted.get("tasks"):
        return Shown(setup=gr.update(visible=False))
    try:
        if wanted.get("one") and wanted.get("other"):
            return _sessions_beside(duels, wanted["one"], wanted["other"], True, request)
        if wanted.get("comparison"):
            comparison = duels.services.store.comparison(wanted["comparison"])
            return fresh(shown(duels, comparison, request))
    except (StoreError, ConfigError) as e:
        gr.Warning(esc(e), title="That can’t be shown", duration=None)
    return setup()


def start(
    duels: Duels,
    task_id: str | None,
    collaborator: str | None,
    first: str | None,
    second: str | None,
    is_blind: bool,
    request: gr.Request,
) -> Shown:
    """Both versions on one task with one seed and one collaborator; both speak first."""
    if not task_id:
        raise TaskDataError("No task is chosen. Choose one, or press Random task.")
    row = duels.services.store.task_row(task_id)
    return _begun(duels, row, collaborator or PERSON, (first, second), is_blind, request)


def start_own(
    duels: Duels,
    kind: str | None,
    description: str,
    first: str | None,
    second: str | None,
    is_blind: bool,
    request: gr.Request,
) -> Shown:
    """Both versions on the person's own task."""
    _check_versions(duels.services, (first, second))
    what = TaskKind.FRONTEND if kind == TaskKind.FRONTEND else TaskKind.BACKEND
    row = duels.services.own_task(description[:MAX_TEXT_CHARS], what)
    return _begun(duels, row, PERSON, (first, second), is_blind, request)


def start_sessions(
    duels: Duels, one: str | None, other: str | None, is_blind: bool, request: gr.Request
) -> Shown:
    """Two sessions of the log beside each other."""
    if not one or not other:
        raise ConfigError("Choose two sessions of one task.")
    return _sessions_beside(duels, one, other, is_blind, request)


def repeat(duels: Duels, view: CompareView, request: gr.Request) -> Shown:
    """The same versions on the same task again, with another seed."""
    comparison = opened(duels, view)
    return _as_before(duels, comparison, comparison.task_id, request)


def following(duels: Duels, view: CompareView, request: gr.Request) -> Shown:
    """The same versions on another task of the set, drawn at random."""
    comparison = opened(duels, view)
    store = duels.services.store
    task = store.task(comparison.task_id)
    seed = random.SystemRandom().getrandbits(31)
    drawn = store.random_task(task.source, task.split, seed)
    return _as_before(duels, comparison, drawn.id, request)


def _as_before(duels: Duels, old: Comparison, task_id: str, request: gr.Request) -> Shown:
    store = duels.services.store
    seat = store.episode(old.left).collaborator
    versions = (old.left_policy, old.right_policy)
    return _begun(duels, store.task_row(task_id), seat, versions, old.is_blind, request)


def _begun(
    duels: Duels,
    row: TaskRow,
    collaborator: str,
    versions: Sequence[str | None],
    is_blind: bool,
    request: gr.Request,
) -> Shown:
    services = duels.services
    names = _check_versions(services, versions)
    _check_kind(services, names, row.task.kind)
    if collaborator != PERSON:
        services.simulator_for(row, collaborator)  # says why it can't, before anything is logged
    seed = random.SystemRandom().getrandbits(31)
    one, other = (services.new_episode(row, name, collaborator, seed).id for name in names)
    comparison = services.store.start_comparison(one, other, is_blind=bool(is_blind))
    return fresh(shown(duels, comparison, request, due=True))


def _check_versions(services: Services, versions: Sequence[str | None]) -> list[str]:
    """The ids of two versions that can play. Raises: ConfigError, PolicyError."""
    names = [name for name in versions if name]
    if len(names) != 2 or names[0] == names[1]:
        raise ConfigError(
            "Choose two different versions. Where there is only one, train another on the Train "
            "page, or connect a model with SWEET_AGENT__MODEL and SWEET_AGENT__BASE_URL."
        )
    for name in names:
        services.policy(name)
    return names


def _check_kind(services: Services, names: Sequence[str], kind: TaskKind) -> None:
    """Raises: ConfigError where one was trained for the other kind of tasks."""
    for version in services.policies():
        if version.id in names and not plays(version, kind):
            raise ConfigError(
                f"{version.id!r} was not trained to make {kind.things}. Choose another version or "
                f"task."
            )


def _sessions_beside(
    duels: Duels, one: str, other: str, is_blind: bool, request: gr.Request
) -> Shown:
    """Two sessions; the same two again are the same comparison, which a judge votes on, too."""
    store = duels.services.store
    for episode in (store.episode(one), store.episode(other)):
        if episode.stop_reason is None:
            raise ConfigError(
                f"Session {episode.id} is still in progress. Compare it when it is over."
            )
    ids = sorted((one, other))
    key = f"compare/{ids[0]}/{ids[1]}" + ("" if is_blind else "/open")
    comparison = store.start_comparison(*ids, is_blind=bool(is_blind), key=key)
    return fresh(shown(duels, comparison, request))
