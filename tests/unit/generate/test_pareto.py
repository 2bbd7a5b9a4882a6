"""Heavy tails: tail exponents, ON/OFF structure, burst sizes with a chosen mean."""

import numpy as np
import pytest
from scipy import stats

from joinery.generate.arrivals import arrival_times
from joinery.generate.pareto import BoundedPareto, BurstSizes, OnOffArrivals, ParetoBursts

RARE = 1e-4  # some 40 such checks stand in this folder: together a false alarm is still below 1 %
SECOND = 1_000_000_000
ON = BoundedPareto(alpha=1.5, low=SECOND // 100, high=100 * SECOND)
OFF = BoundedPareto(alpha=1.2, low=SECOND // 20, high=100 * SECOND)
SOURCE = OnOffArrivals(rate_hz=1000, on=ON, off=OFF)


@pytest.mark.parametrize("alpha", [0.8, 1.0, 1.5, 2.5])
def test_the_tail_falls_with_the_exponent(alpha: float) -> None:
    values = BoundedPareto(alpha=alpha, low=1000, high=2**46).draw(np.random.default_rng(1), 200_000)
    hill = 1 / np.mean(np.log(values / 1000))  # the estimator of Hill over the whole sample
    assert alpha == pytest.approx(hill, rel=0.02)


@pytest.mark.parametrize("alpha", [0.8, 1.0, 1.5])
def test_values_follow_the_bounded_distribution(alpha: float) -> None:
    pareto = BoundedPareto(alpha=alpha, low=10**6, high=10**8)
    values = pareto.draw(np.random.default_rng(2), 100_000)

    def distribution(x: np.ndarray) -> np.ndarray:
        return (1 - (10**6 / x) ** alpha) / (1 - 0.01**alpha)

    assert stats.kstest(values, distribution).pvalue > RARE
    assert pareto.mean == pytest.approx(values.mean(), rel=0.02)
    assert values.min() >= 10**6
    assert values.max() < 10**8


def test_rows_come_at_a_constant_rate_while_on_and_not_at_all_while_off() -> None:
    gaps = np.diff(arrival_times(SOURCE, 1, 0, 200_000))
    spacing = SECOND // 1000
    inside = gaps == spacing
    assert np.all(gaps[~inside] >= spacing + OFF.low)
    assert stats.kstest(gaps[~inside][:5000] - spacing, off_distribution).pvalue > RARE


def test_a_source_starts_in_an_on_period() -> None:
    firsts = [arrival_times(SOURCE, seed, 0, 3).tolist() for seed in range(20)]
    assert 20 * [[500_000, 1_500_000, 2_500_000]] == firsts


def off_distribution(x: np.ndarray) -> np.ndarray:
    return (1 - (OFF.low / np.maximum(x, OFF.low)) ** OFF.alpha) / (1 - (OFF.low / OFF.high) ** OFF.alpha)


def test_runs_while_on_have_the_tail_of_the_on_periods() -> None:
    gaps = np.diff(arrival_times(SOURCE, 2, 0, 2_000_000))
    runs = np.diff(np.flatnonzero(gaps > SECOND // 1000))  # rows of an ON period, at 1 ms each
    longer = [np.count_nonzero(runs > rows) for rows in (30, 300)]
    assert 1.5 == pytest.approx(np.log10(longer[0] / longer[1]), abs=0.1)


def test_the_long_run_rate_is_that_of_the_mean_periods() -> None:
    tame = OnOffArrivals(
        rate_hz=1000,
        on=BoundedPareto(alpha=3, low=SECOND // 10, high=10 * SECOND),
        off=BoundedPareto(alpha=3, low=SECOND // 5, high=10 * SECOND),
    )
    times = arrival_times(tame, 3, 0, 1_000_000)
    assert tame.mean_rate_hz == pytest.approx(1_000_000 / (times[-1] / SECOND), rel=0.02)
    assert 1000 / 3 == pytest.approx(tame.mean_rate_hz, rel=0.01)


def test_on_off_traffic_is_burstier_than_poisson_on_long_scales() -> None:
    counts = np.bincount(arrival_times(SOURCE, 4, 0, 300_000) // (10 * SECOND))[:-1]
    assert counts.var() / counts.mean() > 100


@pytest.mark.parametrize("mean", [1.0, 1.5, 3.0, 5.0])
def test_bursts_have_the_mean_that_was_asked_for(mean: float) -> None:
    sizes = BurstSizes.with_mean(mean, 100)
    drawn = sizes.draw(np.random.default_rng(1), 400_000)
    assert mean == pytest.approx(sizes.mean, abs=1e-9)
    assert mean == pytest.approx(drawn.mean(), rel=0.02)
    assert drawn.min() == 1
    assert drawn.max() <= 100


def test_burst_sizes_follow_the_bounded_pareto_tail() -> None:
    sizes, count = BurstSizes(alpha=1.3, largest=5), 200_000
    drawn = np.bincount(sizes.draw(np.random.default_rng(1), count), minlength=6)[1:]
    at_least = (np.arange(1.0, 7) ** -1.3 - 6**-1.3) / (1 - 6**-1.3)
    assert stats.chisquare(drawn, -np.diff(at_least) * count).pvalue > RARE


def test_bursts_arrive_at_poisson_moments_and_keep_the_overall_rate() -> None:
    times = arrival_times(ParetoBursts(rate_hz=100, sizes=BurstSizes.with_mean(3, 50)), 1, 0, 300_000)
    moments, sizes = np.unique(times, return_counts=True)
    assert 100 == pytest.approx(300_000 / (times[-1] / SECOND), rel=0.02)
    assert 3 == pytest.approx(sizes.mean(), rel=0.02)
    assert stats.kstest(np.diff(moments) / SECOND, "expon", args=(0, 3 / 100)).pvalue > RARE
