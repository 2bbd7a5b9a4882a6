"""Texts and binaries of stored rows: a chain of chunks per block, so that they go when their block goes.

A value may run over the end of a chunk into the next one of its block. Nothing is ever moved or counted row by row.
"""

import numpy as np
import pyarrow as pa

from joinery.model.errors import require
from joinery.model.tuples import I64Array
from joinery.model.views import readonly
from joinery.window import packing
from joinery.window.arrays import empty, grown
from joinery.window.layout import Field


class Heap:
    """Bytes of variable length that belong to blocks of rows."""

    def __init__(self, block_rows: int) -> None:
        self._block_rows = block_rows
        self._chunk_bytes = max(512, 8 * block_rows)
        self._bytes = np.empty(0, np.uint8)
        self._next = np.empty(0, np.int32)
        self._free = np.empty(0, np.int32)
        self._free_count = 0
        self._last = np.empty(0, np.int32)
        self._fill = np.empty(0, np.int64)

    def grow_blocks(self, blocks: int) -> None:
        """Make room for the books of more blocks."""
        last, fill = np.full(blocks, -1, np.int32), np.zeros(blocks, np.int64)
        last[: self._last.size], fill[: self._fill.size] = self._last, self._fill
        self._last, self._fill = last, fill

    def write(self, column: pa.Array, source: I64Array, to: I64Array, rows: I64Array, stride: int, offset: int) -> None:
        """Append the values of the source rows to the heaps of the blocks of `to`."""
        ends = column.offset + len(column) + 1
        starts = np.frombuffer(column.buffers()[1], np.int32, count=ends)[column.offset :].astype(np.int64)
        data = column.buffers()[2]
        raw = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
        blocks_touched = np.unique(to // self._block_rows).size
        self._reserve(int((starts[source + 1] - starts[source]).sum()) // self._chunk_bytes + 2 * blocks_touched + 1)
        self._free_count = packing.write_heap(
            readonly(raw), starts, source, to, self._block_rows, rows, stride, offset,
            self._bytes, self._chunk_bytes, self._next, self._last, self._fill, self._free, self._free_count,
        )  # fmt: skip

    def read(
        self, rows: I64Array, at: I64Array, stride: int, field: Field, validity: pa.Buffer | None, nulls: int
    ) -> pa.Array:
        """A text or binary column of these rows."""
        offsets = empty(at.size + 1, np.int32)
        total = packing.heap_lengths(rows, at, stride, field.offset // 8, offsets)
        require(total >= 0, "texts of one part exceed 2 GiB; parts must be cut smaller")
        data = empty(total, np.uint8)
        packing.read_heap(rows, at, stride, field.offset // 8, self._bytes, self._chunk_bytes, self._next, data)
        return pa.Array.from_buffers(field.type, at.size, [validity, pa.py_buffer(offsets), pa.py_buffer(data)], nulls)

    def free(self, block: int) -> None:
        """Give back all chunks of a block."""
        self._free_count = packing.free_heap(block, self._next, self._last, self._free, self._free_count)

    def bytes_held(self) -> int:
        return int(self._bytes.size)

    def _reserve(self, chunks: int) -> None:
        if self._free_count >= chunks:
            return
        held = self._next.size
        total = max(2 * held, held + chunks - self._free_count, 64)
        self._bytes = grown(self._bytes, total * self._chunk_bytes)
        self._next = grown(self._next, total)
        free = np.empty(total, np.int32)
        free[: total - held] = np.arange(total - 1, held - 1, -1)
        free[total - held : total - held + self._free_count] = self._free[: self._free_count]
        self._free, self._free_count = free, total - held + self._free_count
