"""What the policy learns from turn by turn: the critic's pairs and people's, as episode trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sweet.errors import TrainingError
from sweet.types import (
    Action,
    Episode,
    PairLevel,
    PairSource,
    PreferencePair,
    TaskRow,
    Turn,
)
from trainer.candidates import Candidate
from trainer.collect import chosen_episodes, chosen_pairs
from trainer.draws import candidates_of
from trainer.learner import Learner
from trainer.policy import PairTree, pair_tree
from trainer.whole import too_long
from trainer.workbench import Workbench


def trees_by_source(
    bench: Workbench, learner: Learner, style: str
) -> dict[PairSource, list[PairTree]]:
    """A round's pairs of turns, by who preferred the better side.

    Raises: TrainingError where the model can read none of those that people made and there are no
    others.
    """
    ranks = bench.settings.kind.ranks_candidates
    found = _people_trees(bench, learner, style)
    if not ranks and not any(found.values()):
        given, _ = chosen_pairs(bench, PairLevel.TURN)
        raise TrainingError(too_long(len(given), "pairs of turns", learner))
    ranked = _ranked_trees(bench, learner, style) if ranks else []
    return {PairSource.CRITIC: ranked, **found}


def _ranked_trees(bench: Workbench, learner: Learner, style: str) -> list[PairTree]:
    """The pairs of candidates that a critic ranked, as branches of the logged episodes."""
    episodes, rows = chosen_episodes(bench)
    ranked, drawn = bench.result("rank")["episodes"], candidates_of(bench)
    trees = []
    for episode in (e for e in episodes if e.id in ranked):
        turns = [
            [(candidates[chosen], candidates[rejected]) for chosen, rejected in turn["pairs"]]
            for candidates, turn in zip(drawn[episode.id], ranked[episode.id], strict=True)
        ]
        trees.append(pair_tree(learner, style, rows[episode.task_id], episode, turns))
    return [tree for tree in trees if tree]


def _people_trees(
    bench: Workbench, learner: Learner, style: str
) -> dict[PairSource, list[PairTree]]:
    """The pairs of turns that people made, by source: branches of the dialogue they belong to."""
    pairs, rows = chosen_pairs(bench, PairLevel.TURN)
    grouped: dict[tuple[PairSource, str], list[PreferencePair]] = {}
    for pair in pairs:
        grouped.setdefault((pair.source, str(pair.episode_ids[0])), []).append(pair)
    found: dict[PairSource, list[PairTree]] = {PairSource.HUMAN: []}
    for (source, episode_id), some in grouped.items():
        if source is PairSource.IMPORTED:
            episode = _dialogue(some[0])
        else:
            episode = bench.services.store.episode(episode_id)
        tree = _people_tree(learner, style, rows, episode, some)
        found.setdefault(source, []).extend([tree] if tree else [])
    return found


def _people_tree(
    learner: Learner,
    style: str,
    rows: Mapping[str, TaskRow],
    episode: Episode,
    pairs: list[PreferencePair],
) -> PairTree | None:
    turns: list[list[tuple[Candidate, Candidate]]] = [[] for _ in episode.turns]
    for pair in pairs:
        chosen, rejected = (Candidate(s[0].action.raw) for s in (pair.chosen, pair.rejected))
        turns[len(pair.observation.exchanges)].append((chosen, rejected))
    return pair_tree(learner, style, rows[episode.task_id], episode, turns, pairs[0].weight)


def _dialogue(pair: PreferencePair) -> Episode:
    """What an imported pair's chosen message ends, as an episode would have it."""
    seen = pair.observation.exchanges
    before = [
        Turn(index, Action(one.agent, one.agent, False), one.collaborator)
        for index, one in enumerate(seen)
    ]
    return Episode(
        id=str(pair.episode_ids[0]),
        task_id=pair.task_id,
        policy_id="",
        collaborator="",
        seed=0,
        max_turns=len(seen) + pair.observation.turns_left,
        turns=(*before, replace(pair.chosen[0], index=len(seen))),
    )
