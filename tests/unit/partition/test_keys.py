"""Keys in one form: equal values are equal bits in every type and stream; nulls are no keys."""

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from joinery.model.errors import BadBatch
from joinery.partition import hashing
from joinery.partition.keys import KeyForm, canonical_type, equal_keys


def form(*kinds: pa.DataType, columns: int = 1) -> KeyForm:
    """The form of a key whose columns have these types in the streams of a query."""
    names = tuple(f"k{number}" for number in range(columns))
    return KeyForm("a", names, (canonical_type(kinds),) * columns)


def rows(*columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), [f"k{number}" for number in range(len(columns))])


def hashes(key: KeyForm, *columns: pa.Array) -> list[int]:
    return key.digest(rows(*columns))[0].tolist()


I8, I32, I64, U8, U64 = pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64()
US, NS, S = pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("s")
US_UTC, NS_UTC, S_BERLIN = pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC"), pa.timestamp("s", "Europe/Berlin")


@pytest.mark.parametrize(
    ("wanted", "kinds"),
    [
        (I64, (I32, I64)),
        (I64, (I8, U8)),
        (I64, (U8, pa.uint32())),
        (U64, (U64, U8)),
        (U64, (U64, U64)),
        (pa.decimal128(38, 0), (U64, I64)),
        (pa.decimal128(38, 0), (I8, U8, U64)),
        (pa.decimal128(38, 4), (pa.decimal128(10, 2), pa.decimal128(20, 4))),
        (pa.decimal128(38, 2), (pa.decimal128(10, 2), I64)),
        (NS, (US, S)),
        (NS_UTC, (US_UTC, S_BERLIN)),
        (pa.binary(), (pa.binary(4), pa.binary())),
        (pa.binary(), (pa.binary(4), pa.binary(8))),
        (pa.binary(), (pa.binary(4), pa.binary(4))),
        (pa.string(), (pa.string(), pa.string())),
        (pa.date32(), (pa.date32(), pa.date32())),
        (pa.bool_(), (pa.bool_(), pa.bool_())),
    ],
    ids=str,
)
def test_types_have_a_common_form_in_any_order(wanted: pa.DataType, kinds: tuple[pa.DataType, ...]) -> None:
    assert wanted == canonical_type(kinds) == canonical_type(kinds[::-1])


MOMENT = datetime(2024, 2, 29, 12, 30, 1, tzinfo=UTC)
SAME = {
    "int32 with int64": (I32, I64, [1, -1, 0, 2**31 - 1, -(2**31)]),
    "int8 with uint8": (I8, U8, [0, 1, 127]),
    "uint8 with uint64": (U8, U64, [0, 1, 255]),
    "uint64 with itself": (U64, U64, [0, 2**63 - 1, 2**63, 2**64 - 1]),
    "uint64 with int64": (U64, I64, [0, 1, 2**63 - 1]),
    "decimal scales": (
        pa.decimal128(10, 2),
        pa.decimal128(20, 4),
        [Decimal("1.50"), Decimal("-0.01"), Decimal("0.00"), Decimal("99999999.99")],
    ),
    "decimal with int64": (pa.decimal128(21, 2), I64, [Decimal(0), Decimal(-7), Decimal(2**63 - 1), Decimal(-(2**63))]),
    "decimal with uint64": (pa.decimal128(22, 2), U64, [Decimal(0), Decimal(2**64 - 1)]),
    "seconds with nanoseconds": (S, NS, [datetime(1969, 12, 31), datetime(2024, 2, 29, 1)]),
    "timezones": (US_UTC, S_BERLIN, [MOMENT]),
    "fixed with plain binary": (pa.binary(4), pa.binary(), [b"abcd", b"\0\0\0\0", b"\xff\xff\xff\xff"]),
    "dates": (pa.date32(), pa.date32(), [date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31)]),
    "booleans": (pa.bool_(), pa.bool_(), [True, False]),
    "texts": (pa.string(), pa.string(), ["", "a", "ä" * 20]),
}


@pytest.mark.parametrize(("one", "other", "values"), SAME.values(), ids=SAME)
def test_equal_keys_of_different_types_have_equal_hashes_and_words(
    one: pa.DataType, other: pa.DataType, values: list[object]
) -> None:
    key, mine, yours = form(one, other), rows(pa.array(values, one)), rows(pa.array(values, other))
    (hashes_1, words_1, keyed_1), (hashes_2, words_2, keyed_2) = key.digest(mine), key.digest(yours)
    assert hashes_1.tolist() == hashes_2.tolist()
    assert words_1.tolist() == words_2.tolist()
    assert keyed_1 is None
    assert keyed_2 is None
    assert len(values) == len(set(hashes_1.tolist()))
    assert equal_keys(key.canonical(mine), key.canonical(yours)).all()
    turned = [values.index(value) != place for place, value in enumerate(values[1:] + values[:1])]
    rolled = rows(pa.array(values[1:] + values[:1], other))
    assert turned == (~equal_keys(key.canonical(mine), key.canonical(rolled))).tolist()


@pytest.mark.parametrize(("one", "other", "values"), SAME.values(), ids=SAME)
def test_a_composite_key_of_any_types_hashes_the_same_in_both(
    one: pa.DataType, other: pa.DataType, values: list[object]
) -> None:
    key = form(one, other, columns=2)
    left = hashes(key, pa.array(values, one), pa.array(values[::-1], one))
    assert left == hashes(key, pa.array(values, other), pa.array(values[::-1], other))
    assert not key.is_word


@pytest.mark.parametrize(
    ("is_word", "kind"),
    [(True, I64), (True, U64), (True, pa.date32()), (True, pa.bool_()), (True, NS), (True, NS_UTC),
     (False, pa.string()), (False, pa.binary()), (False, pa.decimal128(38, 0))],
    ids=str,
)  # fmt: skip
def test_a_key_of_one_integer_is_its_own_word(is_word: bool, kind: pa.DataType) -> None:
    assert is_word == KeyForm("a", ("k0",), (kind,)).is_word
    assert not KeyForm("a", ("k0", "k1"), (kind, kind)).is_word


def test_a_word_is_the_key_itself_and_otherwise_the_bits_of_its_hash() -> None:
    assert [5, -7] == form(I64, I32).digest(rows(pa.array([5, -7])))[1].tolist()
    assert [5_000_000_000] == form(S, NS).digest(rows(pa.array([5], S)))[1].tolist()
    found = form(pa.string()).digest(rows(pa.array(["a"])))
    assert found[0].view(np.int64).tolist() == found[1].tolist()


COLUMNS = {
    "int64": pa.array([10, 11, 12, None, 14, 15]),
    "uint8": pa.array([10, 11, 12, None, 14, 15], U8),
    "string": pa.array(["zero", "one", "", None, "four", "five"]),
    "binary": pa.array([b"0", b"1", b"", None, b"4", b"5"]),
    "binary(3)": pa.array([b"000", b"111", b"222", None, b"444", b"555"], pa.binary(3)),
    "bool": pa.array([True, False, True, None, False, True]),
    "date": pa.array([0, 1, 2, None, 4, 5], I32).cast(pa.date32()),
    "timestamp(ms)": pa.array([0, 1, 2, None, 4, 5], pa.timestamp("ms")),
    "decimal": pa.array([Decimal(n) for n in range(3)] + [None, Decimal(4), Decimal(5)], pa.decimal128(5, 1)),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_a_slice_has_the_keys_of_its_rows(column: pa.Array) -> None:
    key = form(column.type)
    every, words, keyed = key.digest(rows(column))
    for start, length in [(0, 6), (1, 2), (2, 4), (3, 1), (5, 1), (6, 0)]:
        part = key.digest(rows(column.slice(start, length)))
        assert every[start : start + length].tolist() == part[0].tolist()
        assert words[start : start + length].tolist() == part[1].tolist()
        assert keyed is not None
        found = np.ones(length, np.bool_) if part[2] is None else part[2]
        assert keyed[start : start + length].tolist() == found.tolist()


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize("others", [1, 2])
def test_a_batch_without_rows_has_no_keys(column: pa.Array, others: int) -> None:
    key = form(column.type, columns=others)
    found = key.digest(rows(*[column.slice(0, 0)] * others))
    assert ([], [], None) == (found[0].tolist(), found[1].tolist(), found[2])
    fresh = key.digest(rows(*[pa.array([], column.type)] * others))
    assert 0 == fresh[0].size


@pytest.mark.parametrize("kind", [I64, pa.bool_(), NS, pa.decimal128(5, 1), pa.binary(3)], ids=str)
def test_a_batch_without_rows_may_have_no_buffers_as_other_makers_of_arrow_write_it(kind: pa.DataType) -> None:
    assert 0 == form(kind).digest(rows(pa.Array.from_buffers(kind, 0, [None, None])))[0].size


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_a_null_is_no_key_and_goes_to_the_fixed_group(column: pa.Array) -> None:
    for columns in ((column,), (column, COLUMNS["int64"].slice(0, 6))):
        key = KeyForm("a", ("k0", "k1")[: len(columns)], tuple(canonical_type([one.type]) for one in columns))
        found, words, keyed = key.digest(rows(*columns))
        assert keyed is not None
        assert [True, True, True, False, True, True] == keyed.tolist()
        assert (0, 0) == (found[3], words[3])
        assert 0 == hashing.groups_of(found, 60)[3]


def with_garbage(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    """The values of a fixed-width type, the second one null: its bytes stay."""
    return pa.Array.from_buffers(kind, len(values), [pa.py_buffer(b"\x05"), pa.py_buffer(values)], 1)


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (I64, 0, 2**63 - 1),
        (U64, 1, 2**63 - 1),
        (S, 1, 2**62),  # as nanoseconds it would overflow
        (pa.date32(), 1, 2**31 - 1),
    ],
    ids=str,
)
def test_what_stands_under_a_null_does_not_matter(kind: pa.DataType, low: int, high: int) -> None:
    width = np.int32 if kind.bit_width == 32 else np.int64
    key = form(kind, kind)
    plain = with_garbage(np.array([1, low, 3], width), kind)
    dirty = with_garbage(np.array([1, high, 3], width), kind)
    assert hashes(key, plain) == hashes(key, dirty)
    assert key.digest(rows(plain))[1].tolist() == key.digest(rows(dirty))[1].tolist()


def test_garbage_under_a_null_survives_the_change_of_a_decimals_scale() -> None:
    values = np.zeros((3, 2), np.int64)
    values[1] = 2**63 - 1
    dirty = with_garbage(values, pa.decimal128(10, 2))
    found = form(pa.decimal128(10, 2), pa.decimal128(20, 4)).digest(rows(dirty))
    assert [True, False, True] == (found[2].tolist() if found[2] is not None else [])


def test_a_null_in_one_column_of_a_composite_key_is_enough() -> None:
    key = KeyForm("a", ("k0", "k1"), (I64, pa.string()))
    found, _, keyed = key.digest(rows(pa.array([1, None, 1, None]), pa.array(["a", "a", None, None])))
    assert keyed is not None
    assert [True, False, False, False] == keyed.tolist()
    assert [0, 0, 0] == found[1:].tolist()


def test_nulls_never_equal_anything_not_even_nulls() -> None:
    column = [pa.array([1, None, None]), pa.array(["a", None, "b"])]
    assert [True, False, False] == equal_keys(column, column).tolist()


def test_columns_that_trade_places_make_another_key() -> None:
    key = form(I64, columns=2)
    assert hashes(key, pa.array([1]), pa.array([2])) != hashes(key, pa.array([2]), pa.array([1]))
    assert hashes(form(pa.string(), columns=2), pa.array(["ab"]), pa.array([""])) != hashes(
        form(pa.string(), columns=2), pa.array(["a"]), pa.array(["b"])
    )


@pytest.mark.parametrize(
    ("mine", "other", "value"),
    [
        (S, NS, 2**62),
        (pa.decimal128(38, 0), pa.decimal128(38, 10), Decimal(10**37)),
        (pa.timestamp("ms"), NS, -(2**62)),
    ],
    ids=str,
)
def test_a_key_that_does_not_fit_the_common_form_is_refused_clearly(
    mine: pa.DataType, other: pa.DataType, value: object
) -> None:
    with pytest.raises(BadBatch) as refused:
        form(mine, other).digest(rows(pa.array([value], mine)))
    assert "k0" in refused.value.found
    assert refused.value.wanted
    assert refused.value.remedy
