"""All preference pairs that the log holds: votes, likes and edits, outcomes, and imported ones.

A vote makes a pair of whole episodes; where the two differ in one message of the agent only, a pair
of that turn as well. Of several votes on the same two episodes the majority counts; without one
there is no pair. A judge's votes make none: a model's opinion is not a person's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from sweet.episode import observation_of
from sweet.exchange import imported_preferences
from sweet.store import Choice, EpisodeStore, Fork, LoggedEpisode, Vote, Voter
from sweet.types import (
    Episode,
    EpisodeFilter,
    PairLevel,
    PairSource,
    PreferencePair,
    StopReason,
)
from trainer.opinions import grade, graded, turn_pair, turn_pairs
from trainer.pairs import possible_pairs

WON, LOST = 1.0, 0.0
_OVER = (StopReason.ANSWERED, StopReason.TURN_LIMIT)


def preference_pairs(
    store: EpisodeStore, wanted: EpisodeFilter | None = None
) -> Iterator[PreferencePair]:
    """Every pair of what the filter lets through; memory holds a task's episodes at a time.

    A vote needs one side let through, every other pair both. Imported pairs are of no episode of
    this log, so only an empty filter lets them through.
    """
    wanted = wanted or EpisodeFilter()
    yield from vote_pairs(store, wanted)
    forks: dict[str, list[Fork]] = {}
    for fork in store.iter_forks():
        forks.setdefault(store.episode(fork.child_id).task_id, []).append(fork)
    for task_id in store.task_ids(wanted):
        logged = list(store.iter_episodes(replace(wanted, task_id=task_id)))
        yield from turn_pairs(logged, forks.get(task_id, ()))
        yield from outcome_pairs(logged)
    if wanted == EpisodeFilter():
        yield from imported_preferences(store)


def vote_pairs(
    store: EpisodeStore, wanted: EpisodeFilter | None = None, *, blind_only: bool = False
) -> Iterator[PreferencePair]:
    """The pairs that people's votes make, in the order of the first vote on each two episodes."""
    cast: dict[tuple[str, str], Counter[str]] = {}
    for vote in store.iter_votes(wanted):
        if _counts(vote, blind_only):
            left, right = vote.comparison.left, vote.comparison.right
            winner = left if vote.choice is Choice.LEFT else right
            sides = (left, right) if left < right else (right, left)  # compared more than once
            cast.setdefault(sides, Counter())[winner] += 1
    for (one, other), votes in cast.items():
        ahead = votes[one] - votes[other]
        if ahead:
            winner, loser = (one, other) if ahead > 0 else (other, one)
            better, worse = store.whole_episode(winner), store.whole_episode(loser)
            if better.episode.turns and worse.episode.turns:
                yield voted_pair(better, worse)
                yield from _voted_turn(better, worse)


def voted_pair(chosen: LoggedEpisode, rejected: LoggedEpisode) -> PreferencePair:
    """The pair of two whole episodes that votes make."""
    return PreferencePair(
        task_id=chosen.row.task.id,
        level=PairLevel.TRAJECTORY,
        observation=observation_of(chosen.row.task, replace(chosen.episode, turns=())),
        chosen=chosen.episode.turns,
        rejected=rejected.episode.turns,
        scores=(WON, LOST),
        source=PairSource.VOTE,
        episode_ids=(chosen.episode.id, rejected.episode.id),
    )


def _counts(vote: Vote, blind_only: bool) -> bool:
    is_decided = vote.choice in (Choice.LEFT, Choice.RIGHT)
    return is_decided and vote.by is Voter.PERSON and (vote.was_blind or not blind_only)


def _voted_turn(chosen: LoggedEpisode, rejected: LoggedEpisode) -> Iterator[PreferencePair]:
    index = _only_difference(chosen.episode, rejected.episode)
    if index is not None:
        pair = turn_pair(chosen.row, chosen.episode, rejected.episode, index)
        yield replace(pair, source=PairSource.VOTE)


def _only_difference(one: Episode, other: Episode) -> int | None:
    """The one turn in which the agent said something else, where there is exactly one.

    It must have been said after the same replies.
    """
    if len(one.turns) != len(other.turns) or one.max_turns != other.max_turns:
        return None
    both = list(zip(one.turns, other.turns, strict=True))
    differ = [a.index for a, b in both if a.action.message != b.action.message or
              a.action.artifact != b.action.artifact]  # fmt: skip
    if len(differ) != 1 or any(a.reply != b.reply for a, b in both[: differ[0]]):
        return None
    return differ[0]


def outcome_pairs(logged: Iterable[LoggedEpisode]) -> list[PreferencePair]:
    """The pairs that rewards and grades make of episodes; none is no error here."""
    given = [one for one in logged if one.episode.stop_reason in _OVER]
    rows = {one.row.task.id: one.row for one in given}
    grades = [(one, grade(one)) for one in given]
    episodes = [
        one.episode if value is None else graded(one.episode, value) for one, value in grades
    ]
    return possible_pairs(episodes, rows)
