"""The stage that draws candidates: a line of a file an episode, so that a kill costs little."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import asdict

from sweet.types import Episode, TaskRow
from trainer.candidates import Candidate, sample_candidates
from trainer.collect import chosen_episodes
from trainer.lines import Lines
from trainer.workbench import Result, Workbench

EPISODES_AT_ONCE = 4  # enough to keep an engine's batch full


def draw_candidates(bench: Workbench) -> Result:
    """How many candidates were drawn at the turns of a share of the episodes."""
    episodes, rows = chosen_episodes(bench)
    settings = bench.settings
    wanted = max(round(len(episodes) * settings.policy_share), settings.policy_least)
    some = random.Random(settings.seed).sample(episodes, min(wanted, len(episodes)))
    asyncio.run(_draw_all(bench, some, rows))
    found = candidates_of(bench)
    turns = [turn for drawn in found.values() for turn in drawn]
    return {
        "episodes": len(found),
        "turns": len(turns),
        "drawn": sum(c.count for turn in turns for c in turn),
        "different": sum(map(len, turns)),
        "cut": sum(c.count for turn in turns for c in turn if not c.is_ended),
        **({"ended_early": True} if len(found) < len(some) else {}),
    }


def candidates_of(bench: Workbench) -> dict[str, list[list[Candidate]]]:
    """What was drawn so far, by episode; each turn's candidates in the order they were drawn."""
    return {
        line["episode"]: [[Candidate(**candidate) for candidate in turn] for turn in line["turns"]]
        for line in _lines(bench).read()
    }


async def _draw_all(
    bench: Workbench, episodes: Sequence[Episode], rows: dict[str, TaskRow]
) -> None:
    known, lines = candidates_of(bench), _lines(bench)
    left = [episode for episode in episodes if episode.id not in known]
    policy = bench.services.policy(bench.settings.policy)
    places = asyncio.Semaphore(EPISODES_AT_ONCE)
    done, is_to_end = len(known), False

    async def draw(episode: Episode) -> None:
        nonlocal done, is_to_end
        async with places:
            if is_to_end:
                return
            turns = await sample_candidates(
                policy,
                rows[episode.task_id],
                episode,
                seed=bench.settings.seed,
                n=bench.settings.candidates,
            )
        lines.add({"episode": episode.id, "turns": [[asdict(c) for c in turn] for turn in turns]})
        done += 1
        is_to_end = bench.at("candidates", done, len(episodes))

    async with asyncio.TaskGroup() as group:
        for episode in left:
            group.create_task(draw(episode))


def _lines(bench: Workbench) -> Lines:
    return Lines(bench.folder / "candidates.jsonl")
