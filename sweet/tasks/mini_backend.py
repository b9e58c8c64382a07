"""ColBench-Mini, backend: seeded tasks in ColBench's own shape.

A Spec is a family with all its hidden details; it is rendered as a reference function, a vague
description and ten test calls, and can be read back from the reference alone. Each hidden detail
changes the result of some test. A combination of details belongs to one split by its hash, so
validation and test combinations are never trained on; "families" are whole families held out.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from functools import cache

from sweet.errors import TaskDataError
from sweet.tasks.mini_families import Family, families, held_out_families, identifier
from sweet.tasks.mini_sets import distinct_rows, split_by_hash
from sweet.types import HiddenInfo, TaskKind, TaskRow

SOURCE = "mini-backend"
TESTS = 10  # as in ColBench
ROUNDINGS = {"none": "{}", "up": "math.ceil({})", "down": "math.floor({})", "nearest": "round({})"}
Number = int | float


@dataclass(frozen=True, slots=True)
class Spec:
    """A family with every hidden detail settled."""

    family: Family
    numbers: tuple[tuple[str, Number], ...]  # slot → value
    cmp: str = ">"  # at the limit: ">" not yet, ">=" already
    bound: tuple[str, Number] | None = None  # ("max" | "min", value)
    rounding: str = "none"

    @property
    def constants(self) -> dict[str, Number]:
        """Each numeric detail, by its name in words, in the order of the reference."""
        names = dict(self.family.names)
        named = {names[slot]: value for slot, value in self.numbers}
        if self.bound:
            named[self.bound_name] = self.bound[1]
        return named

    @property
    def bound_name(self) -> str:
        """The name of the limit on the result, in words."""
        return f"{self.bound[0] if self.bound else 'max'} {self.family.result}"

    @property
    def limit_name(self) -> str:
        """The name of the limit whose boundary is a detail, or ""."""
        return dict(self.family.names).get(self.family.shape.strict_slot, "")


def reference(spec: Spec) -> str:
    """The function that a spec describes."""
    family = spec.family
    lines = [f"{family.signature}:"]
    if spec.rounding in ("up", "down"):
        lines.append("    import math")
    lines += [f"    {identifier(name)} = {value}" for name, value in spec.constants.items()]
    lines += ["    " + family.fill(line, code=True, cmp=spec.cmp) for line in family.shape.body]
    if spec.bound:
        name = identifier(spec.bound_name)
        lines.append(f"    total = {'min' if spec.bound[0] == 'max' else 'max'}(total, {name})")
    lines.append("    return " + ROUNDINGS[spec.rounding].format("total"))
    return "\n".join(lines)


def parse_reference(code: str) -> Spec:
    """The spec behind a Mini reference. Raises: TaskDataError where it is not one."""
    try:
        function = ast.parse(code).body[0]
        assert isinstance(function, ast.FunctionDef)
        signature = f"def {function.name}({', '.join(a.arg for a in function.args.args)})"
    except (SyntaxError, IndexError, AssertionError, ValueError) as e:
        raise TaskDataError(f"This is no ColBench-Mini reference: {code[:80]!r}") from e
    found = {
        node.targets[0].id: node.value.value
        for node in function.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, int | float)
    }
    for family in _by_signature().get(signature, ()):
        for spec in _readings(family, found, code):
            if reference(spec) == code.strip():
                return spec
    raise TaskDataError(
        f"This is no ColBench-Mini reference: no family computes it: {signature!r}. "
        "The scripted collaborator plays Mini tasks only; take a simulator model for others."
    )


def _readings(family: Family, found: dict[str, Number], code: str) -> Iterator[Spec]:
    names = dict(family.names)
    if any(identifier(n) not in found for n in names.values()):
        return
    numbers = tuple((slot, found[identifier(n)]) for slot, n in names.items())
    bounds = [
        (kind, found[name])
        for kind in ("max", "min")
        if (name := f"{kind}_{family.result}") in found and f"(total, {name})" in code
    ]
    returned = code.strip().rpartition("return ")[2]
    rounding = next(
        (r for r, form in ROUNDINGS.items() if form.format("total") == returned), "none"
    )
    for cmp in (">", ">="):
        yield Spec(family, numbers, cmp, bounds[0] if bounds else None, rounding)


@cache
def _by_signature() -> dict[str, list[Family]]:
    table: dict[str, list[Family]] = {}
    for family in (*families(), *held_out_families()):
        table.setdefault(family.signature, []).append(family)
    return table


_RANGES = {
    "base": (3, 40), "rate": (2, 15), "second": (2, 15), "free": (2, 12), "limit": (4, 60),
    "extra": (3, 40), "percent": (5, 50), "less": (2, 20), "low": (2, 30), "high": (3, 60),
}  # fmt: skip


def draw_number(slot: str, rng: random.Random) -> Number:
    """A plausible value of a detail: mostly small, sometimes round, decimal or odd."""
    low, high = _RANGES[slot]
    luck = rng.random()
    if luck < 0.10 and slot in ("base", "rate", "second", "extra", "high", "low"):
        return rng.choice((0.5, 0.25, 1.5, 2.5, 3.5, 4.5, 0.75, 1.25, 7.5, 12.5, 0.1, 0.2))
    if luck < 0.14:
        return rng.randint(1, 199)
    if luck < 0.17 and slot != "percent":
        return rng.randrange(200, 2001, 50)
    return rng.randint(low, high)


def draw_spec(family: Family, rng: random.Random) -> Spec:
    """A spec of this family with random details."""
    numbers: dict[str, Number] = {}
    for slot in family.shape.slots:
        value = draw_number(slot, rng)
        while value in numbers.values():
            value = draw_number(slot, rng)
        numbers[slot] = value
    cmp = rng.choice((">", ">="))
    bound, rounding = None, "none"
    if family.shape.bounded:
        luck = rng.random()
        if luck < 0.45:
            kind = "max" if luck < 0.27 else "min"
            bound = (kind, rng.choice((rng.randint(5, 150), rng.randrange(50, 501, 10))))
        if rng.random() < 0.4:
            rounding = rng.choice(("up", "down", "nearest"))
    return Spec(family, tuple(numbers.items()), cmp, bound, rounding)


def split_of(spec: Spec) -> str:
    """The split that this combination of details belongs to, by its hash."""
    if spec.family in _held_out():
        return "families"
    return split_by_hash(reference(spec))


@cache
def _held_out() -> frozenset[Family]:
    return frozenset(held_out_families())


def description(spec: Spec, rng: random.Random) -> str:
    """The vague wish, with the signature as ColBench gives it; one in four says one detail."""
    family = spec.family
    takes = [f"the {family.q}"]
    takes += [f"the {family.b}"] if "b" in family.shape.args else []
    takes += [f"whether it is a {family.flag}"] if "flag" in family.shape.args else []
    opening = rng.choice(
        (
            "I need a function for the {what}. It takes {takes}.",
            "Please write a function that computes the {what} from {takes}.",
            "Can you help me with the {what}? The function gets {takes}.",
            "We want to compute the {what}, given {takes}.",
            "Write me a function that works out the {what} for {takes}, please.",
            "I would like to have a Python function that returns the {what}. I will pass {takes}.",
            "How would you compute the {what} of our customers? I have {takes}.",
        )
    ).format(what=f"{family.thing} {family.result}", takes=" and ".join(takes))
    if rng.random() < 0.25:
        name, value = rng.choice([(n, v) for n, v in spec.constants.items()])
        opening += f" The {name} is {value}."
    return f"{opening} The signature of the function is: {family.signature}"


Call = tuple[Number | bool, ...]


def test_calls(spec: Spec, rng: random.Random) -> tuple[str, ...] | None:
    """Ten calls of which some tells each hidden detail from another value; None where none does."""
    right = _function(spec)
    others = [_function(s) for s in _neighbours(spec)]
    candidates = _candidate_calls(spec, rng)
    chosen: list[Call] = []
    undetected = others
    while undetected:
        best = max(candidates, key=lambda c: sum(f(*c) != right(*c) for f in undetected))
        left = [f for f in undetected if f(*best) == right(*best)]
        if len(left) == len(undetected) or len(chosen) == TESTS:
            return None
        chosen.append(best)
        undetected = left
    spare = [c for c in candidates if c not in chosen]
    chosen += rng.sample(spare, TESTS - len(chosen))
    rng.shuffle(chosen)
    return tuple(f"{spec.family.function}({', '.join(map(repr, c))})" for c in chosen)


def _function(spec: Spec) -> Callable[..., Number]:
    scope: dict[str, Callable[..., Number]] = {}
    exec(reference(spec), scope)  # our own text, from our own word lists
    return scope[spec.family.function]


def _neighbours(spec: Spec) -> Iterator[Spec]:
    """Specs that differ in one hidden detail."""
    for i, (slot, value) in enumerate(spec.numbers):
        for other in (value + 1, value * 2):
            changed = (*spec.numbers[:i], (slot, other), *spec.numbers[i + 1 :])
            yield replace(spec, numbers=changed)
    if spec.family.shape.strict_slot:
        yield replace(spec, cmp=">" if spec.cmp == ">=" else ">=")
    if spec.bound:
        yield replace(spec, bound=None)
        yield replace(spec, bound=(spec.bound[0], spec.bound[1] + 1))
    if spec.rounding != "none":
        yield from (replace(spec, rounding=r) for r in ROUNDINGS if r != spec.rounding)


def _candidate_calls(spec: Spec, rng: random.Random) -> list[Call]:
    limits = [v for s, v in spec.numbers if s in ("limit", "free")]
    edges = [v + d for v in limits for d in (-1, 0, 1, 7)] + [2 * v for v in limits]
    sizes = [e for e in edges if e >= 0] + [0, 1, 2, 3, rng.randint(4, 15), rng.randint(16, 99)]
    if spec.bound or spec.rounding != "none":
        sizes += [rng.randint(100, 999), 2.5, 7.25, rng.randint(3, 40) + 0.5]
    seconds: list[Number | bool] = sizes if "b" in spec.family.shape.args else [True, False]
    if len(spec.family.args) == 1:
        calls: set[Call] = {(s,) for s in sizes} | {(s + 3,) for s in sizes}
    else:
        calls = {(q, b) for q in sizes for b in rng.sample(seconds, min(4, len(seconds)))}
        calls |= {(rng.choice(sizes), s) for s in seconds}
    while len(calls) < 2 * TESTS:
        tail = () if len(spec.family.args) == 1 else (rng.choice(seconds),)
        calls.add((rng.randint(0, 200), *tail))
    return sorted(calls)


def generate(split: str, n: int, seed: int) -> Iterator[TaskRow]:
    """`n` different tasks of a split, the same for the same seed.

    Raises: TaskDataError for an unknown split.
    """
    pool = held_out_families() if split == "families" else families()

    def draw(rng: random.Random, seen: Container[str]) -> tuple[str, HiddenInfo] | None:
        spec = draw_spec(rng.choice(pool), rng)
        code = reference(spec)
        if split_of(spec) != split or code in seen:
            return None
        calls = test_calls(spec, rng)
        return None if calls is None else (description(spec, rng), HiddenInfo(code, calls))

    return distinct_rows(SOURCE, TaskKind.BACKEND, split, n, seed, draw)
