"""Deciding for the choice of a task: its set, search, random, who collaborates, which policy."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import gradio as gr

from sweet.errors import SweetError
from sweet.registry import plays
from sweet.services import PERSON, Services
from sweet.settings import EMBEDDED_WEIGHTS
from sweet.store import TaskSet
from sweet.tasks import mini, mini_backend
from sweet.types import Task, TaskRow
from ui.conversation import task_card
from ui.format import collaborator_name, notice
from ui.wire import SKIP

MAX_CHOICES = 50
_FIRST_SET = f"{mini_backend.SOURCE}/test"


class Choice(NamedTuple):
    """The outputs of choosing a task; what a handler does not name stays as it is."""

    task_set: Any = SKIP
    task: Any = SKIP
    found: Any = SKIP
    card: Any = SKIP
    collaborator: Any = SKIP
    policy: Any = SKIP
    own_policy: Any = SKIP


def first_choice(services: Services) -> Choice:
    """The task sets and policies there are; a task is chosen, so that one click starts."""
    names = services.task_set_names()
    name = _FIRST_SET if _FIRST_SET in names else names[0] if names else None
    policy = policy_choice(services)
    choice = choose_set(services, name, "", services.default_policy(), None)
    sets = gr.update(choices=names, value=name)
    return choice._replace(task_set=sets, policy=policy, own_policy=policy)


def policy_choice(services: Services) -> Any:
    """The policy versions for a drop-down; the one served now is chosen."""
    versions = [(f"{v.id} ({v.note})" if v.note else v.id, v.id) for v in services.policies()]
    return gr.update(choices=versions, value=services.default_policy())


def choose_set(
    services: Services,
    name: str | None,
    text: str,
    policy_id: str | None,
    collaborator: str | None,
) -> Choice:
    """The tasks of a set that hold the words looked for; the first of them is chosen."""
    if name in mini.SETS:
        services.ensure_mini_tasks([str(name)])
    found = _named(services.store.task_sets(), name)
    if found is None:
        empty = notice(
            "There is no task set yet",
            "Make ColBench-Mini's with `python -m sweet tasks make`, or bring ColBench's in with "
            "`python -m sweet tasks import`.",
        )
        return Choice(task=gr.update(choices=[], value=None), found="", card=empty)
    where = (found.source, found.split, text)
    tasks = services.store.tasks(*where, limit=MAX_CHOICES)
    count = services.store.count_tasks(*where)
    return _listed(services, tasks, count, policy_id, collaborator)


def choose_random(
    services: Services, name: str | None, policy_id: str | None, collaborator: str | None
) -> Choice:
    """A task of the set, drawn at random."""
    if name in mini.SETS:
        services.ensure_mini_tasks([str(name)])
    found = _named(services.store.task_sets(), name)
    if found is None:
        return choose_set(services, name, "", policy_id, collaborator)
    seed = random.SystemRandom().getrandbits(31)
    task = services.store.random_task(found.source, found.split, seed)
    tasks = services.store.tasks(found.source, found.split, limit=MAX_CHOICES)
    others = [other for other in tasks if other.id != task.id]
    return _listed(services, [task, *others], found.count, policy_id, collaborator)


def choose_task(
    services: Services, task_id: str | None, policy_id: str | None, collaborator: str | None
) -> Choice:
    """The card of a task, who can play its collaborator, and a version that makes such things.

    Who was chosen to collaborate stays where they can.
    """
    if not task_id:
        return Choice()
    return _chosen(services, services.store.task_row(task_id), policy_id, collaborator)


def choose_policy(services: Services, task_id: str | None, policy_id: str | None) -> Choice:
    """The card of the task, which warns where the policy can't know such tasks."""
    if not task_id:
        return Choice()
    return Choice(card=_card(services, services.store.task_row(task_id).task, policy_id))


def _listed(
    services: Services,
    tasks: list[Task],
    count: int,
    policy_id: str | None,
    collaborator: str | None,
) -> Choice:
    """The tasks to choose from; the first of them is chosen."""
    if not tasks:
        nothing = notice("No task matches", "Search for other words, or clear the search.")
        return Choice(task=gr.update(choices=[], value=None), found=_count(0, 0), card=nothing)
    page = _chosen(services, services.store.task_row(tasks[0].id), policy_id, collaborator)
    options = [(short(task.description), task.id) for task in tasks]
    task = gr.update(choices=options, value=tasks[0].id)
    return page._replace(task=task, found=_count(count, len(tasks)))


def _count(count: int, listed: int) -> str:
    more = f", {listed} of them listed: search to narrow" if count > listed else ""
    return f'<p class="meta" role="status">{count:,} task{"" if count == 1 else "s"}{more}</p>'


def _chosen(
    services: Services, row: TaskRow, policy_id: str | None, collaborator: str | None
) -> Choice:
    able = services.collaborators_for(row)
    seats = [(_seat_name(name), name) for name in able]
    # Without a value the page keeps what is chosen by the time that this arrives.
    kept = {} if collaborator in able else {"value": PERSON}
    player = _player(services, policy_id, row.task)
    return Choice(
        card=_card(services, row.task, player),
        collaborator=gr.update(choices=seats, **kept),
        policy=SKIP if player == policy_id else gr.update(value=player),
    )


def _player(services: Services, policy_id: str | None, task: Task) -> str | None:
    """The version that was chosen; where it can't make such things, the served one that can."""
    served = services.default_policy(task.kind)
    if _can_play(services, policy_id, task) or not _can_play(services, served, task):
        return policy_id
    return served


def _can_play(services: Services, policy_id: str | None, task: Task) -> bool:
    """Whether a version was made for such tasks; one that can't be read says so on the card."""
    try:
        return not policy_id or plays(services.registry.version(policy_id), task.kind)
    except SweetError:
        return True


def _card(services: Services, task: Task, policy_id: str | None) -> str:
    return task_card(task) + _unknown_to_embedded(services, task, policy_id)


def _unknown_to_embedded(services: Services, task: Task, policy_id: str | None) -> str:
    """Why a version can't know such a task; "" where it may."""
    try:
        version = services.registry.version(policy_id or services.default_policy(task.kind))
    except SweetError as e:
        return notice("This version can't be had", str(e), "error")
    if not plays(version, task.kind):
        return notice(
            "This version will not manage this task",
            f"It was not trained to make {task.kind.things}. Choose another policy.",
        )
    if version.base_model not in EMBEDDED_WEIGHTS.values() or task.source in mini.GENERATORS:
        return ""
    return notice(
        "The embedded model will not manage this task",
        "It knows only ColBench-Mini. Choose another policy, or connect a real model.",
    )


def _seat_name(name: str) -> str:
    return "You" if name == PERSON else f"Watch: {collaborator_name(name)}"


def short(text: str, chars: int = 110) -> str:
    """A text as a line of a drop-down."""
    line = " ".join(text.split())
    return line if len(line) <= chars else f"{line[: chars - 1]}…"


def _named(sets: list[TaskSet], name: str | None) -> TaskSet | None:
    return next((found for found in sets if found.name == name), None)
