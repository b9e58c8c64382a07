"""How far a round is: each of its stages, from the log and the round's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sweet.store import Round, RoundState
from trainer.settings import Algorithm


@dataclass(frozen=True, slots=True)
class StageProgress:
    """How far one stage of a round is; `done` of `total` units, 0 of 0 where it isn't counted."""

    name: str  # collect, pairs, critic, candidates, rank, policy, evaluate, register
    state: str  # waiting, running, done, stopped (where a round that runs no more broke off)
    done: int = 0
    total: int = 0
    seconds: float | None = None  # since it began, or what it took
    remaining_s: float | None = None  # an estimate, from what was done so far
    note: str = ""  # such as "parent" while evaluate plays the parent's episodes
    ended_early: bool = False
    result: Mapping[str, Any] | None = None  # what it gave, as in the round's folder


def stages_of(round: Round, folder: Path) -> list[StageProgress]:
    """Each stage of the round whose folder that is, in order."""
    at, _, note = round.stage.partition(" ")
    return [
        _done(name, folder) or _under_way(name, round, note if name == at else None)
        for name in Algorithm(round.algorithm).stages
    ]


def _done(name: str, folder: Path) -> StageProgress | None:
    file = next(folder.glob(f"[0-9][0-9]-{name}.json"), None)
    if file is None:
        return None
    result = json.loads(file.read_text())
    early = bool(result.get("ended_early"))
    return StageProgress(name, "done", seconds=result["seconds"], ended_early=early, result=result)


def _under_way(name: str, round: Round, note: str | None) -> StageProgress:
    if note is None:
        return StageProgress(name, "waiting")
    if round.state is not RoundState.RUNNING:
        return StageProgress(name, "stopped", round.done, round.total, note=note)
    seconds, remaining = _since(round.stage_at), None
    counted, past = _since(round.counted_at), round.done - (round.counted_from or 0)
    if counted is not None and past > 0:
        remaining = counted / past * (round.total - round.done)
    return StageProgress(name, "running", round.done, round.total, seconds, remaining, note)


def _since(moment: str | None) -> float | None:
    if moment is None:
        return None
    return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())
