"""Episodes with rewards → preference pairs over whole episodes of one task.

Backend: the task's best episode, which must have succeeded, against each worse one. Frontend:
every two episodes whose rewards differ by 0.1 or more. Both are settings. Of episodes that people
rated, any two with different ratings; what an evaluator scored is never compared with a rating.
An episode without a reward is in no pair: None is not 0. Equal rewards make no pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

from sweet.errors import TrainingError
from sweet.types import (
    Episode,
    HiddenInfo,
    Observation,
    PairLevel,
    PairSource,
    PreferencePair,
    Task,
    TaskKind,
    TaskRow,
)

RATER = "person"
"""The evaluator of a reward that is a person's rating."""
_EPSILON = 1e-9  # 0.9 - 0.8 is a little less than 0.1


@dataclass(frozen=True, slots=True)
class PairRule:
    """Which two episodes of a task make a pair.

    `best_only` takes the task's best episode against each worse one, else any two are compared.
    The better one's reward must be at least `chosen_at_least`, the difference at least
    `min_difference`; equal rewards never make a pair.
    """

    best_only: bool
    min_difference: float = 0.0
    chosen_at_least: float = 0.0


RULES: Mapping[TaskKind, PairRule] = MappingProxyType(
    {
        # arXiv:2503.15478 and its code: reward 1 against each that failed.
        TaskKind.BACKEND: PairRule(best_only=True, chosen_at_least=1.0),
        # The same: every pair that differs by at least 0.1.
        TaskKind.FRONTEND: PairRule(best_only=False, min_difference=0.1),
    }
)

RATED = PairRule(best_only=False)
"""Grades are few and each was thought about: any two that differ."""

_Group = tuple[str, PairSource, str]
"""A task's id, who judged its episodes, and of a web page by which evaluator: a cosine and a
visual similarity are different scales."""


def episode_pairs(
    episodes: Iterable[Episode],
    rows: Mapping[str, TaskRow],
    rules: Mapping[TaskKind, PairRule] = RULES,
) -> list[PreferencePair]:
    """The pairs that `rules` make of `episodes`, in the order of tasks and episodes given.

    `rows` are the tasks by id. Raises: TrainingError where there is no pair, saying why and what
    would help.
    """
    given = list(episodes)
    pairs = possible_pairs(given, rows, rules)
    if not pairs:
        raise TrainingError(why_no_pair(given, rows))
    return pairs


def possible_pairs(
    episodes: Iterable[Episode],
    rows: Mapping[str, TaskRow],
    rules: Mapping[TaskKind, PairRule] = RULES,
) -> list[PreferencePair]:
    """The same, where none is no error. Raises: TrainingError for a task that is not in `rows`."""
    pairs: list[PreferencePair] = []
    for (task_id, source, _), group in _scored(episodes, rows).items():
        task = rows[task_id].task
        rule = RATED if source is PairSource.HUMAN else rules[task.kind]
        pairs += [_pair(task, *sides) for sides in _sides(group, rule)]
    return pairs


def why_no_pair(episodes: Sequence[Episode], rows: Mapping[str, TaskRow]) -> str:
    """Why the episodes make no pair, and what would help."""
    return _why_none(len(episodes), _scored(episodes, rows))


def hidden_of(rows: Mapping[str, TaskRow], task_ids: Iterable[str]) -> dict[str, HiddenInfo]:
    """The hidden information of each task. Raises: TrainingError naming tasks that have none."""
    wanted = list(dict.fromkeys(task_ids))
    _check_known(rows, wanted)
    found = {id: hidden for id in wanted if (hidden := rows[id].hidden) is not None}
    if missing := [id for id in wanted if id not in found]:
        raise TrainingError(
            f"{len(missing)} of {len(wanted)} tasks have no hidden information for the critic "
            f"({_some(missing)}). Leave their episodes out, give them a reference, or train the "
            "critic without hidden information."
        )
    return found


def reward_of(episode: Episode) -> float:
    """The episode's reward. Raises: TrainingError where it has none."""
    if episode.reward is None:
        raise TrainingError(f"The episode {episode.id!r} has no reward; score it first.")
    return episode.reward.value


def source_of(episode: Episode) -> PairSource:
    """Who judged the episode: an evaluator (OUTCOME), or a person who rated it (HUMAN)."""
    rated = episode.reward is not None and episode.reward.evaluator == RATER
    return PairSource.HUMAN if rated else PairSource.OUTCOME


def _scored(
    episodes: Iterable[Episode], rows: Mapping[str, TaskRow]
) -> dict[_Group, list[Episode]]:
    """The episodes that can be in a pair, in groups: scored, with something said, each once."""
    usable = {e.id: e for e in episodes if e.reward is not None and e.turns}
    _check_known(rows, [e.task_id for e in usable.values()])
    groups: dict[_Group, list[Episode]] = {}
    for episode in usable.values():
        is_page = rows[episode.task_id].task.kind is TaskKind.FRONTEND
        scale = episode.reward.evaluator if is_page and episode.reward else ""
        groups.setdefault((episode.task_id, source_of(episode), scale), []).append(episode)
    return groups


def _sides(group: Sequence[Episode], rule: PairRule) -> Iterator[tuple[Episode, Episode]]:
    """Chosen and rejected episodes of one task."""
    if rule.best_only:
        best = max(group, key=reward_of)  # the first of several
        both = ((best, other) for other in group)
    else:
        both = (_better_first(*two) for two in combinations(group, 2))
    for chosen, rejected in both:
        difference = reward_of(chosen) - reward_of(rejected)
        is_good = reward_of(chosen) >= rule.chosen_at_least - _EPSILON
        if is_good and difference > _EPSILON and difference >= rule.min_difference - _EPSILON:
            yield chosen, rejected


def _better_first(one: Episode, other: Episode) -> tuple[Episode, Episode]:
    return (one, other) if reward_of(one) >= reward_of(other) else (other, one)


def _pair(task: Task, chosen: Episode, rejected: Episode) -> PreferencePair:
    return PreferencePair(
        task_id=task.id,
        level=PairLevel.TRAJECTORY,
        observation=Observation(task.kind, task.description, turns_left=chosen.max_turns),
        chosen=chosen.turns,
        rejected=rejected.turns,
        scores=(reward_of(chosen), reward_of(rejected)),
        source=source_of(chosen),
        episode_ids=(chosen.id, rejected.id),
    )


def _why_none(given: int, groups: Mapping[_Group, Sequence[Episode]]) -> str:
    scored = sum(map(len, groups.values()))
    if scored < 2:
        return (
            f"Too few episodes to learn from: {scored} of {given} have a reward. At least two "
            "scored episodes of the same task are needed; collect more, or score those there are."
        )
    tasks = {task_id for task_id, *_ in groups}
    if all(len(group) < 2 for group in groups.values()):
        judged = "" if len(tasks) == scored else " and judged in the same way"
        return (
            f"No two of the {scored} scored episodes are of the same task{judged}, so none can be "
            "compared. Collect several episodes for each task."
        )
    rewards = [reward_of(e) for group in groups.values() for e in group]
    if max(rewards) == min(rewards):
        return (
            f"All {scored} scored episodes have the same reward, {rewards[0]:g}, so none is "
            "better than another. Collect more episodes, of easier or harder tasks."
        )
    return (
        f"None of {len(tasks)} tasks with {scored} scored episodes has two whose rewards differ "
        f"as the rule asks (rewards from {min(rewards):g} to {max(rewards):g}). Collect more "
        "episodes for each task, or relax the rule."
    )


def _check_known(rows: Mapping[str, TaskRow], task_ids: Iterable[str]) -> None:
    if unknown := [id for id in dict.fromkeys(task_ids) if id not in rows]:
        raise TrainingError(
            f"{len(unknown)} tasks of the episodes are not among the tasks given "
            f"({_some(unknown)}). Give their rows, or leave the episodes out."
        )


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:3]) + (", …" if len(ids) > 3 else "")
