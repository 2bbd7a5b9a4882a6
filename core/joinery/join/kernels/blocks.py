"""Kernels of the `nested-loop` method: chains of blocks per mini-group, oldest block first, the head block last."""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from joinery.join.kernels.found import Found

I64Array = NDArray[np.int64]
I32Array = NDArray[np.int32]

FRESH_ROWS: Final = 64
"""Fresh tuples that pass over a block together; with the block they stay in the nearest cache."""


class Chains(NamedTuple):
    """The blocks of one stream: a chain per mini-group."""

    first: I32Array
    last: I32Array
    """Per mini-group: its oldest block and its head block; -1: none."""
    following: I32Array
    owner: I32Array
    """Per block: the next newer one, and the mini-group that it belongs to."""


@njit(cache=True, nogil=True)
def mini_groups(
    groups: NDArray[np.uint16],
    hashes: NDArray[np.uint64],
    start: I64Array,
    mask: I64Array,
    entries: I32Array,
    out: I32Array,
) -> None:
    """The mini-group of each row: its group's directory, entered with the low bits of the hash."""
    for i in range(out.size):
        group = groups[i]
        out[i] = entries[start[group] + np.int64(hashes[i] & np.uint64(mask[group]))]


@njit(cache=True, nogil=True)
def blocks_needed(sorted_minis: I32Array, last: I32Array, fill: I32Array, block_rows: int) -> int:
    """New blocks that rows (ordered by mini-group) need beyond what is free in the head blocks."""
    needed, i = 0, 0
    while i < sorted_minis.size:
        mini, run = sorted_minis[i], i
        while run < sorted_minis.size and sorted_minis[run] == mini:
            run += 1
        room = block_rows - fill[last[mini]] if last[mini] >= 0 else 0
        needed += max(0, (run - i - room + block_rows - 1) // block_rows)
        i = run
    return needed


@njit(cache=True, nogil=True)
def place(
    sorted_minis: I32Array, chains: Chains, fill: I32Array, block_rows: int, fresh_blocks: I32Array, out: I64Array
) -> None:
    """Row numbers for rows ordered by mini-group: the head block of each is filled, then a new one becomes its head."""
    used, inside = 0, 0
    for i in range(sorted_minis.size):
        mini = sorted_minis[i]
        block = chains.last[mini]
        if i == 0 or sorted_minis[i - 1] != mini:
            inside = fill[block] if block >= 0 else block_rows
        if inside == block_rows:
            new = fresh_blocks[used]
            used += 1
            chains.owner[new], chains.following[new] = mini, -1
            if block < 0:
                chains.first[mini] = new
            else:
                chains.following[block] = new
            chains.last[mini], block, inside = new, new, 0
        out[i] = np.int64(block) * block_rows + inside
        inside += 1


@njit(cache=True, nogil=True)
def scan(
    words: I64Array, low: I64Array, high: I64Array, order: I64Array, minis: I32Array, begin: int, block: int,
    meta: I64Array, fill: I32Array, block_rows: int, chains: Chains, keyless: int, flags: NDArray[np.uint8],
    out: Found,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Block nested loops: fresh tuples (`order`: by mini-group), a head block at a time, over the other stream's.

    Stops when a further block might not fit the output; goes on where the answer (pairs, comparisons, next fresh tuple,
    its next block) says. Block -2: from the oldest.
    """
    count, comparisons, size = 0, 0, order.size
    while begin < size:
        mini, end = minis[begin], begin
        while end < size and end - begin < FRESH_ROWS and minis[end] == mini:
            end += 1
        if block == -2:
            block = chains.first[mini]
        while block >= 0:
            if count + (end - begin) * fill[block] > out.row.size:
                return count, comparisons, begin, block
            comparisons += (end - begin) * fill[block]
            for row in range(block * block_rows, block * block_rows + fill[block]):
                word, time = meta[4 * row], meta[4 * row + 1]
                for k in range(begin, end):
                    i = order[k]
                    if words[i] == word and low[i] <= time <= high[i] and flags[row] & keyless == 0:
                        out.probe[count], out.row[count] = i, row
                        out.time[count], out.place[count] = time, meta[4 * row + 2]
                        count += 1
            block = chains.following[block]
        begin, block = end, -2
    return count, comparisons, size, -2


@njit(cache=True, nogil=True)
def rows_of_chain(
    block: int, following: I32Array, fill: I32Array, block_rows: int, meta: I64Array, dead: int, out: I64Array
) -> int:
    """Living rows of a chain, oldest block first; their number."""
    count = 0
    while block >= 0:
        for row in range(block * block_rows, block * block_rows + fill[block]):
            if meta[4 * row + 1] != dead:
                out[count] = row
                count += 1
        block = following[block]
    return count


@njit(cache=True, nogil=True)
def unlink_past(before: int, minis: I32Array, chains: Chains, newest: I64Array, out: I32Array) -> int:
    """Take blocks whose newest tuple is past out of these chains; their number."""
    count = 0
    for mini in minis:
        kept, block = -1, chains.first[mini]
        chains.first[mini] = -1
        while block >= 0:
            following = chains.following[block]
            if newest[block] < before:
                out[count] = block
                count += 1
            else:
                if kept < 0:
                    chains.first[mini] = block
                else:
                    chains.following[kept] = block
                kept = block
            block = following
        chains.last[mini] = kept
        if kept >= 0:
            chains.following[kept] = -1
    return count
