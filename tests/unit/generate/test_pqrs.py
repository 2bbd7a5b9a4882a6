"""PQRS: marginals of both axes, their correlation, mini-intervals."""

import numpy as np
import pytest
from scipy import stats

from joinery.generate.bmodel import BModelVolumes
from joinery.generate.points import KEY, TIME
from joinery.generate.pqrs import PqrsPoints, Quadrants

RARE = 1e-4  # some 40 such checks stand in this folder: together a false alarm is still below 1 %
SECOND = 1_000_000_000
QUADRANTS = Quadrants(0.45, 0.15, 0.05, 0.35)


def all_points(quadrants: Quadrants, *, levels: int = 0, b: float = 0.5, total: int = 200_000) -> np.ndarray:
    process = PqrsPoints(
        volumes=BModelVolumes(total=total, levels=levels, b=b),
        quadrants=quadrants,
        duration_ns=64 * SECOND,
        domain=1024,
    )
    return np.concatenate(list(process.chunks(1, 0)), axis=1)


def quadrant_shares(points: np.ndarray, time: tuple[int, int], key: tuple[int, int]) -> list[float]:
    """Shares of p, q, r, s within a rectangle of the plane."""
    times, keys = points
    inside = (times >= time[0]) & (times < time[1]) & (keys >= key[0]) & (keys < key[1])
    late, high = times[inside] >= sum(time) // 2, keys[inside] >= sum(key) // 2
    return (np.bincount(2 * high + late, minlength=4) / np.count_nonzero(inside)).tolist()


def test_the_quadrants_get_their_probabilities() -> None:
    shares = quadrant_shares(all_points(QUADRANTS), (0, 64 * SECOND), (0, 1024))
    assert [0.45, 0.15, 0.05, 0.35] == pytest.approx(shares, abs=0.005)


def test_the_quadrants_of_a_quadrant_get_the_same_probabilities() -> None:
    points = all_points(QUADRANTS)
    assert [0.45, 0.15, 0.05, 0.35] == pytest.approx(quadrant_shares(points, (0, 32 * SECOND), (0, 512)), abs=0.01)
    assert [0.45, 0.15, 0.05, 0.35] == pytest.approx(
        quadrant_shares(points, (32 * SECOND, 64 * SECOND), (512, 1024)), abs=0.01
    )


def test_both_marginals_are_b_models() -> None:
    points = all_points(QUADRANTS)
    ones = np.array([bin(cell).count("1") for cell in range(64)])
    for cells, early in ((points[TIME] // SECOND, 0.5), (points[KEY] // 16, 0.6)):  # p + r, p + q
        expected = points.shape[1] * early ** (6 - ones) * (1 - early) ** ones
        assert stats.chisquare(np.bincount(cells, minlength=64), expected).pvalue > RARE


def test_keys_and_times_belong_together_unless_the_quadrants_are_a_product() -> None:
    together, apart = all_points(QUADRANTS), all_points(Quadrants(0.42, 0.28, 0.18, 0.12))
    assert stats.spearmanr(*together).statistic > 0.5
    assert abs(stats.spearmanr(*apart).statistic) < 0.01


def test_mini_intervals_have_the_volumes_of_the_b_model() -> None:
    points = all_points(QUADRANTS, levels=6, b=0.7)
    volumes = BModelVolumes(total=200_000, levels=6, b=0.7).of(1)
    np.testing.assert_array_equal(volumes, np.bincount(points[TIME] // SECOND, minlength=64))
    assert np.all(np.diff(points[TIME]) >= 0)


def test_every_mini_interval_is_a_pqrs_process_of_its_own() -> None:
    points = all_points(QUADRANTS, levels=1, b=0.5)
    for start in (0, 32 * SECOND):
        shares = quadrant_shares(points, (start, start + 32 * SECOND), (0, 1024))
        assert [0.45, 0.15, 0.05, 0.35] == pytest.approx(shares, abs=0.007)


def test_keys_stay_in_the_domain() -> None:
    process = PqrsPoints(
        volumes=BModelVolumes(total=1000, levels=2, b=0.6), quadrants=QUADRANTS, duration_ns=SECOND, domain=999
    )
    keys = next(process.chunks(1, 0))[KEY]
    assert keys.min() >= 0
    assert keys.max() < 999
