"""One comparison: our figure and another way's, measured in the same run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Comparison:
    """`ours` and `theirs` in the unit that `name` ends in; `conditions` say how they were taken."""

    name: str
    ours: float
    theirs: float
    conditions: str

    @property
    def ratio(self) -> float:
        """How many times theirs ours is."""
        return self.ours / self.theirs

    def row(self) -> dict[str, object]:
        """As `python -m benchmarks --json` prints it."""
        return {
            "name": self.name,
            "ours": round(self.ours, 3),
            "theirs": round(self.theirs, 3),
            "ratio": round(self.ratio, 3),
            "conditions": self.conditions,
        }
