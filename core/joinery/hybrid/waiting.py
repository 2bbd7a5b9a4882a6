"""The wait buffer's rows: what `policy` counts in blocks. A chain of slots per unit, so that what is taken is all that
is looked at.

A slot knows a row's numbers (lanes) and where its columns lie: in which piece, and which row there. A piece is what was
added at once, copied, so that a batch of which few rows wait is not kept. A piece goes when none of its rows waits any
more; when less than half of all rows in pieces still wait, those that do are copied into a new one.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from joinery.hybrid.pieces import Pieces, TooLong
from joinery.model.tuples import I64Array, TupleBatch
from joinery.model.views import readonly
from joinery.window.arrays import grown

I32Array = NDArray[np.int32]

VERSION, TAG, SINCE, SIZE, TIME, HASH, WORD, PLACE, KEYED, PIECE, ROW, SERIAL, NEXT = range(13)
LANES: Final = 13
NAMES: Final = {"versions": VERSION, "tags": TAG, "since": SINCE, "sizes": SIZE}
HEAD, TAIL, TAGGED = range(3)
"""Of each unit: its first and its last slot (-1: none), and the least tag of its rows."""
CHAIN: Final = 3
NO_TAG: Final = np.iinfo(np.int64).max
_FEW: Final = 1 << 14
"""Rows in pieces that are not worth to be brought together."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Stream rows with what the join knows about each: unit, version of the relation, tag, when it came, bytes."""

    batch: TupleBatch
    units: I32Array
    versions: I64Array
    tags: I64Array
    """End of the batch (a, b] in which the row came."""
    since: I64Array
    sizes: I64Array

    def __len__(self) -> int:
        return len(self.batch)

    def renumbered(self, units: I32Array) -> "Rows":
        """The same rows under other units."""
        return Rows(self.batch, units, self.versions, self.tags, self.since, self.sizes)


class WaitBuffer:
    """Rows that wait for their segment."""

    def __init__(self) -> None:
        self._pieces: Pieces | None = None
        self._live: list[int] = []
        """Rows of each piece that still wait."""
        self._sizes: list[int] = []
        self._stream = 0
        self._lanes = np.empty(0, np.int64)
        self._units = np.empty(0, np.int32)
        """Of each slot."""
        self._free = np.empty(0, np.int64)
        self._n_free = 0
        self._chains = np.empty(0, np.int64)
        self._serial = 0

    def __len__(self) -> int:
        return int(self._units.size) - self._n_free

    def add(self, rows: Rows, index: I64Array | None = None) -> None:
        """More rows wait: these of them (None: all)."""
        index = np.arange(len(rows)) if index is None else index
        if not index.size:
            return
        batch, piece = rows.batch, self._new_piece(rows.batch, index)
        self._reserve(index.size, int(rows.units[index].max()) + 1)
        keyed = np.ones(len(rows), np.bool_) if batch.keyed is None else batch.keyed
        _append(
            index, readonly(rows.units), readonly(rows.versions), readonly(rows.tags), readonly(rows.since),
            readonly(rows.sizes), readonly(batch.times), readonly(batch.hashes), readonly(batch.words),
            readonly(batch.places), readonly(keyed), piece, self._serial, self._lanes, self._units, self._free,
            self._n_free, self._chains,
        )  # fmt: skip
        self._n_free -= index.size
        self._serial += index.size

    def _new_piece(self, batch: TupleBatch, index: I64Array) -> int:
        if self._pieces is None:
            self._pieces, self._stream = Pieces(batch.rows.schema), batch.stream
        if 2 * len(self) + _FEW < sum(self._sizes):
            self._bring_together(self._pieces)
        piece = next((number for number, size in enumerate(self._sizes) if not size), len(self._sizes))
        if piece == len(self._sizes):
            self._sizes.append(0)
            self._live.append(0)
        self._pieces.put(piece, batch.rows if index.size == len(batch) else batch.rows.take(pa.array(index)))
        self._sizes[piece] = self._live[piece] = index.size
        return piece

    def _bring_together(self, pieces: Pieces) -> None:
        """All rows that wait, in one piece."""
        slots = self._all_slots()
        lanes = self._lanes.reshape(-1, LANES)
        try:
            rows = pieces.gather(lanes[slots, PIECE].astype(np.int32), lanes[slots, ROW])
        except TooLong:
            return
        for number in pieces.numbers:
            self._drop(pieces, number)
        if slots.size:
            pieces.put(0, rows)
            self._sizes[0] = self._live[0] = slots.size
            lanes[slots, PIECE], lanes[slots, ROW] = 0, np.arange(slots.size)

    def _drop(self, pieces: Pieces, number: int) -> None:
        pieces.drop(number)
        self._sizes[number] = self._live[number] = 0

    def _reserve(self, rows: int, units: int) -> None:
        """Slots for so many rows more, chains for so many units."""
        if self._n_free < rows:
            old = self._units.size
            size = max(2 * old, old + rows - self._n_free)
            self._lanes, self._units = grown(self._lanes, LANES * size), grown(self._units, size, -1)
            self._free = grown(self._free, size)
            self._free[self._n_free : self._n_free + size - old] = np.arange(size - 1, old - 1, -1)
            self._n_free += size - old
        if self._chains.size < CHAIN * units:
            old = self._chains.size
            self._chains = grown(self._chains, CHAIN * max(units, 2 * old // CHAIN))
            _no_chains(self._chains, old)

    def take(self, units: NDArray[np.integer]) -> Rows | None:
        """Take the rows of these units out, ordered by tag; None: there are none."""
        if self._pieces is None or not len(self):
            return None
        slots = np.empty(len(self), np.int64)
        wanted = readonly(np.asarray(units, np.int64))
        count = int(_take(wanted, self._lanes, self._chains, slots))
        if not count:
            return None
        slots = slots[:count]
        tags = self._lanes.reshape(-1, LANES)[slots, TAG]
        if units.size > 1:
            slots = slots[np.argsort(tags, kind="stable")]
        rows = self._read(self._pieces, slots)
        self._forget(self._pieces, slots)
        return rows

    def _forget(self, pieces: Pieces, slots: I64Array) -> None:
        of = self._lanes.reshape(-1, LANES)[slots, PIECE]
        for piece, gone in enumerate(np.bincount(of).tolist()):
            self._live[piece] -= gone
            if gone and not self._live[piece]:
                self._drop(pieces, piece)
        self._units[slots] = -1
        self._free[self._n_free : self._n_free + slots.size] = slots
        self._n_free += slots.size

    def _read(self, pieces: Pieces, slots: I64Array) -> Rows:
        lanes = self._lanes.reshape(-1, LANES)[slots].T.copy()
        keyed = lanes[KEYED].astype(np.bool_)
        batch = TupleBatch(
            stream=self._stream, times=lanes[TIME], hashes=lanes[HASH].view(np.uint64), words=lanes[WORD],
            keyed=None if keyed.all() else keyed, places=lanes[PLACE],
            rows=pieces.gather(lanes[PIECE].astype(np.int32), lanes[ROW]),
        )  # fmt: skip
        return Rows(batch, self._units[slots], lanes[VERSION], lanes[TAG], lanes[SINCE], lanes[SIZE])

    def _all_slots(self) -> I64Array:
        """In the order in which they came."""
        slots = np.flatnonzero(self._units >= 0)
        ordered: I64Array = slots[np.argsort(self._lanes.reshape(-1, LANES)[slots, SERIAL])]
        return ordered

    def all(self) -> Rows | None:
        """Every waiting row, in the order in which they came; they go on waiting."""
        return self._read(self._pieces, self._all_slots()) if self._pieces is not None and len(self) else None

    def column(self, name: str) -> I64Array:
        """One column of all waiting rows."""
        found: I64Array = self._lanes.reshape(-1, LANES)[self._units >= 0, NAMES[name]]
        return found

    @property
    def oldest_tag(self) -> int | None:
        """The least tag; None: nobody waits."""
        least = int(self._chains[TAGGED::CHAIN].min(initial=NO_TAG))
        return None if least == NO_TAG else least


@njit(cache=True, nogil=True)
def _no_chains(chains: I64Array, begin: int) -> None:
    for unit in range(begin // CHAIN, chains.size // CHAIN):
        chains[CHAIN * unit + HEAD] = chains[CHAIN * unit + TAIL] = -1
        chains[CHAIN * unit + TAGGED] = NO_TAG


@njit(cache=True, nogil=True)
def _append(
    index: I64Array, units: I32Array, versions: I64Array, tags: I64Array, since: I64Array, sizes: I64Array,
    times: I64Array, hashes: NDArray[np.uint64], words: I64Array, places: I64Array, keyed: NDArray[np.bool_],
    piece: int, serial: int, lanes: I64Array, of: I32Array, free: I64Array, n_free: int, chains: I64Array,
) -> None:  # fmt: skip
    for k in range(index.size):
        i, slot = index[k], free[n_free - 1 - k]
        base = LANES * slot
        lanes[base + VERSION], lanes[base + TAG], lanes[base + SINCE] = versions[i], tags[i], since[i]
        lanes[base + SIZE], lanes[base + TIME], lanes[base + HASH] = sizes[i], times[i], np.int64(hashes[i])
        lanes[base + WORD], lanes[base + PLACE], lanes[base + KEYED] = words[i], places[i], np.int64(keyed[i])
        lanes[base + PIECE], lanes[base + ROW], lanes[base + SERIAL] = piece, k, serial + k
        lanes[base + NEXT] = -1
        unit = units[i]
        of[slot] = unit
        chain = CHAIN * np.int64(unit)
        if chains[chain + TAIL] < 0:
            chains[chain + HEAD] = slot
        else:
            lanes[LANES * chains[chain + TAIL] + NEXT] = slot
        chains[chain + TAIL] = slot
        chains[chain + TAGGED] = min(chains[chain + TAGGED], tags[i])


@njit(cache=True, nogil=True)
def _take(units: I64Array, lanes: I64Array, chains: I64Array, slots: I64Array) -> int:
    """The slots of these units, whose chains are empty then; how many."""
    count = 0
    for k in range(units.size):
        chain = CHAIN * units[k]
        if chain >= chains.size:
            continue
        slot = chains[chain + HEAD]
        while slot >= 0:
            slots[count] = slot
            count += 1
            slot = lanes[LANES * slot + NEXT]
        chains[chain + HEAD] = chains[chain + TAIL] = -1
        chains[chain + TAGGED] = NO_TAG
    return count
