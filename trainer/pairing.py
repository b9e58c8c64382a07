"""The stage that pairs whole episodes: by rewards, by grades, by votes, and what was imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sweet.errors import TrainingError
from sweet.types import Episode, PairLevel, PreferencePair, TaskRow
from trainer.collect import chosen_episodes, chosen_pairs
from trainer.pairs import possible_pairs, why_no_pair
from trainer.people import by_source, turns_alone
from trainer.settings import RoundSettings
from trainer.workbench import Result, Workbench


def pair_up(bench: Workbench) -> Result:
    """The pairs of episodes, counted by who preferred the better side."""
    pairs, _ = collected_pairs(bench)
    turns, _ = chosen_pairs(bench, PairLevel.TURN)
    return {
        "pairs": len(pairs),
        "by_source": by_source(pairs, PairLevel.TRAJECTORY),
        "turn_pairs": len(turns),
        "tasks": len({pair.task_id for pair in pairs}),
        "episodes": [pair.episode_ids for pair in pairs],
    }


def collected_pairs(bench: Workbench) -> tuple[list[PreferencePair], dict[str, TaskRow]]:
    """The pairs of episodes of a round, weighted, and their tasks by id. Raises: TrainingError."""
    episodes, rows = chosen_episodes(bench)
    people, others = chosen_pairs(bench, PairLevel.TRAJECTORY)
    turns, _ = chosen_pairs(bench, PairLevel.TURN)
    pairs = whole_pairs(bench.settings, episodes, rows, [*people, *turns])
    return pairs, {**others, **rows}


def whole_pairs(
    settings: RoundSettings,
    episodes: Sequence[Episode],
    rows: Mapping[str, TaskRow],
    people: Sequence[PreferencePair],
) -> list[PreferencePair]:
    """The pairs that rewards and grades make, weighted, and those among what people preferred.

    Raises: TrainingError where there is none, saying why and what would help.
    """
    made = possible_pairs(episodes, rows)
    pairs = [replace(pair, weight=settings.weight_of(pair.source)) for pair in made]
    pairs += [pair for pair in people if pair.level is PairLevel.TRAJECTORY]
    if pairs:
        return pairs
    raise TrainingError(
        f"{why_no_pair(episodes, rows)} Votes on two episodes of a task make pairs too, whatever "
        f"their rewards.{turns_alone(people)}"
    )
