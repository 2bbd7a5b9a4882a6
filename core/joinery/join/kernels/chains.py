"""Kernels of the `hash` method: rows of one bucket hang together, newest first, in a ring of positions.

A position only grows; the row number of position p is slots[p >> SHIFT] * BLOCK + p % BLOCK. Positions below the tail
are gone, wherever they are still named: that is all that expiry has to do. A bucket keeps, per stream, the low 32
bits of its newest position, read relative to the tail; what does not lie between tail and head is stale. (A value
that is stale for four billion rows may look alive again; the chain it then names is another bucket's, whose words all
differ.) Times in a chain have no order: a probe looks at every row of its chain and never stops at the first old one.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from joinery.window.prefetch import prefetch

I64Array = NDArray[np.int64]

SHIFT: Final = 12
BLOCK: Final = 1 << SHIFT
_LOW: Final = BLOCK - 1
_BITS32: Final = 0xFFFFFFFF
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FAR: Final = 24
_NEAR: Final = 12


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
    words: I64Array, low: I64Array, high: I64Array, begin: int, cursor: int,
    buckets: Buckets, lane: int, ring: Ring, out_probe: NDArray[np.int32], out_row: I64Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Pairs of (probing row, stored row) with equal words and low <= time <= high.

    Stops when the output is full; goes on where the answer (pairs, next row, its chain position) says. Cursor -2: none.
    """
    count, limit, size = 0, out_row.size, words.size
    for i in range(begin, size):
        if i + _FAR < size:
            prefetch(buckets.heads, buckets.lanes * _bucket(words[i + _FAR], buckets.shift))
        if i + _NEAR < size:
            soon = _newest(buckets, lane, _bucket(words[i + _NEAR], buckets.shift), ring.tail, ring.head)
            if soon >= 0:
                prefetch(ring.meta, 4 * _row(ring, soon))
        word, lowest, highest = words[i], low[i], high[i]
        position = cursor
        if cursor == -2:
            position = _newest(buckets, lane, _bucket(word, buckets.shift), ring.tail, ring.head)
        cursor = -2
        while position >= ring.tail:  # the tail is never below 0, where -1 says none
            row = _row(ring, position)
            if ring.meta[4 * row] == word and lowest <= ring.meta[4 * row + 1] <= highest:
                if count == limit:
                    return count, i, position
                out_probe[count], out_row[count] = i, row
                count += 1
            position = ring.meta[4 * row + 3]
    return count, size, -2


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


@njit(cache=True, nogil=True)
def count_past(before: int, ring: Ring, newest: I64Array) -> int:
    """How many full blocks of the ring hold only rows whose clock is below `before`."""
    count = 0
    for block in range(ring.tail >> SHIFT, ring.head >> SHIFT):
        if newest[ring.slots[block & (ring.slots.size - 1)]] < before:
            count += 1
    return count
