"""ColBench-Mini, frontend: seeded small pages in ColBench's own shape, vaguely described.

A description names the business and the parts of the page, and leaves the look to be found out.
A combination of details (all but the texts) belongs to one split by its hash, so the pages of
validation and test are never trained on; "families" are whole topics held out, with their texts.
"""

from __future__ import annotations

import random
from collections.abc import Container, Iterator
from dataclasses import dataclass

from sweet.tasks.mini_drawing import draw_page
from sweet.tasks.mini_pages import Kind, PageSpec, render
from sweet.tasks.mini_sets import distinct_rows, split_by_hash
from sweet.tasks.mini_topics import Topic, held_out_topics, topics
from sweet.tasks.page_talk import and_list, tell
from sweet.types import HiddenInfo, TaskKind, TaskRow

SOURCE = "mini-frontend"

_OPENINGS = (
    "{Topic}: {A} {style} design with {parts}.",
    "{Topic} website: {A} {style} design with {parts}.",
    "{Topic} website: {A} {style} layout that has {parts}.",
    "{Topic}: {A} {style} page with {parts}.",
    "{Topic} site: {parts}, all in {a} {style} style.",
    "{A} {style} page for {a_topic}. It has {parts}.",
    "I need {a} {style} website for {a_topic}, with {parts}.",
    "Please design a {style} page for {a_topic}: {parts}.",
)  # fmt: skip
_STYLES = (
    "clean", "modern", "simple", "minimalist", "friendly", "professional", "warm", "elegant",
    "playful", "classic", "bold", "calm",
)  # fmt: skip
_PARTS = {
    "header": ("a header", "a header with the name", "a header that shows the name"),
    "nav": ("a navigation bar", "a menu", "a navigation menu with links"),
    "hero": ("a hero section", "a hero with a call-to-action button", "an inviting hero section"),
    "cards": ("cards for what we offer", "a cards section", "a grid of cards"),
    "list": ("a list of our advantages", "a list", "a list of points"),
    "form": ("a form", "a contact form", "a form for visitors"),
    "footer": ("a footer", "a footer with a few words", "a footer"),
}
_NAMES = ("The name is {name}.", "It is called {name}.", "Our name is {name}.")
MOODS = {
    "warm": ("red", "yellow", "pink"),
    "cool": ("blue", "green", "indigo", "purple"),
    "neutral": ("gray", "white", "black"),
}
_MOOD_PHRASES = (
    "The color palette is {mood}.", "The color scheme is mostly {mood}.",
    "The colors are rather {mood}.",
)  # fmt: skip


def generate(split: str, n: int, seed: int) -> Iterator[TaskRow]:
    """`n` different tasks of a split, the same for the same seed.

    Raises: TaskDataError for an unknown split.
    """
    pool = held_out_topics() if split == "families" else topics()

    def draw(rng: random.Random, seen: Container[str]) -> tuple[str, HiddenInfo] | None:
        topic = rng.choice(pool)
        page = draw_page(topic, rng)
        html = render(page)
        if html in seen or (split != "families" and split_of(page) != split):
            return None
        return description(topic, page, rng), HiddenInfo(html)

    return distinct_rows(SOURCE, TaskKind.FRONTEND, split, n, seed, draw)


def split_of(page: PageSpec) -> str:
    """The split that a page of a known topic belongs to, whatever its texts say."""
    look = [
        (name, detail, len(value) if isinstance(value, tuple) else value)
        for name, detail, kind, value in page.all_details()
        if kind is not Kind.TEXT
    ]
    return split_by_hash(repr(look))


@dataclass(frozen=True, slots=True)
class Wish:
    """A description, and what it tells of the page: parts in their order, mood, single details."""

    text: str
    parts: tuple[str, ...]
    mood: str = ""
    told: tuple[tuple[str, str], ...] = ()


def description(topic: Topic, page: PageSpec, rng: random.Random) -> str:
    """The text of `wish_for`."""
    return wish_for(topic, page, rng).text


def wish_for(topic: Topic, page: PageSpec, rng: random.Random) -> Wish:
    """The vague wish: what it is for and most of its parts; one in four says one detail.

    Some give the name, and some the mood of the colours.
    """
    opening, parts = _opening(topic, page, rng)
    sentences, mood, told = [opening], "", []
    if "header" in page.names and rng.random() < 0.7:
        name = page.section("header")["title"]
        sentences.append(rng.choice(_NAMES).format(name=name))
        told.append(("header", "title"))
    if rng.random() < 0.35:
        mood = _mood(page)
        sentences.append(rng.choice(_MOOD_PHRASES).format(mood=mood))
    if rng.random() < 0.25:
        section, detail, kind, value = rng.choice(list(page.all_details()))
        sentences.append(tell(section, detail, kind, value, rng))
        told.append((section, detail))
    return Wish(" ".join(sentences), parts, mood, tuple(told))


def _opening(topic: Topic, page: PageSpec, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    names = list(page.names)
    if len(names) > 2 and rng.random() < 0.15:
        names.remove(rng.choice(names))  # not even everything that is on it is said
    if rng.random() < 0.5:
        rng.shuffle(names)
    parts = [rng.choice(_PARTS[name]) for name in names]
    style = rng.choice(_STYLES)
    article = _article(style)
    said = rng.choice(_OPENINGS).format(
        Topic=topic.name[0].upper() + topic.name[1:],
        a_topic=f"{_article(topic.name)} {topic.name}",
        A=article.capitalize(),
        a=article,
        style=style,
        parts=and_list(parts),
    )
    return said, tuple(names)


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def _mood(page: PageSpec) -> str:
    """The mood of most of the page's colours."""
    colors = [str(v).split()[-1] for _, _, kind, v in page.all_details() if kind is Kind.COLOR]
    return max(MOODS, key=lambda mood: sum(color in MOODS[mood] for color in colors[1:]))
