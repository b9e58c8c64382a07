"""The log and the batches → HTML tables. Text is escaped by `ui.format` alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from sweet.store import Batch, BatchState, EpisodePage
from sweet.types import EpisodeSummary
from ui.design import picture
from ui.format import (
    NA,
    collaborator_name,
    duration,
    esc,
    notice,
    number,
    outcome,
    percent,
    pill,
    when,
)
from ui.session import PAGE_ROWS, LogView

_COLUMNS = (
    ("Task", None),
    ("When", "created_at"),
    ("Policy", "policy_id"),
    ("Collaborator", "collaborator"),
    ("Turns", "turns"),
    ("Outcome", "reward"),
    ("Tests passed", "tests_passed"),
    ("Feedback", "rating"),
)


def log(page: EpisodePage, view: LogView) -> str:
    """The count, a page of the log as a table, and the way to the other pages."""
    if not page.count:
        return _address(view) + _nothing(view)
    head = "".join(_heading(name, column, view.sort) for name, column in _COLUMNS)
    body = "".join(_episode_row(row) for row in page.rows)
    first, last = view.offset + 1, view.offset + len(page.rows)
    episodes = "episode" if page.count == 1 else "episodes"
    shown = f"{first:,}–{last:,} of " if page.count > PAGE_ROWS else ""
    return (
        f'{_address(view)}<p class="count" role="status">{shown}'
        f"<strong>{page.count:,}</strong> {episodes}</p>"
        f'<div class="scroll"><table class="log"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{_pager(page.count, view)}"
    )


def _address(view: LogView) -> str:
    return f'<span data-address="{esc(view.query)}"></span>'


def _nothing(view: LogView) -> str:
    if view.query:
        return notice("No episode matches", "Change or clear the search and the filters.")
    return notice("The log is empty", "Play an episode in Collaborate, or start some in Watch.")


def _heading(name: str, column: str | None, sort: str) -> str:
    if column is None:
        return f'<th scope="col">{esc(name)}</th>'
    by, _, direction = sort.partition(" ")
    sorted_now = by == column
    other = "asc" if sorted_now and direction == "desc" else "desc"
    mark = {"asc": " ↑", "desc": " ↓"}[direction] if sorted_now else ""
    state = f' aria-sort="{direction}ending"' if sorted_now else ""
    return (
        f'<th scope="col"{state}><button type="button" data-action="sort" '
        f'data-key="sort-{column}" data-sort="{column} {other}">{esc(name)}{mark}</button></th>'
    )


def _episode_row(row: EpisodeSummary) -> str:
    kind, words = outcome(row.stop_reason, row.reward, row.rating, graded=row.tests_passed is None)
    link = (
        f'<a href="?episode={esc(row.id)}" data-action="open" data-episode="{esc(row.id)}" '
        f'data-key="open-{esc(row.id)}">{esc(row.description)}</a>'
    )
    cells = (
        ("Task", f'{link}<span class="meta">{esc(row.task_set)}</span>', "task"),
        ("When", when(row.created_at), "when"),
        ("Policy", esc(row.policy_id), ""),
        ("Collaborator", esc(collaborator_name(row.collaborator)), ""),
        ("Turns", str(row.turns), "figure"),
        ("Outcome", pill(kind, words), ""),
        ("Tests", percent(row.tests_passed), "figure"),
        ("Feedback", _feedback(row), ""),
    )
    tds = "".join(f'<td class="{c}" data-label="{n}">{text}</td>' for n, text, c in cells)
    return f"<tr>{tds}</tr>"


def _feedback(row: EpisodeSummary) -> str:
    tags = " ".join(pill("none", tag) for tag in row.tags)
    if row.rating is None:
        return tags or f'<span class="meta">{NA}</span>'
    kind = "pass" if row.rating > 0 else "wrong" if row.rating < 0 else "none"
    return f"{pill(kind, f'{row.rating:+.1f}')} {tags}"


def pages(count: int) -> int:
    """How many pages the log has."""
    return max(1, -(-count // PAGE_ROWS))


def _pager(count: int, view: LogView) -> str:
    last = pages(count)
    if last == 1:
        return ""
    before = _turn_page("Previous", view.page - 1, view.page > 1)
    after = _turn_page("Next", view.page + 1, view.page < last)
    return (
        f'<nav class="pager" aria-label="Pages of the log">{before}'
        f"<span>Page {view.page:,} of {last:,}</span>{after}</nav>"
    )


def _turn_page(name: str, page: int, there: bool) -> str:
    off = "" if there else " disabled"
    return (
        f'<button type="button" data-action="page" data-page="{page}" data-key="page-{name}"{off}>'
        f"{name}</button>"
    )


_STATES = {
    BatchState.RUNNING: ("open", "… running"),
    BatchState.STOPPING: ("open", "… stopping"),
    BatchState.DONE: ("pass", "✓ done"),
    BatchState.STOPPED: ("none", "□ stopped"),
    BatchState.FAILED: ("wrong", "! failed"),
}


def batch(batch: Batch, now: datetime, *, of_pages: bool = False) -> str:
    """How far a batch is: state, count, bar, elapsed and remaining, figures so far."""
    kind, words = _STATES[batch.state]
    share = batch.finished / batch.total if batch.total else 1.0
    known = _batch_facts(batch, now, of_pages=of_pages)
    facts = "".join(f"<div><dt>{n}</dt><dd>{v}</dd></div>" for n, v in known)
    error = notice("The batch broke off", batch.error, "error") if batch.error else ""
    return (
        f'<div class="batch panel" data-address="batch={esc(batch.id)}">'
        f'<div class="outcome"><h2>Batch</h2>{pill(kind, words)}'
        f'<strong role="status">{batch.finished}/{batch.total}</strong></div>'
        f'<div class="bar" role="progressbar" aria-label="Episodes finished" aria-valuemin="0" '
        f'aria-valuemax="{batch.total}" aria-valuenow="{batch.finished}">'
        f'<span style="width:{share:.1%}"></span></div>'
        f'<dl class="facts">{facts}</dl><p class="meta">{_chosen(batch)}</p>{error}</div>'
    )


def _chosen(batch: Batch) -> str:
    """What was asked for, in words."""
    s = batch.settings
    who = collaborator_name(str(s.get("collaborator") or "the best for each task"))
    return esc(
        f"{s.get('tasks', NA)} · policy {s.get('policy_id', NA)} · collaborator: {who} · "
        f"{s.get('concurrency', NA)} at once · seed {s.get('seed', NA)}"
    )


def _batch_facts(batch: Batch, now: datetime, *, of_pages: bool) -> list[tuple[str, str]]:
    elapsed_ms = _elapsed_ms(batch, now)
    left = batch.total - batch.finished
    running = batch.ended_at is None
    remaining = elapsed_ms / batch.finished * left if running and batch.finished else None
    scored = batch.finished - batch.errors
    succeeded = f"{batch.succeeded} of {scored}" if scored > 0 else NA
    return [
        ("Elapsed", duration(elapsed_ms)),
        ("Remaining", duration(remaining) if running else "–"),
        ("All as wanted" if of_pages else "Succeeded", succeeded),
        ("Mean reward", number(batch.mean_reward)),
        ("Failed to run", str(batch.errors)),
    ]


def _elapsed_ms(batch: Batch, now: datetime) -> float:
    end = datetime.fromisoformat(batch.ended_at) if batch.ended_at else now
    return max(0.0, (end - datetime.fromisoformat(batch.created_at)).total_seconds() * 1000)


def batch_episodes(
    rows: Sequence[EpisodeSummary], count: int, pages: Mapping[str, str] = MappingProxyType({})
) -> str:
    """The newest episodes of a batch, each a link to its replay, of `count`.

    `pages`: what those that make web pages came to, as the name of a kept one, by episode.
    """
    if not rows:
        return notice("No episode yet", "The first one appears here as soon as it has begun.")
    body = "".join(_batch_row(row, pages) for row in rows)
    last = "Page" if pages else "Tests passed"
    more = f'<p class="meta">The newest {len(rows)} of {count:,}.</p>' if count > len(rows) else ""
    return (
        '<div class="scroll"><table class="log"><thead><tr><th>Task</th><th>Turns</th>'
        f"<th>Outcome</th><th>Reward</th><th>{last}</th></tr></thead><tbody>{body}</tbody>"
        f"</table></div>{more}"
    )


def _batch_row(row: EpisodeSummary, pages: Mapping[str, str]) -> str:
    kind, words = outcome(row.stop_reason, row.reward, row.rating, graded=row.tests_passed is None)
    error = f'<p class="meta">{esc(row.error)}</p>' if row.error else ""
    return (
        f'<tr><td class="task" data-label="Task"><a href="sessions?episode={esc(row.id)}">'
        f'{esc(row.description)}</a></td><td data-label="Turns">{row.turns}</td>'
        f'<td data-label="Outcome">{pill(kind, words)}{error}</td>'
        f'<td data-label="Reward">{number(row.reward)}</td>'
        f"{_made(row, pages.get(row.id))}</tr>"
    )


def _made(row: EpisodeSummary, page: str | None) -> str:
    """How many tests a function passed, or how a page looks at the end."""
    if page is None:
        return f'<td data-label="Tests passed">{percent(row.tests_passed)}</td>'
    shown = picture(page, "The page at the end") if page else NA
    return f'<td class="thumb" data-label="Page">{shown}</td>'


def batch_list(batches: Sequence[Batch]) -> str:
    """Earlier batches, the newest first, each to be opened."""
    if not batches:
        return notice("No batch yet", "Choose a task set and a policy above, and start one.")
    body = "".join(_batch_line(found) for found in batches)
    return (
        '<div class="scroll"><table class="log"><thead><tr><th>Started</th><th>Task set</th>'
        "<th>Policy</th><th>State</th><th>Finished</th><th>Succeeded</th>"
        "<th>Mean reward</th></tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _batch_line(found: Batch) -> str:
    kind, words = _STATES[found.state]
    chosen = found.settings
    return (
        f'<tr><td data-label="Started"><a href="?batch={esc(found.id)}" data-action="open" '
        f'data-batch="{esc(found.id)}" data-key="open-{esc(found.id)}">{when(found.created_at)}</a>'
        f'</td><td data-label="Task set">{esc(chosen.get("tasks", NA))}</td>'
        f'<td data-label="Policy">{esc(chosen.get("policy_id", NA))}</td>'
        f'<td data-label="State">{pill(kind, words)}</td>'
        f'<td data-label="Finished">{found.finished}/{found.total}</td>'
        f'<td data-label="Succeeded">{found.succeeded}</td>'
        f'<td data-label="Mean reward">{number(found.mean_reward)}</td></tr>'
    )
