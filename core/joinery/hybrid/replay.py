"""The hybrid joins under a virtual clock: arrivals in, delays, disk time and processor time out.

One processor and one disk that it waits for, as in the thesis. `replay_partitioned` is algorithm 8, row by row, with
the decisions of `policy`, the ones that the join itself takes; rows are counted and charged instead of joined.
`replay_mesh` is MESHJOIN, piece by piece. A row's weight is the number of its results, so that delays are means over
output tuples, as the thesis measures them.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from joinery.hybrid import policy
from joinery.hybrid.costs import R_BYTES, S_BYTES, HybridCosts, Work
from joinery.hybrid.policy import Rules, Units
from joinery.model.errors import require

I64Array = NDArray[np.int64]
I32Array = NDArray[np.int32]
F64Array = NDArray[np.float64]

SECOND: Final = 1_000_000_000

CLOCK, CPU, DISK, READS, OUTPUT, DELAY, PROCESSED, HOT, SUMS = range(9)
"""Places in the sums: the time, then what was measured since the start-up interval."""


class Trace(NamedTuple):
    """Stream rows: when they come, and how many results each has."""

    arrivals: I64Array
    """Nanoseconds, never falling."""
    keys: I64Array
    weights: F64Array


class _Waiting(NamedTuple):
    weight: F64Array
    moment: F64Array
    """Sum of weight x arrival."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What a run gave, from `start_ns` to `until_ns`."""

    delay_s: float
    """Mean over output tuples."""
    cpu_s: float
    disk_s: float
    reads: int
    processed: int
    """Stream rows that were joined with all that they match."""
    hot_share: float
    """Of the processed rows: joined without waiting for a read."""
    buffered: I64Array
    """Rows in the input buffer, at every second of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What is measured: a run of 0.8 hours after its first six minutes."""

    start_ns: int = 360 * SECOND
    until_ns: int = 2880 * SECOND


def replay_partitioned(
    trace: Trace, of: I32Array, sizes: I64Array, rules: Rules, memory_bytes: int, costs: HybridCosts, span: Span
) -> Replay:
    """Range- or hash-partitioned join; `of`: segment of each row, `sizes`: bytes of each segment."""
    require(of.size == trace.arrivals.size, f"{of.size} segments for {trace.arrivals.size} rows")
    units = policy.no_units(sizes.size, memory_bytes)
    units.size[:] = sizes
    waiting = _Waiting(np.zeros(sizes.size), np.zeros(sizes.size))
    sums, buffered = np.zeros(SUMS), np.zeros(span.until_ns // SECOND, np.int64)
    _partitioned(trace, of, units, rules, costs.work(), waiting, span.start_ns, span.until_ns, sums, buffered)
    return Replay(
        delay_s=sums[DELAY] / max(1.0, sums[OUTPUT]) / SECOND,
        cpu_s=sums[CPU] / SECOND,
        disk_s=sums[DISK] / SECOND,
        reads=int(sums[READS]),
        processed=int(sums[PROCESSED]),
        hot_share=sums[HOT] / max(1.0, sums[PROCESSED]),
        buffered=buffered,
    )


@njit(cache=True, nogil=True)
def _partitioned(
    trace: Trace, of: I32Array, units: Units, rules: Rules, work: Work, waiting: _Waiting, start: int, until: int,
    sums: F64Array, buffered: I64Array,
) -> None:  # fmt: skip
    """Algorithm 8."""
    taken, arrived, second, rows = 0, 0, 0, trace.arrivals.size
    while sums[CLOCK] < until:
        while arrived < rows and trace.arrivals[arrived] <= sums[CLOCK]:
            arrived += 1
        while second < buffered.size and second * 1e9 <= sums[CLOCK]:
            buffered[second] = arrived - taken
            second += 1
        if arrived == taken:
            if units.totals[policy.DUE] > 0:
                _probe(policy.largest(units), units, rules, work, waiting, start, sums)
            elif taken == rows:
                break
            else:
                sums[CLOCK] = max(sums[CLOCK], trace.arrivals[taken])
            continue
        _take(taken, trace, of[taken], units, rules, work, waiting, start, sums)
        taken += 1
        if policy.switch(units, rules, (arrived - taken) * S_BYTES):
            for k in range(units.held.size):
                if units.held[k] and units.rows[k] > 0:
                    _join_waiting(k, units, rules, work, waiting, start, sums)
        if policy.is_full(units, rules):
            while not policy.has_room(units, rules):
                _probe(policy.largest(units), units, rules, work, waiting, start, sums)


@njit(cache=True, nogil=True)
def _take(
    row: int, trace: Trace, unit: int, units: Units, rules: Rules, work: Work, waiting: _Waiting, start: int,
    sums: F64Array,
) -> None:  # fmt: skip
    """One row from the input: lines 8 to 26."""
    _spend(work.row_ns, CPU, start, sums)
    arrival, weight = trace.arrivals[row], trace.weights[row]
    if unit < 0:
        _count(1, True, 0.0, 0.0, start, sums)
        return
    policy.note_arrival(units, rules, unit)
    if units.held[unit] and units.totals[policy.MODE] == policy.TUPLE:
        _spend(units.size[unit] / R_BYTES * (work.fetch_ns + work.comparison_ns), CPU, start, sums)
        _count(1, True, weight, weight * arrival, start, sums)
        return
    waiting.weight[unit] += weight
    waiting.moment[unit] += weight * arrival
    is_filled = policy.put(units, rules, unit, S_BYTES, int(sums[CLOCK]))
    if is_filled and units.held[unit]:
        _join_waiting(unit, units, rules, work, waiting, start, sums)


@njit(cache=True, nogil=True)
def _probe(unit: int, units: Units, rules: Rules, work: Work, waiting: _Waiting, start: int, sums: F64Array) -> None:
    """Algorithm 9; a segment in memory need not be read."""
    if units.held[unit]:
        _join_waiting(unit, units, rules, work, waiting, start, sums)
        return
    size = units.size[unit]
    windows = (size + work.window_bytes - 1) // work.window_bytes
    _spend(windows * work.access_ns + size * work.byte_ns, DISK, start, sums)
    if sums[CLOCK] >= start:
        sums[READS] += 1
    _join_waiting(unit, units, rules, work, waiting, start, sums)
    victim = policy.keep(units, rules, unit)
    if victim >= 0 and units.rows[victim] > 0:
        _join_waiting(victim, units, rules, work, waiting, start, sums)


@njit(cache=True, nogil=True)
def _join_waiting(
    unit: int, units: Units, rules: Rules, work: Work, waiting: _Waiting, start: int, sums: F64Array
) -> None:
    """The waiting blocks of a unit: the segment is fetched once for each."""
    rows, relation = units.rows[unit], units.size[unit] / R_BYTES
    _spend(relation * (units.blocks[unit] * work.fetch_ns + rows * work.comparison_ns), CPU, start, sums)
    _count(rows, units.held[unit], waiting.weight[unit], waiting.moment[unit], start, sums)
    waiting.weight[unit], waiting.moment[unit] = 0.0, 0.0
    policy.empty(units, rules, unit)


@njit(cache=True, nogil=True)
def _spend(nanoseconds: float, what: int, start: int, sums: F64Array) -> None:
    sums[CLOCK] += nanoseconds
    if sums[CLOCK] >= start:
        sums[what] += nanoseconds


@njit(cache=True, nogil=True)
def _count(rows: int, is_hot: bool, weight: float, moment: float, start: int, sums: F64Array) -> None:
    if sums[CLOCK] >= start:
        sums[PROCESSED] += rows
        sums[HOT] += rows if is_hot else 0
        sums[OUTPUT] += weight
        sums[DELAY] += weight * sums[CLOCK] - moment


def replay_mesh(
    trace: Trace, relation_bytes: int, read_bytes: int, memory_bytes: int, buckets: int, costs: HybridCosts, span: Span
) -> Replay:
    """MESHJOIN; the matches of a row lie anywhere in the relation, so a row finds as many in each read of a cycle."""
    segments = relation_bytes // read_bytes
    piece = max(1, int((memory_bytes - read_bytes) / segments / S_BYTES))
    pieces = trace.arrivals.size // piece
    require(pieces > 0, f"{trace.arrivals.size} rows do not fill a piece of {piece}")
    last = trace.arrivals[piece - 1 :: piece][:pieces]
    queue = np.minimum(np.arange(1, pieces + 1), segments) * piece
    cpu = read_bytes / R_BYTES * queue / buckets * (costs.fetch_ns + costs.comparison_ns) + 2 * piece * costs.row_ns
    disk = np.full(pieces, costs.read_ns(read_bytes))
    done = _completions(last.astype(np.float64), cpu + disk)
    inside = (done >= span.start_ns) & (done < span.until_ns)
    delay, output = _mesh_delays(trace, piece, segments, done, inside)
    return Replay(
        delay_s=delay / max(1.0, output) / SECOND,
        cpu_s=float(cpu[inside].sum()) / SECOND,
        disk_s=float(disk[inside].sum()) / SECOND,
        reads=int(inside.sum()),
        processed=int(inside[segments - 1 :].sum()) * piece,
        hot_share=0.0,
        buffered=_mesh_buffered(trace.arrivals, done - cpu - disk, piece, span),
    )


def _mesh_delays(
    trace: Trace, piece: int, segments: int, done: F64Array, inside: NDArray[np.bool_]
) -> tuple[float, float]:
    """Sum of delays and number of outputs that were made within the span: a segments-th of each row's at each read."""
    count = done.size
    of = np.arange(count * piece) // piece
    weights = np.bincount(of, trace.weights[: of.size])
    moments = np.bincount(of, trace.weights[: of.size] * trace.arrivals[: of.size])
    reads, times = np.append(0, np.cumsum(inside)), np.append(0.0, np.cumsum(np.where(inside, done, 0.0)))
    first, end = np.arange(count), np.minimum(np.arange(count) + segments, count)
    made, moment = reads[end] - reads[first], times[end] - times[first]
    return float((weights * moment - made * moments).sum()) / segments, float((weights * made).sum()) / segments


def _mesh_buffered(arrivals: I64Array, begun: F64Array, piece: int, span: Span) -> I64Array:
    """Arrived, and not yet in a piece whose read has begun."""
    seconds = np.arange(span.until_ns // SECOND) * float(SECOND)
    return np.searchsorted(arrivals, seconds, "right") - piece * np.searchsorted(begun, seconds, "right")


@njit(cache=True, nogil=True)
def _completions(ready: F64Array, length: F64Array) -> F64Array:
    """When each of a row of jobs is done, one after another, none before it is ready."""
    done, clock = np.empty(ready.size), 0.0
    for i in range(ready.size):
        clock = max(clock, ready[i]) + length[i]
        done[i] = clock
    return done
