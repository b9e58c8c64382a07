"""What the collaborator says of two drawn pages: differences in plain words, never in HTML."""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping, Sequence

from evaluators.blocks import Block, Sort
from evaluators.color import difference as color_difference
from evaluators.color import lab
from sweet.drawn.differences import Difference, Seen, drawn_differences
from sweet.tasks import page_phrases as words
from sweet.tasks.mini_talk import in_words
from sweet.tasks.page_talk import Slots, and_list, pick, sayable, sentence, told
from sweet.types import Rendering

MAX_NAMED = 6
_MAX_NAME_CHARS = 40
_NOUNS: Mapping[str, str] = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "heading"),
    "a": "link", "button": "button", "li": "list item", "label": "label", "input": "field",
    "textarea": "text field", "select": "drop-down list", "header": "header", "nav": "menu",
    "footer": "footer", "form": "form", "aside": "sidebar", "table": "table", "ul": "list",
    "ol": "list", "th": "column head", "td": "table cell", "img": "picture", "svg": "picture",
    "hr": "line",
}  # fmt: skip
_OTHERWISE = {Sort.TEXT: "text", Sort.PICTURE: "picture", Sort.FIELD: "field", Sort.AREA: "box"}
_LANDMARKS = ("header", "nav", "footer", "form", "aside")
_HUES = {  # Tailwind's shades, from light to dark
    "gray": "f3f4f6 e5e7eb d1d5db 9ca3af 6b7280 4b5563 374151 1f2937 111827",
    "red": "fee2e2 fecaca fca5a5 f87171 ef4444 dc2626 b91c1c 991b1b 7f1d1d",
    "orange": "ffedd5 fed7aa fdba74 fb923c f97316 ea580c c2410c 9a3412 7c2d12",
    "yellow": "fef9c3 fef08a fde047 facc15 f59e0b d97706 b45309 92400e 78350f",
    "green": "d1fae5 a7f3d0 6ee7b7 34d399 10b981 059669 047857 065f46 064e3b",
    "blue": "dbeafe bfdbfe 93c5fd 60a5fa 3b82f6 2563eb 1d4ed8 1e40af 1e3a8a",
    "indigo": "e0e7ff c7d2fe a5b4fc 818cf8 6366f1 4f46e5 4338ca 3730a3 312e81",
    "purple": "ede9fe ddd6fe c4b5fd a78bfa 8b5cf6 7c3aed 6d28d9 5b21b6 4c1d95",
    "pink": "fce7f3 fbcfe8 f9a8d4 f472b6 ec4899 db2777 be185d 9d174d 831843",
}
_COLORS = {"#ffffff": "white", "#000000": "black"} | {
    f"#{shade}": f"{('light ', '', 'dark ')[at // 3]}{hue}"
    for hue, shades in _HUES.items()
    for at, shade in enumerate(shades.split())
}
_PALETTE = lab(list(_COLORS))


def reply_to(wanted: Rendering, shown: Rendering, seed: int, *, unheard: bool = False) -> str:
    """What a person says who wants the page `wanted` and sees `shown`.

    Up to three of the largest differences, or that it looks right.
    """
    rng = random.Random(f"{seed}/{zlib.crc32(shown.png)}")
    said = []
    for difference in drawn_differences(wanted, shown):
        if line := say(difference, wanted, rng, unheard=unheard):
            said.append(line)
        if len(said) == 3:
            break
    if not said:
        return pick(words.RIGHT, {}, rng, unheard)
    return told(said[: rng.choice((1, 2, 2, 3, 3))], rng)


def say(
    difference: Difference, wanted: Rendering, rng: random.Random, *, unheard: bool = False
) -> str:
    """How a person might say this difference; "" where there are no words for it."""
    phrases, slots = _worded(difference, wanted, rng)
    return sentence(pick(phrases, slots, rng, unheard), rng) if slots else ""


def color_word(color: str) -> str:
    """What people call a colour ("#rrggbb")."""
    one = lab([color]).repeat(len(_PALETTE), axis=0)
    return list(_COLORS.values())[int(color_difference(one, _PALETTE).argmin())]


def _worded(
    difference: Difference, page: Rendering, rng: random.Random
) -> tuple[words.Phrases, Slots]:
    seen, change = difference.seen, difference.change
    if seen in (Seen.MISSING, Seen.EXTRA):
        return words.MISSING if seen is Seen.MISSING else words.EXTRA, _thing(difference, page, rng)
    if seen is Seen.PAGE_COLOR:
        return _color("the page background", change)
    (block,) = difference.wanted
    subject = _subject(block, page)
    if seen is Seen.COLOR:
        return _color(subject, change)
    if seen is Seen.TEXT_COLOR:
        return _color(f'the words "{_name(block)}"' if _name(block) else "", change)
    if seen is Seen.TEXT:
        return words.TEXT, _texts(_subject(block, page, by_place=True), change)
    if seen is Seen.ALIGN:
        wanted, shown = (rng.choice(words.ALIGNMENTS.get(way, ("justified",))) for way in change)
        return words.ALIGN, {"s": subject, "w": wanted, "g": shown}
    if seen is Seen.ORDER:
        return words.ORDER, {"s": subject, "place": _place(difference, page)}
    return words.SCALE, {"s": subject, "c": _comparative(seen, change[0])}


def _color(subject: str, change: tuple[str, str]) -> tuple[words.Phrases, Slots]:
    wanted, shown = map(color_word, change)
    if not subject:
        return words.COLOR, {}
    if wanted != shown:
        return words.COLOR, {"s": subject, "w": wanted, "g": shown}
    lighter = lab([change[0]])[0, 0] > lab([change[1]])[0, 0]
    return words.SCALE, {"s": subject, "c": "lighter" if lighter else "darker"}


def _texts(subject: str, change: tuple[str, str]) -> Slots:
    wanted, shown = map(sayable, change)
    if not wanted or wanted == shown:
        return {}
    return {"s": subject, "w": wanted} | ({"g": shown} if shown else {})


def _comparative(seen: Seen, change: str) -> str:
    if seen is Seen.PLACE:
        return f"further to the {change}"
    if seen is Seen.BOLD:
        return change or "less bold"
    if seen is Seen.HEIGHT:
        return "taller" if change == "bigger" else "shorter"
    return change


# Naming what is seen


def _thing(difference: Difference, page: Rendering, rng: random.Random) -> Slots:
    """What is missing or too much, and where it belongs."""
    some = difference.wanted or difference.shown
    bare = _group(some, rng) if len(some) > 1 else _one(some[0])
    article = "an" if bare[0] in "aeiou" else "a"
    slots = {"a": f"{article} {bare}", "s": f"the {bare}", "bare": bare}
    return slots | ({"place": _place(difference, page)} if difference.wanted else {})


def _one(block: Block) -> str:
    noun, name = _noun(block), _name(block)
    if block.sort is not Sort.AREA:
        return f'{noun} "{name}"' if name else noun
    color = "" if block.box.tag in _LANDMARKS else f"{color_word(block.box.background)} "
    return f'{color}{noun} with "{name}"' if name else f"{color}{noun}"


def _group(some: Sequence[Block], rng: random.Random) -> str:
    noun = _noun(some[0])
    row = max(b.box.y for b in some) < min(b.box.y + b.box.height for b in some)
    count = in_words(len(some)) if rng.random() < 0.7 else str(len(some))
    names = [f'"{name}"' for block in some[:MAX_NAMED] if (name := _name(block))]
    named = f" ({and_list(names)})" if names and len(some) <= MAX_NAMED else ""
    plural = f"{noun[:-1]}es" if noun.endswith("x") else f"{noun}s"
    return f"{'row' if row else 'group'} of {count} {plural}{named}"


def _subject(block: Block, page: Rendering, *, by_place: bool = False) -> str:
    """What a difference is about, with its article."""
    noun, name = _noun(block), _name(block)
    if block.sort is Sort.AREA and block.box.tag in _LANDMARKS:
        return f"the {noun}"
    if name and not by_place:
        return f'the {noun} {"with " if block.sort is Sort.AREA else ""}"{name}"'
    return f"the {noun} {_where(block, page)}"


def _noun(block: Block) -> str:
    return _NOUNS.get(block.box.tag, _OTHERWISE[block.sort])


def _name(block: Block) -> str:
    """The words by which one points at it; "" where it has none."""
    text = sayable(block.box.text or (block.text if block.sort is Sort.AREA else ""))
    if len(text) <= _MAX_NAME_CHARS:
        return text
    return f"{text[:_MAX_NAME_CHARS].rsplit(' ', 1)[0]}…"


def _where(block: Block, page: Rendering) -> str:
    """The part of the page that it stands in."""
    box = block.box
    across = (box.x + box.width / 2) / page.width
    down = (box.y + box.height / 2) / max(page.height, 1)
    side = "left" if across < 0.36 else "right" if across > 0.64 else ""
    level = "top" if down < 0.33 else "bottom" if down > 0.67 else ""
    if level:
        return f"at the {level} {side}".rstrip()
    return f"on the {side}" if side else "in the middle"


def _place(difference: Difference, page: Rendering) -> str:
    """Where it belongs: below something that has a name, else in a part of the page."""
    block, below = difference.wanted[0], difference.below
    if below is not None and below is not block and (name := _name(below)):
        beside = below.box.y + below.box.height > block.box.y + block.box.height / 2
        return f'{"next to" if beside else "below"} "{name}"'
    return _where(block, page)
