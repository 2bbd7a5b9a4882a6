"""The query's only log: what a record holds, and what later records build on (docs/design.md §3).

Rule 1: whatever looks at a clock, the network or a setting is decided before the append; a record holds the decisions
        (late flags, stamps, watermarks, floors). Replay decides nothing.
Rule 2: `Head.after(record)` is the only way in which a record changes what the next one builds on. The gateway that
        wrote a record and the one that reads it again after a crash take the same step.
Rule 3: trimming the log up to record n keeps the head as it was after n, so that positions, sessions, sequences and
        watermarks go on where they were.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joinery.flow import ingest
from joinery.join.plan import JoinPlan
from joinery.model.errors import require
from joinery.model.ids import ProducerId, RecordNo, Term
from joinery.model.quantities import Window
from joinery.model.time import DEAD
from joinery.model.tuples import TupleBatch
from joinery.window.watermark import StreamClock

BEFORE_ALL = RecordNo(-1)
"""The state before the first record: the tag of an empty group."""


@dataclass(frozen=True, slots=True, eq=False)
class LoggedBatch:
    """A producer's batch as it came, with what was decided about it."""

    stream: int
    producer: ProducerId
    session: int
    sequence: int
    next_sequence: int
    checksum: int
    first_place: int
    stamp_ns: int
    """Arrival time: max(clock, last stamp and watermark in the log)."""
    late: NDArray[np.bool_] | None
    """None: no row is late."""
    rows: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class ProducerJoined:
    """A producer opened a session: it is live, and holds the watermark until it has sent."""

    stream: int
    producer: ProducerId
    session: int


@dataclass(frozen=True, slots=True)
class ProducerIdle:
    """A producer was silent for its stream's idleTimeout; it no longer holds the watermark."""

    stream: int
    producer: ProducerId


@dataclass(frozen=True, slots=True)
class ProducerEnded:
    """A producer said that it will send no more."""

    stream: int
    producer: ProducerId


@dataclass(frozen=True, slots=True)
class ProducerForgotten:
    """A producer that joined and never recorded anything is gone: as if it had never joined (`forgetting`)."""

    stream: int
    producer: ProducerId


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """Every producer of a stream has ended, or is forgotten."""

    stream: int


@dataclass(frozen=True, slots=True)
class SpecChange:
    """Windows, lateness and idle timeouts from the next record on."""

    record: RecordNo
    """The record that holds the change."""
    version: int
    windows: tuple[Window, ...]
    lateness_ns: tuple[int, ...]
    idle_timeout_ns: tuple[int, ...]
    floors: tuple[int, ...]
    """Per stream: rows up to `upto` with a clock below this were closed with the old window."""
    upto: tuple[int, ...]
    """Per stream: the last serial number at the change (ADR 0004)."""


@dataclass(frozen=True, slots=True)
class TableVersion:
    """The version of the stored table that rows are joined with from the next record on."""

    record: RecordNo
    """The record that holds it."""
    version: int


Entry: TypeAlias = (
    ProducerJoined | ProducerIdle | ProducerEnded | ProducerForgotten | StreamEnded | SpecChange | TableVersion
)


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """One group commit."""

    term: Term
    batches: tuple[LoggedBatch, ...]
    watermarks: tuple[int, ...]
    entries: tuple[Entry, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of its rows."""
        return sum(batch.rows.nbytes for batch in self.batches)

    def changes(self) -> tuple[SpecChange, ...]:
        """The spec change that it holds, if it holds one."""
        return tuple(entry for entry in self.entries if isinstance(entry, SpecChange))


@dataclass(frozen=True, slots=True)
class Session:
    """What the log knows of a producer."""

    number: int
    expected: int | None = None
    """The next sequence; None: the first one is free."""
    sequence: int | None = None
    checksum: int | None = None
    """Sequence and checksum of its last batch."""
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Head:
    """All that the next record builds on."""

    next_record: RecordNo
    clocks: tuple[StreamClock, ...]
    positions: tuple[int, ...]
    idle_timeout_ns: tuple[int, ...]
    stamp_ns: int = DEAD
    """The last arrival stamp."""
    sessions: Mapping[tuple[int, ProducerId], Session] = field(default_factory=dict)
    changes: tuple[SpecChange, ...] = ()
    counts: tuple[int, ...] = ()
    """Rows released so far, of a query that runs in order."""
    tables: tuple[TableVersion, ...] = ()
    """Versions of the stored table that a record may still be joined with; the last is in force."""

    @property
    def watermarks(self) -> tuple[int, ...]:
        """As the last record wrote them."""
        return tuple(clock.watermark for clock in self.clocks)

    @property
    def ended(self) -> bool:
        """Whether every stream has ended."""
        return all(clock.ended for clock in self.clocks)

    def after(self, record: Record, plan: JoinPlan, counts: tuple[int, ...] = ()) -> "Head":
        """The head after one more record; `counts` are what it had released, in order."""
        clocks, positions, sessions = list(self.clocks), list(self.positions), dict(self.sessions)
        timeouts, changes, stamp = self.idle_timeout_ns, self.changes, self.stamp_ns
        tables = (*self.tables, *(entry for entry in record.entries if isinstance(entry, TableVersion)))
        for entry in record.entries:
            if isinstance(entry, ProducerJoined):
                key = (entry.stream, entry.producer)
                known = sessions.get(key)
                sessions[key] = replace(known, number=entry.session) if known else Session(entry.session)
                clocks[entry.stream] = clocks[entry.stream].sent(entry.producer, np.empty(0, np.int64))
        for batch in record.batches:
            key = (batch.stream, batch.producer)
            require(batch.first_place == positions[batch.stream], f"a batch of {key} at the wrong position")
            times = ingest.times(plan.formats[batch.stream], batch.rows, batch.stamp_ns)
            clocks[batch.stream] = clocks[batch.stream].sent(batch.producer, times)
            positions[batch.stream] += batch.rows.num_rows
            stamp = max(stamp, batch.stamp_ns)
            sessions[key] = Session(batch.session, batch.next_sequence, batch.sequence, batch.checksum)
        for entry in record.entries:
            if isinstance(entry, ProducerIdle | ProducerEnded):
                clocks[entry.stream] = clocks[entry.stream].silent(entry.producer)
            if isinstance(entry, ProducerEnded):
                key = (entry.stream, entry.producer)
                sessions[key] = replace(sessions[key], ended=True)
            elif isinstance(entry, ProducerForgotten):
                clocks[entry.stream] = clocks[entry.stream].forget(entry.producer)
                del sessions[entry.stream, entry.producer]
            elif isinstance(entry, StreamEnded):
                clocks[entry.stream] = clocks[entry.stream].end()
        clocks = [replace(clock, watermark=mark) for clock, mark in zip(clocks, record.watermarks, strict=True)]
        for change in record.changes():
            clocks = [replace(c, lateness_ns=ns) for c, ns in zip(clocks, change.lateness_ns, strict=True)]
            timeouts, changes = change.idle_timeout_ns, (*changes, change)
        return Head(
            RecordNo(self.next_record + 1), tuple(clocks), tuple(positions), timeouts, stamp, sessions, changes, counts,
            tables,
        )  # fmt: skip


def version_at(tables: tuple[TableVersion, ...], record: int) -> int:
    """The version of the table that the rows of a record are joined with; 0: there is no table."""
    return max((one.version for one in tables if one.record < record), default=0)


def tuples_of(record: Record, plan: JoinPlan) -> list[TupleBatch]:
    """The rows of a record as they are joined: times, places and late flags as recorded, nothing decided again."""
    found = []
    for batch in record.batches:
        form = plan.formats[batch.stream]
        read = ingest.read(form, batch.rows, first_place=batch.first_place, arrival_ns=batch.stamp_ns)
        found.append(replace(read, late=batch.late))
    return found
