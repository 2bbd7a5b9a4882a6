"""Station 1 of 8, ingest, as the gateway decides it: what may be recorded now, and the next record.

Rule 1: a record takes what waits, in the order in which it came. Late rows are judged by their producer's rows before
        them and by the watermark of the record before (`window.watermark`), so the cut of records decides nothing else.
Rule 2: alignment. A producer whose greatest recorded time is more than `alignment` above the smallest watermark waits.
        Streams that ended or have no live producer do not count. One that waits for us is not silent.
Rule 3: a record without rows is written when a producer joined, fell silent, ended or is forgotten (`forgetting`),
        the spec changed, all streams shall end, or a watermark would rise by itself (the clock of a stream with
        arrival time, a lateness that was made smaller).
Rule 4: what follows from a record (`_follow`) is the same when it is written and when it is read again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from joinery.flow import ingest
from joinery.flow.release import Release
from joinery.join.plan import JoinPlan
from joinery.machine import log
from joinery.machine.forgetting import gone
from joinery.machine.log import Entry, Head, LoggedBatch, Record
from joinery.machine.messages import ChangeSpec
from joinery.machine.sessions import Key, Sessions, Waiting
from joinery.model.ids import RecordNo, Term
from joinery.model.quantities import Window
from joinery.model.spec import JoinQuerySpec
from joinery.model.time import DEAD, FOREVER, UNBOUNDED
from joinery.model.tuples import TupleBatch
from joinery.window.sliding import Marks, past_before
from joinery.window.watermark import StreamClock

MAX_RECORD_BYTES: Final = 8 << 20
"""A record ends when it holds so many bytes; the rest waits for the next."""
NEVER: Final = UNBOUNDED
NO_STREAM: Final = -1
"""Of no stream: only what has no rows is recorded."""


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A record that is about to be appended, and what follows from it once it is durable."""

    number: RecordNo
    record: Record
    head: Head
    """After the record."""
    released: tuple[TupleBatch, ...]
    """The rows that workers get with this record: its own, or in order those that it releases."""
    marks: Marks
    acknowledge: tuple[tuple[Key, int], ...]
    latest_ns: int
    """Greatest time of its rows that are not late."""


class Intake:
    """Everything between a producer's message and the next record."""

    def __init__(self, spec: JoinQuerySpec, plan: JoinPlan) -> None:
        self.spec, self.plan = spec, plan
        self.head = first_head(spec)
        self.release = Release(plan.streams)
        self.sessions = Sessions(plan)
        self._change: ChangeSpec | None = None
        self._table = 0
        """The newest version of the stored table that was heard of."""
        self.is_ending = False
        """Whether the next record ends every stream: somebody has said so."""
        self._told_ns = 0
        """When the last record was cut."""
        self._opened_ns = 0
        """Since when those who were live before a restart have been silent."""
        self._quiet_ns = spec.epochs.reorganization // 4

    def retune(self, spec: JoinQuerySpec) -> None:
        """Settings that are not logged; windows and lateness are those of the log."""
        self.spec, self._quiet_ns = spec, spec.epochs.reorganization // 4

    # --- restart

    def restore(
        self, head: Head, records: Iterable[tuple[RecordNo, Record]], now_ns: int
    ) -> tuple[list[tuple[RecordNo, int]], list[Cut]]:
        """Go on from a log that was read; who was live is silent from now on.

        Gives the records from before the head, with their greatest timely times, and those after it as they were cut.
        """
        self.head, self._told_ns, self._opened_ns = head, now_ns, now_ns
        kept: list[tuple[RecordNo, int]] = []
        cuts: list[Cut] = []
        self.release = Release(self.plan.streams, head.counts)
        for number, record in records:
            tuples = log.tuples_of(record, self.plan)
            if number < head.next_record:
                kept.append((number, _latest(tuples)))
                for batch in tuples:
                    self._hold_unreleased(batch, min(head.watermarks))
                continue
            cuts.append(self._follow(record, tuples))
            self.head = cuts[-1].head
        return kept, cuts

    def _hold_unreleased(self, batch: TupleBatch, frontier: int) -> None:
        waits = batch.times >= frontier
        if batch.late is not None:
            waits &= ~batch.late
        self.release.hold(replace(batch.take(waits), late=None))

    def change_spec(self, change: ChangeSpec) -> None:
        """Windows, lateness, idle timeouts from the record after the next on; a version that is not the next is old."""
        if change.version == len(self.head.changes) + 1:
            self._change = change

    def table_is(self, version: int) -> None:
        """There is this version of the stored table: rows meet it from the record after the next on."""
        self._table = max(self._table, version)

    def forget_tables(self, first: RecordNo) -> None:
        """Nobody will ask for records before this one, nor for the versions that were in force there."""
        past = [place for place, one in enumerate(self.head.tables) if one.record < first]
        if len(past) > 1:
            self.head = replace(self.head, tables=self.head.tables[past[-1] :])

    # --- records

    @property
    def waiting_bytes(self) -> int:
        """Bytes that are not recorded yet."""
        return sum(one.tuples.rows.nbytes for one in self.sessions.waiting)

    def next_idle_ns(self) -> int | None:
        """When the next producer falls silent, if nothing comes."""
        due = [self._idle_at(key) for key in self._live()]
        due += [at for _, at in gone(self.head, self.sessions, self._idle_at)]
        return min((at for at in due if at is not None), default=None)

    def cut(self, term: Term, now_ns: int, only: int | None = None) -> Cut | None:
        """The next record, if there is anything to record; `only`: of this stream, because memory is short."""
        if self.head.ended:
            return None
        entries: list[Entry] = [
            log.ProducerJoined(key[0], key[1], producer.session)
            for key, producer in self.sessions.producers.items()
            if not producer.has_joined and not self._has_ended(key) and not self.head.clocks[key[0]].ended
        ]
        forgotten = [key for key, at in gone(self.head, self.sessions, self._idle_at) if at <= now_ns]
        self.sessions.forget(forgotten)
        entries += [log.ProducerForgotten(*key) for key in forgotten]
        silent = [key for key in self._live() if (at := self._idle_at(key)) is not None and at <= now_ns]
        entries += [log.ProducerIdle(*key) for key in silent if key not in forgotten]
        if self._table > self._table_in_force:
            entries.append(log.TableVersion(self.head.next_record, self._table))
        chosen = self._choose(only)
        if self._change is not None and self._change.version != len(self.head.changes) + 1:
            self._change = None  # told twice
        if not (entries or chosen or self._change or self.is_ending or self._would_rise(now_ns)):
            return None
        self._told_ns = now_ns
        record, tuples = self._decide(term, now_ns, entries, chosen)
        self.sessions.recorded(chosen, now_ns)
        return self._follow(record, tuples)

    @property
    def _table_in_force(self) -> int:
        return self.head.tables[-1].version if self.head.tables else 0

    def _would_rise(self, now_ns: int) -> bool:
        """Whether a watermark would rise by itself: with the clock, or because the lateness was made smaller."""
        clocks = zip(self.plan.formats, self.head.clocks, strict=True)
        by_clock = any(form.time_column is None and not clock.ended for form, clock in clocks)
        if by_clock and now_ns - self._told_ns >= self._quiet_ns:
            return True
        return any(clock.recorded().watermark > clock.watermark for clock in self.head.clocks)

    def _decide(
        self, term: Term, now_ns: int, entries: list[Entry], chosen: list[Waiting]
    ) -> tuple[Record, list[TupleBatch]]:
        """Everything that a clock or an arrival has a say in, settled before the append."""
        clocks, places = list(self.head.clocks), list(self.head.positions)
        for entry in entries:
            if isinstance(entry, log.ProducerJoined):
                clocks[entry.stream] = clocks[entry.stream].sent(entry.producer, _NO_TIMES)
        stamp = max(now_ns, self.head.stamp_ns, *self._arrival_marks())
        batches, tuples = [], []
        for one in chosen:
            stream, producer = one.key
            read = one.tuples
            if self.plan.formats[stream].time_column is None:
                read = replace(read, times=ingest.times(self.plan.formats[stream], read.rows, stamp))
            late = clocks[stream].late(producer, read.times)
            clocks[stream] = clocks[stream].sent(producer, read.times)
            read = replace(read, places=read.places + places[stream], late=late if late.any() else None)
            batches.append(_logged(one, read, places[stream], stamp))
            places[stream] += len(read)
            tuples.append(read)
        entries = entries + self._endings(entries, chosen)
        watermarks = self._watermarks(clocks, entries, stamp)
        record = Record(term, tuple(batches), watermarks, tuple(entries))
        return record, tuples

    def _arrival_marks(self) -> list[int]:
        marks = zip(self.plan.formats, self.head.watermarks, strict=True)
        return [mark for form, mark in marks if form.time_column is None and mark != FOREVER]

    def _endings(self, entries: list[Entry], chosen: list[Waiting]) -> list[Entry]:
        """Producers that say goodbye with this record, and streams that have nobody left; somebody must have ended."""
        ending = {one.key for one in chosen if one.push.end}
        known = set(self.head.sessions) | {(e.stream, e.producer) for e in entries if isinstance(e, log.ProducerJoined)}
        known -= {(e.stream, e.producer) for e in entries if isinstance(e, log.ProducerForgotten)}
        left = {key for key in known if not self._has_ended(key)} - ending
        over = {key[0] for key in known - left if not self.head.clocks[key[0]].ended}
        closed = sorted(over - {key[0] for key in left})
        if self.is_ending:
            closed = [stream for stream, clock in enumerate(self.head.clocks) if not clock.ended]
        return [*(log.ProducerEnded(*key) for key in sorted(ending)), *(log.StreamEnded(stream) for stream in closed)]

    def _watermarks(self, clocks: list[StreamClock], entries: list[Entry], stamp: int) -> tuple[int, ...]:
        for entry in entries:
            if isinstance(entry, log.ProducerIdle | log.ProducerEnded | log.ProducerForgotten):
                clocks[entry.stream] = clocks[entry.stream].silent(entry.producer)
            elif isinstance(entry, log.StreamEnded):
                clocks[entry.stream] = clocks[entry.stream].end()
        marks = []
        for form, clock in zip(self.plan.formats, clocks, strict=True):
            by_arrival = form.time_column is None and not clock.ended
            marks.append(stamp if by_arrival else clock.recorded().watermark)
        return tuple(marks)

    def _follow(self, record: Record, tuples: list[TupleBatch]) -> Cut:
        """What follows from a record: the head after it, and what workers get. Replay takes the same way."""
        in_order = self.plan.runs_in_order
        released = self.release.admit(tuples, record.watermarks) if in_order else tuples
        counts = self.release.counts if in_order else ()
        marks = Marks(record.watermarks, counts)
        if self._change is not None and not record.changes():
            record = replace(record, entries=(*record.entries, self._settle(self._change, marks, record)))
            self._change = None
        return Cut(
            self.head.next_record, record, self.head.after(record, self.plan, counts), tuple(released), marks,
            tuple(((batch.stream, batch.producer), batch.sequence) for batch in record.batches), _latest(tuples),
        )  # fmt: skip

    def _settle(self, change: ChangeSpec, marks: Marks, record: Record) -> log.SpecChange:
        """The change with its floors: up to where the old windows have closed (docs/design.md §3, ADR 0004)."""
        old = self.windows
        floors = tuple(past_before(stream, window, marks) for stream, window in enumerate(old))
        rows = [sum(b.rows.num_rows for b in record.batches if b.stream == s) for s in range(self.plan.streams)]
        last = tuple(place + more - 1 for place, more in zip(self.head.positions, rows, strict=True))
        upto = (sum(marks.counts) - 1,) * self.plan.streams if marks.counts else last
        return log.SpecChange(
            self.head.next_record, change.version, change.windows, change.lateness_ns, change.idle_timeout_ns,
            floors, upto,
        )  # fmt: skip

    @property
    def windows(self) -> tuple[Window, ...]:
        """Those in force for the next record."""
        return self.head.changes[-1].windows if self.head.changes else self.plan.windows

    # --- who may go on

    def _choose(self, only: int | None) -> list[Waiting]:
        """What of the waiting batches goes into the next record (rule 2)."""
        chosen: list[Waiting] = []
        if self.plan.table is not None and not self.head.tables:
            return chosen  # rows without a version would meet nothing
        tops = {
            key: self.head.clocks[key[0]].greatest.get(key[1], DEAD)
            for key in {one.key for one in self.sessions.waiting}
        }
        bound, held, size = self._bound(), set(), 0
        for one in self.sessions.waiting:
            is_ahead = bound is not None and tops[one.key] > bound
            if one.key in held or is_ahead or (only is not None and one.key[0] != only) or size > MAX_RECORD_BYTES:
                held.add(one.key)
                continue
            chosen.append(one)
            size += one.tuples.rows.nbytes
            if self.plan.formats[one.key[0]].time_column is not None:
                tops[one.key] = max(tops[one.key], int(one.tuples.times.max(initial=DEAD)))
        return chosen

    def _bound(self) -> int | None:
        """The greatest recorded time that may still send; None: nobody waits."""
        marks = [clock.watermark for clock in self.head.clocks if clock.live and not clock.ended]
        lateness = max(clock.lateness_ns for clock in self.head.clocks)
        alignment = self.spec.alignment_with(self.windows, lateness)
        return min(marks) + alignment if marks and alignment < UNBOUNDED else None

    def slowest_stream(self) -> int | None:
        """The stream with the smallest watermark, of those that somebody feeds."""
        marks = [(clock.watermark, s) for s, clock in enumerate(self.head.clocks) if clock.live and not clock.ended]
        return min(marks)[1] if marks else None

    def _live(self) -> list[Key]:
        return [(stream, producer) for stream, clock in enumerate(self.head.clocks) for producer in sorted(clock.live)]

    def _idle_at(self, key: Key) -> int | None:
        timeout, producer = self.head.idle_timeout_ns[key[0]], self.sessions.producers.get(key)
        if timeout >= NEVER or any(one.key == key for one in self.sessions.waiting):
            return None
        return (producer.heard_ns if producer else self._opened_ns) + timeout

    def _has_ended(self, key: Key) -> bool:
        logged = self.head.sessions.get(key)
        return logged is not None and logged.ended


_NO_TIMES: Final = np.empty(0, np.int64)


def _logged(one: Waiting, read: TupleBatch, place: int, stamp_ns: int) -> LoggedBatch:
    push, (stream, producer) = one.push, one.key
    return LoggedBatch(
        stream, producer, one.session, push.sequence, push.next_sequence, push.checksum, place, stamp_ns, read.late,
        read.rows,
    )  # fmt: skip


def _latest(tuples: list[TupleBatch]) -> int:
    """The greatest time of rows that are not late; DEAD: there is none."""
    timely = [batch.times if batch.late is None else batch.times[~batch.late] for batch in tuples]
    return max((int(times.max(initial=DEAD)) for times in timely), default=DEAD)


def first_head(spec: JoinQuerySpec) -> Head:
    """What the first record builds on."""
    begun = [(StreamClock(stream.lateness), stream.table) for stream in spec.streams]
    # nobody waits for the rows of a stored table
    clocks = tuple(clock if table is None else clock.end().recorded() for clock, table in begun)
    counts = (0,) * len(clocks) if spec.has_count_window else ()
    return Head(RecordNo(0), clocks, (0,) * len(clocks), idle_timeout_ns(spec), counts=counts)


def idle_timeout_ns(spec: JoinQuerySpec) -> tuple[int, ...]:
    """Of every stream; `NEVER` if it has none."""
    return tuple(NEVER if stream.idle_timeout is None else stream.idle_timeout for stream in spec.streams)
