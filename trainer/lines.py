"""A file with a JSON value a line, written as they come, so that a kill costs one of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Lines:
    """The values in a file, and more of them. What a kill left half-written is dropped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if path.exists():
            whole, newline, rest = path.read_bytes().rpartition(b"\n")
            if rest:
                path.write_bytes(whole + newline)

    def read(self) -> list[Any]:
        """Every value, in the order it was added."""
        if not self._path.exists():
            return []
        return [json.loads(line) for line in self._path.read_text().splitlines()]

    def add(self, value: object) -> None:
        """Write one more."""
        with self._path.open("a") as file:
            file.write(json.dumps(value) + "\n")
