"""Episodes in and out: our own shape without loss, and ColBench's; as JSONL and as parquet."""

from sweet.exchange.transfer import (
    FORMATS,
    EpisodesImported,
    Exported,
    LineProblem,
    export_episodes,
    import_episodes,
)

__all__ = [
    "FORMATS",
    "EpisodesImported",
    "Exported",
    "LineProblem",
    "export_episodes",
    "import_episodes",
]
