"""Filters of the log as SQL, and full-text search that takes whatever a person types."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from sweet.errors import StoreError
from sweet.store.base import clean
from sweet.store.clock import first_moment, moment_after
from sweet.types import EpisodeFilter

MAX_TERMS = 24  # of a search; the others are dropped
MAX_TERM_CHARS = 200  # of a term; the others are dropped

TASK_SET = "CASE WHEN t.split IN ('', t.source) THEN t.source ELSE t.source || '/' || t.split END"

_ERROR = "(e.error IS NOT NULL OR v.error IS NOT NULL OR e.stop_reason = 'failed')"
_RATED = "EXISTS (SELECT 1 FROM ratings AS r WHERE r.episode_id = e.id AND r.rating {} 0)"
_ANY_FEEDBACK = "EXISTS (SELECT 1 FROM feedback AS f WHERE f.episode_id = e.id)"

OUTCOMES = {
    "success": "v.reward >= 1",
    "fail": "v.reward < 1",
    "unscored": f"e.stop_reason IS NOT NULL AND v.reward IS NULL AND NOT {_ERROR}",
    "in_progress": "e.stop_reason IS NULL",
    "error": _ERROR,
}
FEEDBACKS = {
    "liked": _RATED.format(">"),
    "disliked": _RATED.format("<"),
    "any": _ANY_FEEDBACK,
    "none": f"NOT {_ANY_FEEDBACK}",
}
SORTS = {
    "created_at": "e.created_at",
    "turns": "turns",
    "reward": "v.reward",
    "tests_passed": "tests_passed",
    "rating": "rating",
    "policy_id": "e.policy_id",
    "collaborator": "e.collaborator",
    "task_id": "e.task_id",
    "task_set": "task_set",
}

EPISODES = (
    "episodes AS e JOIN tasks AS t ON t.id = e.task_id "
    "LEFT JOIN evaluations AS v ON v.seq = e.evaluation_seq"
)

SUMMARY = f"""
SELECT e.seq, e.id, e.task_id, e.policy_id, e.collaborator, e.stop_reason, e.created_at,
  {TASK_SET} AS task_set, t.description, v.reward,
  json_extract(v.components, '$.tests_passed') AS tests_passed,
  coalesce(e.error, v.error) AS error,
  (SELECT count(*) FROM turns WHERE turns.episode_id = e.id) AS turns,
  coalesce(
    (SELECT rating FROM ratings AS r WHERE r.episode_id = e.id AND r.turn_index IS NULL),
    (SELECT avg(rating) FROM ratings AS r WHERE r.episode_id = e.id)
  ) AS rating,
  (SELECT json_group_array(DISTINCT tag.value) FROM feedback AS f, json_each(f.tags) AS tag
    WHERE f.episode_id = e.id) AS tags
FROM {EPISODES}
"""

Conditions = tuple[str, list[Any]]


def episode_conditions(wanted: EpisodeFilter) -> Conditions:
    """The WHERE clause over EPISODES and its values. Raises: StoreError naming a wrong value."""
    parts: list[str] = ["1"]
    values: list[Any] = []

    def add(sql: str, *used: Any) -> None:
        parts.append(sql)
        values.extend(clean(value) for value in used)

    for term in terms(wanted.text or ""):  # a cleared field of a page gives None
        sql, used = _said_or_asked(term)
        add(sql, *used)
    if wanted.task_set:
        add(f"(t.source = ? OR {TASK_SET} = ?)", wanted.task_set, wanted.task_set)
    if wanted.task_id:
        add("e.task_id = ?", wanted.task_id)
    if wanted.policy_id:
        add("e.policy_id = ?", wanted.policy_id)
    if wanted.collaborator:  # "llm" means any model
        kind = f"{wanted.collaborator}:"
        add("(e.collaborator = ? OR substr(e.collaborator, 1, length(?)) = ?)", kind[:-1], kind,
            kind)  # fmt: skip
    if wanted.batch_id:
        add("e.batch_id = ?", wanted.batch_id)
    if wanted.outcome:
        add(_choice("outcome", wanted.outcome, OUTCOMES))
    if wanted.feedback:
        add(_choice("feedback", wanted.feedback, FEEDBACKS))
    if wanted.since:
        add("e.created_at >= ?", first_moment(wanted.since))
    if wanted.until:
        add("e.created_at < ?", moment_after(wanted.until))
    return " AND ".join(parts), values


def task_conditions(source: str, split: str, text: str) -> Conditions:
    """The WHERE clause over tasks AS t and its values."""
    parts, values = ["1"], []
    if source:
        parts.append("t.source = ?")
        values.append(clean(source))
    if split:
        parts.append("t.split = ?")
        values.append(clean(split))
    for term in terms(text or ""):
        sql, used = _asked(term)
        parts.append(sql)
        values.extend(used)
    return " AND ".join(parts), values


def order_by(sort: str) -> str:
    """The ORDER BY clause; nothing comes last, and the newest of equals first."""
    name, _, direction = (sort.strip() or "created_at desc").partition(" ")
    direction = direction.strip().lower() or "asc"
    if name not in SORTS or direction not in ("asc", "desc"):
        raise StoreError(
            f"Cannot sort by {sort!r}. Sort by one of {', '.join(SORTS)}, then asc or desc."
        )
    return f"{SORTS[name]} {direction} NULLS LAST, e.seq {direction}"


def terms(text: str) -> list[str]:
    """What is searched for: words, and what stands in double quotes as one piece.

    An unpaired quote counts as a space. Nothing is an operator.
    """
    found = re.findall(r'"([^"]*)"|([^\s"]+)', clean(text).replace("\0", " "))
    pieces = [" ".join((quoted or word).split())[:MAX_TERM_CHARS] for quoted, word in found]
    return [piece for piece in dict.fromkeys(pieces) if piece][:MAX_TERMS]


def _said_or_asked(term: str) -> Conditions:
    """A term that is in what was said, or in the task's description."""
    asked, values = _asked(term)
    if not _has_words(term):
        said = (
            "SELECT episode_id FROM turns WHERE raw LIKE ? ESCAPE '\\' OR reply LIKE ? ESCAPE '\\'"
        )
        return f"(e.id IN ({said}) OR {asked})", [_like(term)] * 2 + values
    said = (
        "SELECT episode_id FROM turns "
        "WHERE seq IN (SELECT rowid FROM turns_fts WHERE turns_fts MATCH ?)"
    )
    return f"(e.id IN ({said}) OR {asked})", [_match(term), *values]


def _asked(term: str) -> Conditions:
    if not _has_words(term):
        return "t.description LIKE ? ESCAPE '\\'", [_like(term)]
    return "t.seq IN (SELECT rowid FROM tasks_fts WHERE tasks_fts MATCH ?)", [_match(term)]


def _has_words(term: str) -> bool:
    """Whether the index can find it: it has words, in a script that parts them by spaces."""
    categories = {unicodedata.category(char) for char in term}
    return "Lo" not in categories and bool(categories & {"Lu", "Ll", "Lt", "Nd"})


def _match(term: str) -> str:
    """The term as a phrase whose last word may go on: "ship" finds "shipping"."""
    return '"' + term.replace('"', '""') + '" *'


def _like(term: str) -> str:
    escaped = re.sub(r"([\\%_])", r"\\\1", term)
    return f"%{escaped}%"


def _choice(what: str, value: str, choices: dict[str, str]) -> str:
    if value not in choices:
        raise StoreError(f"{what} is {value!r}; choose one of {', '.join(choices)}, or nothing.")
    return choices[value]
