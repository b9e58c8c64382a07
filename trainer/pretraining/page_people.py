"""How the people of the demonstrations speak: as the script does, and worse.

Brief, in lower case, with other words for colours, with slips, several wishes in a breath, or in
words of which only those count that name a part, a place or a value.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from sweet.tasks.mini_pages import CLASSES, Kind, PageSpec
from sweet.tasks.page_differences import Difference, What
from sweet.tasks.page_phrases import ALIGNMENTS, COMPARATIVES, OPENINGS, PARTS, Phrases
from sweet.tasks.page_talk import pick, say_difference, sentence, slots_for
from trainer.pretraining.demonstrations import made_up_word, with_slip

ODD = (
    "hmm", "ok", "nice", "I like it", "thanks", "why?", "???", "What do you think?", "Cool!",
    "not sure", "hello", "let me see", "interesting", "good", "is it done?", "no idea",
)  # fmt: skip
"""What names nothing to change, and doesn't say that it is right either."""

BRIEF: dict[Kind, tuple[str, ...]] = {
    Kind.COLOR: ("{b} {w}", "{w} {b}", "{w} {b} please", "{b}: {w}", "{b} -> {w}", "{b}={w}",
                 "{b} color {w}", "{b} in {w}", "{w} for {b}", "the {b} {w}", "{b} {w}!!"),
    Kind.ALIGN: ("{b} {w}", "{b}: {w}", "{b} text {w}", "{b} -> {w}", "align {b} {w}"),
    Kind.SIZE: ("{b} title {w}", "{w} {b} title", "{b} title: {w}", "{w} title in {b}"),
    Kind.HEIGHT: ("{b} {w}", "{w} {b}", "{b}: {w}", "{w} {b} please"),
    Kind.COLUMNS: ("{w} columns", "columns: {w}", "cards in {w} columns please"),
    Kind.MARKS: ("{b} with {w}", "{w} in {b}", "{b}: {w}", "{w} please"),
    Kind.TEXT: ('{b}: "{w}"', '{b} "{w}"', '{b} -> "{w}"', "{b}: {w}", "{b} says '{w}'"),
}  # fmt: skip
RELATIVE = {
    Kind.SIZE: ("make the {b} title {c}", "{c} {b} title", "the {b} title should be {c}",
                "{b} title {c} please"),
    Kind.HEIGHT: ("make the {b} {c}", "{c} {b}", "the {b} should be {c}"),
}  # fmt: skip
LOOSE = {
    What.DETAIL: Phrases((
        "{f} {s} {h} {w}", "{s} {f} {w} {h}", "{f} {w} {h} {s}", "{f} {s} {w}, not {g}",
        "{s} {g}? {f} {w}", "{f} {s} {h} {w} rather than {g}", "{g} {f} {s}, so {h} {w}",
    ), ()),
    What.EXTRA: Phrases((
        "{r} {s}", "{f} {r} {s}", "{r} {s} {f}", "{r} {a}", "{r} this {bare}",
    ), ()),
    What.MISSING: Phrases((
        "{f} {a} {place}", "{a} {f} {place}", "{f} {a}", "{m} {a} {place}", "{m} {a}",
    ), ()),
    What.ORDER: Phrases((
        "{f} {s} {place}", "{s} {f} {place}", "{s} {place} {f}", "{s}: {place}",
    ), ()),
}  # fmt: skip
"""Phrases with {f}, {h}: any words; {r}: words for taking away, {m}: for what is missing."""
FILLERS = (
    "set", "get", "let us", "try", "draw", "place", "show", "render", "have", "keep", "design",
    "style", "really", "just", "maybe", "simply", "better", "now", "again", "still", "rather",
    "somehow", "definitely", "nicer", "with", "as", "would look", "looks", "seems", "feels",
    "to me", "for me", "if possible", "I guess", "I think", "I believe", "I prefer", "we prefer",
    "my idea was", "my plan says", "in my picture", "on my screen", "the client says", "it is",
    "that is", "needs", "wants", "becomes", "stays", "was", "will be", "could", "might", "may",
    "next", "then", "first of all", "one thing", "by the way", "ideally", "ok so", "hey", "hi",
    "colleagues said", "we agreed on", "somebody", "everybody likes", "fix", "adjust", "update",
    "correct", "switch", "choose", "pick", "take", "see", "check", "look at", "about",
)  # fmt: skip
REMOVALS = (
    "cut", "hide", "erase", "lose", "scrap", "omit", "skip", "kill", "throw out", "kick out",
    "strike", "away with", "without", "no more", "I can do without", "we do not need",
    "nobody needs", "not needed:", "clear", "eliminate", "discard", "exclude", "do not show",
)  # fmt: skip
ADDITIONS = (
    "insert", "include", "create", "build", "give me", "let there be", "also", "plus", "append",
    "do not forget", "there is still missing", "what is missing is", "it lacks", "I also need",
)  # fmt: skip
OTHER_WORDS = (
    ("gray", "grey", 0.2), ("dark blue", "navy", 0.06), ("purple", "violet", 0.06),
    ("light ", "pale ", 0.04), ("dark ", "deep ", 0.04),
)  # fmt: skip
BETWEEN = (" and ", ", ", "; ", ". ", "\n", ", and ", ". also ")


def say_all(
    told: Sequence[Difference], page: PageSpec, rng: random.Random
) -> tuple[str, list[str]]:
    """One message with some differences from `page`, and what was meant of each."""
    meant = [_say(difference, rng) for difference in told]
    said = [_worse(text, d, rng) for text, d in zip(meant, told, strict=True)]
    if rng.random() < 0.3:
        text = rng.choice(BETWEEN).join(one.rstrip(".") for one in said)
    else:
        text = " ".join([*(s if s[-1] in ".?!" else f"{s}." for s in said[:-1]), said[-1]])
    if rng.random() < 0.2:
        text = f"{rng.choice(OPENINGS)} {text}"
    return text, meant


def _say(difference: Difference, rng: random.Random) -> str:
    kind = difference.kind
    if kind is not Kind.ITEMS and rng.random() < 0.2:
        return _loosely(difference, rng)
    if difference.what is not What.DETAIL or kind not in BRIEF or rng.random() < 0.75:
        return say_difference(difference, rng)
    b = rng.choice(PARTS[difference.section])
    if difference.detail.startswith("button"):
        b = rng.choice((f"{b} button", f"button in the {b}"))
    elif difference.detail == "title" and kind is Kind.TEXT:
        b = f"{b} title"
    relative = _relative(difference)
    if relative and rng.random() < 0.3:
        return rng.choice(RELATIVE[kind]).format(b=b, c=relative)
    value = str(difference.wanted)
    w = rng.choice(ALIGNMENTS[value]) if kind is Kind.ALIGN else value
    return rng.choice(BRIEF[kind]).format(b=b, w=w)


def _loosely(difference: Difference, rng: random.Random) -> str:
    """The part, the place and the value, and around them words as they come."""
    slots = slots_for(difference, rng)
    if difference.kind is Kind.TEXT:
        slots |= {slot: f'"{slots[slot]}"' for slot in ("w", "g") if slot in slots}
    slots |= {"r": rng.choice(REMOVALS), "m": rng.choice(ADDITIONS)}
    slots |= {slot: _filler(rng) for slot in ("f", "h")}
    return sentence(pick(LOOSE[difference.what], slots, rng, unheard=False), rng)


def _filler(rng: random.Random) -> str:
    return rng.choice(FILLERS) if rng.random() < 0.8 else made_up_word(rng)


def _relative(difference: Difference) -> str:
    """Bigger, shorter and the like, where one step is meant."""
    if difference.kind not in COMPARATIVES:
        return ""
    order = list(CLASSES[difference.kind])
    step = order.index(difference.wanted) - order.index(difference.shown)
    return COMPARATIVES[difference.kind][step > 0] if abs(step) == 1 else ""


def _worse(text: str, difference: Difference, rng: random.Random) -> str:
    """What was meant, as it is typed; texts of the page stay as they are."""
    if difference.kind in (Kind.TEXT, Kind.ITEMS):
        return text
    if difference.kind is Kind.COLOR:
        for word, other, chance in OTHER_WORDS:
            if word in text and rng.random() < chance:
                text = text.replace(word, other)
    if rng.random() < 0.1:
        text = text.lower()
    return with_slip(text, rng) if rng.random() < 0.04 else text
