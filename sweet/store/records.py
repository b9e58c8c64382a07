"""What the store's verbs give beside the domain's own records."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sweet.types import Action, Episode, EpisodeSummary, Feedback, TaskKind, TaskRow


@dataclass(frozen=True, slots=True)
class Imported:
    """How many rows were new, and how many were there already."""

    added: int
    known: int


@dataclass(frozen=True, slots=True)
class TaskSet:
    """The tasks of one source and split; `name` is what filters take."""

    source: str
    split: str
    kind: TaskKind
    count: int

    @property
    def name(self) -> str:
        """`source/split`, or the source alone where the split says nothing more."""
        return self.source if self.split in ("", self.source) else f"{self.source}/{self.split}"


@dataclass(frozen=True, slots=True)
class EpisodePage:
    """One page of the log; `count` is how many episodes there are on all pages together."""

    count: int
    rows: tuple[EpisodeSummary, ...]


@dataclass(frozen=True, slots=True)
class FilterValues:
    """What occurs in the log, for drop-downs."""

    policies: tuple[str, ...]
    collaborators: tuple[str, ...]
    task_sets: tuple[str, ...]
    evaluators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure that ended an episode; kept when the episode is taken up again."""

    episode_id: str
    turns: int  # how many agent messages there were when it failed
    error: str
    created_at: str


class ForkKind(StrEnum):
    """What a person did to make a fork."""

    RETRY = "retry"  # asked the agent for another message
    ACTION = "action"  # rewrote the agent's message
    REPLY = "reply"  # rewrote their own reply


@dataclass(frozen=True, slots=True)
class Fork:
    """A turn that a person replaced: what stood there is rejected, what stands there is chosen.

    `chosen` and `rejected` are agent messages, or for ForkKind.REPLY the person's replies;
    `chosen` is None while the agent has not spoken again, `rejected` where it had not yet.
    """

    parent_id: str
    child_id: str
    turn_index: int
    kind: ForkKind
    rejected: Action | str | None
    chosen: Action | str | None


@dataclass(frozen=True, slots=True)
class LoggedEpisode:
    """All that the log has of an episode, as exports write it and imports bring it."""

    row: TaskRow
    episode: Episode
    feedback: tuple[Feedback, ...] = ()
    failures: tuple[Failure, ...] = ()
    fork_kind: ForkKind | None = None


class BatchState(StrEnum):
    """Where a batch of simulated episodes stands."""

    RUNNING = "running"
    STOPPING = "stopping"  # somebody asked it to stop
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Batch:
    """Simulated episodes that were started together, and how far they are."""

    id: str
    kind: str
    settings: Mapping[str, Any]
    total: int
    state: BatchState
    started: int
    finished: int
    succeeded: int
    errors: int
    created_at: str
    ended_at: str | None
    error: str | None
    process_id: int
    mean_reward: float | None = None


class RoundState(StrEnum):
    """Where a round of training stands."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"  # with the reason; what it was made of may have to change
    LOST = "lost"  # its process is gone, or was stopped; it can be resumed


@dataclass(frozen=True, slots=True)
class Round:
    """A round of training, and how far it is: `done` of `total` units of its `stage`."""

    id: str
    algorithm: str
    policy_id: str
    settings: Mapping[str, Any]
    state: RoundState
    stage: str
    done: int
    total: int
    created_at: str
    ended_at: str | None
    error: str | None
    version_id: str | None
    is_promoted: bool | None
    figures: Mapping[str, Any] | None
    process_id: int
    host: str
    keep_stage: str | None  # the stage that was asked to end with what it has
    stage_at: str | None  # when the stage began
    counted_at: str | None  # when its units were first counted
    counted_from: int | None  # how many were done then

    @property
    def is_here(self) -> bool:
        """Whether its process runs, or ran, on this machine."""
        return self.host == socket.gethostname()


@dataclass(frozen=True, slots=True)
class RoundMetric:
    """A number that a round gave at an update of a stage; `seq` tells what came after it."""

    seq: int
    stage: str
    step: int
    name: str
    value: float


class Choice(StrEnum):
    """What was voted on two sides."""

    LEFT = "left"
    RIGHT = "right"
    TIE = "tie"
    BOTH_BAD = "both_bad"
    SKIP = "skip"  # no opinion
    FAILED = "failed"  # a side failed: recorded, not voted on


class Voter(StrEnum):
    """Who votes."""

    PERSON = "person"
    JUDGE = "judge"  # a model


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two episodes of one task side by side; which of them is left was drawn."""

    id: str
    task_id: str
    task_set: str
    left: str  # episode ids
    right: str
    left_policy: str
    right_policy: str
    is_blind: bool
    created_at: str


@dataclass(frozen=True, slots=True)
class Vote:
    """What one voter chose on a comparison. `side_named`: a side said its own name."""

    comparison: Comparison
    choice: Choice
    voter: str
    by: Voter = Voter.PERSON
    reason: str = ""
    side_named: bool = False
    created_at: str = ""

    @property
    def was_blind(self) -> bool:
        """Whether the voter could not know who was who."""
        return self.comparison.is_blind and not self.side_named

    @property
    def winner(self) -> str | None:
        """The id of the episode that was preferred; None where none was."""
        sides = {Choice.LEFT: self.comparison.left, Choice.RIGHT: self.comparison.right}
        return sides.get(self.choice)


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """A message the policy could have said at a turn, and what a critic made of it.

    `text` is the message as the critic read it; `chosen` and `rejected` count the preference
    pairs of the round in which it was that side; `is_ended` is false where the token limit cut it.
    """

    text: str
    drawn: int
    score: float
    chosen: int = 0
    rejected: int = 0
    is_ended: bool = True


@dataclass(frozen=True, slots=True)
class EpisodeCredit:
    """What one critic said of an episode, by turn index: advantages, and candidates best first.

    Scores of candidates and advantages of turns are on the same scale. A turn that is not in
    `advantages` is unknown, which is not 0.
    """

    critic: str
    advantages: Mapping[int, float]
    candidates: Mapping[int, tuple[RankedCandidate, ...]]


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was checked: its file, its size and SHA-256, and what is in it."""

    path: str
    bytes: int
    sha256: str
    tasks: int
    episodes: int
    turns: int
