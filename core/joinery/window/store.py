"""Station 5 of 8, window, what is kept: the rows of one stream in blocks of one arena.

Rule 1: a row has a number, `block * block_rows + place in block`, that stays while the row is kept.
Rule 2: rows come and go by blocks; a block is given back when all its rows are dead, and used again first.
Rule 3: a row's four meta words stand together (word, time, place, link), so that a probe costs one cache miss.
Rule 4: arrays grow by doubling, but pages beyond the blocks in use are never touched: what is held is what is used.

Who decides in which block a row goes is the join method (`joinery.join`): arrival order for `hash`, one chain of
blocks per mini-group for `nested-loop`. Source: seed 000 §IV.D, blocks of the window partitions.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joinery.model.errors import require
from joinery.model.time import DEAD
from joinery.model.tuples import I64Array, Order, TupleBatch
from joinery.model.views import readonly
from joinery.partition.hashing import NULL_HASH
from joinery.window import packing, scanning, sliding
from joinery.window.arrays import empty, grown
from joinery.window.heap import Heap
from joinery.window.layout import Field, Home, RowLayout

WORD: Final = 0
TIME: Final = 1
PLACE: Final = 2
LINK: Final = 3

MATCHED: Final = 1
"""Flag of a row that has found a partner."""
KEYLESS: Final = 2
"""Flag of a row with a null in its key: kept for an outer join, found by nobody."""


Lanes = Callable[[int], I64Array]
"""Words or times of some rows, by lane."""


class RowStore:
    """Rows of one stream, addressed by number."""

    def __init__(
        self, layout: RowLayout, block_rows: int, *, order_lanes: int = 0, clock_lane: int | None = None
    ) -> None:
        """With a count window in the query rows have `order_lanes`; one of them (`clock_lane`) may be the clock."""
        self.layout, self.block_rows, self._lanes, self._clock_lane = layout, block_rows, order_lanes, clock_lane
        self.blocks = 0
        self.used_blocks = 0
        self.touched_blocks = 0
        self.meta = np.empty(0, np.int64)
        self.groups = np.empty(0, np.uint16)
        self.flags = np.empty(0, np.uint8)
        self.order = np.empty(0, np.int64)
        self._packed = np.empty(0, np.uint8)
        self._nulls: NDArray[np.uint8] | None = None
        self.fill = np.empty(0, np.int32)
        """Rows in each block; 0: the block is free."""
        self.oldest = np.empty(0, np.int64)
        self.newest = np.empty(0, np.int64)
        self.serial = np.empty(0, np.int64)
        """Greatest serial number of each block's rows: what is new since a tag is found by it."""
        self._free: list[int] = []
        self.heap = Heap(block_rows) if layout.has_heap else None

    # --- blocks

    def take_block(self) -> int:
        """A free, empty block."""
        if not self._free:
            self._grow(max(4, 2 * self.blocks))
        block = self._free.pop()
        self.used_blocks += 1
        self.touched_blocks = max(self.touched_blocks, block + 1)
        return block

    def free_block(self, block: int) -> None:
        """Give a block back; its rows are gone."""
        self.fill[block] = 0
        self._free.append(block)
        self.used_blocks -= 1
        if self.heap is not None:
            self.heap.free(block)

    def _grow(self, blocks: int) -> None:
        rows = blocks * self.block_rows
        self.meta = grown(self.meta, 4 * rows)
        self.groups, self.flags = grown(self.groups, rows), grown(self.flags, rows)
        self._packed = grown(self._packed, rows * self.layout.stride)
        self.order = grown(self.order, rows * self._lanes)
        if self._nulls is not None:
            self._nulls = grown(self._nulls, rows * len(self.layout.fields))
        self.fill = grown(self.fill, blocks, 0)
        self.oldest, self.newest = grown(self.oldest, blocks), grown(self.newest, blocks)
        self.serial = grown(self.serial, blocks)
        if self.heap is not None:
            self.heap.grow_blocks(blocks)
        self._free[:0] = range(blocks - 1, self.blocks - 1, -1)
        self.blocks = blocks

    def bytes_held(self) -> int:
        """Bytes of memory that the blocks ever used take."""
        per_row = 4 * 8 + 2 + 1 + self.layout.stride + 8 * self._lanes
        per_row += len(self.layout.fields) if self._nulls is not None else 0
        held = self.touched_blocks * (self.block_rows * per_row + 28)
        return held + (self.heap.bytes_held() if self.heap is not None else 0)

    # --- rows in

    def write(
        self, to: I64Array, batch: TupleBatch, source: I64Array, groups: NDArray[np.uint16], flags: NDArray[np.uint8]
    ) -> None:
        """Write the rows `source` of a batch as the rows `to`; their blocks are taken, their fill only rises."""
        scanning.write_meta(to, source, batch.words, batch.times, batch.places, self.clocks_of(batch), batch.serials,
                            groups, flags, self.block_rows, self.meta, self.groups, self.flags,
                            self.fill, self.oldest, self.newest, self.serial)  # fmt: skip
        require(
            (batch.order is None) == (self._lanes == 0),
            "rows have an order in queries with a count window, and only there",
        )
        if batch.order is not None:
            lanes = np.column_stack((batch.order.ranks, batch.order.counts))
            self.order.reshape(-1, self._lanes)[to] = lanes[source]
        for number, field in enumerate(self.layout.fields):
            column = batch.rows.column(number)
            self._write_nulls(number, field, column, source, to)
            if field.home is Home.PACKED:
                self._pack(field, column, source, to)
            elif field.home is Home.HEAP and self.heap is not None:
                self.heap.write(
                    column, source, to, self._packed.view(np.int64), self.layout.stride // 8, field.offset // 8
                )

    def _pack(self, field: Field, column: pa.Array, source: I64Array, to: I64Array) -> None:
        raw = _bytes_of(column, field.width)
        stride, offset, width = self.layout.stride, field.offset, field.width
        if width % 8 == 0:
            packing.pack_words(
                raw.view(np.uint64), source, to, self._packed.view(np.uint64), stride // 8, offset // 8, width // 8
            )
        else:
            packing.pack_bytes(raw, source, to, self._packed, stride, offset, width)

    def _write_nulls(self, number: int, field: Field, column: pa.Array, source: I64Array, to: I64Array) -> None:
        if field.home is Home.TIME or (self._nulls is None and not column.null_count):
            return
        if self._nulls is None:
            self._nulls = np.zeros(self.blocks * self.block_rows * len(self.layout.fields), np.uint8)
        mask = column.is_null().to_numpy(zero_copy_only=False)
        packing.set_nulls(mask, source, to, self._nulls, len(self.layout.fields), number)

    def clocks_of(self, batch: TupleBatch) -> I64Array:
        """What the window measures a batch's rows by: their times, or counts."""
        return sliding.clocks(batch, self._clock_lane)

    @property
    def clock_lane(self) -> int | None:
        """The lane of the count that is the clock; None: the time is."""
        return self._clock_lane

    def use_clock(self, lane: int | None) -> None:
        """Measure rows by their times (None) or by a count from now on; the blocks' books are made anew."""
        if lane != self._clock_lane:
            self._clock_lane = lane
            scanning.rebook(self.block_rows, self.touched_blocks, self.meta, *self._clock_source(), self.fill,
                            self.oldest, self.newest)  # fmt: skip

    def _clock_source(self) -> tuple[I64Array, int, int]:
        """Where clocks stand: an array, its lanes per row, and which lane."""
        return (self.meta, 4, TIME) if self._clock_lane is None else (self.order, self._lanes, self._clock_lane)

    # --- rows found

    def rows_before(self, before: int, wanted: NDArray[np.bool_], without: int = 0) -> I64Array:
        """Living rows of these groups whose clock is below `before`; those with the flag `without` just die."""
        out = np.empty(self.touched_blocks * self.block_rows, np.int64)
        count = scanning.rows_before(before, wanted, without, self.block_rows, self.touched_blocks, self.meta,
                                     *self._clock_source(), self.groups, self.flags, self.fill, self.oldest,
                                     out)  # fmt: skip
        return out[:count]

    def count_living(self, before: int) -> int:
        """Rows that are neither dead nor past: their clock is at or above `before`."""
        return int(scanning.count_living(before, self.block_rows, self.touched_blocks, self.meta, *self._clock_source(),
                                         self.fill))  # fmt: skip

    def count_groups(self, counts: I64Array, closed: I64Array) -> int:
        """Add how many living rows each group has; the time of the oldest that has not closed, FOREVER: none.

        Those that have (their clock is below their group's `closed`) are there only until their block goes.
        """
        return int(scanning.count_groups(closed, self.block_rows, self.touched_blocks, self.meta,
                                         *self._clock_source(), self.groups, self.fill, counts))  # fmt: skip

    def rows_of(self, wanted: NDArray[np.bool_], after: I64Array) -> I64Array:
        """Living rows of these groups whose serial number is above their group's entry in `after`."""
        out = np.empty(self.touched_blocks * self.block_rows, np.int64)
        serials = (self.order, self._lanes, 0) if self._lanes else (self.meta, 4, PLACE)
        least = int(after[wanted].min()) if wanted.any() else 0
        count = scanning.rows_of_groups(wanted, after, self.block_rows, self.touched_blocks, self.meta, *serials,
                                        self.groups, self.fill, self.serial, least, out)  # fmt: skip
        return out[:count]

    def kill(self, rows: I64Array) -> None:
        """These rows match nothing any more."""
        scanning.kill(rows, self.meta)

    def kill_groups(self, wanted: NDArray[np.bool_]) -> None:
        """No row of these groups matches anything any more."""
        scanning.kill_groups(wanted, self.block_rows, self.touched_blocks, self.meta, self.groups, self.fill)

    def mark_matched(self, rows: I64Array) -> I64Array:
        """Set the matched flag; where in `rows` it was new, each row once."""
        out = np.empty(rows.size, np.int64)
        return out[: scanning.mark(rows, MATCHED, self.flags, out)]

    # --- rows out

    def lane(self, at: I64Array, lane: int) -> I64Array:
        """Words, times or places of these rows."""
        out = empty(at.size, np.int64)
        packing.read_back(self.meta, at, lane, out)
        return out

    def clocks(self, at: I64Array) -> I64Array:
        """What the window measures these rows by: their times (DEAD for dead rows), or counts."""
        times = self.lane(at, TIME)
        if self._clock_lane is None:
            return times
        return np.where(times == DEAD, DEAD, self.order.reshape(-1, self._lanes)[at, self._clock_lane])

    def read(self, at: I64Array) -> tuple[TupleBatch, NDArray[np.uint16], NDArray[np.uint8]]:
        """These rows as a batch again, with their groups and flags."""
        columns = [self.column(number, at) for number in range(len(self.layout.fields))]
        flags = self.flags[at]
        keyless = (flags & KEYLESS) != 0
        words = self.lane(at, WORD)
        batch = TupleBatch(
            stream=self.layout.stream,
            times=self.lane(at, TIME),
            hashes=self.hashes(at),
            words=words,
            keyed=~keyless if keyless.any() else None,
            places=self.lane(at, PLACE),
            rows=pa.RecordBatch.from_arrays(columns, schema=self.layout.schema),
            order=self.order_of(at) if self._lanes else None,
        )
        return batch, self.groups[at], flags

    def hashes(self, at: I64Array) -> NDArray[np.uint64]:
        """The hashes that these rows came with: told by their words, and one for all without a key."""
        known = self.layout.hashes(self.lane(at, WORD))
        return np.where((self.flags[at] & KEYLESS) != 0, NULL_HASH, known)

    def order_of(self, at: I64Array) -> Order:
        """Ranks and counts of these rows (queries with count windows)."""
        lanes = self.order.reshape(-1, self._lanes)[at]
        return Order(np.ascontiguousarray(lanes[:, 0]), np.ascontiguousarray(lanes[:, 1:]))

    def column(self, number: int, at: I64Array, lanes: Lanes | None = None) -> pa.Array:
        """One column of these rows, as it came; `lanes` gives their words and times to who knows them already."""
        field = self.layout.fields[number]
        validity, nulls = self._validity(number, field, at)
        if field.home in (Home.TIME, Home.WORD):
            lane = TIME if field.home is Home.TIME else WORD
            values = self.lane(at, lane) if lanes is None else lanes(lane)
            return _from_words(values // field.scale if field.scale != 1 else values, field.type, validity, nulls)
        if field.home is Home.HEAP and self.heap is not None:
            return self.heap.read(self._packed.view(np.int64), at, self.layout.stride // 8, field, validity, nulls)
        stride, offset, width = self.layout.stride, field.offset, field.width
        if width % 8 == 0:
            wide = empty(at.size * width // 8, np.uint64)
            packing.unpack_words(self._packed.view(np.uint64), at, stride // 8, offset // 8, width // 8, wide)
            return pa.Array.from_buffers(field.type, at.size, [validity, pa.py_buffer(wide)], nulls)
        narrow = empty(at.size * width, np.uint8)
        packing.unpack_bytes(self._packed, at, stride, offset, width, narrow)
        data = np.packbits(narrow, bitorder="little") if pa.types.is_boolean(field.type) else narrow
        return pa.Array.from_buffers(field.type, at.size, [validity, pa.py_buffer(data)], nulls)

    def _validity(self, number: int, field: Field, at: I64Array) -> tuple[pa.Buffer | None, int]:
        if self._nulls is None or field.home is Home.TIME:
            return None, 0
        valid = np.empty(at.size, np.bool_)
        nulls = packing.get_nulls(self._nulls, at, len(self.layout.fields), number, valid)
        return (pa.py_buffer(np.packbits(valid, bitorder="little")), nulls) if nulls else (None, 0)

    def heap_bytes(self, at: I64Array) -> int:
        """Bytes of the longest text column of these rows: what must fit one Arrow array."""
        if self.heap is None:
            return 0
        packed = self._packed.view(np.int64).reshape(-1, self.layout.stride // 8)
        sizes = [
            int(packed[at, field.offset // 8 + 1].sum()) for field in self.layout.fields if field.home is Home.HEAP
        ]
        return max(sizes, default=0)


def _bytes_of(column: pa.Array, width: int) -> NDArray[np.uint8]:
    """The values of a fixed-width column as plain bytes, aligned for 8-byte copies."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    buffer = column.buffers()[1]
    if buffer is None or len(column) == 0:
        return readonly(np.zeros(len(column) * width, np.uint8))
    raw = np.frombuffer(buffer, np.uint8)[column.offset * width : (column.offset + len(column)) * width]
    return readonly(raw if width % 8 or raw.ctypes.data % 8 == 0 else raw.copy())


def _from_words(values: I64Array, kind: pa.DataType, validity: pa.Buffer | None, nulls: int) -> pa.Array:
    """int64 values back in a column's own type (which they came from, so nothing is lost)."""
    if pa.types.is_boolean(kind):
        buffer = pa.py_buffer(np.packbits(values.astype(np.bool_), bitorder="little"))
    else:
        sign = "u" if pa.types.is_unsigned_integer(kind) else "i"
        buffer = pa.py_buffer(values.astype(f"{sign}{kind.bit_width // 8}", copy=False))
    return pa.Array.from_buffers(kind, values.size, [validity, buffer], nulls)
