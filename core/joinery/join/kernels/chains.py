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


class Walk(NamedTuple):
    """How far a probe has come: the walkers, and the next row that none has taken."""

    probe: I64Array
    position: I64Array
    next: I64Array

    @staticmethod
    def start() -> "Walk":
        """At the first row, all walkers free."""
        return Walk(np.zeros(WALKERS, np.int64), np.full(WALKERS, -1, np.int64), np.zeros(1, np.int64))


@njit(cache=True, nogil=True, inline="always")
def _bucket(word: int, shift: int) -> int:
    return int((np.uint64(word) * _GOLDEN) >> np.uint64(shift))


@njit(cache=True, nogil=True, inline="always")
def _row(ring: Ring, position: int) -> int:
    return (int(ring.slots[(position >> SHIFT) & (ring.slots.size - 1)]) << SHIFT) + (position & _LOW)


@njit(cache=True, nogil=True, inline="always")
def _newest(buckets: Buckets, lane: int, bucket: int, tail: int, head: int) -> int:
    """Position of the bucket's newest living row below `head`, or -1."""
    ahead = (int(buckets.heads[bucket * buckets.lanes + lane]) - tail) & _BITS32
    return tail + ahead if ahead < head - tail else -1


@njit(cache=True, nogil=True)
def probe(
    words: I64Array, low: I64Array, high: I64Array, walk: Walk, buckets: Buckets, lane: int, ring: Ring, out: Found
) -> int:
    """Pairs of a probing row and a stored row with equal words and low <= time <= high; their number.

    Several chains are walked side by side, a step each in turn: while one waits for its next row to come from memory,
    the others go on. So pairs come in no order. Stops when the output is full; the next call goes on from there.
    """
    count, limit, size = 0, out.row.size, words.size
    busy = True
    while busy:
        busy = False
        for k in range(WALKERS):
            position = walk.position[k]
            if position < ring.tail:  # this walker is free: the tail is never below 0, where -1 says none
                position = _next_chain(words, walk, k, buckets, lane, ring, size)
                walk.position[k] = position
                busy |= position >= 0
                continue
            busy = True
            row, i = _row(ring, position), walk.probe[k]
            if ring.meta[4 * row] == words[i] and low[i] <= ring.meta[4 * row + 1] <= high[i]:
                if count == limit:
                    return count
                out.probe[count], out.row[count] = i, row
                out.time[count], out.place[count] = ring.meta[4 * row + 1], ring.meta[4 * row + 2]
                count += 1
            position = ring.meta[4 * row + 3]
            walk.position[k] = position
            if position >= ring.tail:
                prefetch(ring.meta, 4 * _row(ring, position))
    return count


@njit(cache=True, nogil=True, inline="always")
def _next_chain(words: I64Array, walk: Walk, k: int, buckets: Buckets, lane: int, ring: Ring, size: int) -> int:
    """Give a walker the chain of the next probing row that has one; its newest position, or -1 if none is left."""
    while walk.next[0] < size:
        i = walk.next[0]
        walk.next[0] = i + 1
        if i + _FAR < size:
            prefetch(buckets.heads, buckets.lanes * _bucket(words[i + _FAR], buckets.shift))
        position = _newest(buckets, lane, _bucket(words[i], buckets.shift), ring.tail, ring.head)
        if position >= 0:
            walk.probe[k] = i
            prefetch(ring.meta, 4 * _row(ring, position))
            return position
    return -1


@njit(cache=True, nogil=True)
def link(first: int, buckets: Buckets, lane: int, ring: Ring, flags: NDArray[np.uint8], keyless: int) -> None:
    """Hang the rows at positions `first` and after into their buckets, oldest first; those without a key stay out."""
    for position in range(first, ring.head):
        if position + _FAR < ring.head:
            ahead = ring.meta[4 * _row(ring, position + _FAR)]
            prefetch(buckets.heads, buckets.lanes * _bucket(ahead, buckets.shift))
        row = _row(ring, position)
        if flags[row] & keyless == 0:
            bucket = _bucket(ring.meta[4 * row], buckets.shift)
            ring.meta[4 * row + 3] = _newest(buckets, lane, bucket, ring.tail, position)
            buckets.heads[bucket * buckets.lanes + lane] = np.uint32(position & _BITS32)
