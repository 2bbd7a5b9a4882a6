"""The truth, slowly: nested loops in plain Python over the recorded input (docs/design.md §2, and the spec changes of
§3).

Rule 1, pairs. A combination of one row per stream matches iff their keys are equal and hold no null, `where` is true,
        and every member lies in its stream's window at the place of the latest member.
Rule 2, windows. With T the latest member's time, Time(W) holds t >= T - W. Count(N) holds the last N rows of the
whole
        stream at the latest member's place, in the order (time, stream, position).
Rule 3, late rows match nothing, have no rank, and are no unmatched row either.
Rule 4, in order. With a count window a row takes part once every watermark is above its time, not before.
Rule 5, closing. A row of a kept side that matched nothing is a result once nothing that could match it can come: when
the other stream's watermark is above t + W; when N later rows pushed it out of Count(N); when the other stream
        has ended. In order that watermark is the smallest of all, because rows below the other's own watermark may
        still be held back.
Rule 6, changes. A combination is judged by the windows in force at its latest record. A change in record n is in
force
        after n, and a member recorded up to n that lies below its floor joins nothing after n; it was closed with the
        old window.

Each rule has its hand-made cases in tests/unit/oracle/test_naive.py.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

from tests.oracle.recorded import (
    FOREVER,
    KEPT,
    Count,
    Identity,
    Question,
    Row,
    Time,
    Unbounded,
    Window,
    WindowChange,
    closing_watermark,
    runs_in_order,
)


def join(
    question: Question,
    rows: Sequence[Row],
    changes: Sequence[WindowChange] = (),
    final: Sequence[int] | None = None,
) -> list[Identity]:
    """Every result of the recorded input, before `filter`.

    `final` are the watermarks of the last record, by default of a query whose streams have all ended. `changes` are
    those of the records before the last one: a change in the last record is not in force yet.
    """
    judge = _Judge(question, rows, changes, question.ended() if final is None else final)
    matches = [members for members in _same_keys(judge.rows) if judge.matches(members)]
    if question.type == "inner":
        return [tuple(row.position for row in members) for members in matches]
    matched = [{members[side].position for members in matches} for side in (0, 1)]
    if question.type == "semi":
        return [(row.position,) for row in judge.rows[0] if row.position in matched[0]]
    unmatched = [
        row
        for side in KEPT[question.type]
        for row in judge.rows[side]
        if row.position not in matched[side] and judge.closed(row)
    ]
    if question.type == "anti":
        return [(row.position,) for row in unmatched]
    pairs: list[Identity] = [(first.position, second.position) for first, second in matches]
    return pairs + [(row.position, None) if row.stream == 0 else (None, row.position) for row in unmatched]


def late(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """The late output, as (stream, position): every late row once, whatever the question."""
    return [(row.stream, row.position) for row in rows if row.late]


def filtered(question: Question, rows: Sequence[Row], results: Sequence[Identity]) -> list[Identity]:
    """The results whose row passes `filter`."""
    if question.filter is None:
        return list(results)
    index = _index(rows)
    return [result for result in results if question.filter(_seen(question, index, result)) is True]


def render(question: Question, rows: Sequence[Row], results: Sequence[Identity]) -> list[dict[str, object]]:
    """The result rows that a sink holds: `filter` applied, columns chosen, named and ordered."""
    index = _index(rows)
    output = [(name, f"{question.streams[stream]}.{column}") for name, stream, column in question.output()]
    rendered = []
    for result in filtered(question, rows, results):
        seen = _seen(question, index, result)
        rendered.append({name: seen[source] for name, source in output})
    return rendered


class _Judge:
    """Says of a combination whether it matches, and of a row whether it is closed."""

    def __init__(
        self, question: Question, rows: Sequence[Row], changes: Sequence[WindowChange], final: Sequence[int]
    ) -> None:
        _check(question, rows, changes, final)
        self._question, self._changes, self._final = question, sorted(changes, key=lambda change: change.record), final
        released_below = min(final) if question.in_order else FOREVER
        self.rows: list[list[Row]] = [
            sorted(
                (row for row in rows if row.stream == stream and not row.late and row.time < released_below),
                key=lambda row: row.place,
            )
            for stream in range(len(question.streams))
        ]
        """The rows that take part, of each stream in order."""
        self._places = [[row.place for row in own] for own in self.rows]

    def matches(self, members: tuple[Row, ...]) -> bool:
        """Rules 1, 2 and 6, given that the keys are equal."""
        record = max(row.record for row in members)
        if any(self._below_floor(row, change) for change in self._changes if change.record < record for row in members):
            return False
        windows, latest = self._windows_at(record), max(members, key=lambda row: row.place)
        if not all(self._holds(windows[row.stream], row, latest) for row in members):
            return False
        where = self._question.where
        return where is None or where(_environment(self._question, members)) is True

    def closed(self, row: Row) -> bool:
        """Rule 5, by the last windows; or earlier, by an older one, as the floors tell."""
        if any(self._below_floor(row, change) for change in self._changes):
            return True
        windows = self._changes[-1].windows if self._changes else self._question.windows
        watermark = closing_watermark(row.stream, windows, self._final)
        if watermark == FOREVER:
            return True
        match windows[row.stream]:
            case Time(ns):
                return watermark > row.time + ns
            case Count(n):
                return len(self.rows[row.stream]) - 1 - self._rank(row) >= n
            case Unbounded():
                return False

    def _holds(self, window: Window, row: Row, latest: Row) -> bool:
        match window:
            case Time(ns):
                return latest.time - ns <= row.time
            case Count(n):
                return bisect_right(self._places[row.stream], latest.place) - self._rank(row) <= n
            case Unbounded():
                return True

    def _rank(self, row: Row) -> int:
        return bisect_right(self._places[row.stream], row.place) - 1

    def _windows_at(self, record: int) -> tuple[Window, ...]:
        in_force = self._question.windows
        for change in self._changes:
            if change.record < record:
                in_force = change.windows
        return in_force

    def _below_floor(self, row: Row, change: WindowChange) -> bool:
        if row.record > change.record:
            return False
        old = self._windows_at(change.record)[row.stream]
        return (self._rank(row) if isinstance(old, Count) else row.time) < change.floors[row.stream]


def _same_keys(rows: Sequence[Sequence[Row]], members: tuple[Row, ...] = ()) -> Iterator[tuple[Row, ...]]:
    """Every combination with equal keys: one loop per stream, each inside the one before."""
    if len(members) == len(rows):
        yield members
        return
    for row in rows[len(members)]:
        if None not in row.key and (not members or members[0].key == row.key):
            yield from _same_keys(rows, (*members, row))


def _check(question: Question, rows: Sequence[Row], changes: Sequence[WindowChange], final: Sequence[int]) -> None:
    if len(final) != len(question.streams):
        raise ValueError(f"{len(final)} watermarks for {len(question.streams)} streams")
    if len({(row.stream, row.position) for row in rows}) != len(rows):
        raise ValueError("two rows of a stream have the same position")
    for change in changes:
        if runs_in_order(change.windows) != question.in_order:
            raise ValueError("a change to the first count window, or from the last one, is another query")


def _index(rows: Sequence[Row]) -> dict[tuple[int, int], Row]:
    return {(row.stream, row.position): row for row in rows}


def _seen(question: Question, index: Mapping[tuple[int, int], Row], result: Identity) -> dict[str, object]:
    """What `filter` and `select` see of a result: null in every column of a stream without a member."""
    return _environment(question, [None if at is None else index[stream, at] for stream, at in enumerate(result)])


def _environment(question: Question, members: Sequence[Row | None]) -> dict[str, object]:
    return {
        f"{question.streams[stream]}.{column}": None if row is None else row.values[column]
        for stream, row in enumerate(members)
        for column in question.columns[stream]
    }
