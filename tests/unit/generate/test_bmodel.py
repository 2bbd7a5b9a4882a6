"""The b-model: share of the lower half, entropy, exact totals, burstiness."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from joinery.generate.arrivals import arrival_times
from joinery.generate.bmodel import BModelArrivals, BModelKeys, BModelVolumes, levels_for
from joinery.generate.keys import keys_between

RARE = 1e-4  # some 40 such checks stand in this folder: together a false alarm is still below 1 %
SECOND = 1_000_000_000


def entropy_bits(b: float) -> float:
    return float(-b * np.log2(b) - (1 - b) * np.log2(1 - b))


@pytest.mark.parametrize("b", [0.5, 0.6, 0.7, 0.8])
def test_every_level_keeps_the_lower_half_with_probability_b(b: float) -> None:
    keys = keys_between(BModelKeys(10**7, b), 1, 0, 200_000)
    within = np.ones(keys.size, dtype=bool)
    for level in range(1, 6):
        lower = keys < 10**7 / 2**level
        assert b == pytest.approx(np.count_nonzero(lower & within) / np.count_nonzero(within), abs=0.015)
        within &= lower


def test_upper_halves_are_split_in_the_same_way() -> None:
    keys = keys_between(BModelKeys(1024, 0.7), 1, 0, 200_000)
    upper = keys[keys >= 512]
    assert 0.7 == pytest.approx(np.count_nonzero(upper < 768) / upper.size, abs=0.01)


@pytest.mark.parametrize("b", [0.5, 0.7, 0.8])
def test_the_entropy_is_that_of_one_level_times_the_levels(b: float) -> None:
    counts = np.bincount(keys_between(BModelKeys(1024, b), 2, 0, 500_000))
    assert 10 * entropy_bits(b) == pytest.approx(stats.entropy(counts, base=2), abs=0.01)


def test_frequencies_are_products_of_the_shares() -> None:
    b, counts = 0.7, np.bincount(keys_between(BModelKeys(64, 0.7), 3, 0, 300_000), minlength=64)
    ones = np.array([bin(key).count("1") for key in range(64)])
    assert stats.chisquare(counts, 300_000 * b ** (6 - ones) * (1 - b) ** ones).pvalue > RARE


@settings(deadline=None)
@given(domain=st.integers(1, 2**31), b=st.floats(0.01, 0.99))
def test_keys_stay_in_the_domain(domain: int, b: float) -> None:
    keys = BModelKeys(domain, b).draw(np.random.default_rng(1), 50)
    assert keys.min() >= 0
    assert keys.max() < domain


@settings(deadline=None)
@given(total=st.integers(0, 10**9), levels=st.integers(0, 10), b=st.floats(0.5, 1.0), seed=st.integers(0, 2**64 - 1))
def test_the_total_of_the_volumes_is_kept_exactly(total: int, levels: int, b: float, seed: int) -> None:
    volumes = BModelVolumes(total=total, levels=levels, b=b).of(seed)
    assert 2**levels == volumes.size
    assert total == volumes.sum()
    assert volumes.min() >= 0


def test_each_half_gets_b_or_the_rest_on_either_side() -> None:
    volumes = BModelVolumes(total=10**12, levels=10, b=0.7).of(1).reshape(-1, 2)
    share = volumes[:, 0] / volumes.sum(axis=1)
    assert np.all((np.abs(share - 0.7) < 1e-3) | (np.abs(share - 0.3) < 1e-3))
    assert stats.binomtest(int(np.count_nonzero(share > 0.5)), share.size).pvalue > RARE


def test_small_volumes_keep_the_share_on_the_average() -> None:
    heavier = [BModelVolumes(total=3, levels=1, b=0.8).of(seed).max() for seed in range(2000)]
    # 0.8 * 3 = 2.4 is rounded up with probability 0.4: (3, 0) or (2, 1)
    assert 2.4 == pytest.approx(np.mean(heavier), abs=0.04)


def test_the_volumes_have_the_known_entropy() -> None:
    volumes = BModelVolumes(total=10**12, levels=12, b=0.8).of(2)
    assert 12 * entropy_bits(0.8) == pytest.approx(stats.entropy(volumes, base=2), abs=1e-3)


def test_levels_bound_the_fullest_mini_interval_as_in_the_thesis() -> None:
    levels = levels_for(200 * 4 * 3600, 0.6, 70_000)  # 200/s for 4 hours
    assert 8 == levels
    fullest = BModelVolumes(total=200 * 4 * 3600, levels=levels, b=0.6).of(1).max()
    assert 70_000 * 0.6 < fullest <= 70_000


def test_arrivals_have_the_volumes_of_the_model_in_order() -> None:
    volumes = BModelVolumes(total=50_000, levels=6, b=0.7)
    arrivals = BModelArrivals(volumes=volumes, duration_ns=64 * SECOND)
    times = arrival_times(arrivals, 5, 0, 10**6)
    assert 50_000 == times.size
    assert np.all(np.diff(times) >= 0)
    np.testing.assert_array_equal(volumes.of(5), np.bincount(times // SECOND, minlength=64))


def test_burstiness_grows_with_b() -> None:
    def dispersion(b: float) -> float:
        volumes = BModelVolumes(total=100_000, levels=8, b=b)
        counts = np.bincount(
            arrival_times(BModelArrivals(volumes=volumes, duration_ns=256 * SECOND), 1, 0, 10**6) // SECOND
        )
        return float(counts.var() / counts.mean())

    assert dispersion(0.5) < 1 < 20 < dispersion(0.6) < dispersion(0.7) < dispersion(0.8)


def test_a_stream_that_is_over_has_no_more_rows() -> None:
    arrivals = BModelArrivals(volumes=BModelVolumes(total=10, levels=2, b=0.6), duration_ns=SECOND)
    assert 0 == arrival_times(arrivals, 1, 10, 10**6).size
