"""Stream rows against the segments in memory: which pairs match, and what comes out of them.

Rows of a segment lie in the order of their words, so a stream row's partners are one run. Where it begins is looked up
in slots over the range of the segment's words, about one row to a slot, made once when the segment comes: one look for
keys that are spread evenly, and halving within a slot for keys that are not. All segments are asked in one pass over
the stream rows, whatever segment each of them falls into, and results are made in one pass (`pieces`).

Keys that are not one integer meet here by the bits of their hash; whether they are really equal, and whether `where`
holds, is asked of the `Condition`, once for all candidates.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from joinery.hybrid.addresses import fetch, i32_at, i64_at
from joinery.hybrid.pieces import Pieces, TooLong
from joinery.hybrid.segments import Segment
from joinery.model.tuples import I64Array, TupleBatch
from joinery.model.views import readonly
from joinery.window.arrays import empty, grown

I32Array = NDArray[np.int32]

MOST_PAIRS: Final = 1 << 16
"""Results that are made at once: a key with many partners must not fill the memory."""
NOBODY: Final = -1
"""The partner of a row that has none (left join)."""

WORDS: Final = 0
"""Address of a segment's words."""
SLOTS: Final = 1
"""Address of the place of each slot's first word; one more at the end."""
LOW: Final = 2
HIGH: Final = 3
"""The least and the greatest word."""
SHIFT: Final = 4
"""A slot holds 2^shift words."""
COUNT: Final = 5
"""Rows; 0: there is no segment."""
_LANES: Final = 8
_AHEAD: Final = 8
_FEW: Final = 8
"""So many words are looked at one after the other; more are halved."""


class Condition(Protocol):
    """What else must hold for a pair, as columns: real keys where words are hashes, `where`."""

    def __call__(self, stream: pa.RecordBatch, relation: pa.RecordBatch) -> NDArray[np.bool_]:
        """One answer per pair of rows that stand at the same place."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Result rows: stream row, relation row (all null where a left join found none) and the version of the relation."""

    stream: TupleBatch
    relation: pa.RecordBatch
    versions: I64Array
    tags: I64Array
    """Of the batch in which each stream row came."""

    def __len__(self) -> int:
        return len(self.stream)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Partners, in the order of the stream rows: place in the batch, and segment and place there."""

    stream: I64Array
    units: I32Array
    rows: I64Array
    """NOBODY: no partner."""

    def __len__(self) -> int:
        return int(self.stream.size)

    def take(self, chosen: "NDArray[np.bool_] | I64Array | slice") -> "Pairs":
        """Some of them."""
        return Pairs(self.stream[chosen], self.units[chosen], self.rows[chosen])


class Shelf:
    """Segments in memory, each under the number of its unit."""

    def __init__(self, schema: pa.Schema) -> None:
        self._segments: dict[int, tuple[Segment, I64Array, I32Array]] = {}
        """With the words and slots that the addresses point to."""
        self._pieces = Pieces(schema)
        self._at = np.zeros(_LANES, np.int64)

    def __contains__(self, unit: int) -> bool:
        return unit in self._segments

    @property
    def units(self) -> list[int]:
        """Of the segments that are here."""
        return sorted(self._segments)

    @property
    def nbytes(self) -> int:
        """Of all rows."""
        return sum(segment.size for segment, _, _ in self._segments.values())

    def put(self, unit: int, segment: Segment) -> None:
        """A segment comes."""
        words = np.ascontiguousarray(segment.words, np.int64)
        slots, shift = _indexed(words)
        self._segments[unit] = (segment, words, slots)
        self._pieces.put(unit, segment.rows)
        if self._at.size < _LANES * (unit + 1):
            self._at = grown(self._at, max(_LANES * (unit + 1), 2 * self._at.size), 0)
        low, high = (int(words[0]), int(words[-1])) if words.size else (0, -1)
        self._at[_LANES * unit : _LANES * unit + COUNT + 1] = (
            words.ctypes.data, slots.ctypes.data, low, high, shift, words.size,
        )  # fmt: skip

    def drop(self, unit: int) -> None:
        """A segment goes."""
        if self._segments.pop(unit, None) is not None:
            self._pieces.drop(unit)
            self._at[_LANES * unit + COUNT] = 0

    def pairs_of(
        self, batch: TupleBatch, units: I32Array, chosen: I64Array, condition: Condition | None, *, keeps_all: bool
    ) -> Pairs:
        """All partners of the chosen rows, each in the segment of its unit; `keeps_all`: NOBODY for one without."""
        first, count = empty(chosen.size, np.int64), empty(chosen.size, np.int64)
        inline = keeps_all and condition is None
        total = int(_runs(readonly(batch.words), readonly(units), chosen, self._at, inline, first, count))
        stream, of, rows = empty(total, np.int64), empty(total, np.int32), empty(total, np.int64)
        _fill(chosen, readonly(units), first, count, stream, of, rows)
        pairs = Pairs(stream, of, rows)
        if condition is None:
            return pairs
        if total:
            parts = (pairs.take(slice(start, start + MOST_PAIRS)) for start in range(0, total, MOST_PAIRS))
            pairs = pairs.take(np.concatenate([self._holds(batch, part, condition) for part in parts]))
        return _with_nobody(pairs, chosen, len(batch)) if keeps_all else pairs

    def _holds(self, batch: TupleBatch, pairs: Pairs, condition: Condition) -> NDArray[np.bool_]:
        try:
            relation = self._pieces.gather(pairs.units, pairs.rows)
        except TooLong:
            middle = len(pairs) // 2
            halves = (pairs.take(slice(None, middle)), pairs.take(slice(middle, None)))
            return np.concatenate([self._holds(batch, half, condition) for half in halves])
        return condition(batch.rows.take(pa.array(pairs.stream)), relation)

    def results_of(self, batch: TupleBatch, versions: I64Array, tags: I64Array, pairs: Pairs) -> Iterator[Joined]:
        """The result rows of pairs, in parts of a bounded number; versions and tags are those of the batch's rows."""
        for start in range(0, len(pairs), MOST_PAIRS):
            part = pairs if len(pairs) <= MOST_PAIRS else pairs.take(slice(start, start + MOST_PAIRS))
            yield from self._results(batch, versions, tags, part)

    def _results(self, batch: TupleBatch, versions: I64Array, tags: I64Array, pairs: Pairs) -> Iterator[Joined]:
        try:
            relation = self._pieces.gather(pairs.units, pairs.rows, has_missing=bool(pairs.rows.min() < 0))
        except TooLong:
            middle = len(pairs) // 2
            for half in (pairs.take(slice(None, middle)), pairs.take(slice(middle, None))):
                yield from self._results(batch, versions, tags, half)
            return
        index = pairs.stream
        if index.size == len(batch) and _is_whole(index):
            yield Joined(batch, relation, versions, tags)
        else:
            yield Joined(batch.take(index), relation, versions[index], tags[index])


def _with_nobody(pairs: Pairs, chosen: I64Array, size: int) -> Pairs:
    """Also the rows that no pair names, with NOBODY; in the order of the stream rows."""
    seen = np.zeros(size, np.bool_)
    seen[pairs.stream] = True
    alone = chosen[~seen[chosen]]
    stream = np.concatenate([pairs.stream, alone])
    order = np.argsort(stream, kind="stable")
    units = np.concatenate([pairs.units, np.zeros(alone.size, np.int32)])
    rows = np.concatenate([pairs.rows, np.full(alone.size, NOBODY, np.int64)])
    return Pairs(stream[order], units[order], rows[order])


def _indexed(words: I64Array) -> tuple[I32Array, int]:
    """The slots of sorted words, and how many words fall into each, as a shift."""
    if not words.size:
        return np.zeros(2, np.int32), 0
    span = (int(words[-1]) - int(words[0])).bit_length()
    shift = max(0, span - int(words.size).bit_length())
    slots = np.empty(((int(words[-1]) - int(words[0])) >> shift) + 2, np.int32)
    _index(words, shift, slots)
    return slots, shift


@njit(cache=True, nogil=True)
def _index(words: I64Array, shift: int, slots: I32Array) -> None:
    low, next_slot = np.uint64(words[0]), 0
    for i in range(words.size):
        slot = np.int64((np.uint64(words[i]) - low) >> np.uint64(shift))
        while next_slot <= slot:
            slots[next_slot] = i
            next_slot += 1
    while next_slot < slots.size:
        slots[next_slot] = words.size
        next_slot += 1


@njit(cache=True, nogil=True)
def _runs(
    words: I64Array, units: I32Array, chosen: I64Array, at: I64Array, keeps_all: bool, first: I64Array, count: I64Array
) -> int:
    """Of each chosen row: where its partners begin, and how many; how many pairs there are."""
    total = 0
    for i in range(chosen.size):
        if i + 2 * _AHEAD < chosen.size:
            slot = _slot(words, units, chosen[i + 2 * _AHEAD], at)
            if slot:
                fetch(slot)
        if i + _AHEAD < chosen.size:
            slot = _slot(words, units, chosen[i + _AHEAD], at)
            if slot:
                fetch(at[_LANES * np.int64(units[chosen[i + _AHEAD]]) + WORDS] + 8 * i32_at(slot))
        row = chosen[i]
        first[i], count[i] = -1, 0
        slot = _slot(words, units, row, at)
        if slot:
            _run(words[row], slot, at[_LANES * np.int64(units[row]) + WORDS], i, first, count)
        if keeps_all and count[i] == 0:
            count[i] = 1
        total += count[i]
    return total


@njit(cache=True, nogil=True)
def _slot(words: I64Array, units: I32Array, row: int, at: I64Array) -> int:
    """The address of a row's slot; 0: its segment cannot have its word."""
    if units[row] < 0:
        return 0
    base, word = _LANES * np.int64(units[row]), words[row]
    if at[base + COUNT] == 0 or word < at[base + LOW] or word > at[base + HIGH]:
        return 0
    slot = (np.uint64(word) - np.uint64(at[base + LOW])) >> np.uint64(at[base + SHIFT])
    address: int = at[base + SLOTS] + 4 * np.int64(slot)
    return address


@njit(cache=True, nogil=True)
def _run(word: int, slot: int, stored: int, i: int, first: I64Array, count: I64Array) -> None:
    begin, end = i32_at(slot), i32_at(slot + 4)
    length = end - begin
    while length > _FEW:
        half = length >> 1
        if i64_at(stored + 8 * (begin + half)) < word:
            begin += half + 1
            length -= half + 1
        else:
            length = half
    while begin < end and i64_at(stored + 8 * begin) < word:
        begin += 1
    stop = begin
    while stop < end and i64_at(stored + 8 * stop) == word:
        stop += 1
    if stop > begin:
        first[i], count[i] = begin, stop - begin


@njit(cache=True, nogil=True)
def _fill(
    chosen: I64Array, units: I32Array, first: I64Array, count: I64Array, stream: I64Array, of: I32Array, rows: I64Array
) -> None:
    at = 0
    for i in range(chosen.size):
        row = chosen[i]
        for k in range(count[i]):
            stream[at] = row
            of[at] = max(units[row], 0)
            rows[at] = first[i] + k if first[i] >= 0 else -1
            at += 1


@njit(cache=True, nogil=True)
def _is_whole(index: I64Array) -> bool:
    for i in range(index.size):  # noqa: SIM110 - compiled: a generator would not be
        if index[i] != i:
            return False
    return True
