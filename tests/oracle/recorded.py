"""The recorded input as values: all that the truth depends on, and nothing else (docs/design.md, "the invariant").

For each row: stream, record, position, time, late flag, key, columns. For each change of the windows: its record and
its floors. Beside them the question that was asked, and the watermarks at the end, because an outer or anti row is a
result only once it is closed.

A question with a count window runs *in order*: a row takes part only when it is released, and `Row.record` then means
the record that released it (`history.prefix` makes such rows). Nothing in this folder imports the product: two truths
that share code share mistakes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import pyarrow as pa

FOREVER: Final = 2**63 - 1
"""The watermark of a stream that ended."""
BEGINNING: Final = -(2**62)
"""The watermark of a stream that has shown nothing yet; below every time."""

POSITION: Final = "_position"
TIME: Final = "_time"
LATE: Final = "_late"
RECORD: Final = "_record"
FACTS: Final = (POSITION, TIME, LATE, RECORD)
"""What a table of a stream says about each row, before the stream's own columns."""

JoinType = Literal["inner", "left", "right", "full", "semi", "anti"]
KEPT: Final[Mapping[str, tuple[int, ...]]] = {
    "inner": (),
    "left": (0,),
    "right": (1,),
    "full": (0, 1),
    "semi": (),
    "anti": (0,),
}
"""The streams whose unmatched rows are results."""

Identity = tuple[int | None, ...]
"""A result by its members' positions, None where null-extended; a semi or anti join has only stream 0's."""
Condition = Callable[[Mapping[str, object]], bool | None]
"""SQL's three-valued truth of one combination, given as {"stream.column": value}."""


@dataclass(frozen=True, slots=True)
class Time:
    """Holds the rows of the last `ns` nanoseconds, both ends included."""

    ns: int

    def __post_init__(self) -> None:
        if self.ns < 0:
            raise ValueError(f"a time window of {self.ns} ns; wanted 0 or more")


@dataclass(frozen=True, slots=True)
class Count:
    """Holds the last `n` rows of the whole stream."""

    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"a count window of {self.n} rows; wanted 1 or more")


@dataclass(frozen=True, slots=True)
class Unbounded:
    """Holds every row."""


Window = Time | Count | Unbounded


@dataclass(frozen=True, slots=True)
class Row:
    """One recorded row; `position` is its place in its stream and unique there, `values` has every column."""

    stream: int
    record: int
    position: int
    time: int
    late: bool
    key: tuple[object, ...]
    values: Mapping[str, object] = field(default_factory=dict)
    producer: int = 0

    @property
    def place(self) -> tuple[int, int, int]:
        """The order of rows: by time; ties by the stream's place in the spec, then by position."""
        return self.time, self.stream, self.position


@dataclass(frozen=True, slots=True)
class WindowChange:
    """New windows, written in record `record` and in force for the records after it.

    `floors` has one number per stream: a row recorded up to `record` and below its floor was closed with the old window
    and matches nothing later. Below means a smaller time; where the old window is a count, a smaller rank in the stream
    (0, 1, 2 ...).
    """

    record: int
    windows: tuple[Window, ...]
    floors: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: the part of a JoinQuery that decides results; `where_sql`, `filter_sql` repeat their twins."""

    streams: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    keys: tuple[tuple[str, ...], ...]
    windows: tuple[Window, ...]
    type: JoinType = "inner"
    where: Condition | None = None
    where_sql: str | None = None
    filter: Condition | None = None
    filter_sql: str | None = None
    select: tuple[tuple[str, str, str | None], ...] | None = None

    def __post_init__(self) -> None:
        if len(self.streams) < 2 or self.type not in KEPT:
            raise ValueError(f"a {self.type!r} join of {len(self.streams)} streams")
        if not len(self.streams) == len(self.columns) == len(self.keys) == len(self.windows):
            raise ValueError("streams, columns, keys and windows differ in number")
        if self.type != "inner" and len(self.streams) != 2:
            raise ValueError(f"a {self.type} join of {len(self.streams)} streams; wanted 2")
        names = [name for name, _, _ in self.output()]
        if len(names) != len(set(names)):
            raise ValueError(f"result columns collide: {sorted(names)}")

    @property
    def in_order(self) -> bool:
        """Whether rows are released in order: so it is as soon as one window is a count."""
        return runs_in_order(self.windows)

    @property
    def shown(self) -> tuple[str, ...]:
        """The streams whose columns a result has."""
        return self.streams[:1] if self.type in ("semi", "anti") else self.streams

    def output(self) -> list[tuple[str, int, str]]:
        """The columns of a result as (name, stream, column), in their order."""
        if self.select is None:
            return [
                (f"{stream}_{column}", index, column)
                for index, stream in enumerate(self.shown)
                for column in sorted(self.columns[index])
            ]
        return [
            (name or f"{stream}_{column}", self.shown.index(stream), column) for stream, column, name in self.select
        ]

    def ended(self) -> tuple[int, ...]:
        """The watermarks once every stream has ended."""
        return (FOREVER,) * len(self.streams)


def runs_in_order(windows: Sequence[Window]) -> bool:
    """Whether such windows need their rows in order."""
    return any(isinstance(window, Count) for window in windows)


def floors(windows: Sequence[Window], watermarks: Sequence[int], counts: Sequence[int]) -> tuple[int, ...]:
    """The floors of a change, from the old windows, and the watermarks and numbers of released rows at its record.

    (smallest watermark of the other streams) - old window, without limits at both ends: an ended stream's watermark is
    infinite, an unbounded window closes only then. In order, what counts is what is released, so the smallest watermark
    of *all* streams is taken. The floor of a count window is the rank of the oldest row that it still holds.
    """
    return tuple(
        _floor(window, closing_watermark(stream, windows, watermarks), counts[stream])
        for stream, window in enumerate(windows)
    )


def closing_watermark(stream: int, windows: Sequence[Window], watermarks: Sequence[int]) -> int:
    """What must pass time + window for a row of that stream to be closed: then nothing that matches it can come."""
    in_order = runs_in_order(windows)
    return min(watermark for other, watermark in enumerate(watermarks) if in_order or other != stream)


def _floor(window: Window, watermark: int, count: int) -> int:
    if watermark == FOREVER:
        return FOREVER
    match window:
        case Time(ns):
            return max(watermark - ns, BEGINNING)
        case Count(n):
            return count - n
        case Unbounded():
            return BEGINNING


def tables(rows: Sequence[Row], schemas: Sequence[pa.Schema]) -> list[pa.Table]:
    """The rows as one Arrow table per stream: `FACTS`, then the columns of the stream's schema."""
    made = []
    for stream, schema in enumerate(schemas):
        if clash := set(schema.names) & set(FACTS):
            raise ValueError(f"stream {stream} has columns {sorted(clash)}, which name facts about a row; rename them")
        own = [row for row in rows if row.stream == stream]
        facts = {
            POSITION: pa.array([row.position for row in own], pa.int64()),
            TIME: pa.array([row.time for row in own], pa.int64()),
            LATE: pa.array([row.late for row in own], pa.bool_()),
            RECORD: pa.array([row.record for row in own], pa.int64()),
        }
        columns = {name: pa.array([row.values[name] for row in own], schema.field(name).type) for name in schema.names}
        made.append(pa.table(facts | columns))
    return made
