"""Poisson arrivals: exponential gaps, the right rate, everywhere in the stream."""

import numpy as np
import pytest
from scipy import stats

from joinery.generate.arrivals import EvenArrivals, arrival_times
from joinery.generate.draws import CHUNK
from joinery.generate.poisson import CountedArrivals, PoissonArrivals, chunk_start
from joinery.generate.profiles import Constant, Ramp, Step

RARE = 1e-4  # some 40 such checks stand in this folder: together a false alarm is still below 1 %
SECOND = 1_000_000_000
RATE = 1500


@pytest.mark.parametrize("start", [0, 3 * CHUNK - 5000, 10**9])
def test_gaps_are_exponential_with_the_mean_of_the_rate(start: int) -> None:
    gaps = np.diff(arrival_times(PoissonArrivals.at(RATE), 1, start, start + 100_000)) / SECOND
    assert 1 / RATE == pytest.approx(gaps.mean(), rel=0.02)
    assert stats.kstest(gaps, "expon", args=(0, 1 / RATE)).pvalue > RARE


def test_gaps_know_nothing_of_the_gap_before() -> None:
    gaps = np.diff(arrival_times(PoissonArrivals.at(RATE), 2, 0, 200_000))
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 0.01


@pytest.mark.parametrize("bin_rows", [10, 1000, 20_000], ids=["fine", "coarse", "longer than a chunk"])
def test_counts_are_as_scattered_as_a_poisson_process_on_every_scale(bin_rows: int) -> None:
    times = arrival_times(PoissonArrivals.at(RATE), 3, 0, 2_000_000)
    counts = np.bincount(times // (bin_rows * SECOND // RATE))[:-1]
    index_of_dispersion = counts.var(ddof=1) / counts.mean()
    low, high = stats.chi2(counts.size - 1).ppf([RARE / 2, 1 - RARE / 2]) / (counts.size - 1)
    assert low < index_of_dispersion < high


def test_lengths_of_chunks_have_the_mean_and_variance_of_that_many_gaps() -> None:
    lengths = np.diff([chunk_start(5, number) for number in range(400)])
    assert stats.kstest(lengths, "gamma", args=(CHUNK,)).pvalue > RARE
    assert abs(np.corrcoef(lengths[:-1], lengths[1:])[0, 1]) < 0.15


def test_starts_of_chunks_grow_and_begin_at_zero() -> None:
    starts = [chunk_start(9, number) for number in range(70)]
    assert 0.0 == starts[0]
    assert sorted(starts) == starts


def test_the_far_end_of_a_long_stream_is_where_the_rate_puts_it() -> None:
    row = 10**12
    assert row / RATE == pytest.approx(arrival_times(PoissonArrivals.at(RATE), 1, row, row + 1)[0] / SECOND, rel=1e-5)


def test_times_never_go_back_even_between_chunks() -> None:
    times = arrival_times(PoissonArrivals.at(1e9), 1, 0, 5 * CHUNK)
    assert np.all(np.diff(times) >= 0)
    assert times[0] >= 0


def test_a_changing_rate_is_followed() -> None:
    ramp = Ramp(from_hz=100, to_hz=2000, start_ns=0, end_ns=100 * SECOND)
    times = arrival_times(PoissonArrivals(ramp), 7, 0, 105_000)
    counts = np.bincount(times // (10 * SECOND))[:10]
    expected = np.diff(ramp.count_until(np.arange(11) * 10 * SECOND))
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > RARE
    uniform = ramp.count_until(times)  # warped back it is a process of rate 1
    assert stats.kstest(np.diff(uniform), "expon").pvalue > RARE


def test_even_arrivals_are_evenly_spaced() -> None:
    assert [500_000, 1_500_000, 2_500_000] == arrival_times(EvenArrivals(Constant(rate_hz=1000)), 1, 0, 3).tolist()


@pytest.mark.parametrize("rows", [1, 500, CHUNK, 3 * CHUNK + 7])
def test_counted_arrivals_are_all_there_before_the_end_and_the_next_one_is_not(rows: int) -> None:
    until_ns = 10_000_000_000
    step = Step(before_hz=rows / 20, after_hz=rows / 5, at_ns=until_ns // 2)
    times = arrival_times(CountedArrivals(profile=step, rows=rows, until_ns=until_ns), 5, 0, rows + 1)
    assert (times[:-1] < until_ns).all()
    assert until_ns == pytest.approx(times[-1], abs=2)
    assert (np.diff(times) >= 0).all()


def test_counted_arrivals_are_spread_as_chance_spreads_them() -> None:
    """Given their number, arrivals of a constant rate are uniform: their mean lies within four standard errors."""
    rows, until_ns = 20_000, 10**9
    arrivals = CountedArrivals(profile=Constant(rate_hz=rows), rows=rows, until_ns=until_ns)
    times = arrival_times(arrivals, 3, 0, rows) / until_ns
    assert 0.5 == pytest.approx(times.mean(), abs=4 / np.sqrt(12 * rows))
    gaps = np.diff(times) * rows
    assert 1 == pytest.approx(gaps.std(), rel=0.05), "not even: gaps are exponential"


def test_counted_arrivals_are_the_same_wherever_one_begins() -> None:
    arrivals = CountedArrivals(profile=Constant(rate_hz=CHUNK), rows=3 * CHUNK, until_ns=3 * 10**9)
    whole = arrival_times(arrivals, 8, 0, 3 * CHUNK)
    assert (whole[CHUNK + 5 : 2 * CHUNK + 9] == arrival_times(arrivals, 8, CHUNK + 5, 2 * CHUNK + 9)).all()
