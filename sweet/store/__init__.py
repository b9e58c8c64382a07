"""The log: schema, migrations and EpisodeStore. All SQL of the product is in this folder."""

from sweet.store.connection import ContentError
from sweet.store.records import (
    Backup,
    Batch,
    BatchState,
    Choice,
    Comparison,
    EpisodePage,
    Failure,
    FilterValues,
    Fork,
    ForkKind,
    Imported,
    LoggedEpisode,
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
    "EpisodePage",
    "EpisodeStore",
    "Failure",
    "FilterValues",
    "Fork",
    "ForkKind",
    "Imported",
    "LoggedEpisode",
    "Round",
    "RoundMetric",
    "RoundState",
    "ScheduleRow",
    "TaskSet",
    "Vote",
    "Voter",
]
