"""PQRS: points whose keys and times belong together.

Wang, Ailamaki, Faloutsos, "Capturing the spatio-temporal behavior of real traffic data" (2002). The plane of time and
space (here: the key's domain) is cut into four quadrants; a point falls into them with the probabilities

             early half   late half
    low keys     p            q
    high keys    r            s

and then, in its quadrant, again, level by level. The share of early points is p + r on every level, that of low keys
p + q; with p s = q r the two are independent, otherwise keys near each other come at times near each other.

Mini-intervals (thesis 3.5.1 and 6.4.1): points are made in no order of time, so a long stream would have to be sorted
whole. The duration is therefore cut into 2^n mini-intervals whose volumes follow the b-model; each is filled by a
PQRS process of its own and sorted by itself. `levels_for` chooses n so that the fullest one is bounded.

The depth of the recursion is the number of bits of the domain; below it time is uniform.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from joinery.generate.bmodel import DOMAIN_MAX, BModelVolumes, interval_edges, scale_bits
from joinery.generate.checks import want, want_real, want_whole
from joinery.generate.draws import CHUNK, IntArray, Lane, recut, rng_at
from joinery.generate.points import TIME
from joinery.generate.profiles import want_length


@dataclass(frozen=True, slots=True)
class Quadrants:
    """The four probabilities; see the picture above."""

    p: float
    q: float
    r: float
    s: float

    def __post_init__(self) -> None:
        for field in ("p", "q", "r", "s"):
            want_real(field, getattr(self, field), 0.0, 1.0, "give the probability of a quadrant")
        total = self.p + self.q + self.r + self.s
        want(abs(total - 1) < 1e-9, "p + q + r + s", total, "1", "give the probabilities of all four quadrants")

    def draw_cells(self, rng: np.random.Generator, count: int, levels: int) -> tuple[IntArray, IntArray]:
        """Time and space cells of so many points on the 2^levels grid."""
        times, spaces = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        low_early, low, low_or_early = self.p, self.p + self.q, self.p + self.q + self.r
        for _ in range(levels):
            fate = rng.random(count)
            high = fate >= low
            times <<= 1
            times |= (fate >= low_early) ^ high ^ (fate >= low_or_early)
            spaces <<= 1
            spaces |= high
        return times, spaces


@dataclass(frozen=True, slots=True, kw_only=True)
class PqrsPoints:
    """Exactly `volumes.total` points within a duration: b-model volumes per mini-interval, PQRS inside."""

    volumes: BModelVolumes
    quadrants: Quadrants
    duration_ns: int
    domain: int

    def __post_init__(self) -> None:
        want_length("duration_ns", self.duration_ns, low=2**self.volumes.levels)
        want_whole("domain", self.domain, 1, DOMAIN_MAX, "give the number of different keys")

    def chunks(self, seed: int, first: int) -> Iterator[IntArray]:
        volumes = self.volumes.of(seed)
        ends = np.cumsum(volumes)
        interval = int(np.searchsorted(ends, first * CHUNK, side="right"))
        before = int(ends[interval - 1]) if interval else 0
        return recut(self._intervals(seed, volumes, interval), CHUNK, skip=first * CHUNK - before)

    def _intervals(self, seed: int, volumes: IntArray, first: int) -> Iterator[IntArray]:
        edges = interval_edges(self.duration_ns, volumes.size)
        for number in range(first, volumes.size):
            yield self._points(seed, number, int(volumes[number]), edges[number], edges[number + 1])

    def _points(self, seed: int, number: int, volume: int, start: float, end: float) -> IntArray:
        """The points of one mini-interval, in the order of time."""
        levels = (self.domain - 1).bit_length()
        rng = rng_at(seed, Lane.PQRS, number)
        times, spaces = self.quadrants.draw_cells(rng, volume, levels)
        into = (times + rng.random(volume)) / 2.0**levels * (end - start)
        points = np.stack([(start + into).astype(np.int64), scale_bits(spaces, levels, self.domain)])
        return points[:, np.argsort(points[TIME], kind="stable")]
