"""Random questions and histories for property tests.

`questions()` draws what is asked; `histories()` draws a question and a log that could have been recorded for it:
several producers per stream with their own rates, skewed keys, ties, nulls, rows out of order within the lateness and
beyond it, producers that fall silent and return, records cut anywhere, streams that end or do not, and on request
changes of the windows.

The rows of a history are drawn as bytes, a few for each: one draw is quick, and it shrinks to few and simple rows. The
log keeper (tests/oracle/log.py) then flags late rows and writes watermarks as the gateway does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from hypothesis import strategies as st

from tests.oracle.conditions import Phrase, phrases
from tests.oracle.history import History, Released, released
from tests.oracle.keys import KEY_KINDS, KeyKind
from tests.oracle.log import Log
from tests.oracle.recorded import Count, JoinType, Question, Time, Unbounded, Window, runs_in_order

__all__ = ["History", "Released", "histories", "questions", "released", "windows"]

STREAMS: Final = ("a", "b", "c", "d")
TYPES: Final[tuple[JoinType, ...]] = ("inner", "left", "right", "full", "semi", "anti")
ORIGINS: Final = (0, 0, -20, 2**62 - 2000, -(2**62) + 2000)
"""Where a history begins: mostly near 0, sometimes near the ends of time."""
EVENT: Final = 10
"""Bytes that are drawn for a row and for what happens after it."""
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

    def stream(self, index: int, drawn: int) -> int:
        """The stream of the row with that index."""
        return (index + drawn) % self.streams if drawn < 120 or self.busy is None else self.busy


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
    least = EVENT * draw(st.sampled_from([max_rows * share // 6 for share in (0, 1, 2, 3, 4, 4, 3, 2)]))
    drawn = draw(st.binary(min_size=least, max_size=EVENT * max_rows))
    changes = draw(st.lists(_changed(what.question), min_size=1, max_size=3)) if with_changes else []
    ended = draw(st.one_of(*[st.just((end,) * count) for end in (True, False)], st.tuples(*[st.booleans()] * count)))
    log = Log(question=what.question, schemas=what.schemas, lateness=draw(st.tuples(*[st.integers(0, 6)] * count)))
    _fill(log, what, draw(_traffic(count)), drawn, changes)
    log.cut()
    for stream in range(count):
        if ended[stream]:
            log.end(stream)
    log.cut()
    return log.history()


def _fill(log: Log, asked: Asked, traffic: Traffic, drawn: bytes, changes: Sequence[tuple[Window, ...]]) -> None:
    """Read the bytes as rows and what happens after each; zeros make simple rows, of each stream in turn."""
    clock, coming, ended = traffic.origin, list(changes), set()
    for index in range(len(drawn) // EVENT):
        where, who, gap, jitter, key, null, value, cuts, rare, change = drawn[index * EVENT :][:EVENT]
        stream, producer = traffic.stream(index, where), who % traffic.producers
        clock += gap % (traffic.gap + 1)
        if stream not in ended:
            time = clock - traffic.lags[producer] - jitter % (traffic.jitter + 1)
            whole = asked.kind.key(SKEWED[key % traffic.keys], 11 - null % 12)
            values = _values(asked, stream, log.sent(stream), time, whole, (0, 1, 2, 3, None)[value % 5])
            log.send(stream, time, whole, values, producer)
        if rare % 20 == 19:
            log.silence(stream, producer)
        if rare == 255:
            log.end(stream)
            ended.add(stream)
        for cut in range((0, 0, 0, 0, 0, 1, 1, 2)[cuts % 8]):
            log.cut(coming.pop(0) if coming and cut == 0 and change % 6 == 5 else None)


def _values(
    asked: Asked, stream: int, position: int, time: int, key: tuple[object, ...], value: int | None
) -> dict[str, object]:
    columns = dict(zip(asked.kind.names(stream), key, strict=True)) | {"v": value, "ts": time}
    if "x" in asked.schemas[stream].names:
        columns["x"] = (None, math.nan, -0.0, 0.5)[position % 4]
    return columns


def _traffic(streams: int) -> st.SearchStrategy[Traffic]:
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
    )


def _changed(question: Question) -> st.SearchStrategy[tuple[Window, ...]]:
    """Other windows for a question; whether it runs in order stays."""
    kinds = ("time", "count", "unbounded") if question.in_order else ("time", "time", "unbounded")
    return st.tuples(*[windows(kinds)] * len(question.streams)).filter(
        lambda new: runs_in_order(new) == question.in_order
    )
