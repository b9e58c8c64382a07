"""The stage that ranks candidates: their scores, pairs of them, and what the logged turns got."""

from __future__ import annotations

import random
from collections.abc import Sequence

from sweet.types import Episode
from trainer.candidates import Candidate, rank_pairs, ranked_turns
from trainer.collect import chosen_episodes
from trainer.critics import ranking_critic
from trainer.draws import candidates_of
from trainer.settings import Algorithm
from trainer.workbench import Result, Workbench


def rank(bench: Workbench) -> Result:
    """Scores of all candidates, pairs of them, and the advantages of what was logged."""
    episodes, rows = chosen_episodes(bench)
    drawn = candidates_of(bench)
    critic = ranking_critic(bench.services, bench.settings, bench.folder)
    ranked: dict[str, list[Result]] = {}
    some = [episode for episode in episodes if episode.id in drawn]
    for done, episode in enumerate(some, start=1):
        turns = drawn[episode.id]
        scores = critic.scores(rows[episode.task_id], episode, turns)
        bench.at("rank", done, len(some))
        if scores is not None:
            ranked[episode.id] = _ranked(bench, episode, turns, scores)
    # A judge is asked about no more than the episodes that it ranked: each answer costs a call.
    judged = some if bench.settings.kind is Algorithm.JUDGE else episodes
    advantages = critic.advantages(rows, judged)
    store, name = bench.services.store, f"round {bench.id}"
    for episode, values in zip(judged, advantages, strict=True):
        if values:
            store.add_advantages(episode.id, name, values)
    for episode_id, of_turns in ranked.items():
        store.add_candidates(episode_id, name, ranked_turns(drawn[episode_id], of_turns))
    every = [turn for turns in ranked.values() for turn in turns]
    return {
        "pairs": sum(len(turn["pairs"]) for turn in every),
        "without_score": sum(score is None for turn in every for score in turn["scores"]),
        "too_long": len(some) - len(ranked),
        "with_advantages": sum(values is not None for values in advantages),
        "episodes": ranked,
    }


def _ranked(
    bench: Workbench,
    episode: Episode,
    turns: Sequence[Sequence[Candidate]],
    scores: Sequence[Sequence[float | None]],
) -> list[Result]:
    """Each turn's scores and pairs."""
    settings = bench.settings
    rng = random.Random(f"{settings.seed}/{episode.task_id}/{episode.seed}")
    return [
        {
            "scores": values,
            "pairs": rank_pairs(values, [c.count for c in turn], rng, settings.pairs_per_turn),
        }
        for turn, values in zip(turns, scores, strict=True)
    ]
