"""Results as the studio sees them: decoding what a program sent, and comparing it."""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import math
from collections.abc import Callable
from dataclasses import dataclass

RELATIVE = 1e-6
ABSOLUTE = 1e-12  # sums that cancel: 0.1 + 0.2 - 0.3 is 0
MAX_REPR_CHARS = 300
MAX_COLLISIONS = 100


@dataclass(frozen=True, slots=True)
class Named:
    """A built-in type or function, by its name."""

    module: str
    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Thing:
    """An object that is no plain data: its class's name and, where it had any, its fields.

    Never equal by `==`, as two objects of two programs are not.
    """

    class_name: str
    fields: tuple[tuple[str, object], ...] | None

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v!r}" for k, v in self.fields or ())
        return f"<{self.class_name}{' ' if inside else ''}{inside}>"


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """What an iterator or a NumPy array held. `kind` tells them from lists."""

    kind: str
    items: list

    def __repr__(self) -> str:
        return f"{self.kind}({self.items!r})"


def decode(data: object) -> object:
    """The value that a program sent. Raises: ValueError where it is no such value."""
    try:
        return _decode(data)
    except (TypeError, KeyError, IndexError, ArithmeticError, RecursionError) as e:
        raise ValueError(f"not a value: {e}") from e


def _decode(data: object) -> object:
    if data is None or isinstance(data, bool | int | str):
        return data
    if not isinstance(data, list):
        raise ValueError(f"not a value: {type(data).__name__}")
    return _DECODERS[data[0]](*data[1:])


def _all(items: list) -> list:
    return [_decode(i) for i in items]


def _keys(items: list) -> list:
    """Keys or members; refused where they were made to collide, which would take for ever."""
    keys = _all(items)
    if len(keys) - len({hash(k) for k in keys}) > MAX_COLLISIONS:
        raise ValueError("too many keys with the same hash")
    return keys


def _dict(pairs: list) -> dict:
    keys = _keys([k for k, _ in pairs])
    return dict(zip(keys, _all([v for _, v in pairs]), strict=True))


def _fraction(*parts: object) -> fractions.Fraction:
    numerator, denominator = map(_decode, parts)
    if not isinstance(numerator, int) or not isinstance(denominator, int):
        raise ValueError("not a fraction")
    return fractions.Fraction(numerator, denominator)


def _float(text: str) -> float:
    return math.nan if text == "math.nan" else float(text)


def _fields(name: str, pairs: list) -> Thing:
    return Thing(str(name), tuple((str(k), _decode(v)) for k, v in pairs))


_DECODERS: dict[str, Callable[..., object]] = {
    "int": lambda text: int(text, 16),
    "float": _float,
    "list": _all,
    "tuple": lambda items: tuple(_all(items)),
    "set": lambda items: set(_keys(items)),
    "frozenset": lambda items: frozenset(_keys(items)),
    "deque": lambda items: collections.deque(_all(items)),
    "dict": _dict,
    "complex": lambda real, imag: complex(float(real), float(imag)),
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "range": lambda *parts: range(*_all(list(parts))),
    "decimal": decimal.Decimal,
    "fraction": _fraction,
    "timedelta": datetime.timedelta,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "keys": lambda items: dict.fromkeys(_keys(items)).keys(),
    "values": lambda items: dict(enumerate(_all(items))).values(),
    "items": lambda items: _dict([pair for _, pair in items]).items(),
    "name": lambda module, name: Named(str(module), str(name)),
    "iterator": lambda items: Series("iterator", _all(items)),
    "array": lambda value: Series("array", [_decode(value)]),
    "object": _fields,
    "opaque": lambda name: Thing(str(name), None),
}


def is_data(value: object) -> bool:
    """Whether `value` is plain data all through; objects are not."""
    if isinstance(value, Thing):
        return False
    if isinstance(value, dict):
        return all(is_data(k) and is_data(v) for k, v in value.items())
    if isinstance(value, Series):
        return all(map(is_data, value.items))
    if isinstance(value, list | tuple | set | frozenset | collections.deque):
        return all(map(is_data, value))
    return True


def has_opaque(value: object) -> bool:
    """Whether some part of `value` could not be looked into."""
    if isinstance(value, Thing):
        return value.fields is None or any(has_opaque(v) for _, v in value.fields)
    if isinstance(value, dict):
        return any(has_opaque(k) or has_opaque(v) for k, v in value.items())
    if isinstance(value, Series):
        return any(map(has_opaque, value.items))
    if isinstance(value, list | tuple | set | frozenset | collections.deque):
        return any(map(has_opaque, value))
    return False


def same(a: object, b: object) -> bool:
    """Whether two results are the same value (the declared policy of mode fixed).

    Numbers within 1e-6 relative, NaN equal to NaN, sets and dicts in any order; a truth value is
    no number, a tuple no list, a string no bytes.
    """
    if _is_number(a) and _is_number(b):
        return _close(a, b)
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple | collections.deque):
        return _same_items(list(a), list(b))  # type: ignore[call-overload]
    if isinstance(a, dict):
        return _same_dict(a, b)  # type: ignore[arg-type]
    if isinstance(a, set | frozenset):
        return _same_set(a, b)  # type: ignore[arg-type]
    if isinstance(a, complex):
        return _close(a.real, b.real) and _close(a.imag, b.imag)  # type: ignore[attr-defined]
    if isinstance(a, decimal.Decimal):
        return _same_decimal(a, b)  # type: ignore[arg-type]
    if isinstance(a, Series):
        return a.kind == b.kind and _same_items(a.items, b.items)  # type: ignore[attr-defined]
    if isinstance(a, Thing):
        return _same_thing(a, b)  # type: ignore[arg-type]
    if isinstance(a, type({}.keys()) | type({}.values()) | type({}.items())):
        return _same_items(list(a), list(b))  # type: ignore[call-overload]
    return bool(a == b)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _close(a: object, b: object) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    try:
        x, y = float(a), float(b)  # type: ignore[arg-type]
    except OverflowError:
        return False
    return (x != x and y != y) or math.isclose(x, y, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def _same_decimal(a: decimal.Decimal, b: decimal.Decimal) -> bool:
    if a.is_nan() or b.is_nan():  # comparing a signalling NaN would raise
        return a.is_nan() and b.is_nan()
    return a == b


def _same_items(a: list, b: list) -> bool:
    return len(a) == len(b) and all(map(same, a, b))


def _same_dict(a: dict, b: dict) -> bool:
    if len(a) != len(b):
        return False
    if all(k in b for k in a):
        keys = {k: k for k in b}
        return all(same(k, keys[k]) and same(v, b[k]) for k, v in a.items())
    return _match([list(p) for p in a.items()], [list(p) for p in b.items()])


def _same_set(a: set, b: set) -> bool:
    if len(a) != len(b):
        return False
    if a == b:
        own = {v: v for v in b}
        return all(same(v, own[v]) for v in a)
    return _match(list(a), list(b))


def _match(a: list, b: list) -> bool:
    """Whether each of `a` has a partner in `b`; for keys and members that are only close."""
    if len(a) > 1000:
        return False
    left = list(b)
    for value in a:
        partner = next((i for i, other in enumerate(left) if same(value, other)), None)
        if partner is None:
            return False
        del left[partner]
    return True


def _same_thing(a: Thing, b: Thing) -> bool:
    if a.fields is None or b.fields is None or a.class_name != b.class_name:
        return False
    return _same_dict(dict(a.fields), dict(b.fields))


def show(value: object) -> str:
    """A short `repr` for people."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer too long for decimal digits
        text = f"<{type(value).__name__} too long to show>"
    return text if len(text) <= MAX_REPR_CHARS else f"{text[: MAX_REPR_CHARS - 1]}…"
