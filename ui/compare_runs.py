"""Deciding for a comparison over a task set: starting, following and stopping it.

The address holds what was asked, and the log all that was played: the page has nothing of its own
to lose, and the command line goes on with what the page began.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import gradio as gr

from sweet.comparing.compare import Compared, ComparePlan, play_both, so_far
from sweet.errors import ConfigError, SweetError
from sweet.services import Services
from sweet.store import Batch, BatchState
from ui import compare_figures
from ui.batches import MAX_AT_ONCE, MAX_EPISODES, STOP, whole_number
from ui.format import notice
from ui.wire import SKIP

MAX_BATCHES = 200  # of the newest, among which a comparison's are looked for
_RUNNING = (BatchState.RUNNING, BatchState.STOPPING)


class Run(NamedTuple):
    """The outputs of a comparison over a set; what a handler does not name stays as it is."""

    plan: Any = SKIP
    setup: Any = SKIP
    run: Any = SKIP
    progress: Any = SKIP
    stop: Any = SKIP
    again: Any = SKIP
    figures: Any = SKIP
    known: Any = SKIP
    timer: Any = SKIP


class Runs:
    """The comparisons over sets that this process plays, each once, whoever asks for it."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._tasks: dict[ComparePlan, asyncio.Task[Compared]] = {}
        self._stops: dict[ComparePlan, asyncio.Event] = {}

    def begin(self, plan: ComparePlan) -> None:
        """Play what the log does not have, in the background of this event loop."""
        if not self.is_running(plan):
            stop = self._stops[plan] = asyncio.Event()
            self._tasks[plan] = asyncio.create_task(play_both(self.services, plan, stop=stop))

    def plans(self) -> list[tuple[ComparePlan, bool]]:
        """What was begun here, the newest first, and whether it runs."""
        return [(plan, self.is_running(plan)) for plan in reversed(list(self._tasks))]

    def is_running(self, plan: ComparePlan) -> bool:
        """Whether this process plays it now."""
        task = self._tasks.get(plan)
        return task is not None and not task.done()

    def stop(self, plan: ComparePlan) -> None:
        """Ask it to end with what is done; for the event loop's thread."""
        if plan in self._stops:
            self._stops[plan].set()

    def error(self, plan: ComparePlan) -> str:
        """Why it broke off here; "" where it did not."""
        task = self._tasks.get(plan)
        if task is None or not task.done() or task.cancelled():
            return ""
        return str(task.exception() or "")


async def start(
    runs: Runs,
    task_set: str | None,
    first: str | None,
    second: str | None,
    collaborator: str | None,
    n: float | None,
    at_once: float | None,
    seed: float | None,
) -> Run:
    """A comparison over a set, running in the background; closing the page does not end it."""
    if not task_set:
        raise ConfigError("No task set is chosen. Make one with `python -m sweet tasks make`.")
    if not first or not second:
        raise ConfigError("Choose two versions.")
    plan = ComparePlan(
        task_set,
        first,
        second,
        whole_number("The number of tasks", n, 1, MAX_EPISODES),
        collaborator or "",
        whole_number("The number at once", at_once, 1, MAX_AT_ONCE),
        whole_number("The seed", seed, 0, 2**31 - 1),
    )
    return await go_on(runs, plan)


async def go_on(runs: Runs, plan: ComparePlan | None) -> Run:
    """What is missing of a comparison, being played; a task is never played twice."""
    if plan is None:
        raise ConfigError("No comparison is open. Start one.")
    for name in (plan.first, plan.second):
        await asyncio.to_thread(runs.services.policy, name)  # said now, not in the background
    page = await asyncio.to_thread(_shown, runs, plan)
    if any(batch and batch.state in _RUNNING for batch in _batches(runs.services, plan)):
        return page  # another process is at it
    runs.begin(plan)
    return page._replace(
        progress=compare_figures.progress(plan, (None, None), running=True),
        stop=gr.update(value=STOP, visible=True, interactive=True),
        again=gr.update(visible=False),
        figures="",
        timer=gr.update(active=True),
    )


async def stop(runs: Runs, plan: ComparePlan | None) -> Run:
    """The comparison, asked to stop: what runs ends as stopped, and nothing more is started."""
    if plan is None:
        return Run()
    runs.stop(plan)
    store = runs.services.store
    for batch in await asyncio.to_thread(_batches, runs.services, plan):
        if batch and batch.state is BatchState.RUNNING:
            await asyncio.to_thread(store.request_stop, batch.id)
    return await asyncio.to_thread(tick, runs, plan)


def tick(runs: Runs, plan: ComparePlan | None) -> Run:
    """How far it is; the figures once it has ended."""
    return Run() if plan is None else _shown(runs, plan)


def open_page(runs: Runs, request: gr.Request) -> Run:
    """The comparison that the address describes."""
    wanted = request.query_params
    if not wanted.get("tasks"):
        return Run(known=compare_figures.known(runs.plans()))
    try:
        return _shown(runs, _plan_of(wanted))
    except SweetError as e:
        missing = notice("No such comparison", f"{e} Begin another.", "error")
        return Run(run=gr.update(visible=True), progress=missing, figures="")


def close(runs: Runs) -> Run:
    """Back to the ways to begin; what is played goes on."""
    return Run(
        None,
        gr.update(visible=True),
        gr.update(visible=False),
        '<span data-address=""></span>',
        known=compare_figures.known(runs.plans()),
        timer=gr.update(active=False),
    )


def _plan_of(wanted: Mapping[str, str]) -> ComparePlan:
    """The plan that a link holds. Raises: ConfigError naming what is wrong with it."""

    def number(name: str, otherwise: int, least: int, most: int) -> int:
        text = str(wanted.get(name, otherwise))
        value = float(text) if text.isascii() and text.isdigit() and len(text) < 11 else None
        if value is None:
            raise ConfigError(f"The link's {name} is {text[:40]!r}; it must be a whole number.")
        return whole_number(f"The link's {name}", value, least, most)

    return ComparePlan(
        str(wanted.get("tasks", "")),
        str(wanted.get("first", "")),
        str(wanted.get("second", "")),
        number("n", 100, 1, MAX_EPISODES),
        str(wanted.get("collaborator", "")),
        number("at_once", 8, 1, MAX_AT_ONCE),
        number("seed", 0, 0, 2**31 - 1),
    )


def _batches(services: Services, plan: ComparePlan) -> tuple[Batch | None, Batch | None]:
    """The newest batch of each version for this plan."""
    known = [b for b in services.store.batches(MAX_BATCHES) if b.kind == "compare"]
    first, second = (
        next((b for b in known if dict(b.settings) == asdict(plan.batch(name))), None)
        for name in (plan.first, plan.second)
    )
    return first, second


def _shown(runs: Runs, plan: ComparePlan) -> Run:
    batches = _batches(runs.services, plan)
    states = [batch.state for batch in batches if batch]
    running = runs.is_running(plan) or any(state in _RUNNING for state in states)
    stopping = BatchState.STOPPING in states
    done = None if running else so_far(runs.services, plan)
    error = runs.error(plan) or " ".join(b.error for b in batches if b and b.error)
    return Run(
        plan=plan,
        setup=gr.update(visible=False),
        run=gr.update(visible=True),
        progress=compare_figures.progress(
            plan, batches, running=running, error="" if running else error
        ),
        stop=gr.update(value=STOP, visible=running, interactive=not stopping),
        again=gr.update(value="Go on", visible=done is not None and done.missing > 0),
        figures=compare_figures.figures(done) if done else "",
        timer=gr.update(active=running),
    )
