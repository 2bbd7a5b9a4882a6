"""Streams: schema, units, null keys, payload, disorder within its bound, limits."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.generate.bmodel import BModelArrivals, BModelVolumes
from joinery.generate.checks import BadParameter
from joinery.generate.draws import CHUNK
from joinery.generate.keys import UniformKeys
from joinery.generate.payload import Floats, Integers, Letters, RowNumbers
from joinery.generate.points import Independent
from joinery.generate.poisson import PoissonArrivals
from joinery.generate.streams import StreamGenerator

SECOND = 1_000_000_000
POINTS = Independent(PoissonArrivals.at(10_000), UniformKeys(1000))
FULL = StreamGenerator(
    points=POINTS,
    seed=1,
    time_column="at",
    time_unit="ms",
    origin_ns=1_700_000_000 * SECOND,
    key_column="id",
    null_share=0.1,
    payload=(Letters("text", 13), Integers("count", -5, 5), Floats("cost", 1.0, 2.0), RowNumbers("row")),
)


def test_the_schema_names_time_key_and_payload() -> None:
    names_and_types = [("at", pa.int64()), ("id", pa.int64()), ("text", pa.binary(13))]
    names_and_types += [("count", pa.int64()), ("cost", pa.float64()), ("row", pa.int64())]
    assert pa.schema(names_and_types) == FULL.schema == FULL.rows(0, 3).schema == FULL.rows(5, 5).schema


def test_times_are_in_the_unit_from_the_origin_on() -> None:
    plain = StreamGenerator(points=POINTS, seed=1, time_unit="ns").rows(0, 1000)["ts"].to_numpy()
    np.testing.assert_array_equal(plain // 1_000_000 + 1_700_000_000_000, FULL.rows(0, 1000)["at"].to_numpy())


def test_the_share_of_null_keys_is_kept() -> None:
    assert 0.1 == pytest.approx(FULL.rows(0, 50_000)["id"].null_count / 50_000, abs=0.005)
    assert 0 == StreamGenerator(points=POINTS, seed=1).rows(0, 1000)["key"].null_count


def test_payload_columns_hold_what_they_say() -> None:
    rows = FULL.rows(CHUNK - 100, CHUNK + 900)
    assert set(b"abcdefghijklmnop") == set(b"".join(rows["text"].to_pylist()))
    assert set(range(-5, 5)) == set(rows["count"].to_pylist())
    cost = rows["cost"].to_numpy()
    assert 1.0 <= cost.min() < 1.1 < 1.9 < cost.max() < 2.0
    assert list(range(CHUNK - 100, CHUNK + 900)) == rows["row"].to_pylist()


def test_equal_columns_of_one_stream_are_drawn_apart() -> None:
    stream = StreamGenerator(points=POINTS, seed=1, payload=(Integers("a", 0, 2**40), Integers("b", 0, 2**40)))
    rows = stream.rows(0, 100)
    assert rows["a"].to_pylist() != rows["b"].to_pylist()


def test_a_limit_ends_the_stream() -> None:
    stream = StreamGenerator(points=POINTS, seed=1, limit=CHUNK + 5)
    assert [10_000, CHUNK + 5 - 10_000] == [batch.num_rows for batch in stream.batches(0, 10_000)]
    assert 5 == stream.rows(CHUNK, 10 * CHUNK).num_rows
    assert 0 == stream.rows(CHUNK + 5, 10 * CHUNK).num_rows
    assert [] == list(stream.batches(2 * CHUNK, 10))
    unlimited = StreamGenerator(points=POINTS, seed=1)
    assert unlimited.rows(0, CHUNK + 5) == stream.rows(0, CHUNK + 5)


def test_a_stream_ends_with_its_points() -> None:
    points = Independent(
        BModelArrivals(volumes=BModelVolumes(total=100, levels=2, b=0.6), duration_ns=SECOND), UniformKeys(5)
    )
    assert [30, 30, 30, 10] == [batch.num_rows for batch in StreamGenerator(points=points, seed=1).batches(0, 30)]
    late = StreamGenerator(points=points, seed=1, lateness_ns=SECOND)
    assert [30, 30, 30, 10] == [batch.num_rows for batch in late.batches(0, 30)]
    assert [] == list(late.batches(CHUNK, 30))


@settings(deadline=None, max_examples=25)
@given(
    lateness_us=st.sampled_from([1, 50, 1000, 100_000, 2_000_000, 10_000_000]),
    share=st.sampled_from([0.01, 0.5, 1.0]),
    seed=st.integers(0, 2**64 - 1),
)
def test_no_row_is_later_than_the_bound_and_none_is_lost(lateness_us: int, share: float, seed: int) -> None:
    ordered = StreamGenerator(points=POINTS, seed=seed, limit=2 * CHUNK)
    late = StreamGenerator(points=POINTS, seed=seed, lateness_ns=lateness_us * 1000, delayed_share=share)
    times = late.rows(0, 2 * CHUNK)["ts"].to_numpy()
    greatest = np.maximum.accumulate(times)
    assert (greatest - times).max() <= lateness_us
    if lateness_us >= 1000:
        assert (greatest - times).max() > 0
    settled = ordered.rows(0, 2 * CHUNK)["ts"].to_numpy()
    settled = settled[settled < times[-1] - lateness_us]  # all of these have arrived
    np.testing.assert_array_equal(settled, np.sort(times)[: settled.size])


def test_disorder_reaches_its_bound_and_keeps_key_and_time_together() -> None:
    points = Independent(BModelArrivals(volumes=VOLUMES, duration_ns=10 * SECOND), UniformKeys(10**6))
    ordered, late = (StreamGenerator(points=points, seed=3, lateness_ns=bound).rows(0, 10**6) for bound in (0, SECOND))
    times = late["ts"].to_numpy()
    assert 0.8e6 < (np.maximum.accumulate(times) - times).max() <= 1e6
    pairs = [sorted(zip(rows["ts"].to_pylist(), rows["key"].to_pylist(), strict=True)) for rows in (ordered, late)]
    assert pairs[0] == pairs[1]


VOLUMES = BModelVolumes(total=40_000, levels=4, b=0.6)


def test_the_share_of_held_back_rows_is_kept() -> None:
    few = (
        StreamGenerator(points=POINTS, seed=3, lateness_ns=SECOND, delayed_share=0.01).rows(0, 50_000)["ts"].to_numpy()
    )
    behind = np.count_nonzero(few < np.maximum.accumulate(few))
    assert 0.01 == pytest.approx(behind / 50_000, abs=0.002)


def test_a_stream_that_runs_past_the_last_time_says_so() -> None:
    slow = StreamGenerator(points=Independent(PoissonArrivals.at(1e-9), UniformKeys(5)), seed=1)
    with pytest.raises(BadParameter, match="raise the rate"):
        slow.rows(0, 10)


def test_chunks_are_sliced_not_copied() -> None:
    one, other = (batch["ts"].buffers()[1].address for _, batch in zip(range(2), FULL_US.batches(0, 100), strict=False))
    assert one == other


FULL_US = StreamGenerator(points=POINTS, seed=1)
