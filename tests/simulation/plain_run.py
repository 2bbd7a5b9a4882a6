"""A run without a network, to test the check itself: one loop that records what the producers send, and joins it.

It uses the product's clock and join, so a complaint about such a run is a disagreement between the product's rules and
the ones of `recorded_log.py` and the oracle.
"""

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from joinery.flow import ingest
from joinery.flow.release import Release
from joinery.join.logic import WindowJoin
from joinery.join.plan import JoinPlan
from joinery.join.results import ResultPart
from joinery.machine.log import (
    BEFORE_ALL,
    Entry,
    Head,
    LoggedBatch,
    ProducerEnded,
    ProducerIdle,
    ProducerJoined,
    Record,
    SpecChange,
    StreamEnded,
)
from joinery.model.ids import ProducerId, RecordNo, Term
from joinery.model.spec import JoinQuerySpec
from joinery.simulate.process import START_NS
from joinery.simulate.refusals import Refusals
from joinery.simulate.schedule import MS, Batch, Change, Schedule, Script
from joinery.window.sliding import Marks, past_before
from joinery.window.watermark import StreamClock
from tests.simulation.disturbances import FOREVER_NS

RECORD_NS: Final = 12 * MS


@dataclass(slots=True)
class PlainHistory:
    """What the check reads of a history."""

    records: dict[RecordNo, Record] = field(default_factory=dict)

    refusals: Refusals = field(default_factory=lambda: Refusals({}))
    """Of a run in which nobody is refused."""

    def complaints(self) -> list[str]:
        return []


@dataclass(slots=True)
class PlainOutcome:
    """What the check reads of an outcome."""

    history: PlainHistory = field(default_factory=PlainHistory)
    sinks: dict[str, list[ResultPart]] = field(default_factory=lambda: {"results": []})
    ended: bool = True
    stuck: str = ""
    failed: str = ""


class _Plain:
    def __init__(self, schedule: Schedule) -> None:
        self.spec = JoinQuerySpec.parse(schedule.query)
        self.plan = JoinPlan.of(self.spec)
        self.outcome = PlainOutcome()
        clocks = tuple(StreamClock(stream.lateness) for stream in self.spec.streams)
        idle = tuple(FOREVER_NS if s.idle_timeout is None else s.idle_timeout for s in self.spec.streams)
        self.head = Head(RecordNo(0), clocks, (0,) * len(clocks), idle)
        self.join, self.release = WindowJoin(self.plan), Release(len(clocks))
        self.windows = self.plan.windows
        self.expected = {s: sum(script.stream == s for script in schedule.scripts) for s in range(len(clocks))}
        self.heard: dict[tuple[int, ProducerId], int] = {}
        self.turn: dict[tuple[int, ProducerId], int] = {}

    def record(self, now_ns: int, sent: list[tuple[Script, Batch]], change: Change | None) -> None:
        """Cut a record of what came, and join it."""
        entries: list[Entry] = []
        clocks, places, batches = list(self.head.clocks), list(self.head.positions), []
        for script, batch in sent:
            source = (script.stream, script.name)
            if source not in self.heard:
                entries.append(ProducerJoined(*source, session=1))
            self.heard[source] = now_ns
            if batch.rows is not None:
                logged = self._logged(clocks[script.stream], places, script, batch, now_ns)
                times = ingest.times(self.plan.formats[script.stream], logged.rows, logged.stamp_ns)
                clocks[script.stream] = clocks[script.stream].sent(script.name, times)
                batches.append(logged)
            else:
                clocks[script.stream] = clocks[script.stream].sent(script.name, np.empty(0, np.int64))
            if batch.end:
                entries.append(ProducerEnded(*source))
        entries += self._silent(now_ns, entries)
        for entry in entries:
            if isinstance(entry, ProducerIdle | ProducerEnded):
                clocks[entry.stream] = clocks[entry.stream].silent(entry.producer)
                if isinstance(entry, ProducerEnded):
                    self.expected[entry.stream] -= 1
        for stream, left in self.expected.items():
            if left == 0 and not clocks[stream].ended:
                entries.append(StreamEnded(stream))
                clocks[stream] = clocks[stream].end()
        marks = tuple(self._mark(stream, clock, now_ns) for stream, clock in enumerate(clocks))
        self._join(Record(Term(1), tuple(batches), marks, tuple(entries)), change)

    def _logged(self, clock: StreamClock, places: list[int], script: Script, batch: Batch, now_ns: int) -> LoggedBatch:
        form, source = self.plan.formats[script.stream], (script.stream, script.name)
        turn = self.turn[source] = self.turn.get(source, 0) + 1
        times = ingest.times(form, batch.rows, now_ns)
        place = places[script.stream]
        places[script.stream] += len(times)
        late = clock.late(script.name, times)
        return LoggedBatch(*source, 1, turn, turn + 1, 0, place, now_ns, late if late.any() else None, batch.rows)

    def _silent(self, now_ns: int, entries: list[Entry]) -> list[Entry]:
        gone = {(entry.stream, entry.producer) for entry in entries if isinstance(entry, ProducerEnded)}
        return [
            ProducerIdle(stream, producer)
            for (stream, producer), heard in self.heard.items()
            if now_ns - heard > self.head.idle_timeout_ns[stream]
            and producer in self.head.clocks[stream].live
            and (stream, producer) not in gone
        ]

    def _mark(self, stream: int, clock: StreamClock, now_ns: int) -> int:
        if self.plan.formats[stream].time_column is None and not clock.ended:
            return max(clock.watermark, now_ns)
        return clock.recorded().watermark

    def _join(self, record: Record, change: Change | None) -> None:
        number = self.head.next_record
        batches = []
        for logged in record.batches:
            read = ingest.read(
                self.plan.formats[logged.stream],
                logged.rows,
                first_place=logged.first_place,
                arrival_ns=logged.stamp_ns,
            )
            batches.append(replace(read, late=logged.late))
        in_order = self.plan.runs_in_order
        if in_order:
            batches = self.release.admit(batches, record.watermarks)
        marks = Marks(record.watermarks, self.release.counts if in_order else ())
        head = self.head.after(record, self.plan)
        if change is not None:
            record = replace(record, entries=(*record.entries, self._change(number, change, marks, head)))
        self.outcome.history.records[number] = record
        self.outcome.sinks["results"] += self.join.on_batch(batches, marks)
        self.head = self.head.after(record, self.plan)
        for told in record.changes():
            self.windows = told.windows
            self.join.change_windows(told.windows, told.floors, told.upto)

    def _change(self, number: RecordNo, change: Change, marks: Marks, head: Head) -> SpecChange:
        spec = change.spec
        floors = tuple(past_before(stream, window, marks) for stream, window in enumerate(self.windows))
        last = sum(marks.counts) - 1
        upto = tuple(last if marks.counts else place - 1 for place in head.positions)
        return SpecChange(number, spec.version, spec.windows, spec.lateness_ns, spec.idle_timeout_ns, floors, upto)


def run_plainly(schedule: Schedule) -> PlainOutcome:
    """Record and join what the producers send, at their times; faults and moves are left out."""
    plain = _Plain(schedule)
    coming = sorted(
        (
            (batch.at_ns, place, script, batch)
            for place, script in enumerate(schedule.scripts)
            for batch in script.batches
        ),
        key=lambda one: one[:2],
    )
    changes = [step for step in schedule.steps if isinstance(step, Change)]
    now_ns = 0
    while coming or changes:
        now_ns += RECORD_NS
        sent = [(script, batch) for at_ns, _, script, batch in coming if at_ns <= now_ns]
        coming = [one for one in coming if one[0] > now_ns]
        due = changes.pop(0) if changes and changes[0].at_ns <= now_ns else None
        plain.record(START_NS + now_ns, sent, due)
    assert BEFORE_ALL < plain.head.next_record
    return plain.outcome
