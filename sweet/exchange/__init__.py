"""In and out, as JSONL and parquet: episodes without loss or as ColBench's, votes, preferences."""

from sweet.exchange.card import CARD, card_of, write_card
from sweet.exchange.hub import push
from sweet.exchange.preferences import NAME as PREFERENCES
from sweet.exchange.transfer import (
    FORMATS,
    EpisodesImported,
    Exported,
    LineProblem,
    export_episodes,
    export_preferences,
    export_votes,
    import_episodes,
    imported_preferences,
    preference_ids,
)
from sweet.exchange.votes import NAME as VOTES

__all__ = [
    "CARD",
    "FORMATS",
    "PREFERENCES",
    "VOTES",
    "EpisodesImported",
    "Exported",
    "LineProblem",
    "card_of",
    "export_episodes",
    "export_preferences",
    "export_votes",
    "import_episodes",
    "imported_preferences",
    "preference_ids",
    "push",
    "write_card",
]
