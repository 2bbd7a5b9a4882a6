"""The cut of a relation whose rows are divided over partition-groups: each group has a cut of its own.

A group is placed on one worker, and so are its segments: none reaches over two groups. Inside a group segments are
ranges of keys, or classes of hashes by bits that did not choose the group.

Rule 1: a segment is called by its group and its place there (`number`), so a group that is cut anew renames no other.
Rule 2: a refresh leaves a group's cut as it is while it fits: no key below it, and no segment that has grown above
3 theta. Keys above the old range get slots and segments of their own behind the old ones; what came before stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from joinery.hybrid.segments import (
    NOWHERE,
    SLOTS_MAX,
    Cut,
    HashCut,
    I32Array,
    RangeCut,
    U64Array,
    clustered,
    hash_cut,
    range_cut,
)
from joinery.model.tuples import I64Array
from joinery.model.views import readonly
from joinery.partition.hashing import groups_of

GROUP_SHIFT: Final = 20
"""A segment's number is its group, shifted by this, and its place in the group."""
CROWDED: Final = 4
"""A group with so many times more segments than its bytes ask for is cut anew."""


EMPTY: Final = RangeCut(0, -1, 0, np.empty(0, np.int32), 0)
"""Of a group without rows."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupedCut:
    """The cuts of all groups, as flat arrays; of `kind` range or hash."""

    kind: str
    lows: I64Array
    highs: I64Array
    shifts: I64Array
    starts: I64Array
    """Where each group's slots begin in `slots`, one more at the end."""
    slots: I32Array
    """Segment of each slot, counted from 0 in each group."""
    firsts: I64Array
    """How many segments stand before each group's, one more at the end."""

    @property
    def segments(self) -> int:
        return int(self.firsts[-1])

    @property
    def partitions(self) -> int:
        return int(self.lows.size)

    @property
    def numbers(self) -> I64Array:
        """What each segment is called by (rule 1)."""
        counts = np.diff(self.firsts)
        groups = np.repeat(np.arange(self.partitions), counts)
        return (groups << GROUP_SHIFT) | (np.arange(self.segments) - self.firsts[groups])

    def segments_of(self, words: I64Array, hashes: U64Array) -> I32Array:
        """The segment of each key, NOWHERE if its group cannot have it."""
        groups, out = groups_of(hashes, self.partitions), np.empty(hashes.size, np.int32)
        if self.kind == "hash":
            _hashed(readonly(hashes), groups, self.firsts, out)
        else:
            arrays = (self.lows, self.highs, self.shifts, self.starts, self.slots, self.firsts)
            _ranged(readonly(words), groups, *arrays, out)
        return out

    def alike(self, other: "Cut | GroupedCut") -> NDArray[np.bool_]:
        """Of each segment: whether a segment of that name holds the same keys in the other cut."""
        out = np.zeros(self.segments, np.bool_)
        if not isinstance(other, GroupedCut) or (other.kind, other.partitions) != (self.kind, self.partitions):
            return out
        for group in range(self.partitions):
            mine, its = self.of(group), other.of(group)
            first, last = int(self.firsts[group]), int(self.firsts[group + 1])
            out[first:last] = kept_segments(mine, its)
        return out

    def of(self, group: int) -> Cut:
        """The cut of one group."""
        count = int(self.firsts[group + 1] - self.firsts[group])
        if self.kind == "hash" and count:
            return HashCut(count)
        slots = self.slots[self.starts[group] : self.starts[group + 1]]
        return RangeCut(int(self.lows[group]), int(self.highs[group]), int(self.shifts[group]), slots, count)


def together(kind: str, cuts: Sequence[Cut]) -> GroupedCut:
    """The cuts of all groups as one."""
    ranges = [cut if isinstance(cut, RangeCut) else EMPTY for cut in cuts]
    lows, highs, shifts = (
        np.array([getattr(cut, name) for cut in ranges], np.int64) for name in ("low", "high", "shift")
    )
    starts = np.concatenate([[0], np.cumsum([cut.slots.size for cut in ranges])]).astype(np.int64)
    firsts = np.concatenate([[0], np.cumsum([cut.segments for cut in cuts])]).astype(np.int64)
    slots = np.concatenate([np.empty(0, np.int32), *(cut.slots for cut in ranges)]).astype(np.int32)
    return GroupedCut(kind, lows, highs, shifts, starts, slots, firsts)


def segments_within(cut: Cut, words: I64Array, hashes: U64Array) -> I32Array:
    """The segment of each key of one group, counted in that group."""
    if isinstance(cut, RangeCut):
        return cut.segments_of(words, hashes)
    out = np.empty(hashes.size, np.int32)
    _hashed(readonly(hashes), np.zeros(hashes.size, np.uint16), np.array([0, cut.segments], np.int64), out)
    return out


def group_cut(kind: str, words: I64Array, hashes: U64Array, row_bytes: I64Array, theta: int, before: Cut | None) -> Cut:
    """How the rows of one group are cut: as before if that still fits (rule 2), else anew."""
    if before is not None:
        kept = _grown(before, words, row_bytes, theta) if isinstance(before, RangeCut) else before
        if kept is not None and _fits(kept, words, hashes, row_bytes, theta):
            return kept
    if kind == "hash":
        return hash_cut(int(row_bytes.sum()), theta)
    return range_cut(words, row_bytes, theta)


def kept_segments(cut: Cut, before: Cut) -> NDArray[np.bool_]:
    """Of each segment of one group's cut: whether it held the same keys before."""
    same = np.zeros(cut.segments, np.bool_)
    if isinstance(cut, HashCut) or isinstance(before, HashCut):
        same[:] = cut.same_as(before)
        return same
    shared = _used_slots(before)
    if not before.segments or (cut.low, cut.shift) != (before.low, before.shift) or shared > cut.slots.size:
        return same
    if np.array_equal(cut.slots[:shared], before.slots[:shared]):
        same[: before.segments] = True
    return same


def _grown(before: RangeCut, words: I64Array, row_bytes: I64Array, theta: int) -> RangeCut | None:
    """The old cut, with room behind it for keys above its range; None: a key below, or too many slots."""
    if not words.size:
        return before
    if not before.segments or int(words.min()) < before.low:
        return None
    # the slot of the greatest key may reach above it: whatever falls there stays in its segment
    used, top = _used_slots(before), int(words.max())
    covered = before.low + (used << before.shift)
    if top < covered:
        return RangeCut(before.low, max(before.high, top), before.shift, before.slots, before.segments)
    if used + ((top - covered) >> before.shift) >= SLOTS_MAX:
        return None
    behind = words >= covered
    above = words[behind].view(np.uint64) - np.uint64(covered % 2**64)  # two keys may lie more than 2^63 apart
    place = (above >> np.uint64(min(before.shift, 63))).astype(np.int64)
    more, count = clustered(np.bincount(place, row_bytes[behind]).astype(np.int64), theta)
    slots = np.concatenate([before.slots[:used], more + np.int32(before.segments)]).astype(np.int32)
    return RangeCut(before.low, top, before.shift, slots, before.segments + count)


def _used_slots(cut: RangeCut) -> int:
    """Slots up to that of the greatest key; those behind it are there because their number is a power of two."""
    return ((cut.high - cut.low) >> cut.shift) + 1 if cut.segments else 0


def _fits(cut: Cut, words: I64Array, hashes: U64Array, row_bytes: I64Array, theta: int) -> bool:
    """Whether no segment is too large but those that one key fills, and there are not many too small ones."""
    of = segments_within(cut, words, hashes)
    if np.any(of == NOWHERE):
        return False
    sizes = np.bincount(of, row_bytes, minlength=cut.segments)
    wanted = max(1, -(-int(row_bytes.sum()) // theta))
    if cut.segments > CROWDED * wanted:
        return False
    return all(np.unique(words[of == large]).size == 1 for large in np.flatnonzero(sizes > 3 * theta))


@njit(cache=True, nogil=True)
def _hashed(hashes: U64Array, groups: NDArray[np.uint16], firsts: I64Array, out: I32Array) -> None:
    for i in range(hashes.size):
        group = groups[i]
        count = np.uint64(firsts[group + 1] - firsts[group])
        if count == 0:
            out[i] = -1
        else:
            low = hashes[i] & np.uint64(0xFFFFFFFF)
            out[i] = firsts[group] + np.int64((low * count) >> np.uint64(32))


@njit(cache=True, nogil=True)
def _ranged(
    words: I64Array, groups: NDArray[np.uint16], lows: I64Array, highs: I64Array, shifts: I64Array, starts: I64Array,
    slots: I32Array, firsts: I64Array, out: I32Array,
) -> None:  # fmt: skip
    for i in range(words.size):
        group, word = groups[i], words[i]
        if word < lows[group] or word > highs[group]:
            out[i] = -1
            continue
        slot = np.int64(0)
        if shifts[group] < 64:
            slot = np.int64((np.uint64(word) - np.uint64(lows[group])) >> np.uint64(shifts[group]))
        out[i] = firsts[group] + slots[starts[group] + slot]
