"""Station 6 of 8, join, method `hash`: an index with O(1) insert, probe and expiry.

All groups of a worker share one arena and one index per query: a key lies in one group, so its chain does too. Rows
are kept in arrival order; expiry moves the tail of the ring past blocks whose newest row is past, and touches no row.

Rows may be out of time order, so a few can keep an old block alive. When the ring has grown to twice what lives in it,
it is swept, some blocks with each batch: the living rows of the tail block are put in again at the head, so that
memory stays near what is needed and the work per row stays constant.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joinery.join.kernels import chains
from joinery.join.kernels.chains import BLOCK, SHIFT, Buckets, Ring, Runs, Walk
from joinery.join.kernels.found import Found
from joinery.join.protocol import Probes
from joinery.model.ids import GroupId
from joinery.model.time import DEAD
from joinery.model.tuples import I64Array, TupleBatch
from joinery.window.store import KEYLESS, RowStore

PART_PAIRS: Final = 1 << 15
"""Pairs of one part: bounds the memory of a batch whose keys are hot."""
_HOT_PAIRS: Final = 3
"""Pairs per probing row above which it pays to bring rows with equal keys together."""
_LEAST_BITS: Final = 10
_RENEW_ROWS: Final = 1 << 30
"""After so many rows the index is made anew: a bucket keeps 32 bits of a position, which must never come round."""
_LEAST_ROWS: Final = 4 * BLOCK
"""A ring of this length is never swept."""
_SWEEP_BLOCKS: Final = 16
"""Blocks swept with one batch, beside two for each that came: bounds the pause, and outruns what arrives meanwhile."""
_FIRST_SLOTS: Final = 16
"""Blocks that a ring has room for at first; a power of two."""


class HashMethod:
    """The windows of all streams in arrival order, and one index over them."""

    def __init__(self, stores: Sequence[RowStore]) -> None:
        self.stores = tuple(stores)
        self.comparisons = 0
        """Rows of chains that probing rows were compared with so far."""
        streams = len(self.stores)
        self._tail, self._head = [0] * streams, [0] * streams
        self._slots = [np.zeros(_FIRST_SLOTS, np.int32) for _ in range(streams)]
        self._is_hot = [False] * streams
        """Whether the last probe found many partners per row; it only decides how the next one goes about it."""
        self._seen = [0] * streams
        """Heads when the rings were last looked through for past blocks."""
        self._allowed, self._sweep_to = [_LEAST_ROWS] * streams, [0] * streams
        self._bits = _LEAST_BITS
        self._renew_at = _RENEW_ROWS
        self._heads = self._no_heads()

    def insert(self, batch: TupleBatch, groups: NDArray[np.uint16], flags: NDArray[np.uint8]) -> None:
        stream, first = batch.stream, self._head[batch.stream]
        self._reserve(stream, first + len(batch))
        rows = self._rows(stream, first, first + len(batch))
        self.stores[stream].write(rows, batch, np.arange(len(batch), dtype=np.int64), groups, flags)
        self._head[stream] = first + len(batch)
        if not self._fit_index():
            self._link(stream, first)

    def candidates(self, stream: int, probes: Probes) -> Iterator[Found]:
        words, low, high = probes.words, probes.low, probes.high
        runs = Runs.of(words) if self._is_hot[stream] else Runs.single(words.size)
        room, pairs, walk = max(PART_PAIRS, runs.longest()), 0, Walk.start()
        while not walk.is_over(runs):
            found = Found.room(room)
            count = chains.probe(words, low, high, runs, walk, self._buckets(), stream, self._ring(stream), found)
            pairs += count
            if count:
                yield found.first(count)
        self.comparisons += int(walk.compared[0])
        self._is_hot[stream] = pairs > _HOT_PAIRS * words.size

    def expire(self, stream: int, before: int) -> None:
        before = max(before, DEAD + 1)  # dead rows are past, however long the window is
        self._drop_tail(stream, before)
        swept = self._tail[stream] >= self._sweep_to[stream]
        if swept and self._head[stream] - self._tail[stream] > self._allowed[stream]:
            self._plan_sweep(stream, before)
        come = (self._head[stream] - self._seen[stream]) >> SHIFT
        for _ in range(_SWEEP_BLOCKS + 2 * come):
            if self._tail[stream] < self._sweep_to[stream]:
                self._evacuate(stream, before)
                self._drop_tail(stream, before)
        self._seen[stream] = self._head[stream]

    def directory(self, group: GroupId) -> tuple[int, ...]:
        del group
        return ()

    def shape(self, group: GroupId, directory: tuple[int, ...]) -> None:
        """Nothing to do: one index serves all groups, whatever they were split into elsewhere."""

    def retune(self, theta_bytes: int | None) -> None:
        """Nothing to do: there are no mini-groups."""

    def drop(self, group: GroupId) -> None:
        """Dead rows go with their blocks, with the next batches.

        If none comes, groups that come and go must not pile them up: a ring that has doubled since is looked through.
        """
        del group
        for stream in range(len(self.stores)):
            self._allowed[stream] = _LEAST_ROWS  # what lives is less than when it was last counted
            before = self._seen[stream] - self._tail[stream]
            if self._head[stream] - self._seen[stream] > max(before, _LEAST_ROWS):
                self.expire(stream, DEAD + 1)

    def bytes_held(self) -> int:
        return sum(store.bytes_held() for store in self.stores) + self._heads.nbytes

    # --- the ring

    def _ring(self, stream: int) -> Ring:
        return Ring(self.stores[stream].meta, self._slots[stream], self._tail[stream], self._head[stream])

    def _rows(self, stream: int, first: int, last: int) -> I64Array:
        slots, positions = self._slots[stream], np.arange(first, last, dtype=np.int64)
        blocks = slots[(positions >> SHIFT) & (slots.size - 1)].astype(np.int64)
        return np.asarray((blocks << SHIFT) + (positions & (BLOCK - 1)))

    def _reserve(self, stream: int, head: int) -> None:
        """Blocks for the positions up to `head`."""
        first, last = -(-self._head[stream] >> SHIFT), (head - 1) >> SHIFT
        tail = self._tail[stream] >> SHIFT
        while last - tail >= self._slots[stream].size:
            old, size = self._slots[stream], self._slots[stream].size
            blocks = np.arange(tail, tail + size)
            self._slots[stream] = np.zeros(2 * size, np.int32)
            self._slots[stream][blocks & (2 * size - 1)] = old[blocks & (size - 1)]
        for block in range(first, last + 1):
            self._slots[stream][block & (self._slots[stream].size - 1)] = self.stores[stream].take_block()

    def _drop_tail(self, stream: int, before: int) -> None:
        store, slots = self.stores[stream], self._slots[stream]
        tail, full = self._tail[stream] >> SHIFT, self._head[stream] >> SHIFT
        while tail < full and store.newest[slots[tail & (slots.size - 1)]] < before:
            store.free_block(int(slots[tail & (slots.size - 1)]))
            tail += 1
            self._tail[stream] = tail << SHIFT

    def _plan_sweep(self, stream: int, before: int) -> None:
        """The ring is longer than it was allowed to be: if most of it is past, sweep what there is now."""
        ring = self._ring(stream)
        living = self.stores[stream].count_living(before)
        self._allowed[stream] = max(_LEAST_ROWS, 2 * living)
        if ring.head - ring.tail > self._allowed[stream]:
            self._sweep_to[stream] = ring.head >> SHIFT << SHIFT

    def _evacuate(self, stream: int, before: int) -> None:
        """Put the living rows of the tail block in again as the newest; then the block is past."""
        store, tail = self.stores[stream], self._tail[stream]
        rows = self._rows(stream, tail, tail + BLOCK)
        living = rows[store.clocks(rows) >= before]
        store.newest[rows[0] >> SHIFT] = before - 1
        batch, groups, flags = store.read(living)
        self.insert(batch, groups, flags)

    # --- the index

    def _buckets(self) -> Buckets:
        return Buckets(self._heads, len(self.stores), 64 - self._bits)

    def _link(self, stream: int, first: int) -> None:
        chains.link(first, self._buckets(), stream, self._ring(stream), self.stores[stream].flags, KEYLESS)

    def _fit_index(self) -> bool:
        """Keep 1.5 to 12 buckets per row of the longest ring, and no head older than 2^30 rows; whether made anew."""
        rows = max(head - tail for head, tail in zip(self._head, self._tail, strict=True))
        fits = 3 * rows <= 2 << self._bits and (12 * rows >= 1 << self._bits or self._bits == _LEAST_BITS)
        if fits and max(self._head) < self._renew_at:
            return False
        self._bits = max(_LEAST_BITS, (3 * rows // 2).bit_length())
        self._renew_at = max(self._head) + _RENEW_ROWS
        self._heads = self._no_heads()
        for stream in range(len(self.stores)):
            self._link(stream, self._tail[stream])
        return True

    def _no_heads(self) -> NDArray[np.uint32]:
        """Empty buckets: every head stands just below its stream's tail."""
        below = (np.array(self._tail, np.int64) - 1) & 0xFFFFFFFF
        return np.tile(below.astype(np.uint32), 1 << self._bits)
