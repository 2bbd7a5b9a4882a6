"""Station 6 of 8, join, method `nested-loop`: block nested loops over mini-groups (seed 000 §IV.D, thesis §7.4.4).

A tuple is *fresh* from its arrival until it has met the other windows. Fresh tuples are mapped to their mini-groups
and pass, a head block at a time, over all blocks of the other streams' mini-window; only then do they enter the head
block of their own. So fresh tuples of two streams never meet twice, and a block cannot expire before fresh tuples
have met it: expiry comes with the watermark, after the batch. A block expires when its newest tuple is past; each
pair is checked by its own times.

Fine tuning keeps the mini-groups of a group in θ..2θ bytes, all streams together: what a fresh tuple has to pass over
no longer grows with the window. Splitting and merging follow `joinery.partition.extendible`.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from joinery.join.kernels import blocks
from joinery.join.kernels.blocks import FRESH_ROWS, Chains
from joinery.join.kernels.found import Found
from joinery.join.plan import JoinPlan
from joinery.join.protocol import Probes
from joinery.model.ids import GroupId
from joinery.model.time import DEAD
from joinery.model.tuples import I64Array, TupleBatch
from joinery.partition.extendible import Directory, Merge, Split, separating_bit, tune
from joinery.window.arrays import grown
from joinery.window.layout import RowLayout
from joinery.window.store import KEYLESS, RowStore

_PART_PAIRS = 1 << 16


class NestedLoopMethod:
    """The windows of all streams as chains of blocks, one per mini-group."""

    def __init__(self, stores: Sequence[RowStore], plan: JoinPlan) -> None:
        self.stores = tuple(stores)
        self.comparisons = 0
        """Pairs of tuples looked at so far: the load that this method makes."""
        self._theta = plan.theta_bytes
        self._directories = {GroupId(group): Directory.single(group) for group in range(plan.partitions)}
        self._group_of = np.arange(plan.partitions, dtype=np.int64)
        self._free: list[int] = []
        self._rows = np.zeros((len(self.stores), plan.partitions), np.int64)
        """Per stream and mini-group: rows in its blocks."""
        self._first = [np.full(plan.partitions, -1, np.int32) for _ in self.stores]
        self._last = [np.full(plan.partitions, -1, np.int32) for _ in self.stores]
        self._following = [np.empty(0, np.int32) for _ in self.stores]
        self._owner = [np.empty(0, np.int32) for _ in self.stores]
        self._tuple_bytes = np.array([tuple_bytes(store.layout) for store in self.stores])
        self._flatten()

    @staticmethod
    def block_rows(layout: RowLayout, block_bytes: int) -> int:
        """Rows of a block of that many bytes."""
        return max(1, block_bytes // tuple_bytes(layout))

    def insert(self, batch: TupleBatch, groups: NDArray[np.uint16], flags: NDArray[np.uint8]) -> None:
        minis = self._minis(groups, batch.hashes)
        self._append(batch, minis, groups, flags)
        if self._theta is not None:
            large = np.unique(minis[self._bytes()[minis] > 2 * self._theta])
            self._tune(np.unique(self._group_of[large]).tolist())

    def candidates(self, stream: int, probes: Probes) -> Iterator[Found]:
        store = self.stores[stream]
        minis = self._minis(probes.groups, probes.hashes)
        order = np.argsort(minis, kind="stable")
        sorted_minis = minis[order]
        size = max(_PART_PAIRS, FRESH_ROWS * store.block_rows)
        begin, block = 0, -2
        while begin < order.size:
            found = Found.room(size)
            count, comparisons, begin, block = blocks.scan(
                probes.words, probes.low, probes.high, order, sorted_minis, begin, block,
                store.meta, store.fill, store.block_rows, self._chains(stream), KEYLESS, store.flags, found,
            )  # fmt: skip
            self.comparisons += comparisons
            if count:
                yield found.first(count)

    def expire(self, stream: int, before: int) -> None:
        store, top = self.stores[stream], self.stores[stream].touched_blocks
        past = np.flatnonzero((store.fill[:top] > 0) & (store.newest[:top] < before))
        if past.size == 0:
            return
        minis = np.unique(self._owner[stream][past])
        gone = np.empty(past.size, np.int32)
        count = blocks.unlink_past(before, minis, self._chains(stream), store.newest, gone)
        self._give_back(stream, gone[:count])
        if self._theta is not None:
            groups = np.unique(self._group_of[minis])  # a mini-group that shrank may let its small buddy merge
            self._tune(groups[self._mask[groups] > 0].tolist())

    def directory(self, group: GroupId) -> tuple[int, ...]:
        entries = self._directories[group].to_list()
        return tuple(number for _, depth, first in entries for number in (depth, first)) if len(entries) > 1 else ()

    def shape(self, group: GroupId, directory: tuple[int, ...]) -> None:
        self._forget(group)
        shape = list(zip(directory[::2], directory[1::2], strict=True)) or [(0, 0)]
        self._directories[group] = Directory([(self._new_mini(group), depth, first) for depth, first in shape])
        self._flatten()

    def retune(self, theta_bytes: int | None) -> None:
        """Each group is split or merged by it when it next gets or loses rows."""
        self._theta = theta_bytes

    def drop(self, group: GroupId) -> None:
        self.shape(group, ())

    def mini_sizes(self, group: GroupId) -> dict[int, int]:
        """Bytes of each mini-group of a group."""
        sizes = self._bytes()
        return {mini: int(sizes[mini]) for mini in self._directories[group].buckets()}

    def bytes_held(self) -> int:
        return sum(store.bytes_held() for store in self.stores) + sum(
            chain.nbytes for chain in self._following + self._owner
        )

    # --- chains

    def _chains(self, stream: int) -> Chains:
        return Chains(self._first[stream], self._last[stream], self._following[stream], self._owner[stream])

    def _append(
        self, batch: TupleBatch, minis: NDArray[np.int32], groups: NDArray[np.uint16], flags: NDArray[np.uint8]
    ) -> None:
        stream, store = batch.stream, self.stores[batch.stream]
        order = np.argsort(minis, kind="stable")
        sorted_minis = minis[order]
        needed = blocks.blocks_needed(sorted_minis, self._last[stream], store.fill, store.block_rows)
        new = np.array([store.take_block() for _ in range(needed)], np.int32)
        if self._owner[stream].size < store.blocks:
            self._following[stream] = grown(self._following[stream], store.blocks, -1)
            self._owner[stream] = grown(self._owner[stream], store.blocks, -1)
        rows = np.empty(order.size, np.int64)
        blocks.place(sorted_minis, self._chains(stream), store.fill, store.block_rows, new, rows)
        store.write(rows, batch, order, groups, flags)
        self._rows[stream] += np.bincount(minis, minlength=self._rows.shape[1])

    def _give_back(self, stream: int, gone: NDArray[np.int32]) -> None:
        store = self.stores[stream]
        np.subtract.at(self._rows[stream], self._owner[stream][gone], store.fill[gone])
        for block in gone.tolist():
            store.free_block(block)

    def _rows_of(self, stream: int, mini: int) -> I64Array:
        store = self.stores[stream]
        out = np.empty(self._rows[stream, mini], np.int64)
        count = blocks.rows_of_chain(
            self._first[stream][mini], self._following[stream], store.fill, store.block_rows, store.meta, DEAD, out
        )
        return out[:count]

    def _clear(self, stream: int, mini: int) -> None:
        """Give back all blocks of a mini-group."""
        chain, block = [], int(self._first[stream][mini])
        while block >= 0:
            chain.append(block)
            block = int(self._following[stream][block])
        self._give_back(stream, np.array(chain, np.int32))
        self._first[stream][mini] = self._last[stream][mini] = -1

    # --- mini-groups

    def _minis(self, groups: NDArray[np.uint16], hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        out = np.empty(groups.size, np.int32)
        blocks.mini_groups(groups, hashes, self._start, self._mask, self._entries, out)
        return out

    def _bytes(self) -> I64Array:
        """Bytes of every mini-group, all streams together."""
        return np.asarray(self._tuple_bytes @ self._rows)

    def _flatten(self) -> None:
        """All directories in one array, so that a batch of many groups is mapped in one compiled call."""
        found = [self._directories[GroupId(group)].entries for group in range(len(self._directories))]
        sizes = np.array([entries.size for entries in found], np.int64)
        self._entries = np.concatenate(found)
        self._start, self._mask = np.concatenate(([0], np.cumsum(sizes)[:-1])), sizes - 1

    def _new_mini(self, group: GroupId) -> int:
        if not self._free:
            held = self._group_of.size
            self._free = list(range(2 * held - 1, held - 1, -1))
            self._group_of = grown(self._group_of, 2 * held, -1)
            self._rows = np.concatenate((self._rows, np.zeros_like(self._rows)), axis=1)
            self._first = [grown(first, 2 * held, -1) for first in self._first]
            self._last = [grown(last, 2 * held, -1) for last in self._last]
        mini = self._free.pop()
        self._group_of[mini] = group
        return mini

    def _forget(self, group: GroupId) -> None:
        for mini in self._directories[group].buckets():
            for stream in range(len(self.stores)):
                self._clear(stream, mini)
            self._free.append(mini)

    # --- fine tuning

    def _tune(self, groups: Iterable[int]) -> None:
        for number in groups:
            group = GroupId(number)
            while actions := tune(self._directories[group], self.mini_sizes(group), self._theta or 1, self._separable):
                for action in actions:
                    self._split(group, action) if isinstance(action, Split) else self._merge(group, action)
                self._flatten()

    def _separable(self, mini: int) -> bool:
        depth = self._directories[GroupId(int(self._group_of[mini]))].local_depth[mini]
        hashes = [store.hashes(self._rows_of(stream, mini)) for stream, store in enumerate(self.stores)]
        return separating_bit(np.concatenate(hashes), depth) is not None

    def _split(self, group: GroupId, action: Split) -> None:
        new = self._new_mini(group)
        bit = self._directories[group].split(action.bucket, new)
        for stream, store in enumerate(self.stores):
            batch, groups, flags = store.read(self._rows_of(stream, action.bucket))
            self._clear(stream, action.bucket)
            goes = (batch.hashes >> np.uint64(bit)) & np.uint64(1) == 1
            if len(batch):
                self._append(batch, np.where(goes, new, action.bucket).astype(np.int32), groups, flags)

    def _merge(self, group: GroupId, action: Merge) -> None:
        kept = self._directories[group].merge(action.bucket, action.buddy)
        gone = action.buddy if kept == action.bucket else action.bucket
        for stream in range(len(self.stores)):
            self._hang_behind(stream, kept, gone)
        self._free.append(gone)

    def _hang_behind(self, stream: int, kept: int, gone: int) -> None:
        """The blocks of one chain behind those of another; nothing is copied."""
        first, last, owner = self._first[stream], self._last[stream], self._owner[stream]
        if first[gone] < 0:
            return
        owner[owner[: self.stores[stream].blocks] == gone] = kept
        if first[kept] < 0:
            first[kept] = first[gone]
        else:
            self._following[stream][last[kept]] = first[gone]
        last[kept] = last[gone]
        first[gone] = last[gone] = -1
        self._rows[stream, kept] += self._rows[stream, gone]
        self._rows[stream, gone] = 0


def tuple_bytes(layout: RowLayout) -> int:
    """Bytes of a tuple as it came: fixed widths, and what the row keeps of a text (its bytes are in the heap)."""
    return sum(field.width or field.type.bit_width // 8 or 1 for field in layout.fields)
