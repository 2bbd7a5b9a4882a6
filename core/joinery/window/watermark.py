"""Late rows, watermarks and silent producers of one stream (docs/design.md §2).

Rule 1: a row is late iff its time is below (greatest time among the earlier rows of the same producer) - lateness, or
below the stream's watermark in the record before its own (a producer that joins or returns). So batching, speed and
other producers change nothing as long as nobody joins late.
Rule 2: the watermark is the smallest (greatest time - lateness) of the live producers; it never goes back. A producer
that has sent no row yet holds it where it is. Without a live producer it stays; after the end of the stream it is
FOREVER.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from joinery.model.errors import require
from joinery.model.ids import ProducerId
from joinery.model.time import DEAD, FOREVER, TIME_MIN
from joinery.model.tuples import I64Array
from joinery.model.views import readonly


@dataclass(frozen=True, slots=True)
class StreamClock:
    """The producers of a stream and its watermark; a value: every change gives a new one."""

    lateness_ns: int
    watermark: int = DEAD
    """As written into the newest record; DEAD: no row has ever set it."""
    greatest: dict[ProducerId, int] = field(default_factory=dict)
    """Greatest time of every producer that ever sent; a producer that returns goes on from it."""
    live: frozenset[ProducerId] = frozenset()
    ended: bool = False

    def late(self, producer: ProducerId, times: I64Array) -> NDArray[np.bool_]:
        """Which of the producer's next rows are late (rule 1)."""
        before = self.greatest.get(producer, DEAD)
        late = np.empty(times.size, np.bool_)
        _late(readonly(times), before, self.lateness_ns, self.watermark, late)
        return late

    def sent(self, producer: ProducerId, times: I64Array) -> "StreamClock":
        """The producer is live and its rows are recorded; the watermark follows with `recorded`."""
        require(not self.ended, f"rows of {producer} after the end of their stream")
        top = max(self.greatest.get(producer, DEAD), int(times.max()) if times.size else DEAD)
        return replace(self, greatest={**self.greatest, producer: top}, live=self.live | {producer})

    def silent(self, producer: ProducerId) -> "StreamClock":
        """The producer went idle or left: it no longer holds the watermark."""
        return replace(self, live=self.live - {producer})

    def forget(self, producer: ProducerId) -> "StreamClock":
        """The producer, of whom no row is recorded, is gone: as if it had never been."""
        greatest = {one: top for one, top in self.greatest.items() if one != producer}
        return replace(self, greatest=greatest, live=self.live - {producer})

    def end(self) -> "StreamClock":
        """Every producer said that the stream is over."""
        return replace(self, live=frozenset(), ended=True)

    def recorded(self) -> "StreamClock":
        """The clock after the next record: its watermark as far as the live producers allow (rule 2)."""
        return replace(self, watermark=max(self.watermark, self._reach()))

    def _reach(self) -> int:
        if self.ended:
            return FOREVER
        tops = [self.greatest.get(producer, DEAD) for producer in self.live]
        low = min(tops, default=DEAD)
        return DEAD if low <= TIME_MIN else low - self.lateness_ns


@njit(cache=True, nogil=True)
def _late(times: I64Array, reached: int, lateness_ns: int, watermark: int, out: NDArray[np.bool_]) -> None:
    """Below what was reached before, less the lateness; or below the watermark."""
    for row in range(times.size):
        bound = watermark
        if reached > TIME_MIN:
            bound = max(bound, reached - lateness_ns)
        out[row] = times[row] < bound
        reached = max(reached, times[row])
