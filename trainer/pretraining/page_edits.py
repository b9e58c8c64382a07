"""What an agent changes on a page after it was told a difference, and how it notes that.

It knows the words that were said and not the page that is wanted: what they leave open it guesses.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sweet.tasks.mini_drawing import draw_section, str_items
from sweet.tasks.mini_pages import DETAILS, Kind, PageSpec, Section, Value
from sweet.tasks.mini_topics import Topic
from sweet.tasks.page_differences import Difference, What
from sweet.tasks.page_talk import and_list

ORDER = tuple(DETAILS)
"""The sections as they mostly stand, from top to bottom."""
TOP, END = "top", "end"  # what a page begins and ends with, where an order is told


@dataclass(frozen=True, slots=True)
class Edit:
    """The page after a change, the agent's note of it, and whether it had to guess."""

    page: PageSpec
    note: str
    is_guess: bool = False


def follow(
    page: PageSpec, difference: Difference, said: str, topic: Topic, rng: random.Random
) -> Edit:
    """The page with what was `said` of the difference carried out, for a page about `topic`."""
    name = difference.section
    if difference.what is What.EXTRA:
        rest = tuple(s for s in page.sections if s.name != name)
        return Edit(replace(page, sections=rest), f"remove {name} {_closed(page.names, name)}")
    if difference.what is What.DETAIL:
        return _detail(page, difference, said, topic, rng)
    is_new = difference.what is What.MISSING
    section = draw_section(name, topic, rng) if is_new else page.section(name)
    rest = tuple(s for s in page.sections if s.name != name)
    at = _place([s.name for s in rest], difference, said)
    edited = replace(page, sections=(*rest[:at], section, *rest[at:]))
    note = f"add {name} " if is_new else f"move {name} {_closed(page.names, name)}, "
    return Edit(edited, note + _opened(edited.names, name, said), is_new)


def noted(edits: Sequence[Edit]) -> str:
    """The notes of some changes."""
    return "; ".join(edit.note for edit in edits)


def _closed(names: Sequence[str], name: str) -> str:
    """Where a section stands among these, and what follows what once it is gone."""
    before, behind = _neighbours(names, name)
    return f"({name} after {before}, {name} before {behind}): {before} then {behind}"


def _opened(names: Sequence[str], name: str, said: str) -> str:
    """What stood where a section is now among these, seen from what was `said`, and follows now."""
    before, behind = _neighbours(names, name)
    is_from_below = {"above", "bottom", "end"} & _words(said)
    place = f"{behind} after {before}" if is_from_below else f"{before} before {behind}"
    return f"({place}): {before} then {name}, {name} then {behind}"


def _neighbours(names: Sequence[str], name: str) -> tuple[str, str]:
    at, order = names.index(name), (TOP, *names, END)
    return order[at], order[at + 2]


def _place(names: Sequence[str], difference: Difference, said: str) -> int:
    """Which place among the other sections was meant; the usual one where none was said."""
    words = _words(said)
    if words & {"below", "under"} and difference.below in names:
        return names.index(difference.below) + 1
    if "above" in words and difference.above in names:
        return names.index(difference.above)
    if "top" in words:
        return 0
    if words & {"bottom", "end"}:
        return len(names)
    usual = ORDER.index(difference.section)
    return next((i for i, name in enumerate(names) if ORDER.index(name) > usual), len(names))


def _words(said: str) -> set[str]:
    return set(re.findall("[a-z]+", said.lower()))


def _detail(
    page: PageSpec, difference: Difference, said: str, topic: Topic, rng: random.Random
) -> Edit:
    name, detail = difference.section, difference.detail
    value, is_guess = difference.wanted, False
    if difference.kind is Kind.ITEMS and and_list(str_items(value)) not in said:
        shown = str_items(page.section(name)[detail])
        if len(shown) != len(str_items(value)):
            count = len(str_items(value))
            value = counted(page.section(name), detail, count, topic, rng)
            is_guess = count > len(shown)
    changed = page.having(name, detail, value)
    return Edit(changed, f"{name} {detail} {_in_words(difference.kind, value)}", is_guess)


def counted(
    section: Section, detail: str, count: int, topic: Topic, rng: random.Random
) -> tuple[str, ...]:
    """As many texts as are wanted: the first ones that are there, and new ones at the end."""
    texts = list(str_items(section[detail]))
    while len(texts) < count:
        drawn = str_items(draw_section(section.name, topic, rng)[detail])
        texts += [text for text in drawn if text not in texts]
    return tuple(texts[:count])


def _in_words(kind: Kind | None, value: Value) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    return f'"{value}"' if kind is Kind.TEXT else str(value)
