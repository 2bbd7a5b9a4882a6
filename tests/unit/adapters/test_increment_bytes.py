"""Increments as bytes: what is written comes back, whatever else is refused."""

import struct
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.adapters import increment_bytes
from joinery.adapters.increment_bytes import BadIncrement, decode, encode
from joinery.join.logic import WindowJoin
from joinery.join.state import Checkpoints, Increment
from joinery.model.ids import GroupId, RecordNo
from joinery.model.tuples import Order, TupleBatch
from joinery.partition.hashing import NULL_HASH, hash_words
from joinery.window.sliding import Floor, Marks
from tests.support.queries import joined, plan_of, read

INTEGERS = st.integers(-(2**63), 2**63 - 1)


def batch(stream: int, rows: int, *, optional: bool) -> TupleBatch:
    numbers = np.arange(rows, dtype=np.int64)
    columns = {
        "text": pa.array([None if at % 3 == 2 else "é" * (at % 20) for at in range(rows)], pa.string()),
        "flag": pa.array([at % 2 == 0 for at in range(rows)], pa.bool_()),
        "money": pa.array(range(rows), pa.int64()).cast(pa.decimal128(30, 2)),
    }
    order = Order(numbers + 7, np.stack([numbers, numbers * 2, numbers * 3], axis=1)) if optional else None
    masks = (numbers % 2 == 0, numbers % 3 == 0) if optional else (None, None)
    return TupleBatch(
        stream, numbers - 5, numbers.astype(np.uint64) + np.uint64(2**63), -numbers, masks[0], numbers * 10,
        pa.RecordBatch.from_pydict(columns), masks[1], order,
    )  # fmt: skip


def increment(*rows: int, optional: bool = False, since: int | None = 3) -> Increment:
    return Increment(
        GroupId(59),
        RecordNo(2**52),
        None if since is None else RecordNo(since),
        tuple(batch(stream, count, optional=optional) for stream, count in enumerate(rows)),
        tuple(np.arange(count, dtype=np.uint8) for count in rows),
        tuple(np.arange(count, dtype=np.int64) * 2**40 for count in rows),
        Marks((-(2**63), 2**63 - 1), (4, 5) if optional else ()),
        (1, -2),
        ((Floor(1, 2, None), Floor(3, 4, 0)), (), (Floor(5, -6, 1),)) if optional else (),
        (0, 1, 1, 2) if optional else (),
    )


def seen(value: object) -> object:
    """Everything that a value holds, as plain values, with the types of its columns."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tolist()
    if isinstance(value, pa.RecordBatch):
        return str(value.schema), value.to_pydict()
    if isinstance(value, Increment | TupleBatch | Order):
        return [(field.name, seen(getattr(value, field.name))) for field in fields(value)]
    return [seen(one) for one in value] if isinstance(value, tuple) else value


@pytest.mark.parametrize("since", [None, 0, 3])
@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("rows", [(0, 0), (1, 0), (5, 13), (300, 7, 1)])
def test_an_increment_comes_back_as_it_was(rows: tuple[int, ...], optional: bool, since: int | None) -> None:
    one = increment(*rows, optional=optional, since=since)
    assert seen(one) == seen(decode([encode(one)]))


@given(st.tuples(INTEGERS, INTEGERS), st.lists(INTEGERS, max_size=5), st.lists(st.tuples(INTEGERS, INTEGERS)))
@settings(max_examples=50)
def test_any_numbers_come_back(marks: tuple[int, int], directory: list[int], floors: list[tuple[int, int]]) -> None:
    one = replace(
        increment(2, 1),
        marks=Marks(marks, marks),
        closed=marks,
        directory=tuple(directory),
        floors=(tuple(Floor(serial, clock, None) for serial, clock in floors),),
    )
    assert seen(one) == seen(decode([encode(one)]))


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_it_does_not_matter_how_the_bytes_are_cut(size: int) -> None:
    one = increment(5, 13, optional=True)
    data = encode(one)
    assert seen(one) == seen(decode([data[start : start + size] for start in range(0, len(data), size)]))


def test_a_slice_is_written_without_the_rest() -> None:
    large = batch(0, 10_000, optional=True)
    whole, part = (
        replace(increment(1, 1), rows=(rows, rows), flags=(np.zeros(len(rows), np.uint8),) * 2)
        for rows in (large, large.slice(500, 510))
    )
    assert len(encode(part)) < len(encode(whole)) / 100
    assert seen(part) == seen(decode([encode(part)]))


# --- columns that others tell

KEYS = np.array([7, 7, -3, 2**62], np.int64)
STAMPS = np.array([10**12 + 1, 5, -8, 10**12], np.int64)


def stored(**columns: Any) -> TupleBatch:
    """Rows as a store reads them: a key that is one integer, and a time in microseconds."""
    rows = pa.RecordBatch.from_pydict({"k": pa.array(KEYS), "ts": pa.array(STAMPS)})
    told = {"times": STAMPS * 1000, "hashes": hash_words(KEYS), "words": KEYS.copy(), "places": np.arange(4) + 2**40}
    return TupleBatch(stream=0, keyed=None, rows=rows, **(told | columns))


UNUSUAL: dict[str, dict[str, Any]] = {
    "as usual": {},
    "a time of its own": {"times": STAMPS * 1000 + np.array([0, 0, 0, 1])},
    "words of its own": {"words": KEYS + 1, "hashes": hash_words(KEYS + 1)},
    "words that are hashes": {"words": hash_words(KEYS).view(np.int64)},
    "a row without a key": {"hashes": np.where(np.arange(4) == 2, NULL_HASH, hash_words(KEYS))},
    "places far apart": {"places": np.array([0, 1, 2, 2**32])},
    "places out of order": {"places": np.array([9, 2, 7, 3])},
    "a place below zero": {"places": np.array([-1, 0, 1, 2])},
}


@pytest.mark.parametrize("flags", [[0, 0, 0, 0], [0, 0, 2, 1]])
@pytest.mark.parametrize("what", UNUSUAL)
def test_columns_that_others_tell_come_back(what: str, flags: list[int]) -> None:
    one = replace(increment(4), rows=(stored(**UNUSUAL[what]),), flags=(np.array(flags, np.uint8),))
    assert seen(one) == seen(decode([encode(one)]))


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", "UTC")])
def test_a_time_may_be_a_timestamp(kind: pa.DataType) -> None:
    rows = pa.RecordBatch.from_pydict({"k": pa.array(KEYS), "ts": pa.array(STAMPS).cast(kind)})
    one = replace(increment(4), rows=(replace(stored(), rows=rows),))
    assert seen(one) == seen(decode([encode(one)]))


def test_a_column_with_a_null_tells_nothing() -> None:
    keys = pa.array([7, 7, None, 2**62])
    rows = pa.RecordBatch.from_pydict({"k": keys, "ts": pa.array(STAMPS)})
    one = replace(increment(4), rows=(replace(stored(), rows=rows),))
    assert seen(one) == seen(decode([encode(one)]))


@pytest.mark.parametrize(
    ("what", "more"),
    [("a time of its own", 8), ("words of its own", 8), ("a row without a key", 8), ("places far apart", 4)],
)
def test_what_others_tell_is_not_written(what: str, more: int) -> None:
    """In bytes per row; a row of few has its column's length, and what fills it up to 8 bytes, beside that."""
    many = {name: np.tile(column, 1000) for name, column in _columns(stored()).items()}
    odd = many | {name: np.tile(column, 1000) for name, column in UNUSUAL[what].items()}
    rows = pa.RecordBatch.from_pydict({"k": np.tile(KEYS, 1000), "ts": np.tile(STAMPS, 1000)})
    flags = (np.zeros(4000, np.uint8),)
    usual, unusual = (
        len(encode(replace(increment(4), rows=(replace(stored(), rows=rows, **found),), flags=flags)))
        for found in (many, odd)
    )
    assert 4000 * more <= unusual - usual < 4000 * more + 64


def _columns(one: TupleBatch) -> dict[str, Any]:
    return {"times": one.times, "hashes": one.hashes, "words": one.words, "places": one.places}


def test_what_was_read_can_be_written_into() -> None:
    found = decode([encode(increment(5, 13, optional=True))])
    assert all(column.flags.writeable for column in (found.rows[0].times, found.flags[0], found.matched[1]))
    (told,) = decode([encode(replace(increment(4), rows=(stored(),), flags=(np.zeros(4, np.uint8),)))]).rows
    assert all(column.flags.writeable for column in _columns(told).values())


def test_every_byte_that_changed_is_noticed() -> None:
    data = encode(increment(2, 1, optional=True))
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0x20
        with pytest.raises(BadIncrement):
            decode([damaged])


@pytest.mark.parametrize("kept", [0, 10, 23, 24, 100, -8, -1])
def test_bytes_that_are_missing_are_noticed(kept: int) -> None:
    with pytest.raises(BadIncrement, match="bytes"):
        decode([encode(increment(2, 1))[:kept]])


def test_bytes_that_are_too_many_are_noticed() -> None:
    with pytest.raises(BadIncrement, match="bytes"):
        decode([encode(increment(2, 1)), b"more"])


@pytest.mark.parametrize("version", [0, increment_bytes.FORMAT + 1])
def test_another_format_is_refused_by_its_number(version: int) -> None:
    data = bytearray(encode(increment(2, 1)))
    struct.pack_into("<I", data, 8, version)
    with pytest.raises(
        BadIncrement, match=f"found format {version}, wanted an increment of format {increment_bytes.FORMAT}"
    ):
        decode([data])


def test_something_else_is_refused() -> None:
    with pytest.raises(BadIncrement, match="begin with"):
        decode([b"PAR1" * 100])


def test_a_group_is_restored_from_bytes() -> None:
    join = WindowJoin(plan_of({"k": "int64", "s": "string"}, partitions=1))
    checkpoints, taken = Checkpoints(join), []
    for number in range(3):
        joined(join, read(join.plan, 0, number, k=[number], ts=[number], s=[f"text {number}"]), marks=(0, 0))
        since = RecordNo(number - 1) if number else None
        taken += checkpoints.take([GroupId(0)], RecordNo(number), since)
    other = WindowJoin(join.plan, [])
    Checkpoints(other).restore([decode([encode(one)]) for one in taken])
    found = joined(other, read(join.plan, 1, k=[0, 1, 2], ts=[5, 5, 5], s=["", "", ""]), marks=(0, 0))
    assert [(0, 0), (1, 1), (2, 2)] == found
