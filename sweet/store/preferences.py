"""Verbs about preference pairs that came from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sqlite_utils import Database

from sweet.store.base import StoreBase, clean, insert, one, rows, to_json
from sweet.store.clock import now_iso

PAGE = 200  # read at once


class PreferenceVerbs(StoreBase):
    """What can be done with imported preference pairs."""

    def add_preference(self, id: str, content: Mapping[str, Any]) -> bool:
        """Whether the pair was new; `id` comes from its content."""
        row = {"id": id, "content": clean(to_json(dict(content))), "created_at": now_iso()}

        def job(db: Database) -> bool:
            if one(db, "SELECT 1 FROM preferences WHERE id = ?", clean(id)) is not None:
                return False
            insert(db, "preferences", row)
            return True

        return self._write(job, durable=False)

    def iter_preferences(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The id and the content of each imported pair, oldest first."""
        after = 0
        sql = "SELECT seq, id, content FROM preferences WHERE seq > ? ORDER BY seq LIMIT ?"
        while True:
            with self._reading() as db:
                page = rows(db, sql, [after, PAGE])
            for row in page:
                yield row["id"], json.loads(row["content"])
            if len(page) < PAGE:
                return
            after = page[-1]["seq"]
