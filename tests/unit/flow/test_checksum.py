"""The checksum of a batch: the same rows give the same, others another."""

import numpy as np
import pyarrow as pa
import pytest

from joinery.flow.checksum import checksum_of

ROWS = pa.RecordBatch.from_pydict({"key": list(range(100)), "text": [f"row {n}" for n in range(100)]})


def test_equal_rows_have_equal_sums() -> None:
    again = pa.RecordBatch.from_pydict({name: ROWS.column(name).to_pylist() for name in ROWS.schema.names})
    assert checksum_of(again) == checksum_of(ROWS)


def test_it_does_not_count_where_the_numbers_of_a_batch_begin() -> None:
    numbers = ROWS.select(["key"])
    twice = pa.RecordBatch.from_pydict({"key": 2 * numbers.column("key").to_pylist()})
    assert checksum_of(twice.slice(100)) == checksum_of(numbers)


@pytest.mark.parametrize("kind", [pa.binary(8), pa.binary()], ids=str)
def test_every_flipped_bit_is_seen(kind: pa.DataType) -> None:
    data = bytearray(np.random.default_rng(1).bytes(208))

    def sum_of() -> int:
        values = [bytes(data[at : at + 8]) for at in range(0, len(data), 8)]
        return checksum_of(pa.RecordBatch.from_arrays([pa.array(values, kind)], names=["c"]))

    known = {sum_of()}
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        known.add(sum_of())
        data[bit // 8] ^= 1 << bit % 8
    assert 8 * len(data) + 1 == len(known)


def test_the_number_of_rows_counts() -> None:
    zeros = pa.RecordBatch.from_pydict({"key": [0] * 20})
    assert 20 == len({checksum_of(zeros.slice(0, size)) for size in range(20)})


def test_swapped_rows_and_swapped_columns_are_seen() -> None:
    words = np.arange(16)
    swapped = words.copy()
    swapped[[0, 4]] = words[[4, 0]]
    sums = {
        checksum_of(pa.RecordBatch.from_pydict({"a": a, "b": b}))
        for a, b in ((words, swapped), (swapped, words), (words, words))
    }
    assert 3 == len(sums)


def test_a_null_is_not_a_zero() -> None:
    sums = {checksum_of(pa.RecordBatch.from_pydict({"a": pa.array([1, value], pa.int64())})) for value in (0, None)}
    assert 2 == len(sums)


def test_without_rows_the_columns_do_not_count() -> None:
    assert 0 == checksum_of(ROWS.slice(0, 0))


def test_it_fits_the_field_of_the_message() -> None:
    assert 0 <= checksum_of(ROWS) < 2**32
