"""HIGH/LOW phases: the paper's two rates, and arrivals that keep them."""

import numpy as np
import pytest

from joinery.generate.arrivals import arrival_times
from joinery.generate.phases import HighLow
from joinery.generate.poisson import PoissonArrivals

SECOND = 1_000_000_000


@pytest.mark.parametrize(("theta", "high", "low"), [(0.0, 500, 500), (0.5, 750, 250), (1.0, 1000, 0)])
def test_the_burst_ratio_gives_the_two_rates_of_the_paper(theta: float, high: float, low: float) -> None:
    phases = HighLow.of_burst_ratio(1000, theta, high_ns=SECOND, low_ns=SECOND)
    assert (high, low) == (phases.high_hz, phases.low_hz)


def test_arrivals_keep_the_rate_of_each_phase() -> None:
    phases = HighLow(high_hz=4000, low_hz=500, high_ns=2 * SECOND, low_ns=3 * SECOND)
    times = arrival_times(PoissonArrivals(phases), 4, 0, 190_000)
    periods = 190_000 // (2 * 4000 + 3 * 500)
    inside = times[times < periods * 5 * SECOND] % (5 * SECOND)
    in_high = np.count_nonzero(inside < 2 * SECOND)
    assert 4000 == pytest.approx(in_high / (2 * periods), rel=0.02)
    assert 500 == pytest.approx((inside.size - in_high) / (3 * periods), rel=0.03)


def test_burstiness_grows_with_the_ratio() -> None:
    def dispersion(theta: float) -> float:
        phases = HighLow.of_burst_ratio(1000, theta, high_ns=SECOND, low_ns=SECOND)
        times = arrival_times(PoissonArrivals(phases), 4, 0, 50_000)
        counts = np.bincount(times // SECOND)[:-1]
        return float(counts.var() / counts.mean())

    assert dispersion(0.0) < 2 < 50 < dispersion(0.5) < dispersion(1.0)
