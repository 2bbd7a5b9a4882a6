"""Station 5 of 8, window: who may meet whom, and who is past (docs/design.md §2).

A combination of rows, one per stream, is a result iff every member k stands in its window W_k at the time T of the
latest member: T - W_k <= t_k. Grown one stream at a time, a part of a combination has T (the latest time so far) and
a deadline (the smallest t_k + W_k); a row of stream j fits iff T - W_j <= t_j <= deadline. Both bounds are inclusive.

A count window holds the last N rows of its stream at the place of the latest member in the order of all rows. There
each row carries its rank and the count of every stream at its place: a row of count c is in the window at a place of
count C iff c > C - N.

A row of stream k is past, and can go, when every other stream's watermark is above t + W_k; in a count window when N
rows have come after it. Expiry only frees memory: the predicate alone decides a result.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joinery.model.quantities import CountWindow, TimeWindow, Window
from joinery.model.time import DEAD, FOREVER, TIME_MAX, TIME_MIN
from joinery.model.tuples import I64Array, Order, TupleBatch


@dataclass(frozen=True, slots=True)
class Marks:
    """What is known at the end of a record: every stream's watermark, and its count of released rows."""

    watermarks: tuple[int, ...]
    counts: tuple[int, ...] = ()
    """Only queries with a count window have counts: they run in order."""

    def frontier(self, stream: int) -> int:
        """Rows that can still meet one of this stream have a time at or above this.

        It is the smallest watermark of the other streams; in order, where what counts is what was released, of all.
        """
        return min(mark for k, mark in enumerate(self.watermarks) if k != stream or self.counts)


@dataclass(frozen=True, slots=True)
class Floor:
    """Left by a change of a stream's window: rows up to a serial whose clock is below it match nothing any more."""

    serial: int
    clock: int
    lane: int | None
    """Which clock: None for the time, else the lane of a count."""

    def buries(self, batch: TupleBatch) -> NDArray[np.bool_]:
        """Which rows of a batch lie below."""
        return (batch.serials <= self.serial) & (clocks(batch, self.lane) < self.clock)


def clocks(batch: TupleBatch, lane: int | None) -> I64Array:
    """What a window measures rows by: their times, or one of their counts (lane 1 is stream 0's)."""
    if lane is None or batch.order is None:
        return batch.times
    return np.ascontiguousarray(batch.order.counts[:, lane - 1])


def length_ns(window: Window) -> int:
    """Length of a window in time; a count window has no bound in time."""
    return window.length_ns if isinstance(window, TimeWindow) else TIME_MAX


def earliest(latest: I64Array, window: Window) -> I64Array:
    """The earliest time a row of this window may have beside a latest member of these times."""
    length = length_ns(window)
    return np.full(latest.size, TIME_MIN) if length >= TIME_MAX else np.maximum(latest - length, TIME_MIN)


def deadline(times: I64Array, window: Window) -> I64Array:
    """The latest time a combination with a row of this window and these times may have."""
    length = length_ns(window)
    return np.full(times.size, TIME_MAX) if length >= TIME_MAX else np.minimum(times + length, TIME_MAX)


def closing(times: I64Array, window: Window) -> I64Array:
    """When rows close without a partner: at the end of their window, or at their own time if it has no end in time."""
    return deadline(times, window) if isinstance(window, TimeWindow) and not window.is_unbounded else times


def past_before(stream: int, window: Window, marks: Marks) -> int:
    """Rows of a stream are past iff their clock (time, or count in a count window) is below this."""
    mark = marks.frontier(stream)
    if mark == FOREVER:
        return FOREVER
    if isinstance(window, CountWindow):
        return marks.counts[stream] - window.rows + 1
    if window.is_unbounded or mark <= TIME_MIN:
        return DEAD
    return mark - window.length_ns


def in_count_windows(windows: tuple[Window, ...], members: list[tuple[int, Order]]) -> NDArray[np.bool_]:
    """Which combinations have every member with a count window inside it, at the place of their latest member."""
    ranks = np.stack([order.ranks for _, order in members])
    latest = ranks.argmax(axis=0)
    inside = np.ones(ranks.shape[1], np.bool_)
    for stream, order in members:
        window = windows[stream]
        if isinstance(window, CountWindow):
            counts = np.stack([other.counts[:, stream] for _, other in members])
            at_latest = np.take_along_axis(counts, latest[None, :], axis=0)[0]
            inside &= order.counts[:, stream] > at_latest - window.rows
    return inside
