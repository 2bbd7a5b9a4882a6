"""Kernels that move columns into packed rows and back: flat arrays in, flat arrays out, no object, no allocation.

`to` and `at` are row numbers of the arena; `order` says which source row goes there.
"""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from joinery.window.prefetch import prefetch

I64Array = NDArray[np.int64]
U64Array = NDArray[np.uint64]
_AHEAD: Final = 16
"""Rows asked for before they are read: where stored rows stand, the cache has no idea."""
Bytes = NDArray[np.uint8]


@njit(cache=True, nogil=True)
def pack_words(
    source: U64Array, order: I64Array, to: I64Array, rows: U64Array, stride: int, offset: int, width: int
) -> None:
    """Columns whose width is a multiple of 8: copied by 8 bytes (all three measures in words)."""
    for i in range(to.size):
        into, out_of = to[i] * stride + offset, order[i] * width
        for k in range(width):
            rows[into + k] = source[out_of + k]


@njit(cache=True, nogil=True)
def pack_bytes(source: Bytes, order: I64Array, to: I64Array, rows: Bytes, stride: int, offset: int, width: int) -> None:
    """Columns of any width, byte by byte."""
    for i in range(to.size):
        into, out_of = to[i] * stride + offset, order[i] * width
        for k in range(width):
            rows[into + k] = source[out_of + k]


@njit(cache=True, nogil=True)
def unpack_words(rows: U64Array, at: I64Array, stride: int, offset: int, width: int, out: U64Array) -> None:
    """The way back of `pack_words`; unrolled by hand, because the compiler does not know how short a row is."""
    fours, two, one = width // 4 * 4, width & 2, width & 1
    into = 0
    for i in range(at.size):
        if i + _AHEAD < at.size:
            prefetch(rows, at[i + _AHEAD] * stride + offset)
            prefetch(rows, at[i + _AHEAD] * stride + offset + width - 1)
        k = at[i] * stride + offset
        end = k + fours
        while k < end:
            out[into], out[into + 1], out[into + 2], out[into + 3] = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
            k, into = k + 4, into + 4
        if two:
            out[into], out[into + 1] = rows[k], rows[k + 1]
            k, into = k + 2, into + 2
        if one:
            out[into] = rows[k]
            into += 1


@njit(cache=True, nogil=True)
def unpack_bytes(rows: Bytes, at: I64Array, stride: int, offset: int, width: int, out: Bytes) -> None:
    """The way back of `pack_bytes`."""
    for i in range(at.size):
        if i + _AHEAD < at.size:
            prefetch(rows, at[i + _AHEAD] * stride + offset)
        out_of, into = at[i] * stride + offset, i * width
        for k in range(width):
            out[into + k] = rows[out_of + k]


@njit(cache=True, nogil=True)
def read_back(meta: I64Array, at: I64Array, lane: int, out: I64Array) -> None:
    """One lane of the rows' meta words: 0 word, 1 time, 2 place."""
    for i in range(at.size):
        if i + _AHEAD < at.size:
            prefetch(meta, 4 * at[i + _AHEAD] + lane)
        out[i] = meta[4 * at[i] + lane]


@njit(cache=True, nogil=True)
def write_heap(
    data: Bytes, starts: I64Array, order: I64Array, to: I64Array, block_rows: int,
    rows: I64Array, stride: int, offset: int,
    heap: Bytes, chunk_bytes: int, next_chunk: NDArray[np.int32], last_chunk: NDArray[np.int32], fill: I64Array,
    free: NDArray[np.int32], free_count: int,
) -> int:  # fmt: skip
    """Append texts to the heap of their rows' blocks (a chain of chunks per block); returns the free chunks left."""
    for i in range(to.size):
        block = to[i] // block_rows
        begin, end = starts[order[i]], starts[order[i] + 1]
        rows[to[i] * stride + offset + 1] = end - begin
        if last_chunk[block] < 0 or fill[block] == chunk_bytes:
            free_count = _next_chunk(block, next_chunk, last_chunk, fill, free, free_count)
        rows[to[i] * stride + offset] = np.int64(last_chunk[block]) * chunk_bytes + fill[block]
        while begin < end:
            if fill[block] == chunk_bytes:
                free_count = _next_chunk(block, next_chunk, last_chunk, fill, free, free_count)
            count = min(end - begin, chunk_bytes - fill[block])
            into = np.int64(last_chunk[block]) * chunk_bytes + fill[block]
            for k in range(count):
                heap[into + k] = data[begin + k]
            fill[block] += count
            begin += count
    return free_count


@njit(cache=True, nogil=True)
def _next_chunk(
    block: int, next_chunk: NDArray[np.int32], last_chunk: NDArray[np.int32], fill: I64Array,
    free: NDArray[np.int32], free_count: int,
) -> int:  # fmt: skip
    """Hang a free chunk behind the block's last one. A block's chunks form a ring: last → first → ... → last."""
    chunk = free[free_count - 1]
    if last_chunk[block] < 0:
        next_chunk[chunk] = chunk
    else:
        next_chunk[chunk] = next_chunk[last_chunk[block]]
        next_chunk[last_chunk[block]] = chunk
    last_chunk[block] = chunk
    fill[block] = 0
    return free_count - 1


@njit(cache=True, nogil=True)
def heap_lengths(rows: I64Array, at: I64Array, stride: int, offset: int, out: NDArray[np.int32]) -> int:
    """Offsets of an Arrow text column for these rows; returns the bytes it will hold, or -1 if they do not fit one."""
    total = 0
    out[0] = 0
    for i in range(at.size):
        total += rows[at[i] * stride + offset + 1]
        if total > 2**31 - 1:
            return -1
        out[i + 1] = total
    return total


@njit(cache=True, nogil=True)
def read_heap(
    rows: I64Array, at: I64Array, stride: int, offset: int,
    heap: Bytes, chunk_bytes: int, next_chunk: NDArray[np.int32], out: Bytes,
) -> None:  # fmt: skip
    """The bytes of these rows' texts, one after the other."""
    into = 0
    for i in range(at.size):
        address = rows[at[i] * stride + offset]
        left = rows[at[i] * stride + offset + 1]
        while left > 0:
            chunk, inside = address // chunk_bytes, address % chunk_bytes
            count = min(left, chunk_bytes - inside)
            for k in range(count):
                out[into + k] = heap[address + k]
            into += count
            left -= count
            address = np.int64(next_chunk[chunk]) * chunk_bytes


@njit(cache=True, nogil=True)
def free_heap(
    block: int, next_chunk: NDArray[np.int32], last_chunk: NDArray[np.int32], free: NDArray[np.int32], free_count: int
) -> int:
    """Give back the chunks of a block; returns the free chunks there are now."""
    last = last_chunk[block]
    if last >= 0:
        chunk = next_chunk[last]
        while True:
            following = next_chunk[chunk]
            free[free_count] = chunk
            free_count += 1
            if chunk == last:
                break
            chunk = following
        last_chunk[block] = -1
    return free_count


@njit(cache=True, nogil=True)
def set_nulls(mask: NDArray[np.bool_], order: I64Array, to: I64Array, nulls: Bytes, columns: int, column: int) -> None:
    """Which of these rows have a null in the column."""
    for i in range(to.size):
        nulls[to[i] * columns + column] = mask[order[i]]


@njit(cache=True, nogil=True)
def get_nulls(nulls: Bytes, at: I64Array, columns: int, column: int, out: NDArray[np.bool_]) -> int:
    """Validity of one column for these rows; returns how many are null."""
    count = 0
    for i in range(at.size):
        out[i] = nulls[at[i] * columns + column] == 0
        count += nulls[at[i] * columns + column]
    return count
