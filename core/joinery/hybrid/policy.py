"""What the hybrid join decides: what waits, what is read, what stays in memory (thesis 6.3.3-6.3.5, algorithms 8, 9).

The rules are small compiled functions over flat arrays, a cell per *unit* (a segment as one version of the relation
wrote it). The join (`hybrid`) and the simulation (`replay`) call the same ones, row by row as the algorithm prints it.

Rule 1, arrival frequency: a row of unit k adds 1 to C_k; after every tau rows all are multiplied by alpha. Just after
the e-th epoch that is the thesis' C <- alpha (C + c). Epochs are counted in rows, so that a replay decides the same.
Rule 2, waiting: rows whose segment is not in memory take blocks of a shared pool; so do, in block mode, rows whose
segment is there, until their head block is full: then the block is joined and emptied.
Rule 3, probing: with the input empty the largest unit is read if at least N_invoke wait for it; with the pool full
units are read in descending size until more than r_wb of it is free. What is being read counts as free.
Rule 4, loading: a segment that was read stays if it fits in free memory, else in place of one victim m with
C_i >= |P_i| / |P_m| (1 + rho) C_m (6.1) and free + |P_m| >= |P_i| (6.2); of several the one with the least C_m / |P_m|.
Rule 5, granularity: block mode above H_mark of input, tuple mode below L_mark; going back, blocks of segments in
memory are joined and emptied.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

I64Array = NDArray[np.int64]
I32Array = NDArray[np.int32]
F64Array = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

TUPLE: Final = 0
BLOCK: Final = 1

USED: Final = 0
"""Blocks of the pool that hold waiting rows of units that are not being read."""
FREE: Final = 1
"""Bytes of join memory without a segment."""
MODE: Final = 2
EPOCH: Final = 3
"""Rows since the last decay."""
DUE: Final = 4
"""Units with at least N_invoke waiting rows that are not being read."""
TOTALS: Final = 5

NOT_KEPT: Final = -2
KEPT: Final = -1


class Rules(NamedTuple):
    """The parameters of table 6.1, in rows, blocks and bytes."""

    block_bytes: int
    pool_blocks: int
    free_blocks: float
    """r_wb of the pool."""
    invoke_rows: int
    alpha: float
    epoch_rows: int
    rho: float
    high_bytes: int
    low_bytes: int


class Units(NamedTuple):
    """A cell per unit, and the totals."""

    rows: I64Array
    """Waiting."""
    weight: I64Array
    """Bytes of the waiting rows."""
    blocks: I64Array
    oldest: I64Array
    """When the first of the waiting rows came, ns."""
    frequency: F64Array
    size: I64Array
    """Bytes of the segment."""
    held: BoolArray
    """In memory."""
    asked: BoolArray
    """Being read."""
    totals: I64Array


def no_units(capacity: int, memory_bytes: int) -> Units:
    """Cells for so many units, nothing in memory."""
    totals = np.zeros(TOTALS, np.int64)
    totals[FREE] = memory_bytes
    rows, weight, blocks, oldest, size = (np.zeros(capacity, np.int64) for _ in range(5))
    held, asked = (np.zeros(capacity, np.bool_) for _ in range(2))
    return Units(rows, weight, blocks, oldest, np.zeros(capacity, np.float64), size, held, asked, totals)


def grown(units: Units, capacity: int) -> Units:
    """The same with room for more units."""
    new = no_units(capacity, 0)
    for old_cells, cells in zip(units[:-1], new[:-1], strict=True):
        cells[: old_cells.size] = old_cells
    return new._replace(totals=units.totals)


@njit(cache=True, nogil=True)
def note_arrival(units: Units, rules: Rules, unit: int) -> None:
    """Rule 1."""
    units.frequency[unit] += 1.0
    units.totals[EPOCH] += 1
    if units.totals[EPOCH] >= rules.epoch_rows:
        units.totals[EPOCH] = 0
        for k in range(units.frequency.size):
            units.frequency[k] *= rules.alpha


@njit(cache=True, nogil=True)
def put(units: Units, rules: Rules, unit: int, size: int, now: int) -> bool:
    """Rule 2: one more waiting row; whether it has filled a block."""
    if units.rows[unit] == 0:
        units.oldest[unit] = now
    units.rows[unit] += 1
    before, blocks, block = units.blocks[unit], units.blocks[unit], rules.block_bytes
    weight = units.weight[unit] + size
    full_before = before if before * block == units.weight[unit] else before - 1
    while blocks * block < weight:  # no division: this is done for every row
        blocks += 1
    full = blocks if blocks * block == weight else blocks - 1
    units.weight[unit] = weight
    if not units.asked[unit]:
        units.totals[USED] += blocks - before
        if units.rows[unit] == rules.invoke_rows:
            units.totals[DUE] += 1
    units.blocks[unit] = blocks
    return bool(full > full_before)


@njit(cache=True, nogil=True)
def empty(units: Units, rules: Rules, unit: int) -> None:
    """The waiting rows of a unit have been joined."""
    if not units.asked[unit]:
        units.totals[USED] -= units.blocks[unit]
        if units.rows[unit] >= rules.invoke_rows:
            units.totals[DUE] -= 1
    units.asked[unit] = False
    units.rows[unit], units.weight[unit], units.blocks[unit], units.oldest[unit] = 0, 0, 0, 0


@njit(cache=True, nogil=True)
def ask(units: Units, rules: Rules, unit: int) -> None:
    """A unit is being read from now on: its blocks count as free."""
    if not units.asked[unit]:
        units.asked[unit] = True
        units.totals[USED] -= units.blocks[unit]
        if units.rows[unit] >= rules.invoke_rows:
            units.totals[DUE] -= 1


@njit(cache=True, nogil=True)
def largest(units: Units) -> int:
    """The unit with the most waiting rows that is not being read; -1: nobody waits."""
    best = -1
    for k in range(units.rows.size):
        if units.rows[k] > 0 and not units.asked[k] and (best < 0 or units.rows[k] > units.rows[best]):
            best = k
    return best


@njit(cache=True, nogil=True)
def most_delayed(units: Units, now: int) -> int:
    """As `largest`, but the most of rows times the wait of the first of them: nobody is passed over for ever (ours)."""
    best, most = -1, -1.0
    for k in range(units.rows.size):
        if units.rows[k] > 0 and not units.asked[k]:
            delay = units.rows[k] * (1.0 + max(0, now - units.oldest[k]))
            if delay > most:
                best, most = k, delay
    return best


@njit(cache=True, nogil=True)
def is_full(units: Units, rules: Rules) -> bool:
    """Rule 3: no block is left."""
    return bool(units.totals[USED] >= rules.pool_blocks)


@njit(cache=True, nogil=True)
def has_room(units: Units, rules: Rules) -> bool:
    """Rule 3: enough of the pool is free again."""
    return bool(rules.pool_blocks - units.totals[USED] > rules.free_blocks)


@njit(cache=True, nogil=True)
def keep(units: Units, rules: Rules, unit: int) -> int:
    """Rule 4, with its effect on memory: KEPT, NOT_KEPT, or the victim that left for it."""
    if units.held[unit]:
        return KEPT
    size, free = units.size[unit], units.totals[FREE]
    victim = NOT_KEPT
    if size <= free:
        victim = KEPT
    else:
        for m in range(units.held.size):
            if not units.held[m] or free + units.size[m] < size:
                continue
            if units.frequency[unit] * units.size[m] < size * (1.0 + rules.rho) * units.frequency[m]:
                continue
            if victim < 0 or (units.frequency[m] * units.size[victim] < units.frequency[victim] * units.size[m]):
                victim = m
    if victim != NOT_KEPT:
        if victim >= 0:
            release(units, victim)
        units.held[unit] = True
        units.totals[FREE] -= size
    return victim


@njit(cache=True, nogil=True)
def release(units: Units, unit: int) -> None:
    """A segment leaves memory."""
    if units.held[unit]:
        units.held[unit] = False
        units.totals[FREE] += units.size[unit]


@njit(cache=True, nogil=True)
def switch(units: Units, rules: Rules, backlog_bytes: int) -> bool:
    """Rule 5; whether it went back to tuple mode, so that blocks of segments in memory must be joined."""
    if units.totals[MODE] == BLOCK and backlog_bytes < rules.low_bytes:
        units.totals[MODE] = TUPLE
        return True
    if units.totals[MODE] == TUPLE and backlog_bytes > rules.high_bytes:
        units.totals[MODE] = BLOCK
    return False


@njit(cache=True, nogil=True)
def admit(
    units: Units, rules: Rules, of: I32Array, sizes: I64Array, begin: int, backlog_bytes: int, now: int,
    joined: I64Array,
) -> tuple[int, int]:  # fmt: skip
    """Rows of a batch from `begin` on, until the pool is full; the row to go on with, and the bytes behind it.

    `backlog_bytes`: of the input from `begin` on. joined[k], first -1, becomes the last row up to which every row of
    unit k, waiting or of this batch, is to be joined with its segment in memory. Units below 0 are passed over.
    """
    frequency, held, totals = units.frequency, units.held, units.totals
    mode, epoch = totals[MODE], totals[EPOCH]  # as `note_arrival` and `switch` keep them; read once, not for every row
    for i in range(begin, of.size):
        unit = of[i]
        backlog_bytes -= sizes[i]
        may_be_full = i == begin
        if unit >= 0:
            frequency[unit] += 1.0
            epoch += 1
            if epoch >= rules.epoch_rows:
                epoch = 0
                for k in range(frequency.size):
                    frequency[k] *= rules.alpha
            if held[unit] and mode == TUPLE:
                joined[unit] = i
            else:
                may_be_full = True
                if put(units, rules, unit, sizes[i], now) and held[unit]:
                    empty(units, rules, unit)
                    joined[unit] = i
        if mode == BLOCK:
            if backlog_bytes < rules.low_bytes:
                mode = TUPLE
                for k in range(held.size):
                    if held[k] and units.rows[k] > 0:
                        empty(units, rules, k)
                        joined[k] = i
        elif backlog_bytes > rules.high_bytes:
            mode = BLOCK
        if may_be_full and is_full(units, rules):
            totals[MODE], totals[EPOCH] = mode, epoch
            return i + 1, backlog_bytes
    totals[MODE], totals[EPOCH] = mode, epoch
    return of.size, backlog_bytes


@njit(cache=True, nogil=True)
def put_all(units: Units, rules: Rules, of: I32Array, sizes: I64Array, since: I64Array) -> None:
    """Count rows that already waited, in the order in which they came."""
    for i in range(of.size):
        put(units, rules, of[i], sizes[i], since[i])
