"""The b-model: one number for skew, in keys and in time.

Wang, Madhyastha, Chan, Papadimitriou, Faloutsos, "Data mining meets performance evaluation: fast algorithms for
modeling bursty traffic" (2002); the "80/20 law", applied to itself. Split the axis in two: one half gets the share b,
the other 1 - b; do the same in each half, and so on.

- `BModelKeys` (window-join papers, join attribute with b = 0.7 over 10^7 keys): the lower half is always the heavy
  one. Every row falls through the levels by itself; the entropy of a key is (levels) x H(b) bits.
- `BModelVolumes` (thesis 3.5.1 and 6.4.1, "mini-intervals"): volumes of 2^n equal pieces of time; at each split a
  coin says which half is the heavy one. Shares are rounded up or down at random in proportion to the rest, and the
  other half is what is left: the total is kept exactly.
- `BModelArrivals`: those volumes as arrivals; the v rows of a mini-interval are spread one into each v-th of it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

import numpy as np

from joinery.generate.checks import want, want_real, want_share, want_whole
from joinery.generate.draws import CHUNK, FloatArray, IntArray, Lane, rng_at
from joinery.generate.profiles import want_length

DOMAIN_MAX: Final = 2**31
LEVELS_MAX: Final = 20
TOTAL_MAX: Final = 2**53


def scale_bits(cells: IntArray, levels: int, domain: int) -> IntArray:
    """Cell numbers of a 2^levels grid as keys of [0, domain): halves stay halves where the domain is even."""
    return (cells * domain) >> levels


@dataclass(frozen=True, slots=True)
class BModelKeys:
    """Keys of which each level keeps the lower half of the domain with probability b."""

    domain: int
    b: float

    def __post_init__(self) -> None:
        want_whole("domain", self.domain, 1, DOMAIN_MAX, "give the number of different keys")
        want_share("b", self.b, "0.5 is uniform, 0.8 the 80/20 law")

    def draw(self, rng: np.random.Generator, count: int) -> IntArray:
        levels = (self.domain - 1).bit_length()
        cells = np.zeros(count, dtype=np.int64)
        for _ in range(levels):
            cells <<= 1
            cells |= rng.random(count, dtype=np.float32) >= self.b
        return scale_bits(cells, levels, self.domain)


@dataclass(frozen=True, slots=True, kw_only=True)
class BModelVolumes:
    """How many of `total` rows fall into each of 2^levels mini-intervals."""

    total: int
    levels: int
    b: float

    def __post_init__(self) -> None:
        want_whole("total", self.total, 0, TOTAL_MAX, "give the number of rows of the whole stream")
        want_whole("levels", self.levels, 0, LEVELS_MAX, "each level doubles the mini-intervals")
        want_real("b", self.b, 0.5, 1.0, "0.5 is even, 1.0 puts all rows into one mini-interval")

    def of(self, seed: int) -> IntArray:
        """The volumes, in the order of time."""
        volumes = np.array([self.total], dtype=np.int64)
        for level in range(self.levels):
            rng = rng_at(seed, Lane.BMODEL_SIDES, level)
            heavy = np.minimum(np.floor(self.b * volumes + rng.random(volumes.size)).astype(np.int64), volumes)
            left = np.where(rng.random(volumes.size) < 0.5, heavy, volumes - heavy)
            volumes = np.stack([left, volumes - left], axis=1).ravel()
        return volumes


def levels_for(total: int, b: float, largest: int) -> int:
    """The least levels at which the fullest mini-interval (total x b^levels) has at most `largest` rows; thesis 3.5."""
    want_whole("total", total, 1, TOTAL_MAX, "give the number of rows of the whole stream")
    want_whole("largest", largest, 1, TOTAL_MAX, "give the most rows that a mini-interval may hold")
    want_real("b", b, 0.5, 0.999, "with b = 1 no level bounds a mini-interval")
    levels = max(0, math.ceil(math.log(largest / total) / math.log(b)))
    want(levels <= LEVELS_MAX, "largest", largest, f"a bound reached within {LEVELS_MAX} levels", "raise it or lower b")
    return levels


def interval_edges(duration_ns: int, intervals: int) -> FloatArray:
    """The edges of equal pieces of [0, duration), on whole nanoseconds."""
    return np.floor(np.arange(intervals + 1) / intervals * duration_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class BModelArrivals:
    """Exactly `volumes.total` arrivals within a duration, bursty on every scale down to a mini-interval."""

    volumes: BModelVolumes
    duration_ns: int

    def __post_init__(self) -> None:
        want_length("duration_ns", self.duration_ns, low=2**self.volumes.levels)

    def chunks(self, seed: int, first: int) -> Iterator[IntArray]:
        volumes = self.volumes.of(seed)
        before = np.append(0, np.cumsum(volumes))
        edges = interval_edges(self.duration_ns, volumes.size)
        for number in count(first):
            rows = np.arange(number * CHUNK, min((number + 1) * CHUNK, self.volumes.total))
            if not rows.size:
                return
            interval = np.searchsorted(before, rows, side="right") - 1
            spread = rows - before[interval] + rng_at(seed, Lane.BMODEL_SPREAD, number).random(CHUNK)[: rows.size]
            length = edges[interval + 1] - edges[interval]
            yield (edges[interval] + np.floor(spread / volumes[interval] * length)).astype(np.int64)
