"""The stage that draws candidates: a line of a file an episode, so that a kill costs little."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from sweet.types import Episode, TaskRow
from trainer.candidates import Candidate, sample_candidates
from trainer.collect import chosen_episodes
from trainer.workbench import Result, Workbench

EPISODES_AT_ONCE = 4  # enough to keep an engine's batch full


def draw_candidates(bench: Workbench) -> Result:
    """How many candidates were drawn at the turns of a share of the episodes."""
    episodes, rows = chosen_episodes(bench)
    settings = bench.settings
    wanted = max(round(len(episodes) * settings.policy_share), settings.policy_least)
    some = random.Random(settings.seed).sample(episodes, min(wanted, len(episodes)))
    asyncio.run(_draw_all(bench, some, rows))
    turns = [turn for drawn in candidates_of(bench).values() for turn in drawn]
    return {
        "episodes": len(some),
        "turns": len(turns),
        "drawn": sum(c.count for turn in turns for c in turn),
        "different": sum(map(len, turns)),
        "cut": sum(c.count for turn in turns for c in turn if not c.is_ended),
    }


def candidates_of(bench: Workbench) -> dict[str, list[list[Candidate]]]:
    """What was drawn so far, by episode; each turn's candidates in the order they were drawn."""
    lines = _file(bench).read_text().splitlines() if _file(bench).exists() else []
    return {
        (line := json.loads(text))["episode"]: [
            [Candidate(**candidate) for candidate in turn] for turn in line["turns"]
        ]
        for text in lines
    }


async def _draw_all(
    bench: Workbench, episodes: Sequence[Episode], rows: dict[str, TaskRow]
) -> None:
    _drop_half_line(_file(bench))
    known = candidates_of(bench)
    left = [episode for episode in episodes if episode.id not in known]
    policy = bench.services.policy(bench.settings.policy)
    places = asyncio.Semaphore(EPISODES_AT_ONCE)
    done = len(known)

    async def draw(episode: Episode) -> None:
        nonlocal done
        async with places:
            turns = await sample_candidates(
                policy,
                rows[episode.task_id],
                episode,
                seed=bench.settings.seed,
                n=bench.settings.candidates,
            )
        line = {"episode": episode.id, "turns": [[asdict(c) for c in turn] for turn in turns]}
        with _file(bench).open("a") as file:
            file.write(json.dumps(line) + "\n")
        done += 1
        bench.at("candidates", done, len(episodes))

    async with asyncio.TaskGroup() as group:
        for episode in left:
            group.create_task(draw(episode))


def _drop_half_line(file: Path) -> None:
    """Cut off what a kill left unfinished."""
    if file.exists():
        whole, newline, _ = file.read_bytes().rpartition(b"\n")
        file.write_bytes(whole + newline)


def _file(bench: Workbench) -> Path:
    return bench.folder / "candidates.jsonl"
