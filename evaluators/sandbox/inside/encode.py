"""A program's result as type-tagged JSON data. No code of the result's own class is called.

Only exact built-in types are data: a subclass that claims to be a list, or an object that claims
to equal everything, arrives as what it is.
"""

import builtins
import collections
import datetime
import decimal
import enum
import fractions
import math
import sys
import types

MAX_NODES = 200_000
MAX_DEPTH = 60
MAX_CHARS = 500_000
MAX_INT_BITS = 4_000_000
HEAP_TYPE = 1 << 9

_VIEWS = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}
_DICTS = (collections.OrderedDict, collections.defaultdict, collections.Counter)
_SEQUENCES: dict[type, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset",
              collections.deque: "deque"}  # fmt: skip
_TIMES = {datetime.datetime: "datetime", datetime.date: "date", datetime.time: "time"}
_BASES = (bool, int, float, str, bytes, tuple, list, dict, set, frozenset)


class TooBig(Exception):
    """The result has more parts than a result may have."""


class Encoder:
    """Turns one result into data. `lenient` takes subclasses that keep their base's equality."""

    def __init__(self, lenient: bool = False):
        self._nodes = 0
        self._chars = 0
        self._lenient = lenient

    def encode(self, value, depth: int = 0):
        """`value` as nested lists for JSON. Raises: TooBig."""
        self._count(depth)
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return self._int(value)
        if kind is float:
            return ["float", "math.nan" if value is math.nan else repr(value)]
        if kind is str:
            return self._text(value)
        if kind in _SEQUENCES:
            return [_SEQUENCES[kind], self._items(value, depth)]
        if kind is dict or kind in _DICTS:
            return ["dict", self._pairs(dict(value), depth)]
        return self._other(kind, value, depth)

    def _count(self, depth: int) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise TooBig(f"the result has more than {MAX_NODES:,} parts")
        if depth > MAX_DEPTH:
            raise TooBig(f"the result is nested more than {MAX_DEPTH} deep")

    def _text(self, value: str) -> str:
        self._chars += len(value)
        if self._chars > MAX_CHARS:
            raise TooBig(f"the result has more than {MAX_CHARS:,} characters")
        return value

    def _int(self, value: int):
        if value.bit_length() > MAX_INT_BITS:
            raise TooBig(f"the result is an integer of {value.bit_length():,} bits")
        return value if -(2**53) < value < 2**53 else ["int", self._text(hex(value))]

    def _items(self, values, depth: int) -> list:
        return [self.encode(v, depth + 1) for v in values]

    def _pairs(self, value: dict, depth: int) -> list:
        return [[self.encode(k, depth + 1), self.encode(v, depth + 1)] for k, v in value.items()]

    def _other(self, kind: type, value, depth: int):
        if kind is complex:
            return ["complex", repr(value.real), repr(value.imag)]
        if kind is bytes or kind is bytearray:
            return [kind.__name__, self._text(bytes(value).hex())]
        if kind is range:
            return ["range", *(self._int(n) for n in (value.start, value.stop, value.step))]
        if kind is decimal.Decimal:
            return ["decimal", self._text(str(value))]
        if kind is fractions.Fraction:
            return ["fraction", self._int(value.numerator), self._int(value.denominator)]
        if kind is datetime.timedelta:
            return ["timedelta", value.days, value.seconds, value.microseconds]
        if kind in _TIMES and getattr(value, "tzinfo", None) in (None, datetime.UTC):
            return [_TIMES[kind], value.isoformat()]
        if kind in _VIEWS:
            return [_VIEWS[kind], self._items(value, depth)]
        if self._is_builtin(kind, value):
            return ["name", str(value.__module__), str(value.__qualname__)]
        return self._numpy(kind, value, depth) or self._derived(kind, value, depth)

    @staticmethod
    def _is_builtin(kind: type, value) -> bool:
        if kind is type:
            return value.__module__ == "builtins" and getattr(builtins, value.__name__, 0) is value
        return kind is types.BuiltinFunctionType and type(value.__self__) is types.ModuleType

    def _numpy(self, kind: type, value, depth: int):
        numpy = sys.modules.get("numpy")
        if numpy is None or kind.__module__ != "numpy":
            return None
        if kind is numpy.ndarray:
            return ["array", self.encode(value.tolist(), depth + 1)]
        if kind is getattr(numpy, kind.__name__, None) and numpy.generic in kind.__mro__:
            return self.encode(numpy.generic.item(value), depth + 1)
        return None

    def _derived(self, kind: type, value, depth: int):
        """Records and objects: what they hold, under the name of their class."""
        mro = type.__dict__["__mro__"].__get__(kind)
        if enum.Enum in mro and not self._lenient:
            return ["object", kind.__name__, [["name", value._name_]]]
        for base in _BASES:
            if base in mro and base is not object:
                named = base is tuple and "_fields" in kind.__dict__
                if kind.__eq__ is base.__eq__ and (named or self._lenient):
                    return self.encode(_plain(base, value), depth + 1)
                return ["opaque", kind.__name__]
        if not self._lenient and _is_iterator(kind):
            return ["iterator", self._items(value, depth)]
        return self._object(kind, mro, value, depth)

    def _object(self, kind: type, mro: tuple, value, depth: int):
        fields: dict = {}
        made_by_a_class_statement = bool(type.__dict__["__flags__"].__get__(kind) & HEAP_TYPE)
        if type in mro or not (made_by_a_class_statement or BaseException in mro):
            return ["opaque", kind.__name__]
        if BaseException in mro:
            fields["args"] = BaseException.__dict__["args"].__get__(value)
        try:
            fields.update(object.__getattribute__(value, "__dict__"))
        except AttributeError:
            if not fields:
                return ["opaque", kind.__name__]
        pairs = [[str(k), self.encode(v, depth + 1)] for k, v in fields.items()]
        return ["object", kind.__name__, pairs]


_ITERATORS = {types.GeneratorType, map, zip, filter, enumerate, reversed, type(iter([])),
              type(iter(())), type(iter({})), type(iter(set())), type(iter(range(0))),
              type(iter("")), type(reversed([]))}  # fmt: skip


def _is_iterator(kind: type) -> bool:
    return kind in _ITERATORS


def _plain(base, value):
    """`value` as its built-in base, made without calling a method of its own class."""
    if base is dict:
        return dict(dict.items(value))
    if base in (tuple, list, set, frozenset):
        return base(base.__iter__(value))
    if base is str:
        return str.__str__(value)
    return base.__pos__(value) if base in (int, float) else base.__getitem__(value, slice(None))
