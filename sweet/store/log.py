"""Verbs about the log as a whole: search, stream, feedback."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from sqlite_utils import Database

from sweet.errors import StoreError
from sweet.store.base import StoreBase, clean, insert, one, page_bounds, rows
from sweet.store.clock import now_iso
from sweet.store.lookups import need_episode, need_turn, read_failures
from sweet.store.records import EpisodePage, FilterValues, ForkKind, LoggedEpisode
from sweet.store.rows import (
    differing,
    feedback_row,
    to_episode,
    to_feedback,
    to_hidden,
    to_summary,
    to_task,
)
from sweet.store.search import EPISODES, SUMMARY, TASK_SET, episode_conditions, order_by
from sweet.types import EpisodeFilter, Feedback, TaskRow

STREAM_PAGE = 16  # episodes read at once while streaming


class LogVerbs(StoreBase):
    """What can be asked of all episodes."""

    def search(
        self,
        wanted: EpisodeFilter | None = None,
        sort: str = "created_at desc",
        limit: int = 50,
        offset: int = 0,
    ) -> EpisodePage:
        """A page of the log and the count of all that the filter lets through.

        `sort` is a column of the summary, then asc or desc. Raises: StoreError naming a wrong
        value; whatever is typed as `text` is taken.
        """
        where, values = episode_conditions(wanted or EpisodeFilter())
        page = f"{SUMMARY} WHERE {where} ORDER BY {order_by(sort)} LIMIT ? OFFSET ?"
        with self._reading() as db:
            count = rows(db, f"SELECT count(*) AS n FROM {EPISODES} WHERE {where}", values)[0]["n"]
            found = rows(db, page, [*values, *page_bounds(limit, offset)])
        return EpisodePage(count, tuple(to_summary(row) for row in found))

    def iter_episodes(self, wanted: EpisodeFilter | None = None) -> Iterator[LoggedEpisode]:
        """All that the log has of each episode the filter lets through, in order of arrival.

        Which ones is settled at the beginning; they are read in short steps, so that writers are
        not held up and memory holds a few.
        """
        where, values = episode_conditions(wanted or EpisodeFilter())
        sql = f"SELECT e.seq FROM {EPISODES} WHERE {where} ORDER BY e.seq"
        with self._reading() as db:
            found = array("q", (seq for (seq,) in db.execute(sql, values)))
        for begin in range(0, len(found), STREAM_PAGE):
            with self._reading() as db:
                page = [_read_at(db, seq) for seq in found[begin : begin + STREAM_PAGE]]
            yield from page

    def whole_episode(self, episode_id: str) -> LoggedEpisode:
        """All that the log has of an episode. Raises: StoreError where there is none."""
        with self._reading() as db:
            return read_whole(db, need_episode(db, episode_id))

    def filter_values(self) -> FilterValues:
        """What occurs in the log, for the filters' drop-downs."""
        with self._reading() as db:
            return FilterValues(
                _distinct(db, "e.policy_id"),
                _distinct(db, "e.collaborator"),
                _distinct(db, TASK_SET),
                _distinct(db, "v.evaluator", "v.reward IS NOT NULL"),
            )

    def add_feedback(self, feedback: Feedback, key: str | None = None) -> None:
        """Append what a person said of a turn or of the whole episode; the newest rating counts.

        The same request again, by its `key`, is acknowledged and written once.
        Raises: StoreError for a rating outside -1 to 1, or an unknown episode or turn.
        """
        self._write(lambda db: _add_feedback(db, feedback, key), durable=True)

    def feedback(self, episode_id: str) -> list[Feedback]:
        """All feedback on the episode and its turns, oldest first."""
        with self._reading() as db:
            need_episode(db, episode_id)
            return read_feedback(db, episode_id)


def read_feedback(db: Database, episode_id: str) -> list[Feedback]:
    """All feedback on an episode, oldest first."""
    found = rows(db, "SELECT * FROM feedback WHERE episode_id = ? ORDER BY seq", [episode_id])
    return [to_feedback(row) for row in found]


def _read_at(db: Database, seq: int) -> LoggedEpisode:
    row = one(db, "SELECT * FROM episodes WHERE seq = ?", seq)
    assert row is not None  # episodes are never deleted
    return read_whole(db, row)


def read_whole(db: Database, row: dict) -> LoggedEpisode:
    """All that the log has of an episode, from its row."""
    task = one(db, "SELECT * FROM tasks WHERE id = ?", row["task_id"])
    assert task is not None  # a foreign key
    hidden = one(db, "SELECT * FROM hidden_info WHERE task_id = ?", row["task_id"])
    return LoggedEpisode(
        TaskRow(to_task(task), to_hidden(hidden)),
        to_episode(db, row),
        tuple(read_feedback(db, row["id"])),
        tuple(read_failures(db, row["id"])),
        ForkKind(row["fork_kind"]) if row["fork_kind"] else None,
    )


def _distinct(db: Database, column: str, where: str = "1") -> tuple[str, ...]:
    sql = f"SELECT DISTINCT {column} AS value FROM {EPISODES} WHERE {where} ORDER BY value"
    return tuple(row["value"] for row in rows(db, sql))


def _add_feedback(db: Database, feedback: Feedback, key: str | None) -> None:
    need_episode(db, feedback.episode_id)
    if feedback.turn_index is not None:
        need_turn(db, feedback.episode_id, feedback.turn_index)
    if feedback.rating is not None and not -1 <= feedback.rating <= 1:
        raise StoreError(
            f"The rating is {feedback.rating!r}; it must be from -1 (dislike) to 1 (like). Nothing "
            "was saved."
        )
    new = feedback_row(feedback)
    old = one(db, "SELECT * FROM feedback WHERE key = ?", clean(key)) if key is not None else None
    if old is None:
        insert(db, "feedback", new | {"key": key, "created_at": now_iso()})
    elif differing(new, old, list(new)):
        raise StoreError(
            f"The request {key!r} brought other feedback already; new feedback needs a key of its "
            "own. Nothing was saved."
        )
