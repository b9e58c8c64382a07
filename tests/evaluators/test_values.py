"""What goes through the pipe comes out the same; what is no value is refused."""

from __future__ import annotations

import datetime
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.sandbox import values
from evaluators.sandbox.inside import frames
from evaluators.sandbox.inside.encode import Encoder, TooBig

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.complex_numbers()
    | st.decimals()
    | st.fractions()
    | st.datetimes()
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.integers().map(lambda n: 2**200 + n)
)
KEYS = st.integers() | st.text() | st.booleans() | st.tuples(st.text(), st.integers())
RESULTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.sets(KEYS, max_size=4)
        | st.frozensets(KEYS, max_size=4)
    ),
    max_leaves=12,
)


def through(value: object) -> object:
    return values.decode(json.loads(json.dumps(Encoder().encode(value))))


@settings(max_examples=200, deadline=None)
@given(RESULTS)
def test_any_result_comes_through_as_the_same_value(value: object) -> None:
    found = through(value)
    assert type(found) is type(value)
    assert values.same(value, found) and values.same(found, value)
    assert values.is_data(found)


@settings(max_examples=200, deadline=None)
@given(RESULTS, RESULTS)
def test_same_is_symmetric_and_never_fails(a: object, b: object) -> None:
    assert values.same(a, b) == values.same(b, a)
    assert values.same(a, a)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text() | st.floats(),
                    lambda inner: st.lists(inner), max_leaves=10))  # fmt: skip
def test_any_other_json_is_a_value_or_refused(data: object) -> None:
    try:
        values.decode(data)
    except ValueError as e:
        assert str(e)


@pytest.mark.parametrize(
    "data",
    [["nonsense", 1], ["list", 3], [], ["dict", [1]], ["set", [["list", []]]], {"a": 1}, 1.5,
     ["float", "x"], ["int", "zz"], ["date", "yesterday"], ["range", "a"], ["opaque"],
     ["fraction", 1, 0], ["fraction", "1e999999999"], 
     ["set", [n * (2**61 - 1) for n in range(999)]]],
)  # fmt: skip
def test_what_is_no_value_is_refused(data: object) -> None:
    with pytest.raises(ValueError):
        values.decode(data)


@given(st.binary(max_size=300))
def test_any_bytes_are_frames_or_refused(data: bytes) -> None:
    try:
        for kind, _, _, body in frames.unpack(bytearray(data), frames.FROM_CHILD):
            assert kind in frames.FROM_CHILD
            assert len(body) <= frames.MAX_FRAME_BYTES
    except ValueError as e:
        assert "no result" in str(e)


def test_frames_in_pieces_come_out_whole() -> None:
    data = frames.pack("value", 3, 1.5, b"[1]") + frames.pack("load", 4, 0.0, b'"x"')
    buffer, found = bytearray(), []
    for byte in data:
        buffer.append(byte)
        found += list(frames.unpack(buffer))
    assert found == [("value", 3, 1.5, b"[1]"), ("load", 4, 0.0, b'"x"')]


def test_a_result_with_too_many_parts_is_refused() -> None:
    deep: list = []
    for _ in range(100):
        deep = [deep]
    for value in ([0] * 300_000, "a" * 600_000, deep, 1 << 5_000_000):
        with pytest.raises(TooBig):
            Encoder().encode(value)


def test_an_aware_time_comes_through() -> None:
    value = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)
    assert through(value) == value
    assert math.isnan(through(math.nan))  # type: ignore[arg-type]


def test_long_and_deep_values_can_be_shown() -> None:
    assert "too long" in values.show(10**6000)
    assert values.show([1] * 1000).endswith("…")
    assert values.show("a") == "'a'"


def test_views_of_a_dict_come_through() -> None:
    d = {"a": 1, 2: (3,)}
    assert through(d.keys()) == d.keys()
    assert through(d.items()) == d.items()
    assert values.same(through(d.values()), d.values())
    assert not values.same(through(d.keys()), list(d))
