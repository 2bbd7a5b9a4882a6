"""The join of a stream with a stored relation (thesis algorithms 8 and 9): facts in, results and probes out.

Facts: a version of the relation (`on_version`), stream rows (`on_batch`), a segment that was read (`on_segment`), time
that passed (`on_time`), the end of the source (`on_end`). Each answers with results and with the segments to be read;
who reads them, and when, is not known here, so a segment may come late, twice or unasked: results do not depend on it.

Rule 1: a row is joined with the version that its batch names, and its results carry that version.
Rule 2: a segment is named by its number and by the version that wrote it (its stamp). Versions that share a segment
share its place in memory and its waiting rows.
Rule 3: what a row finds depends on the row and its version alone. `policy` decides only when.
Rule 4: a victim's waiting rows (block mode) are joined before it leaves memory (ours: they would need a read).
Rule 5: a snapshot holds waiting rows, frequencies and what was being read, never segments: those are read again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from joinery.hybrid import policy
from joinery.hybrid.config import HybridConfig, Kind
from joinery.hybrid.matching import Condition, Joined, Shelf
from joinery.hybrid.segments import Relation, Segment, row_bytes
from joinery.hybrid.units import UnitTable
from joinery.hybrid.waiting import Rows, WaitBuffer
from joinery.model.errors import require
from joinery.model.tuples import I64Array, TupleBatch
from joinery.model.views import readonly


class Probe(NamedTuple):
    """An order to read a whole segment, as the version `stamp` wrote it."""

    stamp: int
    segment: int


@dataclass(frozen=True, slots=True)
class Step:
    """What a fact led to."""

    results: tuple[Joined, ...] = ()
    probes: tuple[Probe, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class HybridState:
    """What must survive, as plain arrays; `relations` are the versions that are still in use."""

    relations: tuple[Relation, ...]
    waiting: Rows | None
    """Its units are places in `units`."""
    units: I64Array
    """Stamp and segment, a row per unit."""
    frequencies: NDArray[np.float64]
    asked: NDArray[np.bool_]
    epoch: int
    mode: int


class HybridJoin:
    """The state of one hybrid join."""

    def __init__(self, config: HybridConfig, schema: pa.Schema, condition: Condition | None = None) -> None:
        self.config, self.schema, self.condition = config, schema, condition
        self._rules = config.rules()
        self._table = UnitTable(config.memory_bytes)
        self._shelf = Shelf(schema)
        self._waiting = WaitBuffer()

    @property
    def waiting_rows(self) -> int:
        """Rows in the wait buffer."""
        return len(self._waiting)

    @property
    def is_overfull(self) -> bool:
        """Twice the pool waits, what is being read included: the caller should hold its input back."""
        return int(self._table.units.blocks.sum()) >= 2 * self._rules.pool_blocks

    @property
    def held(self) -> tuple[Probe, ...]:
        """The segments in memory."""
        return tuple(Probe(*self._table.names[unit]) for unit in self._shelf.units)

    @property
    def versions(self) -> tuple[int, ...]:
        """The versions that are known."""
        return self._table.versions

    @property
    def idle_versions(self) -> tuple[int, ...]:
        """Versions for which no row waits."""
        waiting = set(np.unique(self._waiting.column("versions")).tolist())
        return tuple(version for version in self._table.versions if version not in waiting)

    @property
    def bytes_held(self) -> int:
        """Bytes of the segments in memory and of the rows that wait."""
        return self._shelf.nbytes + int(self._table.units.weight.sum())

    @property
    def oldest_tag(self) -> int | None:
        """The least tag of a waiting row: labels of older batches are free."""
        return self._waiting.oldest_tag

    def on_version(self, relation: Relation) -> None:
        """A version of the relation that batches may name from now on."""
        self._table.install(relation)

    def retire(self, version: int) -> None:
        """No batch will name this version any more, and no row waits with it."""
        waits = self._waiting.column("versions") == version
        require(not waits.any(), f"version {version} was retired while {int(waits.sum())} of its rows wait")
        for unit in self._table.retire(version):
            self._shelf.drop(unit)

    def on_batch(self, batch: TupleBatch, *, version: int, tag: int, now_ns: int, behind_bytes: int = 0) -> Step:
        """Rows that arrive, all under one version; `behind_bytes`: input that waits behind them."""
        require(batch.late is None or not batch.late.any(), "late rows are not joined; take them out before")
        of = self._table.units_of(version, batch)
        if batch.keyed is not None:
            of[~batch.keyed] = -1
        sizes = row_bytes(batch.rows)
        versions, tags, since = (np.full(len(batch), value, np.int64) for value in (version, tag, now_ns))
        rows = Rows(batch, of, versions, tags, since, sizes)
        results: list[Joined] = []
        probes: list[Probe] = []
        begin, backlog = 0, int(sizes.sum()) + behind_bytes
        while begin < len(rows):
            end, backlog, joined = self._admitted(rows, begin, backlog, now_ns)
            results += self._settle(rows, begin, end, joined)
            begin = end
            if policy.is_full(self._table.units, self._rules):
                results += self._make_room(probes, now_ns)
        if backlog <= 0:
            results += self._probe_due(probes)
        return Step(tuple(results), tuple(probes))

    def on_segment(self, segment: Segment) -> Step:
        """A segment that was read: joined with what waits for it, then kept or not."""
        return self.on_segments((segment,))

    def on_segments(self, segments: Iterable[Segment]) -> Step:
        """Segments that were read: joined, all at once, with what waits for them; then each is kept or not."""
        read = {}
        for segment in segments:
            unit = self._table.unit_of(segment.stamp, segment.number)
            if unit is not None:
                self._shelf.put(unit, segment)
                read[unit] = segment
        results = self._join_waiting(list(read))
        for unit in read:
            victim = policy.keep(self._table.units, self._rules, unit)
            if victim == policy.NOT_KEPT:
                self._shelf.drop(unit)
            elif victim >= 0:
                results += self._join_waiting([victim])
                self._shelf.drop(victim)
        return Step(tuple(results))

    def on_time(self, now_ns: int) -> Step:
        """The input is empty and time has passed: what is large enough or has waited too long is read."""
        probes: list[Probe] = []
        results = self._probe_due(probes)
        if self.config.max_wait_ns is not None:
            units = self._table.units
            late = (units.rows > 0) & ~units.asked & (units.oldest <= now_ns - self.config.max_wait_ns)
            results += self._read(np.flatnonzero(late), probes)
        return Step(tuple(results), tuple(probes))

    def next_time_ns(self) -> int | None:
        """When a row will have waited for `max_wait_ns`; None: `on_time` need not be called for that."""
        units = self._table.units
        waits = (units.rows > 0) & ~units.asked
        if self.config.max_wait_ns is None or not waits.any():
            return None
        return int(units.oldest[waits].min()) + self.config.max_wait_ns

    def on_end(self) -> Step:
        """The source has ended: everything that waits is read."""
        probes: list[Probe] = []
        units = self._table.units
        results = self._read(np.flatnonzero((units.rows > 0) & ~units.asked), probes)
        return Step(tuple(results), tuple(probes))

    def snapshot(self) -> HybridState:
        """What must survive."""
        return self._table.snapshot(self._waiting.all(), HybridState)

    @staticmethod
    def restored(
        state: HybridState, config: HybridConfig, schema: pa.Schema, condition: Condition | None = None
    ) -> tuple["HybridJoin", Step]:
        """The join as it was, with empty memory, and the probes that were on their way."""
        join = HybridJoin(config, schema, condition)
        for relation in state.relations:
            join.on_version(relation)
        new = join._table.resume(state, join._rules)
        if state.waiting is not None:
            join._waiting.add(state.waiting.renumbered(new[state.waiting.units]))
        return join, Step((), tuple(Probe(*join._table.names[unit]) for unit in new[state.asked].tolist()))

    def _admitted(self, rows: Rows, begin: int, backlog: int, now_ns: int) -> tuple[int, int, I64Array]:
        joined = np.full(self._table.units.rows.size, -1, np.int64)
        end, backlog = policy.admit(
            self._table.units, self._rules, rows.units, rows.sizes, begin, backlog, now_ns, joined
        )
        return int(end), int(backlog), joined

    def _settle(self, rows: Rows, begin: int, end: int, joined: I64Array) -> list[Joined]:
        """Rows that were admitted: some are joined, with those that waited for the same units; the others wait."""
        now, wait = np.empty(end - begin, np.int64), np.empty(end - begin, np.int64)
        is_left = self.config.kind is Kind.LEFT
        joins, waits = _divide(readonly(rows.units), begin, end, joined, is_left, now, wait)
        ready = np.flatnonzero(joined >= 0)
        results = self._joined(self._waiting.take(ready)) if ready.size else []
        results += self._joined(rows, now[:joins])
        self._waiting.add(rows, wait[:waits])
        return results

    def _make_room(self, probes: list[Probe], now_ns: int) -> list[Joined]:
        results: list[Joined] = []
        while not policy.has_room(self._table.units, self._rules) and (unit := self._next_to_read(now_ns)) >= 0:
            results += self._read(np.array([unit]), probes)
        return results

    def _next_to_read(self, now_ns: int) -> int:
        units = self._table.units
        return int(policy.most_delayed(units, now_ns) if self.config.by_delay else policy.largest(units))

    def _probe_due(self, probes: list[Probe]) -> list[Joined]:
        """Every unit with N_invoke waiting rows, largest first: reading does not keep this thread busy."""
        units = self._table.units
        due = np.flatnonzero((units.rows >= self._rules.invoke_rows) & ~units.asked)
        return self._read(due[np.argsort(-units.rows[due], kind="stable")], probes)

    def _read(self, wanted: NDArray[np.intp], probes: list[Probe]) -> list[Joined]:
        """Segments in memory are joined with what waits for them, the others must be read."""
        results: list[Joined] = []
        for unit in wanted.tolist():
            if unit in self._shelf:
                results += self._join_waiting([unit])
            else:
                policy.ask(self._table.units, self._rules, unit)
                probes.append(Probe(*self._table.names[unit]))
        return results

    def _join_waiting(self, units: list[int]) -> list[Joined]:
        for unit in units:
            policy.empty(self._table.units, self._rules, unit)
        return self._joined(self._waiting.take(np.array(units, np.int64)))

    def _joined(self, rows: Rows | None, chosen: I64Array | None = None) -> list[Joined]:
        """Rows whose segments are in memory, or that have none."""
        if rows is None:
            return []
        chosen = np.arange(len(rows)) if chosen is None else chosen
        keeps_all = self.config.kind is Kind.LEFT
        pairs = self._shelf.pairs_of(rows.batch, rows.units, chosen, self.condition, keeps_all=keeps_all)
        return list(self._shelf.results_of(rows.batch, rows.versions, rows.tags, pairs))


@njit(cache=True, nogil=True)
def _divide(
    units: NDArray[np.int32], begin: int, end: int, joined: I64Array, keeps_all: bool, now: I64Array, wait: I64Array
) -> tuple[int, int]:
    """Which of the rows are joined and which wait; one without a segment is joined if it gives a result."""
    joins, waits = 0, 0
    for i in range(begin, end):
        unit = units[i]
        if unit < 0:
            if keeps_all:
                now[joins] = i
                joins += 1
        elif i <= joined[unit]:
            now[joins] = i
            joins += 1
        else:
            wait[waits] = i
            waits += 1
    return joins, waits
