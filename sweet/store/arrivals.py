"""The verb that brings episodes which happened elsewhere."""

from __future__ import annotations

from sqlite_utils import Database

from sweet.store.base import StoreBase, clean, insert, one
from sweet.store.clock import normal, now_iso
from sweet.store.connection import ContentError
from sweet.store.log import read_whole
from sweet.store.moves import insert_action
from sweet.store.records import LoggedEpisode
from sweet.store.rows import feedback_row, insert_advantages, insert_evaluation
from sweet.store.tasks import add_rows
from sweet.types import Episode

IMPORTED_CRITIC = "imported"


class ArrivalVerbs(StoreBase):
    """What can be done with episodes of another log."""

    def add_episode(self, whole: LoggedEpisode) -> bool:
        """Whether the episode was new; it is added with its task, or not at all.

        Raises: StoreError where its id or its task's is in the log with another content.
        """
        return self._write(lambda db: _add(db, whole), durable=False)


def _add(db: Database, whole: LoggedEpisode) -> bool:
    episode = whole.episode
    old = one(db, "SELECT * FROM episodes WHERE id = ?", clean(episode.id))
    if old is not None:
        if _content(read_whole(db, old)) != _content(whole):
            raise ContentError(f"Episode {episode.id!r} is in the log with another content.")
        return False
    add_rows([whole.row], db)
    _insert_episode(db, whole)
    _insert_turns(db, episode)
    if episode.evaluation is not None:
        insert_evaluation(db, episode.id, episode.evaluation)
    for feedback in whole.feedback:
        insert(db, "feedback", feedback_row(feedback) | {"created_at": now_iso()})
    for failure in whole.failures:
        at = {"created_at": normal(failure.created_at, "created_at")}
        row = {"episode_id": episode.id, "turns": failure.turns, "error": failure.error}
        insert(db, "failures", row | at)
    return True


def _content(whole: LoggedEpisode) -> object:
    """What makes two arrivals the same episode: all that was said, and how it ended."""
    episode = whole.episode
    said = [
        (clean(turn.action.raw), turn.action.is_final, clean(turn.reply)) for turn in episode.turns
    ]
    return whole.row.task.id, said, episode.stop_reason


def _insert_episode(db: Database, whole: LoggedEpisode) -> None:
    episode = whole.episode
    row = {
        "id": episode.id,
        "task_id": episode.task_id,
        "policy_id": episode.policy_id,
        "collaborator": episode.collaborator,
        "seed": episode.seed,
        "max_turns": episode.max_turns,
        "created_at": normal(episode.created_at, "created_at") if episode.created_at else now_iso(),
        "parent_id": episode.parent_id,
        "forked_at": episode.forked_at,
        "fork_kind": str(whole.fork_kind) if whole.fork_kind else None,
        "stop_reason": str(episode.stop_reason) if episode.stop_reason else None,
        "artifact": episode.artifact,
        "error": episode.error,
    }
    insert(db, "episodes", row)


def _insert_turns(db: Database, episode: Episode) -> None:
    for turn in episode.turns:
        reply = {"reply": turn.reply, "reply_duration_ms": turn.reply_duration_ms}
        insert_action(db, episode.id, turn.index, turn.action, **reply)
    advantages = {t.index: t.advantage for t in episode.turns if t.advantage is not None}
    insert_advantages(db, episode.id, IMPORTED_CRITIC, advantages)
