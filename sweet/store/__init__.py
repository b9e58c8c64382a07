"""The log: schema, migrations and EpisodeStore. All SQL of the product is in this folder."""

from sweet.store.connection import ContentError
from sweet.store.outcomes import ScoredEpisode
from sweet.store.records import (
    Backup,
    Batch,
    BatchState,
    Choice,
    Comparison,
    EpisodeCredit,
    EpisodePage,
    Failure,
    FilterValues,
    Fork,
    ForkKind,
    Imported,
    LoggedEpisode,
    RankedCandidate,
    Round,
    RoundMetric,
    RoundState,
    TaskSet,
    Vote,
    Voter,
)
from sweet.store.schedule import ScheduleRow
from sweet.store.store import EpisodeStore

__all__ = [
    "Backup",
    "Batch",
    "BatchState",
    "Choice",
    "Comparison",
    "ContentError",
    "EpisodeCredit",
    "EpisodePage",
    "EpisodeStore",
    "Failure",
    "FilterValues",
    "Fork",
    "ForkKind",
    "Imported",
    "LoggedEpisode",
    "RankedCandidate",
    "Round",
    "RoundMetric",
    "RoundState",
    "ScheduleRow",
    "ScoredEpisode",
    "TaskSet",
    "Vote",
    "Voter",
]
