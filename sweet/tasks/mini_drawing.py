"""Random pages of ColBench-Mini about a topic: which parts, in what order, how they look."""

from __future__ import annotations

import random
from collections.abc import Sequence

from sweet.tasks.mini_pages import CLASSES, COLORS, DETAILS, HUES, Kind, PageSpec, Section, Value
from sweet.tasks.mini_topics import Topic

MAX_SECTIONS = 5
BACKGROUNDS = ("white", "white", "light gray", "light gray", *(f"light {hue}" for hue in HUES))

_CHANCES = {
    "header": 0.95, "nav": 0.55, "hero": 0.6, "cards": 0.55, "list": 0.35, "form": 0.35,
    "footer": 0.8,
}  # fmt: skip
_COUNTS = {"links": (2, 4), "cards": (2, 4), "items": (2, 4), "fields": (1, 3)}


def draw_page(topic: Topic, rng: random.Random) -> PageSpec:
    """A page with random details about the topic."""
    colors = _palette(rng)
    background = rng.choice(BACKGROUNDS)
    return PageSpec(
        background, tuple(draw_section(name, topic, rng, colors) for name in _arrangement(rng))
    )


def draw_section(
    name: str, topic: Topic, rng: random.Random, colors: Sequence[str] = tuple(COLORS)
) -> Section:
    """A section of that name with random details, in one of these colours more often."""
    details: dict[str, Value] = {}
    for detail, kind in DETAILS[name].items():
        if kind is Kind.COLOR:
            others = [c for c in COLORS if c != details.get("color")]  # a button is seen
            own = [c for c in colors if c in others]
            details[detail] = rng.choice(own if own and rng.random() < 0.7 else others)
        elif kind is Kind.TEXT:
            details[detail] = _text(name, detail, topic, rng)
        elif kind is Kind.ITEMS:
            details[detail] = _items(detail, topic, rng)
        else:
            details[detail] = rng.choice(list(CLASSES[kind]))
    if name == "cards":  # a column has a card
        details["columns"] = min(rng.randint(1, 4), len(str_items(details["cards"])))
    return Section(name, tuple(details.items()))


def str_items(value: Value) -> tuple[str, ...]:
    """The value, where it is a row of texts."""
    return value if isinstance(value, tuple) else ()


def _text(name: str, detail: str, topic: Topic, rng: random.Random) -> str:
    words = topic.words
    if detail == "button":
        return rng.choice(words.buttons)
    if name == "footer":
        return rng.choice(words.footers)
    if name == "header":
        return f"{rng.choice(words.names)} {rng.choice(topic.nouns)}"
    thing = rng.choice(topic.things)
    slogan = rng.choice(words.slogans)
    return slogan.format(thing=thing if slogan.startswith("{") else thing.lower())


def _items(detail: str, topic: Topic, rng: random.Random) -> tuple[str, ...]:
    words = topic.words
    pools = {"links": words.links, "cards": topic.things, "items": words.points}
    pool = pools.get(detail, words.fields)
    count = rng.randint(*_COUNTS[detail])
    if rng.random() < 0.5:
        return pool[:count]  # the usual ones
    return tuple(rng.sample(pool, count))


def _palette(rng: random.Random) -> tuple[str, ...]:
    """The page's own colours."""
    hues = rng.sample(HUES, 2)
    neutral = rng.choice(("white", "black", "light gray", "dark gray"))
    return (*(rng.choice(("", "", "light ", "dark ")) + hue for hue in hues), neutral)


def _arrangement(rng: random.Random) -> list[str]:
    """Which sections there are, from top to bottom."""
    chosen: list[str] = []
    while not 2 <= len(chosen) <= MAX_SECTIONS:
        chosen = [name for name, chance in _CHANCES.items() if rng.random() < chance]
    top = [name for name in ("header", "nav") if name in chosen]
    middle = [name for name in chosen if name not in ("header", "nav", "footer")]
    if rng.random() < 0.3:
        top.reverse()
    if rng.random() < 0.6:
        rng.shuffle(middle)
    return [*top, *middle, *(["footer"] if "footer" in chosen else [])]
