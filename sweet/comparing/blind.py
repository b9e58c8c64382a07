"""Whether a side of a blind comparison gives away who it is."""

from __future__ import annotations

import re
from functools import lru_cache

from sweet.types import PolicyVersion

_PLAIN_NAME_MIN_CHARS = 3
_INTRODUCED = r"(?:\b(?:i am|i'm|i’m|my name is|my name's|this is|call me|as)\s+(?:an?\s+|the\s+)?)"


def names_itself(version: PolicyVersion, text: str) -> bool:
    """Whether `text` names the version or its model: such a side is no longer blind.

    A name with a digit or a joint in it (v0007, Qwen2.5-7B) counts wherever it stands; one that
    could be a word of the language (embedded, llama) only where the side introduces itself by it.
    """
    certain, wordlike = _patterns(version.id, version.base_model)
    return any(pattern and pattern.search(text) for pattern in (certain, wordlike))


@lru_cache(maxsize=256)
def _patterns(*given: str) -> tuple[re.Pattern[str] | None, re.Pattern[str] | None]:
    names = {part for name in given for part in _parts(name)}
    wordlike = {name for name in names if name.isalpha()}
    return _any_of(names - wordlike, ""), _any_of(wordlike, _INTRODUCED)


def _parts(name: str) -> set[str]:
    """The whole name, its last part (of a path or id), and the family it begins with."""
    whole = name.strip()
    last = re.split(r"[/:\\]", whole.rstrip("/"))[-1]
    family = re.match(r"[^\W\d_]+", last)
    found = {whole, last, family[0] if family else ""}
    return {part for part in found if len(part) >= _PLAIN_NAME_MIN_CHARS}


def _any_of(names: set[str], before: str) -> re.Pattern[str] | None:
    if not names:
        return None
    longest_first = sorted(names, key=len, reverse=True)
    alternatives = "|".join(re.escape(name) for name in longest_first)
    return re.compile(rf"{before}(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE)
