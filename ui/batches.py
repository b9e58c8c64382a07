"""Deciding for the Watch page: starting simulated episodes, following and stopping them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import gradio as gr

from sweet.errors import ConfigError, StoreError
from sweet.services import OWN, BatchPlan, Services
from sweet.settings import EMBEDDED_MODEL
from sweet.store import Batch, BatchState
from sweet.types import EpisodeFilter
from ui import designs, tables
from ui.format import collaborator_name, esc, notice
from ui.session import WatchView
from ui.wire import SKIP

MAX_EPISODES = 10_000
MAX_AT_ONCE = 64
SHOWN = 50
STOP = "Stop and keep what is done"
_RUNNING = (BatchState.RUNNING, BatchState.STOPPING)


class Watched(NamedTuple):
    """The outputs of the Watch page; what a handler does not name stays as it is."""

    view: Any = SKIP
    progress: Any = SKIP
    stop: Any = SKIP
    episodes: Any = SKIP
    earlier: Any = SKIP
    timer: Any = SKIP


def open_page(services: Services, request: gr.Request) -> tuple[Any, ...]:
    """What can be started, and the batch that the address names or that runs."""
    names = [name for name in services.task_set_names() if not name.startswith(f"{OWN}/")]
    preferred = next((n for n in names if n.endswith("/test")), names[0] if names else None)
    versions = [(f"{v.id} ({v.note})" if v.note else v.id, v.id) for v in services.policies()]
    wanted = request.query_params.get("batch")
    running = [b.id for b in services.store.batches() if b.state in _RUNNING]
    view = WatchView(wanted or next(iter(running), None))
    return (
        gr.update(choices=names, value=preferred),
        gr.update(choices=versions, value=services.default_policy()),
        gr.update(choices=simulators(services), value=""),
        *_shown(services, view),
    )


async def start(
    services: Services,
    task_set: str | None,
    policy_id: str | None,
    collaborator: str | None,
    n: float | None,
    at_once: float | None,
    seed: float | None,
) -> Watched:
    """A new batch, running in the background; closing the page does not end it."""
    if not task_set:
        raise ConfigError("No task set is chosen. Make one with `python -m sweet tasks make`.")
    plan = BatchPlan(
        task_set,
        policy_id or services.default_policy(services.kind_of(task_set)),
        whole_number("The number of episodes", n, 1, MAX_EPISODES),
        collaborator or "",
        whole_number("The number at once", at_once, 1, MAX_AT_ONCE),
        whole_number("The seed", seed, 0, 2**31 - 1),
    )
    batch_id = await services.start_batch(plan)
    return await asyncio.to_thread(_shown, services, WatchView(batch_id))


def stop(services: Services, view: WatchView) -> Watched:
    """The batch, asked to stop: what runs ends as stopped, and nothing more is started."""
    if view.batch_id:
        services.store.request_stop(view.batch_id)
    return _shown(services, view)


def tick(services: Services, view: WatchView) -> Watched:
    """How far the batch is now."""
    return _shown(services, view)


def act(services: Services, view: WatchView, event: gr.EventData) -> Watched:
    """Another batch, opened from the list. The browser's data is not trusted."""
    asked: Mapping[str, Any] = event._data if isinstance(event._data, dict) else {}
    if asked.get("action") != "open":
        return Watched()
    return _shown(services, WatchView(str(asked.get("batch"))))


def _shown(services: Services, view: WatchView) -> Watched:
    earlier = tables.batch_list(services.store.batches())
    if view.batch_id is None:
        return Watched(view, "", gr.update(visible=False), "", earlier, gr.update(active=False))
    try:
        batch = services.store.batch(view.batch_id)
    except StoreError as e:
        missing = notice("No such batch", f"{e} Choose one from the list below.", "error")
        off = gr.update(active=False)
        return Watched(WatchView(), missing, gr.update(visible=False), "", earlier, off)
    page = services.store.search(EpisodeFilter(batch_id=batch.id), limit=SHOWN)
    pages = designs.scored_pages(services, page.rows)
    running = batch.state in _RUNNING
    can_stop = batch.state is BatchState.RUNNING
    return Watched(
        view=view,
        progress=tables.batch(batch, datetime.now(UTC), of_pages=bool(pages)) + _command(batch),
        stop=gr.update(value=STOP, visible=running, interactive=can_stop),
        episodes=tables.batch_episodes(page.rows, page.count, pages),
        earlier=earlier,
        timer=gr.update(active=running),
    )


def _command(batch: Batch) -> str:
    """The command that does the same without the page."""
    s = batch.settings
    command = (
        f"python -m sweet rollout --tasks {s.get('tasks')} --policy {s.get('policy_id')} "
        f"-n {batch.total} --concurrency {s.get('concurrency')} --seed {s.get('seed')}"
    )
    return (
        "<details><summary>The same from the command line</summary>"
        '<div class="code"><button type="button" class="copy" data-action="copy">Copy</button>'
        f'<pre tabindex="0" aria-label="Command"><code>{esc(command)}</code></pre></div></details>'
    )


def simulators(services: Services) -> list[tuple[str, str]]:
    """Who can play a set's collaborator, for a drop-down."""
    model = services.settings.simulator.model
    names = ["scripted"] if model == EMBEDDED_MODEL else ["scripted", f"llm:{model}"]
    return [("The best for each task", ""), *((collaborator_name(n), n) for n in names)]


def whole_number(what: str, value: float | None, least: int, most: int) -> int:
    """The value of a number's field as a whole number. Raises: ConfigError."""
    if value is None or value != int(value) or not least <= value <= most:
        raise ConfigError(f"{what} is {value}; choose a whole number from {least} to {most:,}.")
    return int(value)
