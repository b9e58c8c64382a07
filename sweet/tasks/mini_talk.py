"""What the collaborator of a ColBench-Mini task says.

Which detail a question asks for, and how people put the answer.

The same phrasings play the scripted collaborator and make the training dialogues.
"""

from __future__ import annotations

import random
import re

from sweet.tasks.mini_backend import Number, Spec, parse_reference
from sweet.types import Exchange, HiddenInfo

ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ["_", "_", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]

NUMBER_PHRASES = (
    "{v}", "{v}", "{v}", "{v}.", "It is {v}.", "it's {v}", "{v} please", "make it {v}",
    "The {name} is {v}.", "It should be {v}.", "let's say {v}", "I would say {v}.", "{v}, I think",
    "use {v}", "exactly {v}", "that would be {v}", "Take {v}.", "we use {v}", "set it to {v}",
    "It's {v}, please.", "just {v}", "hmm, {v}", "at the moment {v}", "I want {v} there",
    "our {name} is {v}", "ok so it is {v}", "That is {v}.", "the answer is {v}", "put {v}",
    "{v} for now", "well, {v}", "Always {v}.", "{v} for everybody", "oh, {v} of course",
)  # fmt: skip
MONEY_UNITS = ("dollars", "euros", "bucks", "$", "usd", "pounds", "points")
PERCENT_UNITS = ("%", "percent", "per cent")
LOGIC_PHRASES = (
    "It is {formula}.", "Take {formula}.", "{formula}.", "We use {formula}.",
    "That is {formula}.", "I want {formula}.", "it's {formula}", "{formula}, that is all",
    "Simply {formula}.", "you take {formula}",
)  # fmt: skip
AT_LIMIT = {
    ">=": ("yes", "Yes.", "Yes, inclusive.", "yes it does", "yep", "yes, from there on",
           "Yes, already then.", "inclusive", "it does", "yes please", "yeah", "of course",
           "Yes, exactly at it too.", "right, it counts", "sure", "correct"),
    ">": ("no", "No.", "No, only above.", "no it does not", "nope", "only above it",
          "No, exclusive.", "exclusive", "not yet", "No, it has to be more.", "not at the limit",
          "no, just beyond it", "nah", "No, strictly more.", "only if it is more"),
}  # fmt: skip
BOUND = {
    "max": ("At most {v}.", "Never more than {v}.", "yes, {v} at most", "Yes, a maximum of {v}.",
            "max {v}", "It should not go over {v}.", "yes, not above {v}", "the maximum is {v}",
            "cap it at {v}", "up to {v}"),
    "min": ("At least {v}.", "Never less than {v}.", "yes, {v} at least", "Yes, a minimum of {v}.",
            "min {v}", "It should not go below {v}.", "yes, not under {v}", "the minimum is {v}"),
    "": ("No.", "No limit.", "no", "There is none.", "none", "nope, no limit",
         "No, it can be any."),
}  # fmt: skip
ROUND = {
    "none": ("No rounding.", "Not at all.", "don't round", "no", "Do not round it.", "leave it",
             "no rounding please", "as it is"),
    "up": ("Round up.", "up", "Always up.", "Up, please.", "to the next whole number", "upwards",
           "yes, up", "the next higher one"),
    "down": ("Round down.", "down", "Always down.", "Down, please.", "cut it off", "downwards",
             "yes, down", "drop the decimals"),
    "nearest": ("To the nearest whole number.", "nearest", "the usual rounding", "round normally",
                "Round to the nearest one.", "yes, to the nearest", "the closest whole number"),
}  # fmt: skip
VAGUE = (
    "I only need the {result}.", "It depends on the {q}.", "That does not matter.",
    "I don't know about that.", "Nothing special.", "Just what I said.", "I have no idea.",
    "Whatever you like.",
)  # fmt: skip


def in_words(value: Number) -> str:
    """`value` spelt out where it is a whole number below a hundred, else its digits."""
    if not isinstance(value, int) or not 0 <= value < 100:
        return str(value)
    if value < 20:
        return ONES[value]
    tens, ones = divmod(value, 10)
    return TENS[tens] + (f" {ONES[ones]}" if ones else "")


def say_number(name: str, value: Number, rng: random.Random) -> str:
    """How a person might say a numeric detail."""
    text = in_words(value) if rng.random() < 0.12 else str(value)
    if value >= 1000 and rng.random() < 0.3:
        text = f"{value:,}"
    if "percent" in name and rng.random() < 0.4:
        text += " " + rng.choice(PERCENT_UNITS)
    elif rng.random() < 0.15:
        unit = rng.choice(MONEY_UNITS)
        text = f"${text}" if unit == "$" else f"{text} {unit}"
    return rng.choice(NUMBER_PHRASES).format(v=text, name=name)


def say(key: str, spec: Spec, rng: random.Random) -> str:
    """How a person might tell the detail `key` (see `asked`) of this spec."""
    if key == "logic":
        formula = spec.family.fill(spec.family.shape.formula, code=False)
        return rng.choice(LOGIC_PHRASES).format(formula=formula)
    if key == "at limit":
        return rng.choice(AT_LIMIT[spec.cmp])
    if key == "bound":
        kind, value = spec.bound or ("", 0)
        return rng.choice(BOUND[kind]).format(v=value)
    if key == "rounding":
        return rng.choice(ROUND[spec.rounding])
    return say_number(key, spec.constants[key], rng)


_LOGIC = re.compile(
    r"\b(how|what|which)\b.*\b(work(ed|s)?|calculat\w*|comput\w*|determin\w*|formula|logic|rules?"
    r"|made up|put together|depends?)\b"
)
_AT_LIMIT = re.compile(r"\b(exactly|inclusive|exclusive|boundary|equal|at the (limit|threshold))\b")
_BOUND = re.compile(
    r"\b(maximum|minimum|at most|at least|bounds?|cap|capped|ceiling|highest|lowest"
    r"|limits? (on|to|of)|(any|a) limits?|upper or lower|never (more|less|above|below))\b"
)


def asked(question: str, spec: Spec) -> list[str]:
    """The details that a question asks for.

    Numeric ones by name, "logic", "at limit", "bound", "rounding"; empty where it asks for
    nothing that this collaborator knows.
    """
    text = re.sub(r"[^a-z0-9 ]+", " ", question.lower().replace("_", " "))
    text = " ".join(text.split())
    if spec.limit_name and _AT_LIMIT.search(text):
        return ["at limit"]
    named = [n for n in dict.fromkeys(dict(spec.family.names).values()) if f" {n} " in f" {text} "]
    if named:
        return named[:2]
    if re.search(r"\bround", text):
        return ["rounding"]
    if _LOGIC.search(text):
        return ["logic"]
    if _BOUND.search(text):
        return ["bound"]
    return _by_words(text, spec)


def _by_words(text: str, spec: Spec) -> list[str]:
    """The one detail whose name shares most words with the text, if only one does."""
    words = set(text.split()) - {spec.family.result, spec.family.q, "per", "for"}
    shared = {n: len(set(n.split()) & words) for n in dict(spec.family.names).values()}
    best = max(shared.values())
    leaders = [n for n, count in shared.items() if count == best]
    return leaders if best and len(leaders) == 1 else []


def reply_to(question: str, hidden: HiddenInfo, history: tuple[Exchange, ...], seed: int) -> str:
    """What the scripted collaborator says to the agent's `question`.

    It knows only what is hidden, answers only what is asked, and a question that asks for nothing
    it knows costs a turn. Raises: TaskDataError where the reference is no ColBench-Mini one.
    """
    spec = parse_reference(hidden.reference)
    rng = random.Random(f"{seed}/{len(history)}/{question}")
    question = without_notes(question)
    keys = asked(question, spec)
    if not keys:
        return rng.choice(VAGUE).format(result=spec.family.result, q=spec.family.q)
    replies = [say(key, spec, rng) for key in keys]
    if len(keys) == 2:
        return " ".join(f"The {key} is {spec.constants[key]}." for key in keys)
    told = any(asked(without_notes(e.agent), spec) == keys for e in history)
    return f"As I said, {replies[0]}" if told else replies[0]


def without_notes(message: str) -> str:
    """The agent's message without the "Noted: …" lines in which it repeats what it heard."""
    return re.sub(r"\bNoted: [^.?]*(\.\d+[^.?]*)*\.", " ", message).strip() or message
