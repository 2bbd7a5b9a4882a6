"""Cutting a stored relation into segments, and finding a key's segment (thesis 6.3.2).

A range cut halves the range of the keys until no slot holds more than theta bytes, then puts neighbouring slots
together into segments of theta..2 theta. The slot of a key is a shift, its segment one look into the slot array.

Rule 1: the range is widened to a power of two of keys, so that 2^n slots have whole lengths.
Rule 2: a slot of one key cannot be halved; it may exceed theta and is then a segment of its own. The segment before
it, and the last one, may be below theta: everything else lies in theta..2 theta.
Rule 3: a key outside the relation's range has no segment (-1): it matches nothing.
Rule 4: only keys that are one integer (`KeyForm.is_word`) have an order; all others are cut by hash.
Rule 5: at most 2^20 slots (ours; 4 MB): keys so sparse that this is not enough leave slots above theta, see `over`.

Worked example: tests/unit/hybrid/test_segments.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit
from numpy.typing import NDArray

from joinery.model.errors import BadSpec, Complaint, require
from joinery.model.tuples import I64Array
from joinery.model.views import readonly
from joinery.partition.hashing import groups_of

I32Array = NDArray[np.int32]
U64Array = NDArray[np.uint64]

NOWHERE: Final = -1
"""The segment of a key that the relation cannot have."""
SLOTS_MAX: Final = 1 << 20
HASH_SEGMENTS_MAX: Final = 1 << 16
_WORD: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True, eq=False)
class RangeCut:
    """Contiguous ranges of keys: 2^n slots of 2^shift keys each, every slot in one segment."""

    low: int
    high: int
    """The least and the greatest key of the relation."""
    shift: int
    slots: I32Array
    """Segment of each slot; never falling."""
    segments: int

    def segments_of(self, words: I64Array, hashes: U64Array) -> I32Array:
        """The segment of each key, NOWHERE outside the range."""
        out = np.empty(hashes.size, np.int32)
        if not self.segments:
            out.fill(NOWHERE)
            return out
        _look_up(readonly(words), self.low, self.high, np.uint64(self.low & _WORD), self.shift, self.slots, out)
        return out

    @property
    def numbers(self) -> I64Array:
        """What each segment is called by."""
        return np.arange(self.segments)

    def alike(self, other: "Cut") -> NDArray[np.bool_]:
        """Of each segment: whether it holds the same keys in the other cut."""
        return np.full(self.segments, self.same_as(other))

    def same_as(self, other: "Cut") -> bool:
        """Whether every key has the same segment in both."""
        if not isinstance(other, RangeCut):
            return False
        mine, its = ((cut.low, cut.high, cut.shift, cut.segments) for cut in (self, other))
        return mine == its and np.array_equal(self.slots, other.slots)


@dataclass(frozen=True, slots=True)
class HashCut:
    """Classes of keys by the high bits of their hash."""

    segments: int

    def __post_init__(self) -> None:
        if not 1 <= self.segments <= HASH_SEGMENTS_MAX:
            wanted = f"1..{HASH_SEGMENTS_MAX}"
            raise BadSpec([Complaint("table.segments", str(self.segments), wanted, "choose another theta")])

    def segments_of(self, words: I64Array, hashes: U64Array) -> I32Array:
        """The segment of each key."""
        del words
        return groups_of(hashes, self.segments).astype(np.int32)

    @property
    def numbers(self) -> I64Array:
        """What each segment is called by."""
        return np.arange(self.segments)

    def alike(self, other: "Cut") -> NDArray[np.bool_]:
        """Of each segment: whether it holds the same keys in the other cut."""
        return np.full(self.segments, self.same_as(other))

    def same_as(self, other: "Cut") -> bool:
        """Whether every key has the same segment in both."""
        return self == other


Cut = RangeCut | HashCut


class AnyCut(Protocol):
    """What the join asks of a cut; `grouped.GroupedCut` is one, too."""

    @property
    def segments(self) -> int: ...

    @property
    def numbers(self) -> I64Array: ...

    def segments_of(self, words: I64Array, hashes: U64Array) -> I32Array: ...

    def alike(self, other: Any) -> NDArray[np.bool_]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A whole segment of the relation, as a probe brings it: rows in the order of their words."""

    number: int
    stamp: int
    """The version of the relation that wrote it."""
    words: I64Array
    rows: pa.RecordBatch
    size: int
    """Bytes, as they count against the join memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """One version of the stored relation without its rows: how it is cut, and what each segment is."""

    version: int
    cut: AnyCut
    sizes: I64Array
    """Bytes of each segment."""
    stamps: I64Array
    """The version that wrote each segment: one that a refresh left as it was keeps its stamp."""

    def __post_init__(self) -> None:
        require(
            self.sizes.size == self.stamps.size == self.cut.segments,
            f"{self.cut.segments} segments, {self.sizes.size} sizes, {self.stamps.size} stamps",
        )


def range_cut(words: I64Array, row_bytes: I64Array, theta: int) -> RangeCut:
    """Cut by ranges of the keys; `row_bytes` says what each row weighs."""
    _check_theta(theta)
    if not words.size:
        return RangeCut(0, -1, 0, np.empty(0, np.int32), 0)
    order = np.argsort(words, kind="stable")
    keys, first = np.unique(words[order], return_index=True)
    weights = np.add.reduceat(row_bytes[order], first)
    low, high = int(keys[0]), int(keys[-1])
    offsets = keys.view(np.uint64) - np.uint64(low & _WORD)
    bits = (high - low).bit_length()
    for slots_bits in range(SLOTS_MAX.bit_length()):
        shift = max(0, bits - slots_bits)
        of = _shifted(offsets, shift)
        slots = np.bincount(of, weights, minlength=1 << (bits - shift)).astype(np.int64)
        splittable = np.bincount(of, minlength=slots.size) > 1
        if shift == 0 or not np.any(splittable & (slots > theta)):
            break
    segment_of, count = clustered(slots, theta)
    return RangeCut(low, high, shift, segment_of, count)


def clustered(slots: I64Array, theta: int) -> tuple[I32Array, int]:
    """The segment of each slot, from the bytes of the slots, and how many segments there are."""
    segment_of = np.empty(slots.size, np.int32)
    return segment_of, int(_cluster(slots, theta, segment_of))


def hash_cut(total_bytes: int, theta: int) -> HashCut:
    """As many hash classes as give 1.5 theta each in the mean."""
    _check_theta(theta)
    return HashCut(min(HASH_SEGMENTS_MAX, max(1, round(total_bytes / (1.5 * theta)))))


def cut_relation(
    version: int, cut: Cut, words: I64Array, hashes: U64Array, rows: pa.RecordBatch, keyed: NDArray[np.bool_] | None
) -> tuple[Relation, tuple[Segment, ...]]:
    """The segments of a version, with their rows; rows without a key match nothing and are left out."""
    if keyed is not None:
        kept = np.flatnonzero(keyed)
        words, hashes, rows = words[kept], hashes[kept], rows.take(pa.array(kept))
    weights = row_bytes(rows)
    of = cut.segments_of(words, hashes)
    require(not np.any(of == NOWHERE), f"version {version} has keys outside its cut; cut it anew")
    order = np.lexsort((words, of))
    edges = np.searchsorted(of[order], np.arange(cut.segments + 1))
    words, rows, weights = words[order], rows.take(pa.array(order)), weights[order]
    segments = tuple(_parts(version, words, rows, weights, edges))
    sizes = np.array([one.size for one in segments], np.int64)
    return Relation(version, cut, sizes, np.full(cut.segments, version, np.int64)), segments


def unchanged(
    before: Relation, segments_before: Sequence[Segment], after: Relation, segments_after: Sequence[Segment]
) -> tuple[Relation, tuple[Segment, ...]]:
    """The new version with the old stamps on segments whose rows are the same: they stay in memory."""
    if after.cut.segments != before.cut.segments or not after.cut.alike(before.cut).all():
        return after, tuple(segments_after)
    kept = [
        replace(new, stamp=old.stamp) if np.array_equal(new.words, old.words) and new.rows.equals(old.rows) else new
        for old, new in zip(segments_before, segments_after, strict=True)
    ]
    return replace(after, stamps=np.array([one.stamp for one in kept], np.int64)), tuple(kept)


def over(relation: Relation, theta: int) -> int:
    """How many segments exceed 2 theta: one hot key, or keys too sparse for the slots."""
    return int(np.count_nonzero(relation.sizes > 2 * theta))


def row_bytes(rows: pa.RecordBatch) -> I64Array:
    """What each row weighs: fixed widths, and the lengths of texts."""
    weights = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        kind = column.type
        if kind in (pa.string(), pa.binary()) and not column.null_count and rows.num_rows:
            starts = np.frombuffer(column.buffers()[1], np.int32, rows.num_rows + 1, 4 * column.offset)
            weights += np.diff(starts) + 4
        elif kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()):
            weights += pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64) + 4
        elif pa.types.is_boolean(kind):
            weights += 1
        else:
            require(kind.bit_width > 0, f"a column of type {kind} has no width; keep it out of the relation")
            weights += kind.bit_width // 8
    return weights


def _parts(
    version: int, words: I64Array, rows: pa.RecordBatch, weights: I64Array, edges: NDArray[np.intp]
) -> Iterator[Segment]:
    for number, (start, stop) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
        size = int(weights[start:stop].sum())
        yield Segment(number, version, words[start:stop], rows.slice(start, stop - start), size)


def _check_theta(theta: int) -> None:
    if theta < 1:
        raise BadSpec([Complaint("table.theta", str(theta), "at least 1 byte", "say 1Mi")])


def _shifted(offsets: U64Array, shift: int) -> I64Array:
    if shift >= 64:
        return np.zeros(offsets.size, np.int64)
    return (offsets >> np.uint64(shift)).astype(np.int64)


@njit(cache=True, nogil=True)
def _look_up(words: I64Array, low: int, high: int, base: np.uint64, shift: int, slots: I32Array, out: I32Array) -> None:
    for i in range(words.size):
        word = words[i]
        if word < low or word > high:
            out[i] = -1
        elif shift >= 64:
            out[i] = slots[0]
        else:
            out[i] = slots[np.int64((np.uint64(word) - base) >> np.uint64(shift))]


@njit(cache=True, nogil=True)
def _cluster(slots: I64Array, theta: int, out: I32Array) -> int:
    """Segment of each slot, from the weights of the slots; the number of segments.

    A segment is closed at theta, or before a slot that would take it above 2 theta. What is left at the end goes to
    the segment before it if both fit 2 theta.
    """
    segment, weight, before = 0, 0, 0
    for i in range(slots.size):
        too_much = weight > 0 and weight + slots[i] > 2 * theta
        if too_much or (weight >= theta and slots[i] > 0):
            segment, before, weight = segment + 1, weight, 0
        out[i] = segment
        weight += slots[i]
    if segment > 0 and weight < theta and before + weight <= 2 * theta:
        for i in range(slots.size):
            if out[i] == segment:
                out[i] = segment - 1
        segment -= 1
    return segment + 1
