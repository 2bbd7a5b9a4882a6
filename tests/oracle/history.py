"""A history: the records of one query's log, as far as results depend on them.

`records[n]` are the watermarks written in record n. A row of record n that is not late has a time at or above its
stream's watermark in record n - 1; `check` holds every history to that, because the rules of closing and release stand
on it.

A question with a count window runs in order: record n releases the rows whose time lies strictly below every watermark
of n (a later row with the same time may still come). Released rows are in total order; each carries its rank in that
order and, for every stream, the number of rows at or before its place. Late rows pass through at once, without a rank.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tests.oracle.recorded import BEGINNING, Question, Row, WindowChange


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Rows by record, the watermarks of each record, and the changes of the windows."""

    question: Question
    schemas: tuple[pa.Schema, ...]
    rows: tuple[Row, ...]
    records: tuple[tuple[int, ...], ...]
    changes: tuple[WindowChange, ...] = ()
    lateness: tuple[int, ...] = ()

    @property
    def final(self) -> tuple[int, ...]:
        """The watermarks of the last record."""
        return self.records[-1]

    def of_record(self, record: int) -> list[Row]:
        """The rows of one record, each stream's in its order."""
        return [row for row in self.rows if row.record == record]

    def before(self, record: int) -> tuple[int, ...]:
        """The watermarks that held when the record was cut."""
        return self.records[record - 1] if record > 0 else (BEGINNING,) * len(self.question.streams)

    def check(self) -> None:
        """Stop unless watermarks never go back and no row below its stream's watermark passes as timely."""
        for record, watermarks in enumerate(self.records):
            if any(now < then for now, then in zip(watermarks, self.before(record), strict=True)):
                raise ValueError(f"a watermark goes back in record {record}")
        for row in self.rows:
            if not row.late and row.time < self.before(row.record)[row.stream]:
                raise ValueError(f"{row} is below its stream's watermark and not late")


@dataclass(frozen=True, slots=True)
class Released:
    """A row that the gateway let go in `record`; `rank` and `counts` say its place, None for a late row."""

    record: int
    row: Row
    rank: int | None
    counts: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Prefix:
    """What is known after a record: the arguments of the oracles."""

    rows: tuple[Row, ...]
    changes: tuple[WindowChange, ...]
    final: tuple[int, ...]


def released(history: History) -> list[Released]:
    """The rows in the order of their release, late ones first in their record; those never released are left out."""
    timely = sorted((row for row in history.rows if not row.late), key=lambda row: row.place)
    counts = [0] * len(history.question.streams)
    out = [Released(row.record, row, None, None) for row in history.rows if row.late]
    record = 0
    for rank, row in enumerate(timely):
        while record < len(history.records) and min(history.records[record]) <= row.time:
            record += 1
        if record == len(history.records):
            break
        counts[row.stream] += 1
        out.append(Released(record, row, rank, tuple(counts)))
    return sorted(out, key=lambda one: (one.record, one.rank is not None, one.rank or 0))


def released_counts(history: History, record: int) -> tuple[int, ...]:
    """How many rows of each stream are released by the records up to that one; batches up to it carry these numbers."""
    below = min(history.records[record])
    return tuple(
        bisect_right(sorted(row.time for row in history.rows if row.stream == stream and not row.late), below - 1)
        for stream in range(len(history.question.streams))
    )


def prefix(history: History, record: int | None = None) -> Prefix:
    """The recorded input up to a record (the last, if none is given), ready for the oracles.

    In order, rows appear under the record that released them, and those still held back do not appear.
    """
    last = len(history.records) - 1 if record is None else record
    if history.question.in_order:
        known: Sequence[Row] = [replace(one.row, record=one.record) for one in released(history)]
    else:
        known = history.rows
    return Prefix(
        rows=tuple(row for row in known if row.record <= last),
        changes=tuple(change for change in history.changes if change.record < last),
        final=history.records[last],
    )
