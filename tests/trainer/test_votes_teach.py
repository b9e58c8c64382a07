"""A consistent voter moves the embedded model their way, by votes alone: it asks less, or more."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from sweet.engines import EMBEDDED_DIR
from sweet.rollout import Rollout, assignments
from sweet.services import Services
from sweet.settings import Settings
from sweet.store import Choice, LoggedEpisode
from sweet.types import TaskKind
from trainer.round import run_round
from trainer.settings import RoundSettings

pytestmark = [
    pytest.mark.timeout(1800),  # a minute or two where nothing else runs
    pytest.mark.skipif(
        not (EMBEDDED_DIR / "model.safetensors").is_file(),
        reason=f"the embedded model is not there ({EMBEDDED_DIR}); `python -m trainer pretrain`",
    ),
]
TASKS, A_TASK = 25, 4
SMALL: dict[str, Any] = {
    "seed": 1,
    "threads": 1,
    "candidates": 8,
    "policy_least": 16,
    "validation_n": 60,
    "promote": "never",
}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[list[LoggedEpisode]]]:
    """The embedded model's episodes, by task; what the tests said of them is not kept."""
    with Services(Settings(data=tmp_path_factory.mktemp("played"))) as services:
        rows = random.Random(3).sample(services.task_rows("mini-backend/train"), TASKS)
        rollout = Rollout(
            services.store,
            services.policy("embedded"),
            services.simulator_for,
            services.evaluator(TaskKind.BACKEND),
            services.settings.max_turns,
        )

        async def play() -> None:
            async for outcome in rollout.run(assignments(rows, TASKS * A_TASK, 11), concurrency=32):
                assert outcome.error is None

        asyncio.run(play())
        found = sorted(services.store.iter_episodes(), key=lambda one: one.row.task.id)
    unscored = [replace(one, episode=replace(one.episode, evaluation=None)) for one in found]
    yield [list(some) for _, some in groupby(unscored, key=lambda one: one.row.task.id)]


def vote_by_length(
    services: Services, played: list[list[LoggedEpisode]], *, prefers_fewer: bool
) -> int:
    """How many votes the voter gave: one a task, on its shortest and its longest episode."""
    count = 0
    for some in played:
        services.store.add_tasks([some[0].row])
        for one in some:
            services.store.add_episode(one)
        by_length = sorted(some, key=lambda one: (len(one.episode.turns), one.episode.seed))
        short, long = by_length[0].episode, by_length[-1].episode
        if len(short.turns) < len(long.turns):
            better, worse = (short, long) if prefers_fewer else (long, short)
            comparison = services.store.start_comparison(better.id, worse.id)
            side = Choice.LEFT if comparison.left == better.id else Choice.RIGHT
            services.store.vote(comparison.id, side, "ann")
            count += 1
    return count


SUMS = {"algorithm": "sweet", "credit": "turn_sum", "critic_beta": 0.1}


@pytest.mark.parametrize(
    ("how", "prefers_fewer"), [(SUMS, True), ({"algorithm": "mtdpo"}, False)], ids=["fewer", "more"]
)
def test_a_consistent_voter_moves_the_policy_that_way(
    tmp_path: Path, played: list[list[LoggedEpisode]], how: dict[str, Any], prefers_fewer: bool
) -> None:
    with Services(Settings(data=tmp_path)) as services:
        votes = vote_by_length(services, played, prefers_fewer=prefers_fewer)
        assert votes >= 20
        done = run_round(services, RoundSettings(**how, **SMALL))
        (file,) = (tmp_path / "rounds" / done.id).glob("*-pairs.json")
        assert json.loads(file.read_text())["by_source"] == {"vote": votes}
        assert done.figures
        parent, child = done.figures["parent"], done.figures["child"]
        assert parent["n"] == child["n"] == 60
        difference = child["mean_turns"] - parent["mean_turns"]
        if prefers_fewer:
            assert difference < 0, (parent, child)
            # What it asked in vain is what it asks no more: success does not suffer.
            assert child["success_rate"] >= parent["success_rate"], (parent, child)
        else:
            assert difference > 0, (parent, child)
