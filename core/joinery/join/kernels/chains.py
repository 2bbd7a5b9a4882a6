"""Kernels of the `hash` method: rows of one bucket hang together, newest first, in a ring of positions.

A position only grows; the row number of position p is slots[p >> SHIFT] * BLOCK + p % BLOCK. Positions below the tail
are gone, wherever they are still named: that is all that expiry has to do. A bucket keeps, per stream, the low 32
bits of its newest position, read relative to the tail; what does not lie between tail and head is stale. The index is
made anew long before 32 bits can come round. Times in a chain have no order: a probe looks at every row of its chain
and never stops at the first old one.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from joinery.join.kernels.found import Found
from joinery.window.prefetch import prefetch

I64Array = NDArray[np.int64]

SHIFT: Final = 12
BLOCK: Final = 1 << SHIFT
_LOW: Final = BLOCK - 1
_BITS32: Final = 0xFFFFFFFF
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FAR: Final = 24
WALKERS: Final = 12
"""Chains walked side by side."""


class Buckets(NamedTuple):
    """The index of all streams: `lanes` heads side by side per bucket, so that probe and insert share a cache line."""

    heads: NDArray[np.uint32]
    lanes: int
    shift: int


class Ring(NamedTuple):
    """The rows of one stream in arrival order."""

    meta: I64Array
    slots: NDArray[np.int32]
    tail: int
    head: int


class Runs(NamedTuple):
    """Probing rows in runs of equal words: run r is order[starts[r]:starts[r + 1]]."""

    order: I64Array
    starts: I64Array

    @staticmethod
    def single(size: int) -> "Runs":
        """Every row for itself: best where few rows share a key."""
        places = np.arange(size + 1, dtype=np.int64)
        return Runs(places[:-1], places)

    @staticmethod
    def of(words: I64Array) -> "Runs":
        """Rows with equal words together: best where keys are hot, for a long chain is then walked once for all."""
        order = np.argsort(words)
        together = words[order]
        cuts = np.flatnonzero(together[1:] != together[:-1]) + 1
        return Runs(order, np.concatenate(([0], cuts, [words.size]))) if words.size else Runs.single(0)

    def longest(self) -> int:
        """Rows of the longest run."""
        return int(np.diff(self.starts).max(initial=0))


class Walk(NamedTuple):
    """How far a probe has come: the walkers, and the next run that none has taken."""

    run: I64Array
    position: I64Array
    next: I64Array
    compared: I64Array
    """One number: rows of chains that probing rows were compared with so far."""

    @staticmethod
    def start() -> "Walk":
        """At the first run, all walkers free."""
        return Walk(np.zeros(WALKERS, np.int64), np.full(WALKERS, -1, np.int64), *np.zeros((2, 1), np.int64))

    def is_over(self, runs: "Runs") -> bool:
        """Whether every run was taken and every walker has come to its end."""
        return bool(self.next[0] == runs.starts.size - 1 and (self.position < 0).all())


@njit(cache=True, nogil=True)
def _bucket(word: int, shift: int) -> int:
    return int((np.uint64(word) * _GOLDEN) >> np.uint64(shift))


@njit(cache=True, nogil=True)
def _row(slots: NDArray[np.int32], position: int) -> int:
    return (int(slots[(position >> SHIFT) & (slots.size - 1)]) << SHIFT) + (position & _LOW)


@njit(cache=True, nogil=True)
def _newest(buckets: Buckets, lane: int, bucket: int, tail: int, head: int) -> int:
    """Position of the bucket's newest living row below `head`, or -1."""
    ahead = (int(buckets.heads[bucket * buckets.lanes + lane]) - tail) & _BITS32
    return tail + ahead if ahead < head - tail else -1


@njit(cache=True, nogil=True)
def probe(
    words: I64Array, low: I64Array, high: I64Array, runs: Runs, walk: Walk,
    buckets: Buckets, lane: int, ring: Ring, out: Found,
) -> int:  # fmt: skip
    """Pairs of a probing row and a stored row with equal words and low <= time <= high; their number.

    A chain is walked once for a run of probing rows, and several chains side by side, a step each in turn: while one
    waits for its next row to come from memory, the others go on. So pairs come in no order. Stops when the pairs of a
    further step might not fit the output; the next call goes on from there.
    """
    meta, slots, tail = ring.meta, ring.slots, ring.tail  # taken out of their tuples once: in the loop it would cost
    order, starts, positions = runs.order, runs.starts, walk.position
    out_probe, out_row, out_time, out_place = out.probe, out.row, out.time, out.place
    count, limit, busy, compared = 0, out_row.size, True, 0
    while busy:
        busy = False
        for k in range(WALKERS):
            if positions[k] < tail:  # this walker is free: the tail is never below 0, where -1 says none
                positions[k] = _next_chain(words, runs, walk, k, buckets, lane, ring)
                busy |= positions[k] >= 0
                continue
            busy = True
            row, first, last = _row(slots, positions[k]), starts[walk.run[k]], starts[walk.run[k] + 1]
            if meta[4 * row] == words[order[first]]:
                if count + last - first > limit:
                    walk.compared[0] += compared
                    return count
                compared += last - first - 1
                time, place = meta[4 * row + 1], meta[4 * row + 2]
                for at in range(first, last):
                    i = order[at]
                    if low[i] <= time <= high[i]:
                        out_probe[count], out_row[count], out_time[count], out_place[count] = i, row, time, place
                        count += 1
            compared += 1
            positions[k] = meta[4 * row + 3]
            if positions[k] >= tail:
                prefetch(meta, 4 * _row(slots, positions[k]))
    walk.compared[0] += compared
    return count


@njit(cache=True, nogil=True)
def _next_chain(words: I64Array, runs: Runs, walk: Walk, k: int, buckets: Buckets, lane: int, ring: Ring) -> int:
    """Give a walker the chain of the next run that has one; its newest position, or -1 if none is left."""
    count = runs.starts.size - 1
    while walk.next[0] < count:
        run = walk.next[0]
        walk.next[0] = run + 1
        if run + _FAR < count:
            ahead = words[runs.order[runs.starts[run + _FAR]]]
            prefetch(buckets.heads, buckets.lanes * _bucket(ahead, buckets.shift))
        bucket = _bucket(words[runs.order[runs.starts[run]]], buckets.shift)
        position = _newest(buckets, lane, bucket, ring.tail, ring.head)
        if position >= 0:
            walk.run[k] = run
            prefetch(ring.meta, 4 * _row(ring.slots, position))
            return position
    return -1


@njit(cache=True, nogil=True)
def link(first: int, buckets: Buckets, lane: int, ring: Ring, flags: NDArray[np.uint8], keyless: int) -> None:
    """Hang the rows at positions `first` and after into their buckets, oldest first; those without a key stay out."""
    for position in range(first, ring.head):
        if position + _FAR < ring.head:
            ahead = ring.meta[4 * _row(ring.slots, position + _FAR)]
            prefetch(buckets.heads, buckets.lanes * _bucket(ahead, buckets.shift))
        row = _row(ring.slots, position)
        if flags[row] & keyless == 0:
            bucket = _bucket(ring.meta[4 * row], buckets.shift)
            ring.meta[4 * row + 3] = _newest(buckets, lane, bucket, ring.tail, position)
            buckets.heads[bucket * buckets.lanes + lane] = np.uint32(position & _BITS32)
