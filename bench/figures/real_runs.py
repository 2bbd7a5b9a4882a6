"""The experiments of seed 000 section VI and thesis section 7.6 with real, throttled processes (`rig`).

Each is one function: which setups, which rates, how long. The figures and the tests call the same ones, the tests with
fewer rates. Nothing is tuned per figure; what a figure needs besides (a capped link, idle workers) its caption says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Final

import numpy as np

from bench.figures.rig import ROW_BYTES, Point, Setup, ladder, rig, side_by_side
from joinery.flow.buffer_bound import peak_buffer
from joinery.model.errors import require

PER_WORKER: Final = (500.0, 1000.0, 1300.0, 1600.0, 1900.0, 2200.0, 2600.0)
"""Rates of each stream, for each worker."""
TUNING_HZ: Final = 4000.0
TUNING_WORKERS: Final = 3
LINK: Final = 512e3
"""Bytes per second of the gateway's capped link."""
LINK_RATES: Final = (500.0, 1000.0, 1500.0, 2000.0)
LINK_HZ: Final = 1500.0
EPOCHS_S: Final = (0.25, 0.5, 1.0, 2.0, 4.0)
SUBGROUPS: Final = (1, 2, 4, 8)
BUFFER_HZ: Final = 1000.0
BUFFER_T_D_S: Final = 2.0
KNEE: Final = 3.0
"""The knee is the rate at which the delay passes so many times its least value. (A batch takes up to t_d to join, so
below the knee the delay rises to twice its least value.)"""
OVER: Final = 1.2


@dataclass(frozen=True, slots=True)
class Curve:
    """Delay over rate for some workers."""

    points: tuple[Point, ...]
    """Rising rates, up to the first whose delay is above KNEE times the least."""
    over: Point
    """At OVER times the knee, begun anew."""

    @property
    def knee_hz(self) -> float:
        return knee_of(self.points)

    @property
    def level(self) -> list[float]:
        """The delays up to 0.8 of the knee."""
        return [one.delay_s for one in self.points if one.rate_hz <= 0.8 * self.knee_hz]


def delay_over_rate(per_worker: Sequence[float] = PER_WORKER) -> dict[int, Curve]:
    """5, 6 / 7.7: rising rates on the same processes, for 1, 2 and 3 workers."""
    return side_by_side({n: partial(_over_the_knee, n, per_worker) for n in (1, 2, 3)})


def _over_the_knee(workers: int, per_worker: Sequence[float]) -> Curve:
    points: list[Point] = []
    with rig(Setup(workers=workers)) as running:
        for rate in per_worker:
            points.append(running.point(workers * rate))
            if points[-1].delay_s > KNEE * min(one.delay_s for one in points):
                break
        running.rest()
        return Curve(tuple(points), running.point(OVER * knee_of(points), measure_s=8.0))


def fine_tuning(measure_s: float = 10.0) -> dict[bool, Point]:
    """8 / 7.8b: the same rate with and without fine tuning."""
    setups = {tuned: Setup(workers=TUNING_WORKERS, fine_tuning=tuned) for tuned in (False, True)}
    runs = {tuned: partial(ladder, setup, [TUNING_HZ], measure_s=measure_s) for tuned, setup in setups.items()}
    return {tuned: points[0] for tuned, points in side_by_side(runs).items()}


@cache
def communication_over_rate(rates: tuple[float, ...] = LINK_RATES) -> dict[bool, list[Point]]:
    """12 / 7.10 and 7.11: four workers in one slot behind a capped link, without and with knowing their turns."""
    setups = {known: _linked(4, turns_known=known) for known in (False, True)}
    return side_by_side({known: partial(ladder, setup, rates) for known, setup in setups.items()})


def communication_over_workers(workers: Sequence[int] = (1, 2, 3, 4)) -> dict[int, Point]:
    """11 / 7.13: the same rate for one to four workers behind a capped link."""
    runs = {n: partial(ladder, _linked(n, turns_known=False), [LINK_HZ], measure_s=8.0) for n in workers}
    return {n: points[0] for n, points in side_by_side(runs).items()}


def _linked(workers: int, *, turns_known: bool) -> Setup:
    return Setup(
        workers=workers, t_d_s=0.5, subgroups=1, is_throttled=False, link_bytes_per_s=LINK, turns_known=turns_known
    )


@cache
def over_epochs(epochs_s: tuple[float, ...] = EPOCHS_S) -> dict[float, Point]:
    """13, 14 / 7.15: the same rate for several t_d, each on processes of its own."""
    setups = {t_d: Setup(workers=3, t_d_s=t_d, turns_known=False) for t_d in epochs_s}
    seconds = max(6.0, 3 * max(epochs_s))
    runs = {t_d: partial(ladder, setup, [LINK_HZ], measure_s=seconds) for t_d, setup in setups.items()}
    return {t_d: points[0] for t_d, points in side_by_side(runs).items()}


def gateway_buffer(subgroups: Sequence[int] = SUBGROUPS) -> dict[int, Point]:
    """Section V.B: idle workers, one in each sub-group, uniform keys."""
    return side_by_side({n_g: partial(_buffered, n_g) for n_g in subgroups})


def _buffered(n_g: int) -> Point:
    setup = Setup(workers=n_g, subgroups=n_g, t_d_s=BUFFER_T_D_S, is_throttled=False, is_skewed=False)
    with rig(setup) as running:
        return running.point(BUFFER_HZ, settle_s=BUFFER_T_D_S, measure_s=3 * BUFFER_T_D_S)


# --- what is read off


def knee_of(points: Sequence[Point]) -> float:
    """Where the delay passes KNEE times its least value, between two rates by its logarithm; never: the last rate."""
    bound = KNEE * min(one.delay_s for one in points)
    for before, after in pairwise(points):
        if after.delay_s > bound:
            share = np.log(bound / before.delay_s) / np.log(after.delay_s / before.delay_s)
            return float(before.rate_hz + share * (after.rate_hz - before.rate_hz))
    return points[-1].rate_hz


def received(point: Point) -> list[float]:
    """Each worker's communication as a share of the time, from its slot's start, or from its turn if it knows it.

    A worker that knows its turn joins until then (seed 000, VI, on figure 12), so what it waits from the slot's start
    to its turn is no communication. All workers are in one slot here: the k-th of n has its turn at k/n of it.
    """
    require(point.setup.subgroups == 1, f"{point.setup.subgroups} sub-groups, want 1")
    n = len(point.shares)
    waits = [place / n if point.setup.turns_known else 0.0 for place in range(n)]
    return [max(0.0, share - wait) for share, wait in zip(point.communication, waits, strict=True)]


def spread(shares: Sequence[float]) -> float:
    return max(shares) - min(shares)


def expected_peak(point: Point) -> float:
    """What section V.B says, for the rate that came."""
    return peak_buffer(2 * point.rate_hz * ROW_BYTES, point.setup.t_d_s, point.setup.subgroups)


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    return float(np.polyfit(xs, ys, 1)[0])


def square(xs: Sequence[float], ys: Sequence[float]) -> float:
    """R^2 of a straight line."""
    return float(np.corrcoef(xs, ys)[0, 1] ** 2)


def row_of(point: Point) -> Mapping[str, object]:
    """A line of a figure's CSV."""
    setup = point.setup
    return {
        "workers": setup.workers,
        "rate_per_stream_hz": round(point.rate_hz, 1),
        "t_d_s": setup.t_d_s,
        "subgroups": setup.subgroups,
        "fine_tuning": setup.fine_tuning,
        "link_bytes_per_s": setup.link_bytes_per_s or "",
        "turns_known": setup.turns_known,
        "delay_mean_s": round(point.delay_s, 4),
        "results": point.results,
        "unsent_peak_bytes": point.peak_bytes,
        "busy": " ".join(f"{one.busy:.3f}" for one in point.shares),
        "idle": " ".join(f"{one.idle:.3f}" for one in point.shares),
        "communication": " ".join(f"{one.communication:.4f}" for one in point.shares),
        "window_bytes": " ".join(f"{one:.0f}" for one in point.windows),
        "load_average": round(point.load, 1),
        "late_ms": round(point.late_s * 1e3, 1),
    }
