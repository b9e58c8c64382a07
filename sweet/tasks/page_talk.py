"""What the collaborator of a web page says: differences in plain words, never in HTML.

The same phrasings play the scripted collaborator and make the training dialogues.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import cache
from string import Formatter

from sweet.tasks import page_phrases as words
from sweet.tasks.mini_page_reader import parse_page
from sweet.tasks.mini_pages import CLASSES, Kind, Value
from sweet.tasks.mini_talk import in_words
from sweet.tasks.page_differences import Difference, What, differences
from sweet.tasks.page_phrases import Phrases

_MARKUP = re.compile(r"[<>`{}\"\s]+")
_MAX_SAID_CHARS = 80
Slots = dict[str, str]


def reply_to(wanted: str, shown: str | None, seed: int, *, unheard: bool = False) -> str | None:
    """What a person says who wants the page `wanted` and sees `shown` (None: no page).

    One or two of the largest differences, or that it looks right. None where one of the two is not
    written as ColBench-Mini's are: those have to be drawn. `unheard` takes the phrasings that
    training never hears.
    """
    rng = random.Random(f"{seed}/{wanted}/{shown}")
    if shown is None:
        return pick(words.NO_PAGE, {}, rng, unheard)
    target, page = parse_page(wanted), parse_page(shown)
    if target is None or page is None:
        return None
    found = differences(target, page)
    if not found:
        return pick(words.RIGHT, {}, rng, unheard)
    some = found[: 2 if rng.random() < 0.5 else 1]
    return told([say_difference(difference, rng, unheard=unheard) for difference in some], rng)


def told(said: Sequence[str], rng: random.Random) -> str:
    """The sentences as one reply, some with an opening."""
    opening = [rng.choice(words.OPENINGS)] if rng.random() < 0.2 else []
    return " ".join([*opening, *map(_ended, said[:-1]), said[-1]])


def say_difference(difference: Difference, rng: random.Random, *, unheard: bool = False) -> str:
    """How a person might say this difference; another draw words it otherwise."""
    return sentence(_sentence(difference, rng, unheard), rng)


def sentence(said: str, rng: random.Random) -> str:
    """A phrase as it is written: most people begin with a capital and end with a stop."""
    return said.rstrip(".") if rng.random() < 0.3 else _ended(said[0].upper() + said[1:])


def tell(section: str, detail: str, kind: Kind, value: Value, rng: random.Random) -> str:
    """A sentence that gives one detail of the wanted page away before there is a page."""
    difference = Difference(What.DETAIL, section, detail, kind, value)
    said = _sentence(difference, rng, unheard=False)
    return _ended(said[0].upper() + said[1:])


def _ended(sentence: str) -> str:
    return sentence if sentence[-1] in ".?!" else f"{sentence}."


def _sentence(difference: Difference, rng: random.Random, unheard: bool) -> str:
    if difference.kind is Kind.ITEMS:
        return _say_items(difference, rng, unheard)
    kind = difference.kind
    phrases = words.STRUCTURE[difference.what] if kind is None else words.DETAILS[kind]
    return pick(phrases, slots_for(difference, rng), rng, unheard)


def slots_for(difference: Difference, rng: random.Random) -> Slots:
    """What a phrasing of this difference, not one of items, can be filled with."""
    kind = difference.kind
    if kind is None:
        return _structure_slots(difference, rng)
    slots = {"s": _subject(difference, rng)}
    if kind in words.COMPARATIVES and difference.shown:
        order = list(CLASSES[kind])
        bigger = order.index(difference.wanted) > order.index(difference.shown)
        slots["c"] = words.COMPARATIVES[kind][bigger]
    slots |= _filled("w", _value(kind, difference.wanted, rng))
    slots |= _filled("g", _value(kind, difference.shown, rng))
    return slots


def pick(phrases: Phrases, slots: Slots, rng: random.Random, unheard: bool) -> str:
    """A phrasing for which every slot is there, filled."""
    pool = phrases.unheard if unheard else phrases.heard
    return rng.choice([p for p in pool if _fields(p) <= slots.keys()]).format_map(slots)


@cache
def _fields(phrase: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in Formatter().parse(phrase) if name)


def _filled(slot: str, text: str) -> Slots:
    return {slot: text} if text else {}


# What the slots are filled with


def _part(name: str, rng: random.Random) -> str:
    return rng.choice(words.PARTS[name])


def _subject(difference: Difference, rng: random.Random) -> str:
    """What the difference is about, with its article."""
    part = _part(difference.section, rng)
    detail, kind = difference.detail, difference.kind
    if detail.startswith("button"):
        return rng.choice((f"the button in the {part}", f"the {part} button"))
    if kind is Kind.SIZE or detail == "title":
        return rng.choice((f"the title in the {part}", f"the {part} title"))
    if kind is Kind.TEXT:
        return f"the text in the {part}"
    if difference.section == "cards":
        each = rng.choice(("each card", "every card"))
        return each if kind is Kind.COLOR else f"the text in {each}"
    if kind is Kind.ALIGN and rng.random() < 0.4:
        return f"the text in the {part}"
    return f"the {part}"


def _value(kind: Kind, value: Value, rng: random.Random) -> str:
    """The value in words; "" where there is none that may be said."""
    if value == "":
        return ""
    if kind is Kind.ALIGN:
        return rng.choice(words.ALIGNMENTS[str(value)])
    if kind is Kind.COLUMNS and isinstance(value, int):
        return f"{_number(value, rng)} column{'' if value == 1 else 's'}"
    return sayable(str(value)) if kind is Kind.TEXT else str(value)


def sayable(text: str) -> str:
    """A page's text as a person would repeat it: no markup, not too long."""
    plain = " ".join(_MARKUP.sub(" ", text).split())
    return plain if len(plain) <= _MAX_SAID_CHARS else plain[:_MAX_SAID_CHARS].rsplit(" ", 1)[0]


def _number(value: int, rng: random.Random) -> str:
    return in_words(value) if rng.random() < 0.6 else str(value)


def _say_items(difference: Difference, rng: random.Random, unheard: bool) -> str:
    """How many there should be, or which texts they should have."""
    assert isinstance(difference.wanted, tuple)
    shown = difference.shown if isinstance(difference.shown, tuple) else None
    wanted = tuple(map(sayable, difference.wanted))
    one = words.ONE[difference.detail]
    slots = {"one": one, "n": f"{one}s", "w": _counted(len(wanted), one, rng)}
    if wanted and all(wanted):
        slots["all"] = and_list(wanted)
    if shown is None or len(shown) != len(wanted):
        slots |= {"g": _counted(len(shown), one, rng)} if shown is not None else {}
        return pick(words.COUNT, slots, rng, unheard)
    wrong = [i for i, text in enumerate(difference.wanted) if text != shown[i]]
    if len(wrong) > 1 or wrong[0] >= len(words.NTH):
        return pick(words.ALL_ITEMS, slots, rng, unheard)
    slots |= {"nth": words.NTH[wrong[0]], "w": wanted[wrong[0]]}
    slots |= _filled("g", sayable(shown[wrong[0]]))
    return pick(words.ONE_ITEM, slots, rng, unheard)


def and_list(texts: Sequence[str]) -> str:
    """The texts as they are told in a sentence: "a, b and c"."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def _counted(count: int, one: str, rng: random.Random) -> str:
    return f"{_number(count, rng) if count else 'no'} {one}{'' if count == 1 else 's'}"


def _structure_slots(difference: Difference, rng: random.Random) -> Slots:
    bare = _part(difference.section, rng)
    article = "an" if bare[0] in "aeiou" else "a"
    slots = {"s": f"the {bare}", "bare": bare, "a": f"{article} {bare}"}
    if difference.what is What.EXTRA:
        return slots
    places = []
    if difference.below:
        places.append(f"{rng.choice(('below', 'under'))} the {_part(difference.below, rng)}")
    else:
        places.append(rng.choice(("at the top", "at the very top")))
    if difference.above:
        places.append(f"above the {_part(difference.above, rng)}")
    elif difference.below:
        places.append(rng.choice(("at the bottom", "at the end")))
    return slots | {"place": rng.choice(places)}
