"""Random questions and histories for property tests.

`questions()` draws what is asked; `histories()` draws a question and a log that could have been recorded for it:
several producers per stream with their own rates, skewed keys, ties, nulls, rows out of order within the lateness and
beyond it, producers that fall silent and return, records cut anywhere, streams that end or do not, and on request
changes of the windows.

The rows of a history are drawn as bytes, a few for each: one draw is quick, and it shrinks to few and simple rows. The
log keeper (`_Log`) then does what the gateway does: it flags late rows by the producer's own sequence and by the
stream's watermark in the record before, and writes watermarks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Self

import pyarrow as pa
from hypothesis import strategies as st

from tests.oracle.conditions import Phrase, phrases
from tests.oracle.history import History, Released, released, released_counts
from tests.oracle.keys import KEY_KINDS, KeyKind
from tests.oracle.recorded import (
    BEGINNING,
    FOREVER,
    Count,
    JoinType,
    Question,
    Row,
    Time,
    Unbounded,
    Window,
    WindowChange,
    floors,
    runs_in_order,
)

__all__ = ["History", "Released", "histories", "questions", "released", "windows"]

STREAMS: Final = ("a", "b", "c", "d")
TYPES: Final[tuple[JoinType, ...]] = ("inner", "left", "right", "full", "semi", "anti")
ORIGINS: Final = (0, 0, -20, 2**62 - 2000, -(2**62) + 2000)
"""Where a history begins: mostly near 0, sometimes near the ends of time."""
SKEWED: Final = (0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5)
"""Which key a row has: few of them are frequent. A history draws from the first 5, 8 or all: one key, two, or six."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the types of its columns and the values of its keys."""

    question: Question
    schemas: tuple[pa.Schema, ...]
    kind: KeyKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What the rows of one history have in common: from many at the same time to windows that are nearly empty."""

    streams: int
    busy: int | None
    """The stream that has more than half of the rows, if one has."""
    producers: int
    lags: tuple[int, ...]
    """How far each producer is behind the clock of the world."""
    origin: int
    gap: int
    """Greatest step of that clock from row to row."""
    jitter: int
    keys: int
    changes: bool


@dataclass(frozen=True, slots=True)
class Event:
    """One row that a producer sends, and what happens after it; zero bytes make simple rows, of each stream in turn."""

    stream: int
    producer: int
    gap: int
    jitter: int
    key: int
    null: int
    value: int | None
    cuts: int
    silent: bool
    ends: bool
    change: bool

    SIZE: ClassVar = 10

    @classmethod
    def of(cls, drawn: bytes, traffic: Traffic, index: int) -> Self:
        where, who, gap, jitter, key, null, value, cuts, rare, change = drawn
        return cls(
            stream=(index + where) % traffic.streams if where < 120 or traffic.busy is None else traffic.busy,
            producer=who % traffic.producers,
            gap=gap % (traffic.gap + 1),
            jitter=jitter % (traffic.jitter + 1),
            key=SKEWED[key % traffic.keys],
            null=11 - null % 12,
            value=(0, 1, 2, 3, None)[value % 5],
            cuts=(0, 0, 0, 0, 0, 1, 1, 2)[cuts % 8],
            silent=rare % 20 == 19,
            ends=rare == 255,
            change=traffic.changes and change % 6 == 5,
        )


def windows(kinds: Sequence[str] = ("time", "count", "unbounded")) -> st.SearchStrategy[Window]:
    """One window; time windows are often zero, and as long as few rows are apart."""
    drawn = {
        "time": st.one_of(st.integers(0, 25), st.integers(1, 25), st.just(0), st.integers(5, 25)).map(Time),
        "count": st.integers(1, 6).map(Count),
        "unbounded": st.just(Unbounded()),
    }
    return st.sampled_from(kinds).flatmap(drawn.__getitem__)


@st.composite
def questions(
    draw: st.DrawFn,
    types: Sequence[JoinType] = TYPES,
    counts: Sequence[int] = (2, 3, 4),
    kinds: Sequence[str] = ("time", "time", "time", "count", "unbounded"),
    key_kinds: Sequence[KeyKind] = KEY_KINDS,
    one_form: bool = False,
) -> Asked:
    """What is asked: type, number of streams (`counts`, of inner joins), key type, windows, where, filter and select.

    Hypothesis visits alternatives unevenly: a test that needs each of them parametrizes over `types` and `counts`.
    Streams may store equal keys in different Arrow types, unless `one_form`.
    """
    type_ = draw(st.sampled_from(types))
    count = draw(st.sampled_from(counts)) if type_ == "inner" else 2
    streams, kind = STREAMS[:count], draw(st.sampled_from(key_kinds))
    alike = st.sampled_from(kinds).flatmap(lambda one: st.tuples(*[windows((one,))] * count))
    mixed = st.tuples(*[windows(kinds)] * count)
    schemas = tuple(
        _schema(stream, kind, 0 if one_form else draw(st.integers(0, kind.forms - 1))) for stream in range(count)
    )
    columns = tuple(tuple(schema.names) for schema in schemas)
    shown = streams[:1] if type_ in ("semi", "anti") else streams
    where, filter_ = draw(_phrase(streams)), draw(_phrase(shown))
    question = Question(
        streams=streams,
        columns=columns,
        keys=tuple(kind.names(stream) for stream in range(count)),
        windows=draw(st.one_of(alike, mixed)),
        type=type_,
        where=where and where.holds,
        where_sql=where and where.sql,
        filter=filter_ and filter_.holds,
        filter_sql=filter_ and filter_.sql,
        select=draw(_select(shown, columns)),
    )
    return Asked(question, schemas, kind)


def _schema(stream: int, kind: KeyKind, form: int) -> pa.Schema:
    """A stream's columns, not in the order of their names; the first stream has floats too."""
    key = list(zip(kind.names(stream), kind.types[form], strict=True))
    floats = [("x", pa.float64())] if stream == 0 else []
    return pa.schema([("v", pa.int64()), *key, *floats, ("ts", pa.int64())])


def _phrase(streams: Sequence[str]) -> st.SearchStrategy[Phrase | None]:
    return st.one_of(st.none(), st.none(), st.sampled_from(phrases(streams)))


def _select(
    streams: Sequence[str], columns: Sequence[Sequence[str]]
) -> st.SearchStrategy[tuple[tuple[str, str, str | None], ...] | None]:
    """No choice, or some columns in any order, some of them renamed."""
    every = [(stream, column) for stream, own in zip(streams, columns, strict=False) for column in own]
    chosen = st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True)
    renamed = st.integers(0, 4)
    picked = st.tuples(chosen, renamed).map(
        lambda drawn: tuple(
            (stream, column, f"as{at}" if at == drawn[1] else None) for at, (stream, column) in enumerate(drawn[0])
        )
    )
    return st.one_of(st.none(), st.none(), picked)


@st.composite
def histories(
    draw: st.DrawFn,
    asked: st.SearchStrategy[Asked] | None = None,
    max_rows: int = 60,
    with_changes: bool = False,
) -> History:
    """A question and a log recorded for it, of at most `max_rows` rows."""
    what = draw(questions() if asked is None else asked)
    count = len(what.question.streams)
    traffic, lateness = draw(_traffic(count, with_changes)), draw(st.tuples(*[st.integers(0, 6)] * count))
    least = Event.SIZE * draw(st.sampled_from([max_rows * share // 6 for share in (0, 1, 2, 3, 4, 4, 3, 2)]))
    drawn = draw(st.binary(min_size=least, max_size=Event.SIZE * max_rows))
    changed = draw(st.lists(_changed(what.question), min_size=1, max_size=3)) if with_changes else []
    log = _Log(asked=what, lateness=lateness, traffic=traffic, planned=changed, clock=traffic.origin)
    for index in range(len(drawn) // Event.SIZE):
        log.take(Event.of(drawn[index * Event.SIZE :][: Event.SIZE], traffic, index))
    return log.close(
        draw(st.one_of(*[st.just((end,) * count) for end in (True, False)], st.tuples(*[st.booleans()] * count)))
    )


def _traffic(streams: int, changes: bool) -> st.SearchStrategy[Traffic]:
    return st.builds(
        Traffic,
        streams=st.just(streams),
        busy=st.one_of(st.none(), st.integers(0, streams - 1)),
        producers=st.integers(1, 3),
        lags=st.tuples(*[st.sampled_from((0, 0, 2, 6))] * 3),
        origin=st.sampled_from(ORIGINS),
        gap=st.sampled_from((1, 3, 8)),
        jitter=st.sampled_from((0, 3, 9)),
        keys=st.sampled_from((5, 8, 13)),
        changes=st.just(changes),
    )


def _changed(question: Question) -> st.SearchStrategy[tuple[Window, ...]]:
    """Other windows for a question; whether it runs in order stays."""
    kinds = ("time", "count", "unbounded") if question.in_order else ("time", "time", "unbounded")
    return st.tuples(*[windows(kinds)] * len(question.streams)).filter(
        lambda new: runs_in_order(new) == question.in_order
    )


@dataclass(slots=True)
class _Producer:
    """One sender of one stream: the greatest time that it sent, and whether it counts for the watermark."""

    greatest: int = BEGINNING
    live: bool = False


@dataclass(slots=True)
class _Log:
    """Writes the records as the gateway does."""

    asked: Asked
    lateness: tuple[int, ...]
    traffic: Traffic
    planned: list[tuple[Window, ...]]
    """The windows of the changes to come."""
    clock: int
    rows: list[Row] = field(default_factory=list)
    records: list[tuple[int, ...]] = field(default_factory=list)
    changes: list[WindowChange] = field(default_factory=list)
    _producers: dict[tuple[int, int], _Producer] = field(default_factory=dict)
    _ended: set[int] = field(default_factory=set)

    @property
    def _watermarks(self) -> tuple[int, ...]:
        """Those of the last record."""
        return self.records[-1] if self.records else (BEGINNING,) * len(self.lateness)

    def take(self, event: Event) -> None:
        """Record the row, unless its stream has ended, and cut as many records as the event says."""
        self.clock += event.gap
        if event.stream not in self._ended:
            self._add(event)
        for cut in range(event.cuts):
            self._cut()
            if cut == 0 and event.change and self.planned:
                self._change(self.planned.pop(0))

    def _add(self, event: Event) -> None:
        producer = self._producers.setdefault((event.stream, event.producer), _Producer())
        time = self.clock - self.traffic.lags[event.producer] - event.jitter
        late = time < producer.greatest - self.lateness[event.stream] or time < self._watermarks[event.stream]
        producer.greatest, producer.live = max(producer.greatest, time), not event.silent
        self.rows.append(self._row(event, time, late))
        if event.ends:
            self._ended.add(event.stream)

    def _row(self, event: Event, time: int, late: bool) -> Row:
        kind, stream = self.asked.kind, event.stream
        key = kind.key(event.key, event.null)
        position = sum(row.stream == stream for row in self.rows)
        values = dict(zip(kind.names(stream), key, strict=True)) | {"v": event.value, "ts": time}
        if "x" in self.asked.schemas[stream].names:
            values["x"] = (None, float("nan"), -0.0, 0.5)[position % 4]
        return Row(stream, len(self.records), position, time, late, key, values, event.producer)

    def _cut(self) -> None:
        """End a record: the watermark of a stream is the smallest over its live producers, and never goes back."""
        watermarks = []
        for stream, watermark in enumerate(self._watermarks):
            live = [one.greatest for (of, _), one in self._producers.items() if of == stream and one.live]
            risen = max(watermark, min(live) - self.lateness[stream]) if live else watermark
            watermarks.append(FOREVER if stream in self._ended else risen)
        self.records.append(tuple(watermarks))

    def _change(self, new: tuple[Window, ...]) -> None:
        record = len(self.records) - 1
        old = self.changes[-1].windows if self.changes else self.asked.question.windows
        self.changes.append(
            WindowChange(record, new, floors(old, self.records[record], released_counts(self._history(), record)))
        )

    def close(self, ended: Sequence[bool]) -> History:
        """Two last records: what was under way, then the end of the streams that end."""
        self._cut()
        self._ended |= {stream for stream, end in enumerate(ended) if end}
        self._cut()
        return self._history()

    def _history(self) -> History:
        return History(
            question=self.asked.question,
            schemas=self.asked.schemas,
            rows=tuple(self.rows),
            records=tuple(self.records),
            changes=tuple(self.changes),
            lateness=self.lateness,
        )
