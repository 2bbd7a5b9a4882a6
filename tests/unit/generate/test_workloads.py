"""The ready-made workloads are what the comparison with other engines says they are."""

import numpy as np
import pyarrow as pa
import pytest

from joinery.generate.bmodel import BModelKeys
from joinery.generate.keys import UniformKeys
from joinery.generate.workloads import TUPLE_BYTES, WORKLOADS
from joinery.model.ids import StreamIndex

SECOND = 1_000_000_000
EXPECTED = {
    "U1": (5_000_000, 100_000, UniformKeys(10**6), 10 * SECOND),
    "U1small": (500_000, 100_000, UniformKeys(10**5), SECOND),
    "B7": (1_000_000, 10_000, BModelKeys(10**7, 0.7), 10 * SECOND),
    "B8": (1_000_000, 10_000, BModelKeys(10**7, 0.8), 10 * SECOND),
    "L1": (3_000_000, 50_000, UniformKeys(10**6), 10 * SECOND),
}


def test_rows_rates_keys_and_windows() -> None:
    found = {name: (load.rows_per_stream, load.rate_hz, load.keys, load.window_ns) for name, load in WORKLOADS.items()}
    assert EXPECTED == found


@pytest.mark.parametrize("name", EXPECTED)
def test_tuples_have_64_bytes(name: str) -> None:
    rows = WORKLOADS[name].stream(StreamIndex(0)).rows(0, 10)
    assert pa.schema([("ts", pa.int64()), ("key", pa.int64()), ("payload", pa.binary(48))]) == rows.schema
    assert TUPLE_BYTES == sum(field.type.bit_width for field in rows.schema) // 8


def test_a_whole_stream_has_its_rows_at_its_rate() -> None:
    rows = WORKLOADS["U1small"].rows(StreamIndex(1))
    times = rows["ts"].to_numpy()
    assert 500_000 == rows.num_rows
    assert 100_000 == pytest.approx(500_000 / ((times[-1] - times[0]) / 1e6), rel=0.01)
    assert 10**5 > rows["key"].to_numpy().max() > 0.99 * 10**5


def test_the_two_streams_join_as_often_as_chance_says() -> None:
    left, right = (WORKLOADS["U1small"].rows(StreamIndex(side)) for side in (0, 1))
    keys = np.concatenate([rows["key"].to_numpy()[:200_000] for rows in (left, right)])
    counts = np.bincount(keys[:200_000], minlength=10**5) @ np.bincount(keys[200_000:], minlength=10**5)
    assert 200_000 * 2 == pytest.approx(counts, rel=0.02)
