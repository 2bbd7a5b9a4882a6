"""Points out of order: the same order as sorting the whole stream, wherever the iteration starts."""

import numpy as np
import pytest

from joinery.generate.arrivals import EvenArrivals
from joinery.generate.bmodel import BModelArrivals, BModelVolumes
from joinery.generate.draws import CHUNK, IntArray
from joinery.generate.keys import UniformKeys
from joinery.generate.points import TIME, Disordered, Independent, PointProcess
from joinery.generate.profiles import Constant

SECOND = 1_000_000_000
TOTAL = 6 * CHUNK + 700
VOLUMES = BModelVolumes(total=TOTAL, levels=5, b=0.6)
SPARSE = Independent(BModelArrivals(volumes=VOLUMES, duration_ns=100 * SECOND), UniformKeys(10**6))
WITH_TIES = Independent(BModelArrivals(volumes=VOLUMES, duration_ns=5000), UniformKeys(10**6))


def sorted_whole(process: Disordered, seed: int) -> IntArray:
    """All points of a finite process by time + delay, ties in their order."""
    chunks = list(process.points.chunks(seed, 0))
    delays = [process.delays(seed, number)[: chunk.shape[1]] for number, chunk in enumerate(chunks)]
    points = np.concatenate(chunks, axis=1)
    return points[:, np.argsort(points[TIME] + np.concatenate(delays), kind="stable")]


@pytest.mark.parametrize("first", [0, 1, 2, 4, 5, 6, 7])
@pytest.mark.parametrize("share", [0.2, 1.0])
@pytest.mark.parametrize(
    ("points", "lateness_ns"),
    [
        (SPARSE, 1000),
        (SPARSE, SECOND),
        (SPARSE, 40 * SECOND),
        (SPARSE, 500 * SECOND),
        (WITH_TIES, 7),
        (WITH_TIES, 3000),
    ],
)
def test_points_arrive_in_the_order_of_time_and_delay(
    points: PointProcess, lateness_ns: int, share: float, first: int
) -> None:
    process = Disordered(points=points, lateness_ns=lateness_ns, delayed_share=share)
    arrived = list(process.chunks(5, first))
    expected = sorted_whole(process, 5)[:, first * CHUNK :]
    np.testing.assert_array_equal(expected, np.concatenate([expected[:, :0], *arrived], axis=1))
    assert all(CHUNK == chunk.shape[1] for chunk in arrived[:-1])


def test_delays_fill_the_lateness() -> None:
    delays = Disordered(points=SPARSE, lateness_ns=10, delayed_share=1.0).delays(1, 0)
    assert set(range(11)) == set(delays.tolist())


def test_independent_points_end_with_their_arrivals() -> None:
    assert [CHUNK] * 6 + [700] == [chunk.shape[1] for chunk in SPARSE.chunks(1, 0)]
    endless = Independent(EvenArrivals(Constant(rate_hz=1)), UniformKeys(5)).chunks(1, 10**6)
    assert (2, CHUNK) == next(endless).shape
