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
    """Scores of all candidates, pairs of them, and the advantages of what was logged.

    Asked to end early, it is that of the episodes ranked by then.
    """
    episodes, rows = chosen_episodes(bench)
    drawn = candidates_of(bench)
    critic = ranking_critic(bench.services, bench.settings, bench.folder)
    ranked: dict[str, list[Result]] = {}
    some = [episode for episode in episodes if episode.id in drawn]
    done, is_over = 0, False
    while done < len(some) and not is_over:
        episode = some[done]
        turns = drawn[episode.id]
        scores = critic.scores(rows[episode.task_id], episode, turns)
        if scores is not None:
            ranked[episode.id] = _ranked(bench, episode, turns, scores)
        done += 1
        is_over = bench.at("rank", done, len(some))
    is_cut = done < len(some)
    # A judge is asked about no more than the episodes that it ranked: each answer costs a call.
    is_brief = is_cut or bench.settings.kind is Algorithm.JUDGE
    judged = some[:done] if is_brief else episodes
    advantages = critic.advantages(rows, judged)
    store, name = bench.services.store, f"round {bench.id}"
    for episode, values in zip(judged, advantages, strict=True):
        if values:
            store.add_advantages(episode.id, name, values)
    for episode_id, of_turns in ranked.items():
        store.add_candidates(episode_id, name, ranked_turns(drawn[episode_id], of_turns))
    every = [turn for turns in ranked.values() for turn in turns]
    return {
        "ranked": done,
        "planned": len(some),
        "pairs": sum(len(turn["pairs"]) for turn in every),
        "without_score": sum(score is None for turn in every for score in turn["scores"]),
        "too_long": done - len(ranked),
        "with_advantages": sum(values is not None for values in advantages),
        "episodes": ranked,
        **({"ended_early": True} if is_cut else {}),
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
