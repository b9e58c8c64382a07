"""Collaborations on web pages that the model that draws learns from.

The agent shows a first page, `Draft 1. Sections: header, nav, hero.`, hears what differs, and shows
it again with that changed. Before it does it says what it changes, and of sections where they stand
and what then follows what, `Draft 2: remove nav (nav after header, nav before hero): header then
hero.` So the page follows from the agent's own words and the page before, a person sees what was
understood, and the drafts are counted.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Literal

from sweet.tasks.mini_drawing import BACKGROUNDS, draw_page, draw_section, str_items
from sweet.tasks.mini_frontend import MOODS, Wish, split_of, wish_for
from sweet.tasks.mini_pages import CLASSES, COLORS, DETAILS, HUES, Kind, PageSpec, Section, render
from sweet.tasks.mini_topics import Topic, topics
from sweet.tasks.page_differences import Difference, What, changed, differences
from sweet.tasks.page_phrases import RIGHT
from sweet.tasks.page_talk import and_list
from sweet.types import ANSWER_MARK, MAX_TURNS, Message
from trainer.pretraining.demonstrations import made_up_word
from trainer.pretraining.page_edits import Edit, counted, follow, noted
from trainer.pretraining.page_people import ODD, say_all

LUCKY = 0.5
"""How many first pages are nearly the one that is wanted, so that details are soon spoken of."""
SECTIONS = 0.8
"""How much of what is wrong with a lucky guess is a whole section. With 0.18 one note in sixteen
was about sections, and 2,400 steps did not suffice to learn them."""
DRAFT = "Draft"
NOTHING = "no change"


@dataclass(frozen=True, slots=True)
class Style:
    """How well an agent works, as chances.

    To answer before the page is right, to follow but one of several wishes, and to change what
    nobody asked for.
    """

    hurry: float
    forget: float
    slip: float


PATIENT = Style(hurry=0.0, forget=0.0, slip=0.0)
MEDIUM = Style(hurry=0.25, forget=0.25, slip=0.02)
HASTY = Style(hurry=0.45, forget=0.5, slip=0.05)


@dataclass(frozen=True, slots=True)
class PageTask:
    """A page that somebody wants, and what it is about."""

    topic: Topic
    page: PageSpec


Basis = Literal["told", "guess", "luck"]
"""What a page of the agent rests on: what it was told; guesses, too; or what nobody could know."""


@dataclass(slots=True)
class Demonstration:
    """One collaboration, and what each page of the agent rests on."""

    messages: list[Message]
    bases: list[Basis] = field(default_factory=list)


def _anything() -> Topic:
    words = topics()[0].words
    slogans = tuple(
        slogan.format(thing="Service" if slogan.startswith("{") else "service")
        for slogan in words.slogans
    )
    things = ("Offers", "Events", "Gallery", "Reviews", "Ideas", "Guides")
    return Topic("anything", ("Company",), things, replace(words, slogans=slogans))


ANYTHING = _anything()
"""What any business might say: an agent that is told no texts writes these.

What each topic shows, and even to name the topic, was not learned in thousands of steps: after "Try
our" came any token, markup too, and one first page of four broke off. Things and points differ:
a text that stood on the page before is followed by what followed it there.
"""


def random_task(rng: random.Random, made_up: float = 0.25) -> PageTask:
    """A training task: a known topic, or one whose texts are made up.

    Never a page of the validation or test split, never a held-out topic.
    """
    while True:
        topic = rng.choice(topics())
        if rng.random() < made_up:
            topic = _made_up_topic(topic, rng)
        page = draw_page(topic, rng)
        if split_of(page) == "train":
            return PageTask(topic, page)


def _made_up_topic(topic: Topic, rng: random.Random) -> Topic:
    """A topic with many texts that nobody ever saw."""

    def some(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(t if rng.random() < 0.4 else made_up_text(rng) for t in texts)

    words = topic.words
    mine = replace(
        words,
        names=tuple(made_up_word(rng).capitalize() for _ in range(3)),
        links=some(words.links),
        points=some(words.points),
        fields=some(words.fields),
        buttons=some(words.buttons),
        footers=some(words.footers),
        slogans=tuple(
            s.replace("{thing}", made_up_word(rng).capitalize()) if s.startswith("{") else s
            for s in words.slogans
        ),
    )
    nouns = tuple(made_up_word(rng).capitalize() for _ in topic.nouns)
    name = topic.name if rng.random() < 0.5 else f"{made_up_word(rng)} {topic.name.split()[-1]}"
    return Topic(name, nouns, some(topic.things), mine)


def made_up_text(rng: random.Random) -> str:
    """What might stand on a page: one to four words, seldom with a number, an & or capitals."""
    known = rng.choice(topics())
    pool = (*known.things, *known.words.points, *known.words.buttons)
    words = []
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        word = rng.choice(pool).split()[0] if rng.random() < 0.4 else made_up_word(rng)
        words.append(word)
    if rng.random() < 0.12:
        words.insert(rng.randrange(len(words) + 1), str(rng.choice((24, 7, 10, 1987, 100, 5))))
    if rng.random() < 0.06:
        words.insert(1, "&") if len(words) > 1 else words.extend(("&", made_up_word(rng)))
    text = " ".join(words)
    if rng.random() < 0.05:
        text = rng.choice((text.upper(), f"{text}!", f"{text}'s", text.title()))
    return text[0].upper() + text[1:] if rng.random() < 0.8 else text


def demonstrate(task: PageTask, style: Style, rng: random.Random) -> Demonstration:
    """A collaboration from the wish to the answer, at most ten agent messages."""
    return _Making(task, style, rng).made()


class _Making:
    """One collaboration in the making: the page so far, and how the agent goes on."""

    def __init__(self, task: PageTask, style: Style, rng: random.Random):
        self.task, self.style, self.rng = task, style, rng
        self.wish = sloppy_wish(wish_for(task.topic, task.page, rng), rng)
        self.out = Demonstration([Message("user", self.wish.text)])

    def made(self) -> Demonstration:
        rng = self.rng
        is_lucky, is_last = rng.random() < LUCKY, rng.random() < self.style.hurry / 4
        wanted, topic = self.task.page, self.task.topic
        page = _nearly(wanted, topic, rng) if is_lucky else first_page(self.wish, wanted, rng)
        self._say(1, "", page, "luck" if is_lucky else "guess", is_last=is_last)
        for draft in range(2, MAX_TURNS + 1):
            if is_last:
                break
            found = differences(wanted, page)
            odd = rng.random() < 0.03
            if odd or not found:
                self._hear(rng.choice(ODD if odd else RIGHT.heard))
                is_last = draft == MAX_TURNS or not odd
                self._say(draft, NOTHING if odd else "", page, "told", is_last=is_last)
                continue
            is_last = draft == MAX_TURNS or rng.random() < self.style.hurry
            page = self._revised(draft, page, found, is_last=is_last)
        return self.out

    def _revised(
        self, draft: int, page: PageSpec, found: list[Difference], *, is_last: bool
    ) -> PageSpec:
        """The next page after the person has told some differences."""
        rng = self.rng
        details = [difference for difference in found if difference.what is What.DETAIL]
        told = found if not details or rng.random() < 0.6 else rng.sample(details, len(details))
        told = told[: rng.choices((1, 2, 3), (0.5, 0.4, 0.1))[0]]
        text, said = say_all(told, page, rng)
        self._hear(text)
        if len(told) > 1 and rng.random() < self.style.forget:
            told, said = told[:1], said[:1]
        edits: list[Edit] = []
        for difference, words in zip(told, said, strict=True):
            edit = follow(page, difference, words, ANYTHING, rng)
            edits.append(edit)
            page = edit.page
        if rng.random() < self.style.slip:
            page = mutated(page, ANYTHING, rng)
        basis: Basis = "guess" if any(edit.is_guess for edit in edits) else "told"
        self._say(draft, noted(edits), page, basis, is_last=is_last)
        return page

    def _hear(self, text: str) -> None:
        self.out.messages.append(Message("user", text))

    def _say(self, draft: int, note: str, page: PageSpec, basis: Basis, *, is_last: bool) -> None:
        text = said_with(page, draft, note, is_last=is_last)
        self.out.messages.append(Message("assistant", text))
        self.out.bases.append(basis)


def said_with(page: PageSpec, draft: int, note: str = "", *, is_last: bool = False) -> str:
    """The agent's whole message with a page: what is changed, or a first page's sections; it."""
    head = f"{DRAFT} {draft}: {note}." if note else f"{DRAFT} {draft}."
    sections = f" Sections: {', '.join(page.names)}." if draft == 1 else ""
    mark = f" {ANSWER_MARK}" if is_last else ""
    return f"{head}{sections}{mark}\n{render(page)}"


def first_page(wish: Wish, wanted: PageSpec, rng: random.Random) -> PageSpec:
    """What an agent draws that knows no more than the wish, and not even what the business is."""
    names = [name for name in ("header", "nav") if name in wish.parts]
    names += [n for n in wish.parts if n not in ("header", "nav", "footer")]
    names += ["footer"] if "footer" in wish.parts else []
    hues = rng.sample(MOODS.get(wish.mood, HUES), 2)
    palette = [color for color in COLORS if color.split()[-1] in hues]
    background = rng.choice(BACKGROUNDS)
    page = PageSpec(background, tuple(draw_section(n, ANYTHING, rng, palette) for n in names))
    for name, detail in wish.told:
        if name in page.names or name == "page":
            value = wanted.background if name == "page" else wanted.section(name)[detail]
            texts = str_items(value)
            if texts and and_list(texts) not in wish.text:
                value = counted(page.section(name), detail, len(texts), ANYTHING, rng)
            page = page.having(name, detail, value)
    return page


def _nearly(page: PageSpec, topic: Topic, rng: random.Random) -> PageSpec:
    """The page with some things otherwise: a lucky guess, from which details are soon spoken of."""
    for _ in range(rng.randint(1, 8)):
        page = mutated(page, topic, rng, SECTIONS)
    return page


def mutated(page: PageSpec, topic: Topic, rng: random.Random, sections: float = 0.18) -> PageSpec:
    """The page with one thing changed at random; `sections`: the chance that it is a whole one."""
    luck = rng.random() * 0.18 / sections
    names = page.names
    if luck < 0.06 and len(names) > 2:
        return changed(page, Difference(What.EXTRA, rng.choice(names)))
    absent = [name for name in DETAILS if name not in names]
    if luck < 0.12 and absent and len(names) < 6:
        added = draw_section(rng.choice(absent), topic, rng)
        return changed(
            page, Difference(What.MISSING, added.name, below=rng.choice(names), added=added)
        )
    if luck < 0.18 and len(names) > 1:
        mover, below = rng.sample(names, 2)
        return changed(page, Difference(What.ORDER, mover, below=below))
    name, detail, kind, _ = rng.choice(list(page.all_details()))
    if name == "page":
        return replace(page, background=rng.choice(BACKGROUNDS))
    return page.having(name, detail, _other(page.section(name), detail, kind, topic, rng))


def _other(
    section: Section, detail: str, kind: Kind, topic: Topic, rng: random.Random
) -> str | int | tuple[str, ...]:
    """Another value for a detail."""
    if kind in CLASSES:
        return rng.choice([value for value in CLASSES[kind] if value != section[detail]])
    if kind is Kind.ITEMS and rng.random() < 0.4:
        items = list(str_items(section[detail]))
        drawn = str_items(draw_section(section.name, topic, rng)[detail])
        items[rng.randrange(len(items))] = rng.choice(drawn)
        return tuple(items)
    return draw_section(section.name, topic, rng)[detail]


def sloppy_wish(wish: Wish, rng: random.Random) -> Wish:
    """Now and then the wish in fewer words, as people type."""
    if rng.random() < 0.8 or wish.mood:
        return wish
    if wish.told or rng.random() < 0.4:
        return replace(wish, text=wish.text.lower() if not wish.told else wish.text.rstrip("."))
    parts = and_list([f"a {name}" if name != "cards" else name for name in wish.parts])
    form = rng.choice(
        ("a page with {}", "page: {}", "I want {}", "make me a website with {}", "{}")
    )
    return replace(wish, text=form.format(parts))
