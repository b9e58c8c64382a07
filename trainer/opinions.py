"""What people preferred → outcomes, hidden information and preference pairs of single turns.

An outcome: the newest grade of an episode that came to its end, where no test scored it; Good is
1, Partly 0.5, Bad 0. Accepted: the answer of an own task whose newest grade is above 0 and which
nobody went back on; it serves the critic as the reference that such a task lacks.

A pair of turns: two messages after the same observation, of which a person took one. Either they
retried or rewrote the one and went on with the other, or they liked the one and disliked the
other. What was said outright counts more than what was done: a retry never contradicts likes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sweet.episode import observation_of
from sweet.parsing import spoken
from sweet.store import Fork, ForkKind, LoggedEpisode
from sweet.types import (
    Episode,
    Evaluation,
    HiddenInfo,
    Observation,
    PairLevel,
    PairSource,
    PreferencePair,
    Reward,
    StopReason,
    TaskRow,
    Verdict,
)
from trainer.pairs import RATER

LIKED, DISLIKED = 1.0, -1.0


def grade(one: LoggedEpisode) -> float | None:
    """The reward that a person's grade is, from 0 to 1, where it is the episode's outcome.

    None where the episode has a reward, did not come to its end, or was not graded.
    """
    rating = _rating(one, None)
    if rating is None or one.episode.reward is not None or not _came_to_its_end(one.episode):
        return None
    return (rating + 1) / 2


def graded(episode: Episode, value: float) -> Episode:
    """The episode with a person's grade as its reward."""
    verdict = Verdict.PASS if value >= 1 else Verdict.WRONG
    return replace(episode, evaluation=Evaluation(Reward(value, {}, RATER), verdict))


def is_accepted(one: LoggedEpisode) -> bool:
    """Whether the person accepted the artifact of a task that has no reference."""
    episode, rating = one.episode, _rating(one, None)
    ended = one.row.hidden is None and episode.stop_reason is StopReason.ANSWERED
    return ended and bool((episode.artifact or "").strip()) and rating is not None and rating > 0


def with_accepted(row: TaskRow, accepted: Episode) -> TaskRow:
    """The task with an accepted artifact in place of a reference: for the critic alone."""
    return replace(row, hidden=HiddenInfo(accepted.artifact or ""))


def turn_pairs(logged: Iterable[LoggedEpisode], forks: Iterable[Fork]) -> list[PreferencePair]:
    """The pairs of turns that people's likes, edits and retries make, each once.

    Both sides must be in `logged`; `forks` come oldest first.
    """
    by_id = {one.episode.id: one for one in logged}
    pairs = _by_place(_judged(by_id.values()))
    done = _by_place(_replaced(by_id, forks))
    for place, pair in done.items():
        task_id, observation, chosen, rejected = place
        opposite = task_id, observation, rejected, chosen
        if opposite not in pairs and opposite not in done:
            pairs.setdefault(place, pair)
    return list(pairs.values())


def turn_pair(row: TaskRow, chosen: Episode, rejected: Episode, index: int) -> PreferencePair:
    """The pair of two episodes' messages of turn `index`, after the same observation."""
    sides = (_Said(LoggedEpisode(row, episode), index) for episode in (chosen, rejected))
    return _pair(*sides)


_Place = tuple[str, Observation, str, str]  # a task's id, what was seen, the better, the worse


@dataclass(frozen=True, slots=True)
class _Said:
    """A message of the agent, where it was said."""

    one: LoggedEpisode
    index: int

    @property
    def said(self) -> str:
        """The message, without thoughts."""
        return spoken(self.one.episode.turns[self.index].action.raw)

    @property
    def observation(self) -> Observation:
        """What came before it."""
        before = self.one.episode.turns[: self.index]
        return observation_of(self.one.row.task, replace(self.one.episode, turns=before))


def _by_place(sides: Iterable[tuple[_Said, _Said]]) -> dict[_Place, PreferencePair]:
    """The pairs, each once, without those in which a side says nothing or both say the same."""
    found: dict[_Place, PreferencePair] = {}
    for chosen, rejected in sides:
        place = chosen.one.row.task.id, chosen.observation, chosen.said, rejected.said
        if chosen.said and rejected.said and chosen.said != rejected.said:
            found.setdefault(place, _pair(chosen, rejected))
    return found


def _pair(chosen: _Said, rejected: _Said) -> PreferencePair:
    return PreferencePair(
        task_id=chosen.one.row.task.id,
        level=PairLevel.TURN,
        observation=chosen.observation,
        chosen=(chosen.one.episode.turns[chosen.index],),
        rejected=(rejected.one.episode.turns[rejected.index],),
        scores=(LIKED, DISLIKED),
        source=PairSource.HUMAN,
        episode_ids=(chosen.one.episode.id, rejected.one.episode.id),
    )


def _judged(logged: Iterable[LoggedEpisode]) -> Iterator[tuple[_Said, _Said]]:
    """Liked and disliked messages after the same observation; none that people disagree on."""
    places: dict[tuple[str, Observation], dict[str, list[tuple[float, _Said]]]] = {}
    for one in logged:
        for turn in one.episode.turns:
            if rating := _rating(one, turn.index):
                side = _Said(one, turn.index)
                place = places.setdefault((one.row.task.id, side.observation), {})
                place.setdefault(side.said, []).append((rating, side))
    for place in places.values():
        liked = [votes[0][1] for votes in place.values() if all(r > 0 for r, _ in votes)]
        disliked = [votes[0][1] for votes in place.values() if all(r < 0 for r, _ in votes)]
        yield from ((one, other) for one in liked for other in disliked)


def _replaced(
    by_id: Mapping[str, LoggedEpisode], forks: Iterable[Fork]
) -> Iterator[tuple[_Said, _Said]]:
    """Messages that a person went on with, each with those they had left at the same place.

    What counts of a message is what became of it last: one that was taken and then left was left.
    Only messages in the same family of forks are compared.
    """
    places: dict[tuple[str, Observation], dict[str, tuple[bool | None, _Said]]] = {}
    for fork in forks:
        parent, child = by_id.get(fork.parent_id), by_id.get(fork.child_id)
        if parent is None or child is None or fork.kind is ForkKind.REPLY:
            continue
        if fork.chosen is None or fork.rejected is None:
            continue  # the agent failed there, or has not spoken again
        left, new = _Said(parent, fork.turn_index), _Said(child, fork.turn_index)
        if left.observation != new.observation:
            continue  # imported from a log that had them otherwise
        place = places.setdefault((_first(parent, by_id), left.observation), {})
        place[left.said] = False, left
        place[new.said] = _went_on(new) or None, new
    for place in places.values():
        left_there = [side for is_taken, side in place.values() if is_taken is False]
        for is_taken, side in place.values():
            yield from ((side, other) for other in left_there if is_taken)


def _went_on(said: _Said) -> bool:
    """Whether the person answered the message; or it is the final answer, and did not fail."""
    turn, episode = said.one.episode.turns[said.index], said.one.episode
    if not turn.action.is_final:
        return turn.reply is not None
    value = episode.reward.value if episode.reward else grade(said.one)
    return value is None or value > 0


def _first(one: LoggedEpisode, by_id: Mapping[str, LoggedEpisode]) -> str:
    """The id of the episode that a family of forks began with."""
    seen = {one.episode.id}
    while (parent := by_id.get(one.episode.parent_id or "")) and parent.episode.id not in seen:
        one = parent
        seen.add(one.episode.id)
    return one.episode.id


def _rating(one: LoggedEpisode, turn_index: int | None) -> float | None:
    """The newest rating of a turn, or of the episode."""
    ratings = (f.rating for f in reversed(one.feedback) if f.turn_index == turn_index)
    return next((rating for rating in ratings if rating is not None), None)


def _came_to_its_end(episode: Episode) -> bool:
    """Whether the agent answered or used its turns; also before a person went back on it."""
    if episode.stop_reason is not StopReason.REPLACED:
        return episode.stop_reason in (StopReason.ANSWERED, StopReason.TURN_LIMIT)
    turns = episode.turns
    return bool(turns) and (turns[-1].action.is_final or len(turns) >= episode.max_turns)
