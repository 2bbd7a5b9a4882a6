"""Kernels over the blocks of a store: writing meta words, finding rows to close, to kill, to take along.

Each passes over the blocks' books first (fill, oldest, newest, serial) and looks into the rows of a block only if
they can hold what is sought.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from joinery.model.time import DEAD

I64Array = NDArray[np.int64]


@njit(cache=True, nogil=True)
def write_meta(
    to: I64Array, source: I64Array, words: I64Array, times: I64Array, places: I64Array,
    clocks: I64Array, serials: I64Array, groups: NDArray[np.uint16], flags: NDArray[np.uint8], block_rows: int,
    meta: I64Array, row_groups: NDArray[np.uint16], row_flags: NDArray[np.uint8],
    fill: NDArray[np.int32], oldest: I64Array, newest: I64Array, serial: I64Array,
) -> None:  # fmt: skip
    """Meta words, group and flags of new rows, and the books of their blocks."""
    block, first, end = 0, 0, 0
    for i in range(to.size):
        row, s = to[i], source[i]
        if row < first or row >= end:  # rows come in runs: divide once per run, not per row
            block = row // block_rows
            first, end = block * block_rows, (block + 1) * block_rows
        clock = clocks[s]
        meta[4 * row], meta[4 * row + 1], meta[4 * row + 2], meta[4 * row + 3] = words[s], times[s], places[s], -1
        row_groups[row], row_flags[row] = groups[s], flags[s]
        if fill[block] == 0:
            oldest[block], newest[block], serial[block] = clock, clock, serials[s]
        else:
            oldest[block], newest[block] = min(oldest[block], clock), max(newest[block], clock)
            serial[block] = max(serial[block], serials[s])
        fill[block] = max(fill[block], row - first + 1)


@njit(cache=True, nogil=True)
def rows_before(
    before: int, wanted: NDArray[np.bool_], without: int, block_rows: int, top: int,
    meta: I64Array, clocks: I64Array, lanes: int, lane: int, groups: NDArray[np.uint16], flags: NDArray[np.uint8],
    fill: NDArray[np.int32], oldest: I64Array, out: I64Array,
) -> int:  # fmt: skip
    """Living rows of the wanted groups whose clock is below `before`; their number.

    Those with a flag of `without` die at once and are not told; the others are the caller's to tell and to kill.
    Books what is left: a block's oldest clock rises past all of them, so that they are not looked at again.
    """
    count = 0
    for block in range(top):
        if fill[block] == 0 or oldest[block] >= before:
            continue
        left = np.int64(2**63 - 1)
        for row in range(block * block_rows, block * block_rows + fill[block]):
            if meta[4 * row + 1] == DEAD:
                continue
            clock = clocks[lanes * row + lane]
            if clock >= before or not wanted[groups[row]]:
                left = min(left, clock)
            elif flags[row] & without == 0:
                out[count] = row
                count += 1
            else:
                meta[4 * row + 1] = DEAD
        oldest[block] = left
    return count


@njit(cache=True, nogil=True)
def count_living(
    before: int,
    block_rows: int,
    top: int,
    meta: I64Array,
    clocks: I64Array,
    lanes: int,
    lane: int,
    fill: NDArray[np.int32],
) -> int:
    """Rows that are not dead and whose clock is not below `before`."""
    count = 0
    for block in range(top):
        for row in range(block * block_rows, block * block_rows + fill[block]):
            count += meta[4 * row + 1] != DEAD and clocks[lanes * row + lane] >= before
    return count


@njit(cache=True, nogil=True)
def rebook(
    block_rows: int, top: int, meta: I64Array, clocks: I64Array, lanes: int, lane: int,
    fill: NDArray[np.int32], oldest: I64Array, newest: I64Array,
) -> None:  # fmt: skip
    """The oldest and newest clock of every block's living rows, by another clock."""
    for block in range(top):
        oldest[block], newest[block] = np.int64(2**63 - 1), DEAD
        for row in range(block * block_rows, block * block_rows + fill[block]):
            if meta[4 * row + 1] != DEAD:
                clock = clocks[lanes * row + lane]
                oldest[block], newest[block] = min(oldest[block], clock), max(newest[block], clock)


@njit(cache=True, nogil=True)
def count_groups(
    closed: I64Array, block_rows: int, top: int, meta: I64Array, clocks: I64Array, lanes: int, lane: int,
    groups: NDArray[np.uint16], fill: NDArray[np.int32], counts: I64Array,
) -> np.int64:  # fmt: skip
    """Add how many living rows each group has.

    Returns the smallest time of those that have not closed by their group's clock, 2**63 - 1 if there is none.
    """
    oldest = np.int64(2**63 - 1)
    for block in range(top):
        for row in range(block * block_rows, block * block_rows + fill[block]):
            time = meta[4 * row + 1]
            if time != DEAD:
                counts[groups[row]] += 1
                if time < oldest and clocks[lanes * row + lane] >= closed[groups[row]]:
                    oldest = time
    return oldest


@njit(cache=True, nogil=True)
def rows_of_groups(
    wanted: NDArray[np.bool_], after: I64Array, block_rows: int, top: int,
    meta: I64Array, serials: I64Array, lanes: int, lane: int, groups: NDArray[np.uint16],
    fill: NDArray[np.int32], block_serial: I64Array, least: int, out: I64Array,
) -> int:  # fmt: skip
    """Living rows of the wanted groups whose serial is above their group's `after`; their number."""
    count = 0
    for block in range(top):
        if fill[block] == 0 or block_serial[block] <= least:
            continue
        for row in range(block * block_rows, block * block_rows + fill[block]):
            if not wanted[groups[row]] or meta[4 * row + 1] == DEAD:  # groups lie close together, words do not
                continue
            if serials[lanes * row + lane] > after[groups[row]]:
                out[count] = row
                count += 1
    return count


@njit(cache=True, nogil=True)
def kill_groups(
    wanted: NDArray[np.bool_], block_rows: int, top: int, meta: I64Array, groups: NDArray[np.uint16],
    fill: NDArray[np.int32],
) -> None:  # fmt: skip
    """All rows of these groups match nothing any more."""
    for block in range(top):
        for row in range(block * block_rows, block * block_rows + fill[block]):
            if wanted[groups[row]]:
                meta[4 * row + 1] = DEAD


@njit(cache=True, nogil=True)
def kill(rows: I64Array, meta: I64Array) -> None:
    """These rows match nothing any more; their memory goes with their block."""
    for i in range(rows.size):
        meta[4 * rows[i] + 1] = DEAD


@njit(cache=True, nogil=True)
def mark(rows: I64Array, flag: int, flags: NDArray[np.uint8], out: I64Array) -> int:
    """Set a flag; `out` gets the places in `rows` where it was not yet set, each row once."""
    count = 0
    for i in range(rows.size):
        if flags[rows[i]] & flag == 0:
            flags[rows[i]] |= flag
            out[count] = i
            count += 1
    return count
