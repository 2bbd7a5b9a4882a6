"""Delays in fixed buckets: what is added is what was seen, and percentiles are right to a bucket."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.flow.delays import PER_DOUBLING, Delays
from joinery.model.errors import Bug

WIDTH = 2 ** (1 / PER_DOUBLING)


def seen(*delays: int) -> Delays:
    return Delays.of(np.array(delays, np.int64), np.ones(len(delays), np.int64))


def test_nothing_seen_is_nothing_told() -> None:
    none = Delays()
    assert (0, 0.0, 0, 0) == (none.rows, none.mean_ns, none.max_ns, none.percentile_ns(0.99))


def test_rows_mean_and_greatest_are_exact() -> None:
    delays = Delays.of(np.array([10, 1000]), np.array([3, 1]))
    assert (4, 257.5, 1000) == (delays.rows, delays.mean_ns, delays.max_ns)


def test_a_delay_without_rows_does_not_count() -> None:
    delays = Delays.of(np.array([10, 10**9]), np.array([3, 0]))
    assert (3, 10) == (delays.rows, delays.max_ns)


def test_a_delay_below_0_counts_as_0() -> None:
    assert (1, 0.0, 0) == (seen(-5).rows, seen(-5).mean_ns, seen(-5).max_ns)


def test_delays_and_rows_must_fit() -> None:
    with pytest.raises(Bug):
        Delays.of(np.array([1, 2]), np.array([1]))


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=60), st.sampled_from([0.01, 0.5, 0.99, 1.0]))
def test_a_percentile_is_right_to_the_width_of_a_bucket(delays: list[int], share: float) -> None:
    exact = sorted(delays)[int(np.ceil(share * len(delays))) - 1]
    told = seen(*delays).percentile_ns(share)
    assert min(exact, 1) * 0.999 * exact <= told <= max(exact, 1) * WIDTH * 1.001


@given(st.lists(st.integers(0, 10**12), max_size=30), st.lists(st.integers(0, 10**12), max_size=30))
def test_two_counts_together_are_the_count_of_both(one: list[int], other: list[int]) -> None:
    both, whole = seen(*one) + seen(*other), seen(*one, *other)
    assert whole.counts.tolist() == both.counts.tolist()
    assert (pytest.approx(whole.total_ns), whole.max_ns) == (both.total_ns, both.max_ns)
