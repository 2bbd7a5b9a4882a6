"""What a query's results must be, from its recorded input alone (docs/design.md §2): `joinery verify` asks this.

It shares no code with the join: no windows that slide, no batches, no hashing, no watermarks. All rows are there from
the beginning, and each stream is one sorted column.

Rule 1, order. The timely rows of a stream stand by time, equal times by position; between streams equal times stand by
        the stream's place in the spec. Late rows take no part.
Rule 2, one range. Seen from a row of another stream, those rows of a stream that may stand with it are neighbours in
        that order: a window of the stream itself bounds them from below (time >= t - W, or the last N at that place),
        the window of the other row from above. So for every pair of streams two numbers per row say all about windows.
        In a combination of several streams every pair must agree: the greatest lower and the least upper bound hold.
Rule 3, keys. Equal keys get equal numbers; a null gets none. Sorted by (number, place) the range of rule 2 is a range
        again, found by bisection.
Rule 4, what is left: `where` on combinations, unmatched rows of kept sides (the query has ended, so all are closed),
        `filter` and columns. `where` and `filter` are evaluated by the product's own expressions, which are held to
        DuckDB by tests of their own.
Rule 5, changes of the windows (time windows only). Ranges are made with the widest windows that there were; then each
        combination is judged by those in force at the record that completed it, and by the floors: a row recorded up to
        a change with a time below its floor stands with nothing recorded after it.

Tests hold this module to the slow oracle of the tests, which is held to DuckDB.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from joinery.join.plan import JoinPlan, JoinType
from joinery.model.errors import require
from joinery.model.expression_arrow import Predicate
from joinery.model.quantities import CountWindow, TimeWindow, Window
from joinery.model.tuples import I64Array

AT_ONCE: Final = 1 << 21
"""About so many combinations are held at once."""
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_NOBODY: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class RecordedStream:
    """All rows of a stream as they were recorded, in their positions."""

    rows: pa.Table
    times: I64Array
    late: NDArray[np.bool_]
    records: I64Array | None = None
    """The record of each row; None: it does not matter, the windows were never changed."""


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """Windows from the record after this one on, and the floors of the rows up to it."""

    record: int
    windows: tuple[Window, ...]
    floors: tuple[int, ...]


def truth(
    plan: JoinPlan, streams: Sequence[RecordedStream], changes: Sequence[RecordedChange] = ()
) -> Iterator[pa.Table]:
    """Every result row of a query that has ended, in pieces, in no order that means anything."""
    question = _Question(plan, streams, changes)
    matched = [np.zeros(one.order.size, np.bool_) for one in question.streams]
    for members in question.combinations():
        for stream, places in enumerate(members):
            matched[stream][places] = True
        if plan.type.tells_pairs:
            yield from question.rendered(members)
    if plan.type is JoinType.SEMI:
        yield from question.rendered([np.flatnonzero(matched[0])])
    for stream in plan.type.kept_unmatched:
        alone = np.flatnonzero(~matched[stream])
        nobody = np.full(alone.size, _NOBODY, np.int64)
        shown = range(plan.streams if plan.type.tells_pairs else 1)
        yield from question.rendered([alone if other == stream else nobody for other in shown])


@dataclass(frozen=True, slots=True, eq=False)
class _Stream:
    """A stream in order (rule 1)."""

    rows: pa.Table
    order: I64Array
    """Position of the row at each place."""
    times: I64Array
    codes: I64Array
    """Number of the key (rule 3); -1: it has a null."""
    sorted_keys: I64Array
    """Key and place as one number, sorted, of the rows that have a key."""
    places: I64Array
    """Their places, in that order."""
    records: I64Array
    """The record of the row at each place."""


class _Question:
    def __init__(
        self, plan: JoinPlan, streams: Sequence[RecordedStream], changes: Sequence[RecordedChange] = ()
    ) -> None:
        self._plan = plan if not changes else replace(plan, windows=_widest([plan.windows, *_windows(changes)]))
        self._versions, self._changes = [plan.windows, *_windows(changes)], changes
        codes = _codes(plan, streams)
        self.streams = [_in_order(one, own) for one, own in zip(streams, codes, strict=True)]
        self._bounds = {
            (seen, other): self._range(seen, other) for other in range(plan.streams) for seen in range(other)
        }

    def _range(self, seen_from: int, other: int) -> tuple[I64Array, I64Array]:
        """For each row of one stream the places of the other that windows allow: from, to before (rule 2)."""
        here, there = self.streams[seen_from], self.streams[other]
        own, windows = self._plan.windows[seen_from], self._plan.windows
        low = _lower(windows[other], here.times, self._count(other, seen_from), there.times)
        high = _upper(own, here.times, np.arange(here.order.size), there.times, self._count(seen_from, other))
        return low, high

    def _count(self, of: int, at: int) -> I64Array:
        """How many rows of one stream stand at or before each row of another."""
        side = "right" if of < at else "left"
        return np.searchsorted(self.streams[of].times, self.streams[at].times, side=side).astype(np.int64)  # type: ignore[call-overload,no-any-return]

    def combinations(self) -> Iterator[list[I64Array]]:
        """Matching rows, one column of places per stream."""
        first = self.streams[0]
        keyed = np.flatnonzero(first.codes >= 0)
        low, high = self._slices([keyed], 1)
        for chosen in _portions(high - low):
            members = [keyed[chosen]]
            for other in range(1, self._plan.streams):
                low, high = self._slices(members, other)
                by = np.repeat(np.arange(low.size), high - low)
                at = np.arange(by.size) - np.repeat(np.cumsum(high - low) - (high - low), high - low) + low[by]
                members = [*(places[by] for places in members), self.streams[other].places[at]]
            if self._changes:
                members = self._in_force(members)
            yield self._holding(self._plan.where, members)

    def _in_force(self, members: list[I64Array]) -> list[I64Array]:
        """The combinations that the windows of their time hold (rule 5)."""
        times = [one.times[places] for one, places in zip(self.streams, members, strict=True)]
        records = [one.records[places] for one, places in zip(self.streams, members, strict=True)]
        latest, completed = np.max(times, axis=0), np.max(records, axis=0)
        version = np.searchsorted([change.record for change in self._changes], completed, side="left")
        fits = np.ones(latest.size, np.bool_)
        for number, windows in enumerate(self._versions):
            for window, own in zip(windows, times, strict=True):
                if isinstance(window, TimeWindow) and not window.is_unbounded:
                    fits &= (version != number) | (own >= _moved(latest, -window.length_ns))
        for change in self._changes:
            for floor, own, record in zip(change.floors, times, records, strict=True):
                fits &= ~((change.record < completed) & (record <= change.record) & (own < floor))
        return [places[fits] for places in members]

    def _slices(self, members: list[I64Array], other: int) -> tuple[I64Array, I64Array]:
        """Where in the other stream's sorted keys the partners of each combination begin and end."""
        there, size = self.streams[other], self.streams[other].order.size
        bounds = [self._bounds[stream, other] for stream in range(len(members))]
        low = np.max([bound[0][places] for bound, places in zip(bounds, members, strict=True)], axis=0)
        high = np.min([bound[1][places] for bound, places in zip(bounds, members, strict=True)], axis=0)
        base = self.streams[0].codes[members[0]] * (size + 1)
        begin = np.searchsorted(there.sorted_keys, base + np.clip(low, 0, size))
        end = np.searchsorted(there.sorted_keys, base + np.clip(high, 0, size))
        return begin, np.maximum(begin, end)

    def _column(self, stream: int, name: str | int, places: I64Array) -> pa.Array:
        one = self.streams[stream]
        positions = np.full(places.size, _NOBODY) if one.order.size == 0 else one.order[places]
        index = pa.array(positions, mask=places == _NOBODY)
        return one.rows.column(name).combine_chunks().take(index)

    def _holding(self, condition: Predicate | None, members: list[I64Array]) -> list[I64Array]:
        if condition is None or members[0].size == 0:
            return members
        names = [form.name for form in self._plan.formats]
        columns = {
            (stream, name): self._column(names.index(stream), name, members[names.index(stream)])
            for stream, name in condition.columns
        }
        mask = condition.mask(columns, members[0].size)
        return [places[mask] for places in members]

    def rendered(self, members: list[I64Array]) -> Iterator[pa.Table]:
        """The result rows of these combinations: filtered, columns chosen and named."""
        for start in range(0, members[0].size, AT_ONCE):
            kept = self._holding(self._plan.filter, [places[start : start + AT_ONCE] for places in members])
            columns = [self._column(one.stream, one.number, kept[one.stream]) for one in self._plan.output]
            yield pa.Table.from_arrays(columns, schema=self._plan.schema)


def _in_order(stream: RecordedStream, codes: I64Array) -> _Stream:
    timely = np.flatnonzero(~stream.late)
    order = timely[np.argsort(stream.times[timely], kind="stable")]
    own = codes[order]
    places = np.flatnonzero(own >= 0)
    keys = own[places] * (order.size + 1) + places
    sort = np.argsort(keys)
    records = np.zeros(stream.times.size, np.int64) if stream.records is None else stream.records
    return _Stream(stream.rows, order, stream.times[order], own, keys[sort], places[sort], records[order])


def _windows(changes: Sequence[RecordedChange]) -> list[tuple[Window, ...]]:
    return [change.windows for change in changes]


def _widest(versions: Sequence[tuple[Window, ...]]) -> tuple[Window, ...]:
    """Of each stream the longest window that it ever had."""
    times = [[window for window in own if isinstance(window, TimeWindow)] for own in zip(*versions, strict=True)]
    require(all(len(own) == len(versions) for own in times), "the truth of changed count windows is not known")
    return tuple(max(own, key=lambda window: window.length_ns) for own in times)


def _codes(plan: JoinPlan, streams: Sequence[RecordedStream]) -> list[I64Array]:
    """A number for every key, the same for equal ones of all streams; -1 where a column is null (rule 3)."""
    sizes = [stream.rows.num_rows for stream in streams]
    whole = np.zeros(sum(sizes), np.int64)
    is_null = np.zeros(sum(sizes), np.bool_)
    for column, form in enumerate(plan.formats[0].key.forms):
        parts = [
            chunk.cast(form)
            for stream, one in zip(streams, plan.formats, strict=True)
            for chunk in stream.rows.column(one.key.columns[column]).chunks
        ]
        found = pa.chunked_array(parts, form).combine_chunks().dictionary_encode().indices
        is_null |= found.is_null().to_numpy(zero_copy_only=False)
        whole = whole * (pc.max(found).as_py() or 0) + whole + found.fill_null(0).to_numpy()
        whole = np.unique(whole, return_inverse=True)[1].astype(np.int64)
    whole[is_null] = _NOBODY
    return np.split(whole, np.cumsum(sizes)[:-1])


def _lower(window: Window, times: I64Array, counts: I64Array, there: I64Array) -> I64Array:
    """The first place of the other stream that its own window still holds, seen from each row."""
    if isinstance(window, CountWindow):
        return counts - window.rows
    if window.is_unbounded:
        return np.zeros(times.size, np.int64)
    return np.searchsorted(there, _moved(times, -window.length_ns), side="left").astype(np.int64)


def _upper(own: Window, times: I64Array, places: I64Array, there: I64Array, counts_there: I64Array) -> I64Array:
    """The place behind the last one of the other stream whose row still finds this row in its window."""
    if isinstance(own, CountWindow):  # rows of this stream up to there, less those up to here, are fewer than N
        return np.searchsorted(counts_there, places + 1 + own.rows, side="left").astype(np.int64)
    if own.is_unbounded:
        return np.full(times.size, there.size, np.int64)
    return np.searchsorted(there, _moved(times, own.length_ns), side="right").astype(np.int64)


def _moved(times: I64Array, by_ns: int) -> I64Array:
    """Times moved, but not beyond what a number holds."""
    if by_ns < 0:
        return np.where(times < _LEAST - by_ns, _LEAST, times + by_ns)
    return np.where(times > _MOST - by_ns, _MOST, times + by_ns)


def _portions(sizes: I64Array) -> Iterator[slice]:
    """Slices whose sizes add up to about `AT_ONCE`."""
    ends = np.cumsum(sizes)
    start = 0
    while start < sizes.size:
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + AT_ONCE, side="right")))
        yield slice(start, stop)
        start = stop
