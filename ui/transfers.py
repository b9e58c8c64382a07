"""Files that people take from the pages and bring to them: where they lie, and what came of it."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import gradio as gr

from sweet.errors import ConfigError
from sweet.exchange import (
    PREFERENCES,
    VOTES,
    EpisodesImported,
    export_episodes,
    export_preferences,
    export_votes,
    import_episodes,
    preference_ids,
)
from sweet.services import Services
from sweet.types import EpisodeFilter
from trainer.preferences import preference_pairs
from ui.format import esc, notice

EXPORTS = "exports"
"""The folder, in the data folder, of which the server may give files out."""
SHOWN_PROBLEMS = 20
_ROWS = {VOTES: "vote", PREFERENCES: "preference pair"}


def new_file(services: Services, name: str, ending: str) -> Path:
    """Where a file to be downloaded goes; nobody can guess its name."""
    day = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    folder = services.settings.data / EXPORTS
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}-{day}-{secrets.token_hex(3)}{ending}"


def export(services: Services, wanted: EpisodeFilter, kind: str, ending: str) -> Any:
    """The download button of a file with what the filter lets through."""
    path = new_file(services, kind, ending)
    count = _written(services, wanted, kind, path)
    rows = f"{_ROWS.get(kind, 'episode')}{'' if count == 1 else 's'}"
    if not count:
        gr.Warning(f"Nothing to export: no {rows[:-1]} fits the filter and the format.")
    return download(path, f"Download {count:,} {rows}", there=bool(count))


def download(path: Path, label: str, *, there: bool = True) -> Any:
    """The download button as it is now; hidden where there is nothing to download."""
    return gr.update(value=str(path), label=label, visible=there)


def bring(services: Services, uploaded: str | None) -> str:
    """What an import of an uploaded file did; the file itself is not kept."""
    if not uploaded:
        raise ConfigError("No file came. Choose a .jsonl or .parquet file to import.")
    path, store = Path(uploaded), services.store
    try:
        done = import_episodes(store, path, lambda: preference_ids(preference_pairs(store)))
    finally:
        path.unlink(missing_ok=True)
    return imported(path.name, done)


def imported(name: str, done: EpisodesImported) -> str:
    """What an import did, in words: new rows, known ones, lines left out and why."""
    counts = f"{done.added:,} added, {done.known:,} already there, {done.bad:,} left out"
    if not done.bad:
        return f'<div role="status">{notice(f"{name}: {counts}.")}</div>'
    shown = done.problems[:SHOWN_PROBLEMS]
    more = done.bad - len(shown)
    lines = "".join(f"<li>{esc(problem)}</li>" for problem in shown)
    rest = f"<li>… and {more:,} more lines</li>" if more else ""
    return (
        f'<div class="notice error" role="alert"><strong>{esc(name)}: {counts}.</strong>'
        f"<p>These lines were left out; the others are in the log.</p><ul>{lines}{rest}</ul></div>"
    )


def _written(services: Services, wanted: EpisodeFilter, kind: str, path: Path) -> int:
    if kind == VOTES:
        return export_votes(services.store, wanted, path)
    if kind == PREFERENCES:
        return export_preferences(preference_pairs(services.store, wanted), path)
    done = export_episodes(services.store, wanted, path, kind)
    if done.skipped:
        gr.Info(f"{done.skipped} episodes are left out: ColBench’s shape has no place for them.")
    return done.episodes
