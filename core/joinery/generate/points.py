"""Points: what a stream is made of, a time and a key per row.

A point process gives chunks like an arrival process, but of int64 arrays with two rows: `points[TIME]` and
`points[KEY]`. Most streams draw the two apart (`Independent`); PQRS draws them together. `Disordered` lets points
arrive out of order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final, Protocol

import numpy as np

from joinery.generate.arrivals import Arrivals
from joinery.generate.checks import want_share, want_whole
from joinery.generate.draws import CHUNK, IntArray, Lane, recut, rng_at
from joinery.generate.keys import Keys, key_chunk
from joinery.generate.profiles import LENGTH_MAX

TIME: Final = 0
KEY: Final = 1


class PointProcess(Protocol):
    """A process of (time, key) points; times in nanoseconds since the start of the stream."""

    def chunks(self, seed: int, first: int) -> Iterator[IntArray]:
        """The points from chunk `first` on, each of shape (2, CHUNK); a finite process ends with a shorter one."""
        ...


@dataclass(frozen=True, slots=True)
class Independent:
    """Keys that know nothing of the time."""

    arrivals: Arrivals
    keys: Keys

    def chunks(self, seed: int, first: int) -> Iterator[IntArray]:
        for number, times in zip(count(first), self.arrivals.chunks(seed, first), strict=False):
            yield np.stack([times, key_chunk(self.keys, seed, number)[: times.size]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Disordered:
    """Points on the way: each is held back by up to `lateness_ns`, and they arrive in the order of time + delay.

    A row that comes before another one has time <= time + delay <= (time + delay of the other) <= (time of the other)
    + lateness, so no row is ever later than the bound. Ties keep their order, hence the order is one, however it is
    computed.

    Position n of the result depends on the points near it alone: all points older than (time of point n - 1) -
    lateness have arrived before. So an iteration may start anywhere, one lateness early. It holds the points of about
    two latenesses.
    """

    points: PointProcess
    lateness_ns: int
    delayed_share: float
    """Share of the points that are held back at all."""

    def __post_init__(self) -> None:
        want_whole("lateness_ns", self.lateness_ns, 1, LENGTH_MAX, "leave disorder out for a stream in order")
        if self.delayed_share != 1.0:
            want_share("delayed_share", self.delayed_share, "1.0 holds every row back, 0.01 makes few stragglers")

    def chunks(self, seed: int, first: int) -> Iterator[IntArray]:
        early = self._early_enough(seed, first)
        return recut(self._arrived(seed, early), CHUNK, skip=(first - early) * CHUNK)

    def _early_enough(self, seed: int, first: int) -> int:
        """A chunk from which on to read: all points before it have arrived before position first * CHUNK."""
        if first == 0 or (newest := self._last_time(seed, first - 1)) is None:
            return first
        back = 1
        while back < first:
            last = self._last_time(seed, first - back - 1)
            if last is not None and last < newest - self.lateness_ns:
                return first - back
            back *= 2
        return 0

    def _last_time(self, seed: int, number: int) -> int | None:
        chunk = next(self.points.chunks(seed, number), None)
        return None if chunk is None else int(chunk[TIME, -1])

    def _arrived(self, seed: int, first: int) -> Iterator[IntArray]:
        """The points from this chunk on, in the order of arrival, in pieces as they become certain."""
        rows = np.empty((3, 0), dtype=np.int64)  # arrival, time, key
        gathered: list[IntArray] = []
        for number, chunk in zip(count(first), self.points.chunks(seed, first), strict=False):
            gathered.append(np.stack([chunk[TIME] + self.delays(seed, number)[: chunk.shape[1]], *chunk]))
            if len(gathered) * CHUNK <= rows.shape[1]:
                continue  # sorting is worth it once as much is new as was waiting
            rows = _sorted_by_arrival([rows, *gathered])
            certain = np.searchsorted(rows[0], chunk[TIME, -1], side="right")
            yield rows[1:, :certain]
            rows, gathered = rows[:, certain:], []
        yield _sorted_by_arrival([rows, *gathered])[1:]

    def delays(self, seed: int, number: int) -> IntArray:
        """How long each point of a chunk of the ordered process is held back."""
        rng = rng_at(seed, Lane.DISORDER, number)
        delays = rng.integers(0, self.lateness_ns, size=CHUNK, endpoint=True, dtype=np.int64)
        return np.where(rng.random(CHUNK) < self.delayed_share, delays, 0)


def _sorted_by_arrival(pieces: list[IntArray]) -> IntArray:
    rows = np.concatenate(pieces, axis=1)
    return rows[:, np.argsort(rows[0], kind="stable")]
