"""The families of ColBench-Mini: what small functions are about, and the shapes their logic takes.

A family is a thing (parking, a taxi ride, …), a shape of logic and a name for each hidden detail.
Families are composed from word lists by seed, so there are hundreds to train on, and the things
of the held-out ones appear nowhere in training.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

FAMILIES = 400  # families to draw training, validation and test tasks from
HELD_OUT_FAMILIES = 60  # whole families, about things that training never mentions


@dataclass(frozen=True, slots=True)
class Shape:
    """One way to compute a total.

    `slots` are the numeric details by kind, in the order people tell them; `formula` says the
    logic in words, `body` in code, with {slot}, {q} (first quantity), {b} (second), {c} (third),
    {flag}, {unit}, {cmp} (">" or ">="). `args` says which arguments the function takes.
    """

    name: str
    slots: tuple[str, ...]
    formula: str
    body: tuple[str, ...]
    args: tuple[str, ...] = ("q",)
    strict_slot: str = ""  # the limit whose boundary is a hidden detail of its own
    bounded: bool = True  # a limit on the result and rounding can be wished for


SHAPES = (
    Shape(
        "linear",
        ("base", "rate"),
        "the {base} plus the {rate} for every {unit}",
        ("total = {base} + {q} * {rate}",),
    ),
    Shape(
        "free",
        ("rate", "free"),
        "the {rate} for every {unit} after the {free}",
        ("total = 0", "if {q} > {free}:", "    total = ({q} - {free}) * {rate}"),
    ),
    Shape(
        "base_free",
        ("base", "rate", "free"),
        "the {base}, plus the {rate} for every {unit} after the {free}",
        ("total = {base}", "if {q} > {free}:", "    total = {base} + ({q} - {free}) * {rate}"),
    ),
    Shape(
        "two_rates",
        ("rate", "limit", "high"),
        "the {rate} for every {unit} up to the {limit}, and the {high} for every {unit} after that",
        (
            "total = {q} * {rate}",
            "if {q} > {limit}:",
            "    total = {limit} * {rate} + ({q} - {limit}) * {high}",
        ),
    ),
    Shape(
        "surcharge",
        ("rate", "extra", "limit"),
        "the {rate} for every {unit}, plus the {extra} when the {b} passes the {limit}",
        ("total = {q} * {rate}", "if {b} {cmp} {limit}:", "    total = total + {extra}"),
        args=("q", "b"),
        strict_slot="limit",
    ),
    Shape(
        "discount",
        ("rate", "percent", "limit"),
        "the {rate} for every {unit}, less the {percent} when the {q} passes the {limit}",
        (
            "total = {q} * {rate}",
            "if {q} {cmp} {limit}:",
            "    total = total - total * {percent} / 100",
        ),
        strict_slot="limit",
    ),
    Shape(
        "steps",
        ("low", "limit", "high"),
        "the {low} until the {q} passes the {limit}, then the {high}",
        ("total = {low}", "if {q} {cmp} {limit}:", "    total = {high}"),
        strict_slot="limit",
        bounded=False,
    ),
    Shape(
        "flag",
        ("rate", "less"),
        "the {rate} for every {unit}, less the {less} for a {flag}",
        ("total = {q} * {rate}", "if is_{flag}:", "    total = total - {less}"),
        args=("q", "flag"),
    ),
    Shape(
        "flag_rates",
        ("base", "rate", "low"),
        "the {base} plus the {rate} for every {unit}, but a {flag} pays the {low} for every {unit}",
        (
            "total = {base} + {q} * {rate}",
            "if is_{flag}:",
            "    total = {base} + {q} * {low}",
        ),
        args=("q", "flag"),
    ),
    Shape(
        "product",
        ("base", "rate"),
        "the {base} plus the {rate} for every {unit}, times the {b}",
        ("total = ({base} + {q} * {rate}) * {b}",),
        args=("q", "b"),
    ),
    Shape(
        "sum",
        ("rate", "second", "base"),
        "the {rate} for every {unit} and the {second} for each of the {b}, plus the {base}",
        ("total = {q} * {rate} + {b} * {second} + {base}",),
        args=("q", "b"),
    ),
)

# a thing, what it costs or gives, and its quantities as argument:unit
_THINGS = """
parking fee,price,charge hours:hour,days:day
taxi fare,price,charge kilometers:kilometer,minutes:minute
parcel cost,fee,price weight:kilo,parcels:parcel
courier cost,charge,fee distance:mile,boxes:box
electricity bill,cost,charge units:unit,months:month
water bill,cost,charge liters:liter,weeks:week
hotel bill,price,cost nights:night,rooms:room
cinema price,cost,bill seats:seat,snacks:snack
gym price,fee,bill visits:visit,months:month
library fine,fee,charge days:day,books:book
printing cost,price,bill pages:page,copies:copy
phone bill,cost,charge minutes:minute,messages:message
bakery bill,price,discount cakes:cake,loaves:loaf
laundry price,cost,bill loads:load,shirts:shirt
bike price,fee,rent hours:hour,bikes:bike
boat rent,price,fee hours:hour,guests:guest
storage rent,cost,fee months:month,boxes:box
salary pay,bonus,total hours:hour,shifts:shift
sales bonus,pay,reward deals:deal,calls:call
delivery fee,cost,charge kilometers:kilometer,stops:stop
toll fee,charge,price axles:axle,kilometers:kilometer
garden cost,bill,price hours:hour,trees:tree
cleaning bill,price,cost rooms:room,windows:window
painting cost,price,bill walls:wall,hours:hour
moving cost,bill,price hours:hour,boxes:box
quiz score,points,reward answers:answer,rounds:round
game score,points,bonus levels:level,coins:coin
race score,points,reward laps:lap,wins:win
loyalty points,reward,bonus orders:order,visits:visit
energy score,cost,bill steps:step,minutes:minute
insurance cost,price,fee years:year,claims:claim
repair cost,bill,price hours:hour,parts:part
catering bill,cost,price guests:guest,meals:meal
school fee,cost,bill pupils:pupil,lessons:lesson
music price,fee,bill lessons:lesson,songs:song
photo price,cost,fee prints:print,hours:hour
ticket price,cost,bill seats:seat,zones:zone
camping fee,price,bill nights:night,tents:tent
server cost,bill,charge hours:hour,requests:request
software price,fee,bill users:user,months:month
coffee bill,price,cost cups:cup,bags:bag
pizza bill,price,cost pizzas:pizza,toppings:topping
flower price,bill,cost roses:rose,bunches:bunch
pet fee,cost,price walks:walk,pets:pet
farm pay,cost,reward crates:crate,acres:acre
fuel cost,bill,price liters:liter,trips:trip
road fine,charge,fee points:point,days:day
bank fee,charge,cost payments:payment,months:month
"""
_HELD_OUT_THINGS = """
sauna price,fee,bill minutes:minute,towels:towel
ferry fare,price,charge cars:car,miles:mile
museum price,cost,fee tours:tour,hours:hour
tutor pay,price,bill hours:hour,essays:essay
locker rent,fee,charge weeks:week,lockers:locker
drone cost,price,fee flights:flight,minutes:minute
archery score,points,reward arrows:arrow,rounds:round
harvest pay,bonus,total baskets:basket,hours:hour
"""
_FLAGS = ("member", "student", "resident", "partner", "regular", "senior", "child", "teacher")
_SECOND = ("weight", "age", "distance", "size", "height", "duration", "volume", "level", "people")
_RATES = ("price per {unit}", "{unit} rate", "cost per {unit}", "{unit} charge", "rate per {unit}")
_NAMES = {
    "base": ("base {result}", "starting {result}", "fixed {result}", "entry {result}", "flat fee",
             "booking fee", "opening charge", "service charge", "setup cost", "standing charge"),
    "free": ("free {q}", "included {q}", "free allowance", "starting allowance", "grace amount"),
    "limit": ("{q} limit", "normal {q}", "threshold", "upper limit", "turning point"),
    "extra": ("extra fee", "surcharge", "handling fee", "special charge", "additional amount"),
    "percent": ("discount percent", "bulk percent", "rebate percent", "reduction percent"),
    "less": ("{flag} discount", "{flag} rebate", "{flag} reduction", "special discount"),
    "second": ("charge per piece", "side rate", "second rate", "additional rate"),
}  # fmt: skip
_SHAPE_NAMES = {
    ("steps", "low"): ("low {result}", "small {result}", "first {result}", "basic {result}"),
    ("steps", "high"): ("high {result}", "large {result}", "second {result}", "full {result}"),
    ("two_rates", "high"): ("higher rate", "extra rate", "overtime rate", "second rate"),
    ("flag_rates", "low"): ("{flag} rate", "reduced rate", "lower rate", "special rate"),
    ("surcharge", "limit"): ("{b} limit", "normal {b}", "allowed {b}", "threshold"),
}


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of function: its name, arguments, logic and the name of each numeric detail."""

    function: str
    thing: str
    result: str
    shape: Shape
    q: str
    unit: str
    b: str
    flag: str
    names: tuple[tuple[str, str], ...]  # slot → name in words, in the shape's order

    @property
    def args(self) -> tuple[str, ...]:
        """The function's parameter names."""
        by_kind = {"q": self.q, "b": self.b, "flag": f"is_{self.flag}"}
        return tuple(by_kind[a] for a in self.shape.args)

    @property
    def signature(self) -> str:
        """What follows "The signature of the function is:" in a description."""
        return f"def {self.function}({', '.join(self.args)})"

    def fill(self, template: str, *, code: bool, cmp: str = "") -> str:
        """`template` with this family's names, as identifiers or in words."""
        names = {s: identifier(n) if code else n for s, n in self.names}
        fields = {"q": self.q, "b": self.b, "unit": self.unit, "flag": self.flag, "cmp": cmp}
        return template.format(**names, **fields)


def identifier(words: str) -> str:
    """The Python name of a detail said in words."""
    return words.replace(" ", "_")


def compose(rng: random.Random, things: list[str], made_up: Sequence[str] = ()) -> Family:
    """A family put together from the word lists.

    `made_up` words replace the name of the thing and, where there is a second, of what is counted.
    """
    thing, results, quantities = rng.choice(things).split()
    result = rng.choice(results.split(","))
    q, unit = rng.choice(quantities.split(",")).split(":")
    b, flag = rng.choice([w for w in _SECOND if w not in q]), rng.choice(_FLAGS)
    if made_up:
        thing = made_up[0]
    if len(made_up) > 1:
        q, unit = f"{made_up[1]}s", made_up[1]
    function = rng.choice((f"{thing}_{result}", f"{thing}_{result}", f"get_{thing}_{result}"))
    return with_shape(Family(function, thing, result, SHAPES[0], q, unit, b, flag, ()), SHAPES, rng)


def with_shape(family: Family, shapes: Sequence[Shape], rng: random.Random) -> Family:
    """The same function with a logic drawn from `shapes` and new names for its details."""
    shape = rng.choice(shapes)
    words = {"result": family.result, "unit": family.unit, "q": family.q}
    words |= {"b": family.b, "flag": family.flag}
    names: dict[str, str] = {}
    for slot in shape.slots:
        pool = _RATES if slot == "rate" else _SHAPE_NAMES.get((shape.name, slot)) or _NAMES[slot]
        filled = [n.format(**words) for n in pool]
        names[slot] = rng.choice([n for n in filled if n not in names.values()])
    return replace(family, shape=shape, names=tuple(names.items()))


def training_things() -> list[str]:
    """The word list of things that training may mention, a line each."""
    return _THINGS.strip().splitlines()


@cache
def families() -> tuple[Family, ...]:
    """The known families: of training, validation and test."""
    return _distinct(training_things(), FAMILIES, seed=1)


@cache
def held_out_families() -> tuple[Family, ...]:
    """Families that training never saw, about things it never mentions."""
    return _distinct(_HELD_OUT_THINGS.strip().splitlines(), HELD_OUT_FAMILIES, seed=2)


def _distinct(things: list[str], count: int, seed: int) -> tuple[Family, ...]:
    rng = random.Random(seed)
    found: dict[tuple[str, str, tuple[str, ...]], Family] = {}
    while len(found) < count:
        family = compose(rng, things)
        found.setdefault((family.function, family.shape.name, family.args), family)
    return tuple(found.values())
