"""The checksum of a batch: the same rows give the same, others another."""

import numpy as np
import pyarrow as pa

from joinery.flow.checksum import checksum, checksum_of

ROWS = pa.RecordBatch.from_pydict({"key": list(range(100)), "text": [f"row {n}" for n in range(100)]})


def test_equal_rows_have_equal_sums() -> None:
    again = pa.RecordBatch.from_pydict({name: ROWS.column(name).to_pylist() for name in ROWS.schema.names})
    assert checksum_of(again) == checksum_of(ROWS)


def test_every_flipped_bit_is_seen() -> None:
    data = bytearray(np.random.default_rng(1).bytes(203))
    known = {checksum(pa.py_buffer(bytes(data)))}
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        known.add(checksum(pa.py_buffer(bytes(data))))
        data[bit // 8] ^= 1 << bit % 8
    assert 8 * len(data) + 1 == len(known)


def test_the_length_counts() -> None:
    assert 20 == len({checksum(pa.py_buffer(bytes(size))) for size in range(20)})


def test_swapped_words_are_seen() -> None:
    words = np.arange(16, dtype=np.uint64)
    swapped = words.copy()
    swapped[[0, 4]] = words[[4, 0]]
    assert checksum(pa.py_buffer(words)) != checksum(pa.py_buffer(swapped))


def test_without_rows_the_columns_do_not_count() -> None:
    assert 0 == checksum_of(ROWS.slice(0, 0))


def test_it_fits_the_field_of_the_message() -> None:
    assert 0 <= checksum_of(ROWS) < 2**32
