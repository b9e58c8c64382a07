"""The card of an exported file: what is in it, as the hub shows it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from sweet.exchange import colbench, own, preferences, votes
from sweet.types import EpisodeFilter

CARD = "README.md"

_ABOUT = {
    own.NAME: """\
Each row is an episode: a task, the turns in which an agent and a collaborator made something \
together, the final artifact and how it was scored. Nothing is lost: the studio imports the file \
back as it was. `hidden` has the reference and the test calls, which the agent never saw.""",
    colbench.NAME: """\
Each row is a finished episode in the shape of ColBench's files: `task` (`problem_description`, \
`ground_truth`, `test_cases`), `dialogue_history` (`role`, `content`, and of the agent's messages \
`output`, all that the model wrote), `answer`, and `reward`, the fraction of tests passed; left \
out where there is none.""",
    votes.NAME: """\
Each row is a vote on two episodes of one task: `choice` (left, right, tie, both_bad, skip, \
failed), `voter`, `by` (a person or a judge model), `reason`, whether names were hidden \
(`is_blind`) and whether a side gave its name away (`side_named`), and both episodes whole \
(`left`, `right`). Which side was left was drawn.""",
    preferences.NAME: """\
Each row is a preference pair in TRL's conversational shape: `prompt`, `chosen` and `rejected` are \
lists of messages. `level` says whether the sides are one message of the agent (turn) or whole \
episodes with the person's replies (trajectory); `source` who preferred: a person by grades, likes \
or edits (human) or by a vote (vote), an evaluator (outcome), or a critic. Pairs of turns can be \
given to TRL's `DPOTrainer` as they are. TRL trains on all of a side: in pairs of trajectories \
also on the person's replies.""",
}
_CARD = """\
---
pretty_name: {title}
configs:
- config_name: {kind}
  data_files: {file}
tags:
- sweet-studio
- human-ai-collaboration
---
# {title}

{about}

```python
from datasets import load_dataset

rows = load_dataset({loader!r}, data_files={file!r}, split="train")
```

- Rows: {rows:,}
- Only what this filter let through: {filter}
- Exported by Sweet Studio from its log.

What people and models wrote is in it word for word, with the names of voters. Tasks that come \
from ColBench are under its authors' licence. No licence is given here: add yours before you \
publish it.
"""


def write_card(path: Path, kind: str, rows: int, wanted: EpisodeFilter) -> Path:
    """The path of the card, written beside the exported file."""
    card = path.with_name(CARD)
    card.write_text(card_of(path, kind, rows, wanted), encoding="utf-8")
    return card


def card_of(path: Path, kind: str, rows: int, wanted: EpisodeFilter) -> str:
    """The card's text."""
    chosen = {name: value for name, value in asdict(wanted).items() if value}
    said = ", ".join(f"{name} = {json.dumps(value)}" for name, value in chosen.items())
    return _CARD.format(
        title=f"Sweet Studio: {kind}",
        about=_ABOUT[kind],
        kind=kind,
        file=path.name,
        loader="parquet" if path.suffix.lower() == ".parquet" else "json",
        rows=rows,
        filter=said or "none, all of the log",
    )
