"""The experiments of seed 000 section VI and thesis section 7.6, each point one simulated run, made once.

A run has the papers' own scale: W = 10 min, theta = 1.5 MB, 64-byte tuples, rates as printed, 20 minutes of which the
second ten are measured. Nothing is tuned per figure: every point comes from `point`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from joinery.generate.profiles import Constant
from joinery.simulate.costs import CostModel
from joinery.simulate.load import simulate
from joinery.simulate.load_settings import SECOND, paper_settings

MEASURED_NS: Final = 600 * SECOND
MEASURED_S: Final = 600.0
KNEE: Final = 2.0
"""The knee is the rate above which the delay stays over so many times its least value."""
IDLE_GONE: Final = 0.05


@dataclass(frozen=True, slots=True)
class Point:
    """One run, measured; times in seconds of the ten minutes."""

    workers: int
    """Available."""
    rate_hz: float
    """Of each stream."""
    fine_tuning: bool
    adaptive: bool
    delay_s: float
    delay_p95_s: float
    cpu_s: float
    """All workers together."""
    communication_s: float
    moving_s: float
    idle_share: float
    degree: float
    """In the mean."""

    @property
    def cpu_per_worker_s(self) -> float:
        return self.cpu_s / self.workers

    @property
    def communication_per_worker_s(self) -> float:
        return self.communication_s / self.workers


@cache
def point(workers: int, rate_hz: float, *, fine_tuning: bool = True, adaptive: bool = False) -> Point:
    """One run of twenty minutes."""
    settings = paper_settings(workers, fine_tuning=fine_tuning, adaptive=adaptive)
    run = simulate(settings, CostModel.paper(), Constant(rate_hz=float(rate_hz)))
    totals, delay = run.totals(MEASURED_NS), run.delay(MEASURED_NS)
    return Point(
        workers=workers,
        rate_hz=float(rate_hz),
        fine_tuning=fine_tuning,
        adaptive=adaptive,
        delay_s=delay.mean,
        delay_p95_s=delay.p95,
        cpu_s=totals.cpu,
        communication_s=totals.communication,
        moving_s=totals.moving,
        idle_share=totals.idle_share,
        degree=totals.wall / MEASURED_S,
    )


def curve(workers: int, rates: Sequence[float], *, fine_tuning: bool = True) -> list[Point]:
    """One run per rate."""
    return [point(workers, float(rate), fine_tuning=fine_tuning) for rate in rates]


def knee(workers: int, low: float, high: float, *, to: float = 100.0) -> float:
    """The rate at which the delay passes KNEE times that of `low`, by halving; it must have passed it at `high`."""
    bound = KNEE * point(workers, low).delay_s
    while high - low > to:
        middle = (low + high) / 2
        low, high = (middle, high) if point(workers, middle).delay_s <= bound else (low, middle)
    return low


def knee_of(points: Sequence[Point]) -> float:
    """The greatest rate of a curve whose delay is at most KNEE times its least one."""
    bound = KNEE * min(one.delay_s for one in points)
    return max(one.rate_hz for one in points if one.delay_s <= bound)


def keeping_up(points: Sequence[Point]) -> list[Point]:
    """The points at which the workers still had idle time."""
    return [one for one in points if one.idle_share >= IDLE_GONE]


def busy_from(points: Sequence[Point]) -> float:
    """The least rate of a curve at which the workers have no idle time left."""
    return min(one.rate_hz for one in points if one.idle_share < IDLE_GONE)


def slope(points: Sequence[Point]) -> float:
    """Log-log slope of CPU time over rate, by least squares."""
    rates, times = (np.log([getattr(one, name) for one in points]) for name in ("rate_hz", "cpu_s"))
    return float(np.polyfit(rates, times, 1)[0])


def straightness(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Slope and R^2 of a straight line."""
    return float(np.polyfit(xs, ys, 1)[0]), float(np.corrcoef(xs, ys)[0, 1] ** 2)
