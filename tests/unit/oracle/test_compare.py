"""compare() finds what is planted, in every shape of input."""

import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.compare import Wrong, compare

PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), max_size=12)
EXACT = "missing 0, extra 0, duplicate 0"


def as_list(pairs: list[tuple[int, int]]) -> object:
    return pairs


def as_numpy(pairs: list[tuple[int, int]]) -> object:
    return np.array(pairs, np.int64).reshape(-1, 2)


def as_table(pairs: list[tuple[int, int]]) -> object:
    return pa.table({name: pa.array([pair[at] for pair in pairs], pa.int64()) for at, name in enumerate("ab")})


def as_dicts(pairs: list[tuple[int, int]]) -> object:
    return [{"a": first, "b": second} for first, second in pairs]


SHAPES = pytest.mark.parametrize("shape", [as_list, as_numpy, as_table, as_dicts])
Shape = Callable[[list[tuple[int, int]]], object]


@SHAPES
def test_the_same_rows_in_another_order_are_exact(shape: Shape) -> None:
    comparison = compare(shape([(1, 2), (0, 0), (1, 2)]), shape([(0, 0), (1, 2), (1, 2)]))
    assert EXACT == str(comparison)
    assert comparison.exact


@SHAPES
@pytest.mark.parametrize(
    ("results", "numbers"),
    [
        ([(1, 1), (2, 2)], (1, 0, 0)),
        ([(1, 1), (2, 2), (2, 2), (9, 9)], (0, 1, 0)),
        ([(1, 1), (2, 2), (2, 2), (9, 9), (9, 9)], (0, 2, 0)),
        ([(1, 1), (1, 1), (1, 1), (2, 2), (2, 2)], (0, 0, 2)),
        ([(1, 1), (1, 1), (2, 2), (9, 9)], (1, 1, 1)),
        ([], (3, 0, 0)),
    ],
)
def test_each_planted_fault_is_of_its_kind(
    shape: Shape, results: list[tuple[int, int]], numbers: tuple[int, int, int]
) -> None:
    found = compare(shape(results), shape([(1, 1), (2, 2), (2, 2)]))
    assert numbers == (found.missing, found.extra, found.duplicate)
    assert not found.exact


@given(PAIRS, PAIRS)
def test_all_shapes_count_alike(results: list[tuple[int, int]], truth: list[tuple[int, int]]) -> None:
    numbers = {
        (found.missing, found.extra, found.duplicate)
        for shape in (as_list, as_numpy, as_table, as_dicts)
        for found in [compare(shape(results), shape(truth))]
    }
    assert 1 == len(numbers)
    missing, extra, duplicate = numbers.pop()
    assert len(results) == len(truth) - missing + extra + duplicate


@SHAPES
def test_the_story_shows_examples_of_each_kind(shape: Shape) -> None:
    story = compare(shape([(1, 1), (1, 1), (9, 9)]), shape([(1, 1), (2, 2)]))
    lines = str(story).split("\n")
    assert "missing 1, extra 1, duplicate 1" == lines[0]
    assert ["missing", "extra", "duplicate"] == [line.split()[0] for line in lines[1:]]
    assert "found 2, wanted 1" == lines[3].split(": ")[-1]


@SHAPES
def test_examples_are_as_many_as_asked_for(shape: Shape) -> None:
    truth = [(at, at) for at in range(50)]
    assert 3 == len(compare(shape([]), shape(truth), examples=3).missing_examples)
    assert 50 == len(compare(shape([]), shape(truth), examples=99).missing_examples)


def test_an_example_is_the_item_itself() -> None:
    assert (Wrong((1, None), 0, 1),) == compare([], [(1, None)]).missing_examples
    assert (Wrong({"a": 1, "b": 2}, 1, 0),) == compare(as_table([(1, 2)]), as_table([])).extra_examples
    assert (Wrong((1, 2), 1, 0),) == compare(as_numpy([(1, 2)]), as_numpy([])).extra_examples


def test_a_table_compares_with_tuples_and_with_dicts() -> None:
    assert EXACT == str(compare(as_table([(1, 2)]), [(1, 2)]))
    assert EXACT == str(compare(as_table([(1, 2)]), [{"a": 1, "b": 2}]))
    assert EXACT == str(compare(iter([{"a": 1, "b": 2}]), as_table([(1, 2)])))
    assert EXACT == str(compare(np.array([3, 4]), [4, 3]))
    assert EXACT == str(compare(pa.array([3, None]), [None, 3]))


VALUES = [
    pa.array([None, 1, 1], pa.int64()),
    pa.array([math.nan, None, 1.5]),
    pa.array([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(10, 2)),
    pa.array([b"", b"\x00", None]),
    pa.array(["", None, "ä"]),
    pa.array([True, False, None]),
    pa.array([None, None, None], pa.null()),
    pa.array([None, 1, 2], pa.timestamp("ns")),
    pa.array([[1], None, []]),
]


@pytest.mark.parametrize("values", VALUES, ids=lambda values: str(values.type))
def test_values_of_every_type_equal_themselves_and_are_missed_when_gone(values: pa.Array) -> None:
    rows, ids = pa.table({"v": values, "id": [1, 2, 3]}), pa.table({"v": values, "id": [1, 2, 4]})
    assert EXACT == str(compare(rows, rows.take([2, 0, 1])))
    assert (1, 1) == (compare(rows, ids).missing, compare(rows, ids).extra)
    assert (1, 0) == (compare(rows.slice(1), rows).missing, compare(rows.slice(1), rows).extra)


@pytest.mark.parametrize("columnar", [True, False])
def test_nan_is_nan_and_the_sign_of_zero_counts(columnar: bool) -> None:
    other_nan = np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0]

    def items(value: float) -> object:
        return pa.array([value]) if columnar else [(float(value),)]

    assert EXACT == str(compare(items(math.nan), items(other_nan)))
    assert compare(items(0.0), items(0.0)).exact
    assert not compare(items(0.0), items(-0.0)).exact


def test_how_arrow_stores_a_value_makes_no_difference() -> None:
    plain = pa.array(["a", None, "b"])
    stored = [plain.dictionary_encode(), plain.cast(pa.large_string()), plain.cast(pa.string_view())]
    assert [EXACT] * 3 == [str(compare(one, plain)) for one in stored]


def test_rows_with_other_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="columns differ"):
        compare(pa.table({"a": [1]}), pa.table({"b": [1]}))
    with pytest.raises(ValueError, match="columns differ"):
        compare(pa.table({"a": [1]}), pa.table({"a": ["1"]}))


def test_the_order_of_a_dicts_columns_counts() -> None:
    assert not compare([{"a": 1, "b": 2}], [{"b": 2, "a": 1}]).exact


def test_many_ids_are_counted() -> None:
    ids = np.arange(200_000)
    faulty = np.concatenate([ids[1:], [5, 5, -1]])
    assert "missing 1, extra 1, duplicate 2" == str(compare(faulty, ids)).split("\n")[0]
