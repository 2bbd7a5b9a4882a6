"""The gateway's decisions, made again from what it recorded (docs/design.md §2 and §3), to be held against the log.

`read` goes through the records once, as the rules say and without the product's code: who is late, where watermarks
stand, where floors lie, whether a batch was due. What the log says otherwise is a complaint. The rows and changes that
it hands on to the oracle are those of the log: the results must be right for what is recorded, in any case.

Rule 1: a row is late iff its time is below (greatest time of its producer's earlier rows) - lateness, or below its
        stream's watermark in the record before its own. A changed lateness holds from the next record on.
Rule 2: a watermark is the smallest (greatest time - lateness) of the live producers; one of them without a row holds
        it. It never goes back, stays without live producers, is endless once the stream ended.
Rule 3: by arrival time a row's time is its batch's stamp, never below an earlier stamp or its stream's watermark; the
        watermark is a clock's: at least the last stamp, and no later row is below it.
Rule 4: a producer's batches are recorded once each and in sequence; none after its end, none after its stream's.
Rule 5: a producer is forgotten only if nothing of it is recorded; it may join anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from joinery.machine.log import (
    LoggedBatch,
    ProducerEnded,
    ProducerForgotten,
    ProducerIdle,
    ProducerJoined,
    Record,
    SpecChange,
    StreamEnded,
)
from tests.oracle.history import History, released, released_counts
from tests.oracle.recorded import BEGINNING, FOREVER, Count, Question, Row, Window, WindowChange, floors
from tests.simulation.asked import in_oracles_words, question_of, time_unit_ns
from tests.simulation.queries import Query, lateness_ms

MS = 1_000_000
Source = tuple[int, str]
"""A producer of a stream."""


@dataclass(slots=True, kw_only=True)
class LogReader:
    """The state that the rules need, and what is found."""

    question: Question
    units: tuple[int | None, ...]
    lateness: list[int]
    watermarks: list[int]
    windows: tuple[Window, ...]
    rows: list[Row] = field(default_factory=list)
    marks: list[tuple[int, ...]] = field(default_factory=list)
    changes: list[WindowChange] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    sent: dict[Source, list[int]] = field(default_factory=dict)
    """The numbers of the rows that each producer has recorded, in order."""
    _greatest: dict[Source, int] = field(default_factory=dict)
    _joined: set[Source] = field(default_factory=set)
    _live: set[Source] = field(default_factory=set)
    _left: set[Source] = field(default_factory=set)
    _ended: set[int] = field(default_factory=set)
    _expected: dict[Source, int] = field(default_factory=dict)
    _session: dict[Source, int] = field(default_factory=dict)
    _positions: dict[int, int] = field(default_factory=dict)
    _stamp: int = BEGINNING
    _term: int = 0
    _version: int | None = None

    @property
    def history(self) -> History:
        """What is recorded, for the oracle."""
        return History(
            question=self.question,
            schemas=(),
            rows=tuple(self.rows),
            records=tuple(self.marks),
            changes=tuple(self.changes),
            lateness=tuple(self.lateness),
        )

    def joined(self, source: Source) -> bool:
        """Whether a producer ever joined."""
        return source in self._joined

    def take(self, number: int, record: Record) -> None:
        """One record."""
        if number != len(self.marks):
            self._complain(number, f"is not record {len(self.marks)}, which is missing")
        if record.term < self._term:
            self._complain(number, f"of term {record.term} after one of term {self._term}")
        self._term = max(self._term, record.term)
        for entry in record.entries:
            if isinstance(entry, ProducerJoined):
                self._joins(number, entry)
        for batch in record.batches:
            self._batch(number, batch)
        for entry in record.entries:
            self._entry(number, entry)
        self._mark(number, record)
        for change in record.changes():
            self._change(number, change)

    def _complain(self, number: int, text: str) -> None:
        self.complaints.append(f"log: record {number} {text}")

    def _joins(self, number: int, entry: ProducerJoined) -> None:
        source = (entry.stream, entry.producer)
        if entry.stream in self._ended:
            self._complain(number, f"lets {entry.producer} join a stream that ended")
        if entry.session <= self._session.get(source, -1):
            self._complain(number, f"opens session {entry.session} of {entry.producer} again")
        self._session[source] = entry.session
        self._joined.add(source)
        if source not in self._left:
            self._live.add(source)

    def _batch(self, number: int, batch: LoggedBatch) -> None:
        source = (batch.stream, batch.producer)
        name = f"batch {batch.sequence} of {batch.producer}"
        if source not in self._joined:
            self._complain(number, f"holds {name}, who never joined")
        if source in self._left or batch.stream in self._ended:
            self._complain(number, f"holds {name} after its end")
        if batch.session > self._session.get(source, 0):
            self._complain(number, f"holds {name} of session {batch.session}, which nobody opened")
        if batch.sequence != self._expected.get(source, batch.sequence):
            self._complain(number, f"holds {name}, expected {self._expected[source]}")
        self._expected[source] = batch.next_sequence
        first = self._positions.get(batch.stream, 0)
        if batch.first_place != first:
            self._complain(number, f"puts {name} at {batch.first_place}, not {first}")
        if batch.stamp_ns < max(self._stamp, self._clock_floor(batch.stream)):
            self._complain(number, f"stamps {name} with {batch.stamp_ns}, before a stamp or watermark")
        self._stamp = max(self._stamp, batch.stamp_ns)
        self._rows(number, batch, source)
        self._live.add(source)

    def _clock_floor(self, stream: int) -> int:
        return self.watermarks[stream] if self.units[stream] is None and stream not in self._ended else BEGINNING

    def _rows(self, number: int, batch: LoggedBatch, source: Source) -> None:
        unit, values = self.units[batch.stream], batch.rows.to_pylist()
        before = self._positions.get(batch.stream, 0)
        flags = [False] * len(values) if batch.late is None else batch.late.tolist()
        for place, (row, flag) in enumerate(zip(values, flags, strict=True)):
            time = batch.stamp_ns if unit is None else row["ts"] * unit
            greatest = self._greatest.get(source)
            late = time < self.watermarks[batch.stream] or (
                greatest is not None and time < greatest - self.lateness[batch.stream]
            )
            if late != flag:
                word = "late" if flag else "in time"
                self._complain(number, f"says that {self.question.streams[batch.stream]} n={row['n']} is {word}")
            self._greatest[source] = time if greatest is None else max(greatest, time)
            self.rows.append(Row(batch.stream, number, before + place, time, flag, (row["k"],), row))
        self.sent.setdefault(source, []).extend(row["n"] for row in values)
        self._positions[batch.stream] = before + len(values)

    def _entry(self, number: int, entry: object) -> None:
        if isinstance(entry, ProducerIdle | ProducerEnded):
            self._live.discard((entry.stream, entry.producer))
            if (entry.stream, entry.producer) not in self._joined:
                self._complain(number, f"speaks of {entry.producer}, who never joined")
        if isinstance(entry, ProducerEnded):
            self._left.add((entry.stream, entry.producer))
        if isinstance(entry, ProducerForgotten):
            self._forget(number, (entry.stream, entry.producer))
        if isinstance(entry, StreamEnded):
            still = sorted(name for stream, name in self._joined - self._left if stream == entry.stream)
            if still:
                self._complain(number, f"ends stream {entry.stream}, but {', '.join(still)} did not say so")
            self._ended.add(entry.stream)

    def _forget(self, number: int, source: Source) -> None:
        if source not in self._joined or source in self._expected:
            self._complain(number, f"forgets {source[1]}, who never joined or has recorded something")
        for known in (self._joined, self._live):
            known.discard(source)
        self._session.pop(source, None)

    def _mark(self, number: int, record: Record) -> None:
        found = [mark if mark > BEGINNING else BEGINNING for mark in record.watermarks]
        for stream, mark in enumerate(found):
            wanted = self._wanted_mark(stream)
            right = mark >= wanted if self.units[stream] is None else mark == wanted
            if not right:
                name = self.question.streams[stream]
                self._complain(number, f"puts the watermark of {name} at {mark}, wanted {wanted}")
        self.watermarks = found
        self.marks.append(tuple(found))

    def _wanted_mark(self, stream: int) -> int:
        if stream in self._ended:
            return FOREVER
        live = [self._greatest.get(source) for source in self._live if source[0] == stream]
        shown = [time for time in live if time is not None]
        if not shown or len(shown) < len(live):
            return self.watermarks[stream]
        return max(self.watermarks[stream], min(shown) - self.lateness[stream])

    def _change(self, number: int, change: SpecChange) -> None:
        history = self.history
        counts = released_counts(history, number) if self.question.in_order else (0,) * len(self.lateness)
        wanted = floors(self.windows, self.marks[number], counts)
        found = tuple(_floor_found(floor, window) for floor, window in zip(change.floors, self.windows, strict=True))
        if found != wanted:
            self._complain(number, f"has floors {found}, wanted {wanted}")
        if change.record != number or (self._version is not None and change.version != self._version + 1):
            self._complain(number, f"holds version {change.version} of record {change.record} after {self._version}")
        self._last_serials(number, change, history)
        self._version = change.version
        self.lateness = list(change.lateness_ns)
        self.windows = in_oracles_words(change.windows)
        self.changes.append(WindowChange(number, self.windows, wanted))

    def _last_serials(self, number: int, change: SpecChange, history: History) -> None:
        """`upto` must part the rows up to the change from those after it; ranks have gaps, positions have none."""
        known = (
            [(one.row.stream, one.rank) for one in released(history) if one.rank is not None]
            if self.question.in_order
            else [(row.stream, row.position) for row in self.rows]
        )
        for stream, upto in enumerate(change.upto):
            last = max((serial for of, serial in known if of == stream), default=-1)
            below = len(known) if self.question.in_order else last + 1
            if not last <= upto < max(below, last + 1):
                self._complain(number, f"names {upto} as the last row of stream {stream}, wanted {last}")


def _floor_found(floor: int, window: Window) -> int:
    """A recorded floor in the oracle's count: ranks begin at 0 there, the core's counts at 1."""
    if floor == FOREVER or not isinstance(window, Count):
        return max(floor, BEGINNING)
    return floor - 1


def read(query: Query, records: Mapping[int, Record]) -> LogReader:
    """All records of a query."""
    question = question_of(query)
    reader = LogReader(
        question=question,
        units=tuple(time_unit_ns(stream) for stream in query["streams"]),
        lateness=[lateness_ms(stream) * MS for stream in query["streams"]],
        watermarks=[BEGINNING] * len(question.streams),
        windows=question.windows,
    )
    for number in sorted(records):
        reader.take(number, records[number])
    return reader
