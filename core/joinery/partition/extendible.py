"""Fine tuning: the extendible-hash directory of a partition-group, and the rule that keeps its mini-groups in bounds.

Source: seed 000, IV.D (thesis 7.4.4). A nested loop costs as much as the partition is long, so a partition-group that
grows is cut into mini-groups (the buckets), and mini-groups that shrink are put together again.

The directory has 2^d entries (d: global depth), indexed by the low d bits of a tuple's directory hash. A mini-group
with local depth d' <= d owns the 2^(d-d') entries that share its low d' bits; the smallest of them is its first
entry.

Rule 1, split: a mini-group above 2 theta whose tuples can be separated is split by bit d'; if d' = d the directory
        doubles.
Rule 2, merge: a mini-group below theta is merged with its buddy if both have the same depth and together are below 2
        theta. With low bits as index the buddy of first entry l is l XOR 2^(d'-1); then the directory halves if no
        mini-group has depth d any more. (The formula printed in the papers belongs to indexing by high bits.)
Rule 3: no depth exceeds `MAX_DEPTH`. What then stays above 2 theta (one hot key, or keys equal in all those bits) is
        counted.

Why tuning ends and never flaps: look at the binary trie of hash prefixes. A node is split only when the tuples below
it exceed 2 theta, and merged only when they are fewer than 2 theta. So while the tuples stay, a node is split at most
once or merged at most once, never both, and the trie has no more than 2^17 nodes. It also holds if sizes are whole
blocks: a part may be rounded up, then the sum of the parts is at least the whole.

Worked example, theta = 10: a single mini-group 0 of 30 -> split by bit 0 into 0 (12) and 1 (18). Rows expire, 0 has 8
and 1 has 11: the sum is 19 < 20, so they merge and the directory has one entry again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joinery.model.errors import BadSpec, Complaint, require

MAX_DEPTH: Final = 16
"""The greatest depth of a directory: 65536 entries."""

Separable = Callable[[int], bool] | Mapping[int, bool]
"""Whether a mini-group's tuples can be separated, see `separating_bit`; it is asked only about one above 2 theta."""


class Directory:
    """Entries -> mini-groups of one partition-group. It changes in place; `check` says whether it is still sound."""

    __slots__ = ("_at_depth", "_first", "entries", "global_depth", "local_depth")

    def __init__(self, buckets: Iterable[Sequence[int]]) -> None:
        """From (bucket, local depth, first entry) of every mini-group."""
        rows = [tuple(row) for row in buckets]
        require(all(len(row) == 3 for row in rows) and len(rows) > 0, f"{rows} are not (bucket, depth, first entry)")
        require(all(0 <= depth <= MAX_DEPTH for _, depth, _ in rows), f"a depth of {rows} is not in 0..{MAX_DEPTH}")
        self.local_depth: dict[int, int] = {bucket: depth for bucket, depth, _ in rows}
        require(len(self.local_depth) == len(rows), f"{rows} name a bucket twice")
        require(all(0 <= bucket < 2**31 for bucket in self.local_depth), f"a bucket id of {rows} does not fit an entry")
        self.global_depth: int = max(depth for _, depth, _ in rows)
        self.entries: NDArray[np.int32] = np.full(1 << self.global_depth, -1, np.int32)
        self._first: dict[int, int] = {bucket: first for bucket, _, first in rows}
        self._at_depth: list[int] = [0] * (MAX_DEPTH + 1)
        for bucket, depth, first in rows:
            self._at_depth[depth] += 1
            self.entries[first :: 1 << depth] = bucket
        self.check()

    @classmethod
    def single(cls, bucket: int) -> "Directory":
        """The directory of a partition-group that was never split."""
        return cls([(bucket, 0, 0)])

    def buckets(self) -> list[int]:
        """The mini-groups, ascending."""
        return sorted(self.local_depth)

    def first_entry(self, bucket: int) -> int:
        """The smallest entry of `bucket`: the low bits that its tuples share."""
        require(bucket in self._first, f"bucket {bucket} is not in the directory")
        return self._first[bucket]

    def split(self, bucket: int, new_bucket: int) -> int:
        """Give half of the entries of `bucket` to `new_bucket`: its tuples with the returned bit set go there."""
        first, bit = self.first_entry(bucket), self.local_depth[bucket]
        require(bit < MAX_DEPTH, f"bucket {bucket} has depth {bit}; nothing is split beyond {MAX_DEPTH}")
        require(0 <= new_bucket < 2**31, f"bucket id {new_bucket} does not fit an entry (int32, not negative)")
        require(new_bucket not in self._first, f"bucket {new_bucket} is already in the directory")
        if bit == self.global_depth:
            self.entries = np.concatenate((self.entries, self.entries))
            self.global_depth += 1
        self._first[new_bucket] = first | 1 << bit
        self.entries[self._first[new_bucket] :: 1 << (bit + 1)] = new_bucket
        self._set_depth(bucket, bit + 1)
        self._set_depth(new_bucket, bit + 1)
        return bit

    def buddy(self, bucket: int) -> int | None:
        """The mini-group that `bucket` may be merged with; None for an unsplit group or if the depths differ."""
        first, depth = self.first_entry(bucket), self.local_depth[bucket]
        if depth == 0:
            return None
        other = int(self.entries[first ^ 1 << (depth - 1)])
        return other if self.local_depth[other] == depth else None

    def merge(self, bucket: int, buddy: int) -> int:
        """Put two buddies together, halve the directory where possible, return the id that stays.

        The one with the clear bit stays, so a merge undoes a split whichever of the two was below theta.
        """
        require(
            self.buddy(bucket) == buddy, f"bucket {buddy} is not the buddy of {bucket}; it has {self.buddy(bucket)}"
        )
        kept, gone = (bucket, buddy) if self._first[bucket] < self._first[buddy] else (buddy, bucket)
        depth = self.local_depth[kept]
        self.entries[self._first.pop(gone) :: 1 << depth] = kept
        self._at_depth[self.local_depth.pop(gone)] -= 1
        self._set_depth(kept, depth - 1)
        if self._at_depth[self.global_depth] == 0:  # once is enough: what was merged is only one bit shallower
            self.global_depth -= 1
            self.entries = self.entries[: 1 << self.global_depth].copy()
        return kept

    def to_list(self) -> list[tuple[int, int, int]]:
        """(bucket, local depth, first entry) of every mini-group, ascending: all that a checkpoint needs."""
        return [(bucket, self.local_depth[bucket], self._first[bucket]) for bucket in self.buckets()]

    @classmethod
    def from_list(cls, buckets: Iterable[Sequence[int]]) -> "Directory":
        """The directory that `to_list` wrote."""
        return cls(buckets)

    def check(self) -> None:
        """Stop with a `Bug` if an entry and its mini-group disagree, or the directory is larger than it must be."""
        require(
            self.entries.dtype == np.int32 and len(self.entries) == 1 << self.global_depth, "entries are not 2^d int32"
        )
        require(self.global_depth <= MAX_DEPTH, f"global depth {self.global_depth} exceeds {MAX_DEPTH}")
        require(self.local_depth.keys() == self._first.keys(), "depths and first entries name different buckets")
        buckets = np.array(self.buckets(), np.int64)
        depths = np.array([self.local_depth[bucket] for bucket in buckets.tolist()], np.int64)
        firsts = np.array([self._first[bucket] for bucket in buckets.tolist()], np.int64)
        require(int(depths.max()) == self.global_depth, f"no bucket has the global depth {self.global_depth}; halve it")
        require(bool((np.bincount(depths, minlength=MAX_DEPTH + 1) == self._at_depth).all()), "depths are miscounted")
        place = np.minimum(np.searchsorted(buckets, self.entries), len(buckets) - 1)
        require(bool((buckets[place] == self.entries).all()), "an entry names a bucket that is not there")
        low_bits = np.arange(len(self.entries)) & ((1 << depths[place]) - 1)
        require(bool((low_bits == firsts[place]).all()), "an entry does not share the low bits of its bucket")
        entries_of = np.bincount(place, minlength=len(buckets))
        require(bool((entries_of == 1 << (self.global_depth - depths)).all()), "a bucket has not 2^(d-d') entries")

    def __repr__(self) -> str:
        return f"Directory({self.to_list()})"

    def _set_depth(self, bucket: int, depth: int) -> None:
        if bucket in self.local_depth:
            self._at_depth[self.local_depth[bucket]] -= 1
        self.local_depth[bucket] = depth
        self._at_depth[depth] += 1


@dataclass(frozen=True, slots=True)
class Split:
    """Split this mini-group."""

    bucket: int
    because: str


@dataclass(frozen=True, slots=True)
class Merge:
    """Merge these two mini-groups."""

    bucket: int
    buddy: int
    because: str


@dataclass(frozen=True, slots=True)
class OutOfBounds:
    """The mini-groups outside theta..2 theta that no split or merge can bring in: counted, and shown."""

    hot: tuple[int, ...]
    """Above 2 theta, and their tuples cannot be separated: one hot key each, as a rule."""
    deepest: tuple[int, ...]
    """Above 2 theta at the greatest depth: whatever is in them, no bit is left."""
    small: tuple[int, ...]
    """Below theta without a buddy to merge with: unsplit, or the buddy is deeper, or both together are too large."""


def separating_bit(hashes: NDArray[np.uint64], depth: int) -> int | None:
    """The lowest bit from `depth` on, below `MAX_DEPTH`, in which these directory hashes differ.

    None means that no split will ever separate them. A bit above `depth` means that the next split leaves one half
    empty but a later one does separate them: as in any extendible hash, `separable` should say yes. If a split must
    never make an empty mini-group say yes only for `depth` itself; then hot keys that agree in that bit stay together.
    """
    if len(hashes) == 0:
        return None
    differing = int(np.bitwise_or.reduce(hashes ^ hashes[0]))
    usable = differing & ((1 << MAX_DEPTH) - 1) & ~((1 << depth) - 1)
    return (usable & -usable).bit_length() - 1 if usable else None


def tune(directory: Directory, sizes: Mapping[int, int], theta: int, separable: Separable) -> list[Split | Merge]:
    """What to do next, by rules 1-3; nothing to do is an empty list.

    `sizes` are the bytes of every mini-group, all streams together. No mini-group appears in two actions, so the caller
    may apply one or all of them before it measures the sizes again and asks again.
    """
    _check_inputs(directory, sizes, theta)
    actions: list[Split | Merge] = []
    merged: set[int] = set()
    for bucket in directory.buckets():
        size = sizes[bucket]
        if size > 2 * theta:
            if directory.local_depth[bucket] < MAX_DEPTH and _says(separable, bucket):
                actions.append(Split(bucket, f"{size} bytes > 2 x {theta}"))
        elif size < theta and bucket not in merged and (buddy := _partner(directory, sizes, theta, bucket)) is not None:
            merged |= {bucket, buddy}
            actions.append(
                Merge(bucket, buddy, f"{size} bytes < {theta}, with buddy {size + sizes[buddy]} < 2 x {theta}")
            )
    return actions


def out_of_bounds(directory: Directory, sizes: Mapping[int, int], theta: int, separable: Separable) -> OutOfBounds:
    """What `tune` must leave outside theta..2 theta."""
    _check_inputs(directory, sizes, theta)
    large = [bucket for bucket in directory.buckets() if sizes[bucket] > 2 * theta]
    depth = directory.local_depth
    return OutOfBounds(
        hot=tuple(bucket for bucket in large if depth[bucket] < MAX_DEPTH and not _says(separable, bucket)),
        deepest=tuple(bucket for bucket in large if depth[bucket] == MAX_DEPTH),
        small=tuple(
            bucket
            for bucket in directory.buckets()
            if sizes[bucket] < theta and _partner(directory, sizes, theta, bucket) is None
        ),
    )


def _partner(directory: Directory, sizes: Mapping[int, int], theta: int, bucket: int) -> int | None:
    buddy = directory.buddy(bucket)
    return buddy if buddy is not None and sizes[bucket] + sizes[buddy] < 2 * theta else None


def _says(separable: Separable, bucket: int) -> bool:
    return separable[bucket] if isinstance(separable, Mapping) else separable(bucket)


def _check_inputs(directory: Directory, sizes: Mapping[int, int], theta: int) -> None:
    if theta < 1:
        raise BadSpec([Complaint("spec.fineTuning.theta", str(theta), "at least 1 byte", "leave it out for 1.5Mi")])
    missing = directory.local_depth.keys() - sizes.keys()
    require(not missing, f"the sizes of buckets {sorted(missing)} are missing; give 0 for an empty one")
