"""What a person thinks of a turn or of an episode: from the browser's data into the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sweet.errors import TaskDataError
from sweet.services import Services
from sweet.types import Episode, Feedback
from ui.conversation import TAGS

ACTIONS = ("like", "dislike", "note", "rate")
MAX_COMMENT_CHARS = 2000
MAX_TAG_CHARS = 40
_RATINGS = {"good": 1.0, "partly": 0.0, "bad": -1.0}


def latest_feedback(given: Iterable[Feedback]) -> dict[int | None, Feedback]:
    """What holds now for each turn (None: the episode): the newest words and the newest rating."""
    latest: dict[int | None, Feedback] = {}
    for new in given:
        old = latest.get(new.turn_index)
        if new.rating is None and old is not None:
            new = replace(new, rating=old.rating)
        latest[new.turn_index] = new
    return latest


def give(services: Services, episode: Episode, action: str, asked: Mapping[str, Any]) -> None:
    """Log what a person did with a button or a form; doing the same again changes nothing.

    Raises: TaskDataError for a turn that is not there, or a result rated without a grade.
    """
    turn = None if action == "rate" else turn_index(asked, episode)
    old = latest_feedback(services.store.feedback(episode.id)).get(turn)
    old = old or Feedback(episode.id, turn)
    if action in ("like", "dislike"):
        wanted = 1.0 if action == "like" else -1.0
        new = replace(old, rating=0.0 if old.rating == wanted else wanted)
    elif action == "note":
        new = replace(old, tags=_tags(asked), comment=_comment(asked))
    else:
        new = replace(old, rating=_rating(asked, old), comment=_comment(asked))
    if new != old:
        services.store.add_feedback(new)


def turn_index(asked: Mapping[str, Any], episode: Episode) -> int:
    """The turn that the browser names. Raises: TaskDataError where the episode has none such."""
    text = str(asked.get("turn", ""))
    index = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else -1
    if not 0 <= index < len(episode.turns):
        raise TaskDataError(f"This episode has no turn {text!r}. Reload the page and try again.")
    return index


def _rating(asked: Mapping[str, Any], old: Feedback) -> float:
    chosen = _RATINGS.get(str(asked.get("rating")), old.rating)
    if chosen is None:
        raise TaskDataError("Choose first how good the result is.")
    return chosen


def _tags(asked: Mapping[str, Any]) -> tuple[str, ...]:
    ticked = asked.get("tags")
    known = [tag for tag in TAGS if isinstance(ticked, list) and tag in ticked]
    own = str(asked.get("own") or "").split(",")
    tags = [*known, *(" ".join(tag.split())[:MAX_TAG_CHARS] for tag in own)]
    return tuple(dict.fromkeys(tag for tag in tags if tag))[:12]


def _comment(asked: Mapping[str, Any]) -> str:
    return str(asked.get("comment") or "")[:MAX_COMMENT_CHARS].strip()
