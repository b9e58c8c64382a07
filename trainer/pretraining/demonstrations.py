"""Dialogues that the embedded model learns from.

An agent of mixed quality collaborates with the person of a ColBench-Mini task.

The agent repeats what it heard as `Noted: base_fee = 13.`, so the answer copies from its own words
and a person sees at once what was understood.
"""

from __future__ import annotations

import keyword
import random
import string
from dataclasses import dataclass, replace

from sweet.tasks.mini_backend import (
    Number,
    Spec,
    description,
    draw_number,
    draw_spec,
    reference,
    split_of,
)
from sweet.tasks.mini_families import (
    SHAPES,
    Family,
    compose,
    families,
    identifier,
    training_things,
    with_shape,
)
from sweet.tasks.mini_talk import LOGIC_PHRASES, VAGUE, say
from sweet.types import ANSWER_MARK, MAX_TURNS, Message

ASK_NUMBER = (
    "What is the {name}?", "How much is the {name}?", "And the {name}?",
    "What {name} do you use?", "What should the {name} be?",
)  # fmt: skip
ASK = {
    "logic": ("How do you work out the {result}?", "How is the {result} computed?",
              "What is the formula for the {result}?"),
    "at limit": ("At exactly the {limit}, does it already apply?",
                 "Does it apply at exactly the {limit}?"),
    "bound": ("Is there a limit on the {result}?", "Is there a maximum or minimum {result}?"),
    "rounding": ("How should I round the {result}?", "Should the result be rounded?"),
    "": ("Can you tell me more?", "Who is it for?", "Should it print the {result}?",
         "Do you want comments in the code?", "Is there anything else?",
         "What should I know about it?"),
}  # fmt: skip
UNKNOWN = (
    "no idea", "I don't know", "you decide", "I am not sure.", "whatever you like", "No idea.",
    "not sure, you choose", "I have no idea.", "dunno", "does not matter", "I can't say",
)  # fmt: skip


OPENERS = ("Good question.", "Hmm.", "Sure,", "Let me see:", "ok,", "Well,", "Oh,", "I think")

LISTS = (("{name}: {v}", "; "), ("{name}: {v}", ", "), ("{name} is {v}", ", "),
         ("{name} {v}", ", "), ("the {name} is {v}", " and "), ("{name} = {v}", ", "),
         ("{name} = {v}", "\n"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Style:
    """How well an agent asks: the chance to ask for each kind of detail, and to waste a turn.

    One that minds the turns answers in its last one; the others may run out of them.
    """

    logic: float
    number: float
    rest: float
    waste: float
    minds_turns: bool = True


CAREFUL = Style(logic=1.0, number=1.0, rest=1.0, waste=0.03)
MEDIUM = Style(logic=1.0, number=0.85, rest=0.55, waste=0.12)
HASTY = Style(logic=0.8, number=0.45, rest=0.15, waste=0.12)
DITHERING = Style(logic=1.0, number=0.95, rest=0.85, waste=0.55, minds_turns=False)
RAMBLING = Style(logic=1.0, number=0.85, rest=0.55, waste=0.45, minds_turns=False)
RASH = Style(logic=0.8, number=0.45, rest=0.15, waste=0.35)


def random_spec(rng: random.Random) -> Spec:
    """A training task: a known family, one composed afresh, or one about a made-up thing.

    Never a combination of the validation or test split, never a held-out thing.
    """
    while True:
        luck = rng.random()
        if luck < 0.45:
            family = rng.choice(families())
        else:
            made_up = [made_up_word(rng) for _ in range(rng.randint(1, 2))]
            family = compose(rng, training_things(), made_up if luck > 0.62 else ())
        spec = draw_spec(family, rng)
        if split_of(spec) == "train":
            return spec


def made_up_word(rng: random.Random) -> str:
    """Letters in an order that words might have: syllables with an open or a closed end."""
    consonants = sorted(set(string.ascii_lowercase) - set("aeiou"))
    word = rng.choice("aeiou") if rng.random() < 0.2 else ""
    for _ in range(rng.randint(1, 3)):
        onset = "".join(rng.choices(consonants, k=1 + (rng.random() < 0.2)))
        coda = rng.choice(consonants) if rng.random() < 0.45 else ""
        word += onset + rng.choice("aeiou") + rng.choice(("", "", "", *"aeiou")) + coda
    return word if word not in keyword.kwlist else made_up_word(rng)


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One collaboration, and the lines of its answer whose number nobody told: mere guesses."""

    messages: list[Message]
    guesses: tuple[str, ...]


def demonstrate(spec: Spec, style: Style, rng: random.Random) -> Demonstration:
    """A collaboration from the description to the answer, at most ten agent messages."""
    making = _Making(spec, style, rng)
    messages = making.messages()
    return Demonstration(messages, tuple(making.guessed_lines))


def dialogue(spec: Spec, style: Style, rng: random.Random) -> list[Message]:
    """The messages of `demonstrate`."""
    return demonstrate(spec, style, rng).messages


class _Making:
    """One dialogue in the making: what was told so far decides what the answer says."""

    def __init__(self, spec: Spec, style: Style, rng: random.Random):
        self.spec, self.style, self.rng = spec, style, rng
        self.opening = description(spec, rng)
        self.told: set[str] = {
            n for n, v in spec.constants.items() if f"The {n} is {v}." in self.opening
        }
        self.guesses: dict[str, Number] = {}
        self.guessed_lines: list[str] = []
        self.skippable = {*(n for _, n in spec.family.names), "bound", "at limit"}

    def messages(self) -> list[Message]:
        out, acknowledgement = [Message("user", self.opening)], ""
        plan = self._plan()
        questions = MAX_TURNS - 1 if self.style.minds_turns else MAX_TURNS
        while plan and len(out) < 2 * questions + 1:
            key = plan.pop(0)
            if key in self.told and key in self.skippable:
                continue
            self.skippable.discard(key)
            question = self._question(key)
            out.append(Message("assistant", f"{acknowledgement} {question}".strip()))
            reply, acknowledgement = self._answer(key)
            out.append(Message("user", reply))
            if key == "logic" and key not in self.told:
                plan.insert(0, key)
        if len(out) > 2 * MAX_TURNS:
            return out[:-1]  # it ran out of turns: its last message is a question
        answer = f"{acknowledgement} {ANSWER_MARK}\n{self._code()}".strip()
        return [*out, Message("assistant", answer)]

    def _plan(self) -> list[str]:
        rng, style = self.rng, self.style
        plan = ["logic"] if rng.random() < style.logic else []
        names = [n for _, n in self.spec.family.names if n not in self.told]
        if plan:
            plan += [n for n in names if rng.random() < style.number]
            if self.spec.limit_name and rng.random() < style.rest:
                plan.append("at limit")
        if self.spec.family.shape.bounded or not plan:
            plan += [k for k in ("bound", "rounding") if rng.random() < style.rest]
        if plan[:1] == ["logic"] and rng.random() < 0.15:
            plan[1:] = rng.sample(plan[1:], len(plan) - 1)
        for i in range(len(plan), -1, -1):
            while rng.random() < style.waste:
                again = rng.random() < 0.5 and i > 0
                plan.insert(i, plan[rng.randrange(i)] if again else "")
        return plan

    def _question(self, key: str) -> str:
        phrases = ASK.get(key, ASK_NUMBER)
        fields = {"name": key, "result": self.spec.family.result, "limit": self.spec.limit_name}
        return self.rng.choice(phrases).format(**fields)

    def _answer(self, key: str) -> tuple[str, str]:
        """The reply to a question, and how the agent acknowledges it in its next message."""
        rng, spec = self.rng, self.spec
        if not key:
            phrase = rng.choice(VAGUE)
            return phrase.format(result=spec.family.result, q=spec.family.q), "OK."
        repeated = key in self.told
        if (key == "logic" or key in spec.constants) and rng.random() < 0.06:
            return self._list(key)
        self.told.add(key)
        if not repeated and key != "logic" and rng.random() < 0.04:
            return rng.choice(UNKNOWN), self._assume(key)
        if key == "logic" and rng.random() < 0.2:
            return self._logic_in_code() if rng.random() < 0.5 else self._logic_with_numbers()
        reply = say(key, spec, rng)
        if key in spec.constants:
            self.guesses.pop(key, None)
        facts = [] if key == "logic" else [self._fact(key)]
        if repeated and rng.random() < 0.7:
            reply = f"As I said, {reply}"
        elif key != "logic" and rng.random() < 0.08:
            reply = self._with_more(reply, facts)
        elif rng.random() < 0.1:
            reply = f"{rng.choice(OPENERS)} {reply}"
        if rng.random() < 0.05:
            reply = with_slip(reply, rng)
        return reply, f"Noted: {', '.join(facts)}." if facts else "I see."

    def _assume(self, key: str) -> str:
        """The agent's own choice for a detail that the person can't tell."""
        if key == "bound":
            self.told.discard(key)
            return "Then no limit."
        if key == "rounding":
            self.told.discard(key)
            return "Then no rounding."
        if key == "at limit":
            self.spec = replace(self.spec, cmp=">")
        else:
            slot = {name: slot for slot, name in self.spec.family.names}[key]
            self.guesses[key] = draw_number(slot, self.rng)
        return f"Then I take {self._fact(key)}."

    def _with_more(self, reply: str, facts: list[str]) -> str:
        """The reply with another detail told unasked, or an earlier one corrected."""
        names = [n for _, n in self.spec.family.names]
        more = [n for n in names if n not in self.told]
        earlier = [n for n in names if n in self.told and self._fact(n) not in facts]
        if more and (not earlier or self.rng.random() < 0.5):
            name = self.rng.choice(more)
            self.told.add(name)
            facts.append(self._fact(name))
            return f"{reply.rstrip('.')}. The {name} is {self.spec.constants[name]}."
        if not earlier:
            return reply
        name = self.rng.choice(earlier)
        slot = {name: slot for slot, name in self.spec.family.names}[name]
        self.guesses[name] = draw_number(slot, self.rng)
        facts.insert(0, self._fact(name))
        return f"Sorry, the {name} is {self.guesses[name]}. {reply}"

    def _list(self, key: str) -> tuple[str, str]:
        """Several numbers in one reply, as a list, whatever was asked."""
        names = list(dict.fromkeys(n for _, n in self.spec.family.names))
        if self.spec.bound and self.rng.random() < 0.5:
            names.append(self.spec.bound_name)
        chosen = [n for n in names if n == key or self.rng.random() < 0.7] or names[:1]
        form, comma = self.rng.choice(LISTS)
        told = []
        for name in chosen:
            self.guesses.pop(name, None)
            self.told |= {name, "bound"} if name == self.spec.bound_name else {name}
            said = identifier(name) if "=" in form else name
            told.append(form.format(name=said, v=self.spec.constants[name]))
        return comma.join(told), f"Noted: {', '.join(map(self._fact, chosen))}."

    def _logic_in_code(self) -> tuple[str, str]:
        """The logic told as people who program tell it."""
        if self.spec.limit_name:
            self.told.add("at limit")
        family = self.spec.family
        lines = [family.fill(x, code=True, cmp=self.spec.cmp).strip() for x in family.shape.body]
        code = self.rng.choice(("; ", " ", "\n")).join(lines)
        return code if self.rng.random() < 0.5 else code.removeprefix("total = "), "I see."

    def _logic_with_numbers(self) -> tuple[str, str]:
        """The logic told with some of its numbers at once."""
        formula = self.spec.family.fill(self.spec.family.shape.formula, code=False)
        facts = []
        for name in dict.fromkeys(n for _, n in self.spec.family.names):
            if self.rng.random() < 0.6 and name not in self.told:
                self.told.add(name)
                facts.append(self._fact(name))
                value = self.spec.constants[name]
                said = self.rng.choice((f"{name} of {value}", f"{name} ({value})"))
                formula = formula.replace(f"the {name}", f"the {said}", 1)
        reply = self.rng.choice(LOGIC_PHRASES).format(formula=formula)
        return reply, f"Noted: {', '.join(facts)}." if facts else "I see."

    def _fact(self, key: str) -> str:
        spec = self.spec
        if key == spec.bound_name and spec.bound:
            key = "bound"
        if key == "at limit":
            subject = spec.family.b if spec.family.shape.name == "surcharge" else spec.family.q
            return f"{subject} {spec.cmp} {identifier(spec.limit_name)}"
        if key == "bound":
            return f"{identifier(spec.bound_name)} = {spec.bound[1]}" if spec.bound else "no limit"
        if key == "rounding":
            word = {"none": "no rounding", "nearest": "round to nearest"}
            return word.get(spec.rounding, f"round {spec.rounding}")
        return f"{identifier(key)} = {self.guesses.get(key, spec.constants[key])}"

    def _code(self) -> str:
        """The answer: what was told, and guesses for the rest."""
        spec, rng = self.spec, self.rng
        if "logic" not in self.told:
            spec = draw_spec(_guess_logic(spec.family, rng), rng)
            return reference(replace(spec, bound=None, rounding="none"))
        numbers = []
        for (slot, value), (_, name) in zip(spec.numbers, spec.family.names, strict=True):
            known = value if name in self.told else draw_number(slot, rng)
            numbers.append((slot, self.guesses.get(name, known)))
            if name not in self.told:
                self.guessed_lines.append(f"{identifier(name)} = {known}")
        cmp = spec.cmp if "at limit" in self.told else rng.choice((">", ">="))
        bound = spec.bound if {"bound", spec.bound_name} & self.told else None
        rounding = spec.rounding if "rounding" in self.told else "none"
        return reference(
            replace(spec, numbers=tuple(numbers), cmp=cmp, bound=bound, rounding=rounding)
        )


def with_slip(text: str, rng: random.Random) -> str:
    """`text` with a letter of one longer word lost."""
    words = text.split(" ")
    long = [i for i, w in enumerate(words) if len(w) > 4 and w.isalpha()]
    if long:
        i = rng.choice(long)
        cut = rng.randrange(1, len(words[i]))
        words[i] = words[i][:cut] + words[i][cut + 1 :]
    return " ".join(words)


def _guess_logic(family: Family, rng: random.Random) -> Family:
    return with_shape(family, [s for s in SHAPES if s.args == family.shape.args], rng)
