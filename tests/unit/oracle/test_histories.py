"""What random histories promise to the tests that use them, and what the truth itself must keep over time."""

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle import naive
from tests.oracle.drawing import asked, recorded
from tests.oracle.history import History, Released, prefix, released, released_counts
from tests.oracle.log import Log
from tests.oracle.recorded import BEGINNING, FOREVER, Count, JoinType, Time, WindowChange, floors
from tests.oracle.strategies import TYPES, histories, questions

SEEN = settings(max_examples=40, deadline=None, database=None, derandomize=True)
ORDERED = questions(types=("left", "full", "right", "anti", "inner"), counts=(2, 3), kinds=("count", "time"))


@settings(max_examples=30, deadline=None)
@given(histories(with_changes=True))
def test_a_history_keeps_the_rules_of_the_log(history: History) -> None:
    history.check()
    assert list(history.rows) == sorted(history.rows, key=lambda row: row.record)
    for stream in range(len(history.question.streams)):
        own = [row.position for row in history.rows if row.stream == stream]
        assert list(range(len(own))) == own
    for change in history.changes:
        assert change.record < len(history.records) - 1


@settings(max_examples=30, deadline=None)
@given(histories())
def test_a_row_is_late_by_its_producers_sequence_or_by_the_watermark_before(history: History) -> None:
    for at, row in enumerate(history.rows):
        earlier = [one.time for one in history.rows[:at] if (one.stream, one.producer) == (row.stream, row.producer)]
        bound = max(earlier, default=BEGINNING) - history.lateness[row.stream]
        assert row.late == (row.time < bound or row.time < history.before(row.record)[row.stream])


@settings(max_examples=60, deadline=None)
@given(histories(with_changes=True, max_rows=30))
def test_no_result_is_ever_taken_back(history: History) -> None:
    assert_nothing_is_taken_back(history)


@settings(max_examples=60, deadline=None)
@given(histories(asked=ORDERED, with_changes=True, max_rows=30))
def test_no_result_is_ever_taken_back_in_order(history: History) -> None:
    assert_nothing_is_taken_back(history)


def assert_nothing_is_taken_back(history: History) -> None:
    """What the workers have emitted up to a record stays true in every later one."""
    emitted: Counter[object] = Counter()
    for record in range(len(history.records)):
        known = prefix(history, record)
        now = Counter(naive.join(history.question, known.rows, known.changes, known.final))
        assert Counter() == emitted - now
        emitted = now


@settings(max_examples=30, deadline=None)
@given(histories(), st.data())
def test_a_change_to_the_same_windows_changes_nothing(history: History, data: st.DataObject) -> None:
    record = data.draw(st.integers(0, len(history.records) - 2))
    windows = history.question.windows
    counts = released_counts(history, record)
    change = WindowChange(record, windows, floors(windows, history.records[record], counts))
    before, after = prefix(history), prefix(replace(history, changes=(change,)))
    assert naive.join(history.question, before.rows, before.changes, before.final) == naive.join(
        history.question, after.rows, after.changes, after.final
    )


@settings(max_examples=30, deadline=None)
@given(histories(asked=ORDERED))
def test_release_is_in_total_order_and_counts_what_the_oracle_counts(history: History) -> None:
    out = [one for one in released(history) if one.rank is not None]
    assert list(range(len(out))) == [one.rank for one in out]
    assert sorted(one.row.place for one in out) == [one.row.place for one in out]
    assert sorted(one.record for one in out) == [one.record for one in out]
    for one in out:
        held = [other.row.stream for other in out if other.row.place <= one.row.place]
        assert tuple(held.count(stream) for stream in range(len(history.question.streams))) == one.counts
        assert one.record >= one.row.record
    for record in range(len(history.records)):
        streams = [one.row.stream for one in out if one.record <= record]
        assert released_counts(history, record) == tuple(
            streams.count(stream) for stream in range(len(history.question.streams))
        )


@settings(max_examples=30, deadline=None)
@given(histories(asked=ORDERED))
def test_the_truth_of_released_rows_is_the_truth_of_all_rows(history: History) -> None:
    known = prefix(history)
    assert naive.join(history.question, history.rows, final=history.final) == naive.join(
        history.question, known.rows, final=known.final
    )


def test_a_row_is_released_when_every_watermark_is_above_it_and_a_late_row_at_once() -> None:
    # Record:       0         1            2
    rows = recorded("a: x.x", "b: .x", "a: .X")
    history = History(
        question=asked(Count(1), Time(0)),
        schemas=(pa.schema([]),) * 2,
        rows=tuple(rows),
        records=((2, BEGINNING), (2, 1), (2, 2), (FOREVER, FOREVER)),
    )
    a0, a2, b1, late = rows
    assert [
        Released(1, a0, 0, (1, 0)),
        Released(2, late, None, None),
        Released(2, b1, 1, (1, 1)),
        Released(3, a2, 2, (2, 1)),
    ] == released(history)


def kept(lateness: int = 0) -> Log:
    return Log(question=asked(Time(3), Time(0)), schemas=(pa.schema([]),) * 2, lateness=(lateness, 0))


def test_the_watermark_is_the_smallest_over_the_live_producers() -> None:
    log = kept(lateness=2)
    log.send(0, 10, ("x",), {}, producer=1)
    log.cut()
    log.send(0, 20, ("x",), {}, producer=1)
    log.send(0, 15, ("x",), {}, producer=2)
    log.cut()
    log.silence(0, 2)
    log.cut()
    log.silence(0, 1)
    log.cut()
    log.send(0, 9, ("x",), {}, producer=2)
    log.cut()
    log.end(0)
    log.cut()
    assert [8, 13, 18, 18, 18, FOREVER] == [first for first, _ in log.history().records]
    assert [False, False, False, True] == [row.late for row in log.history().rows]


def test_lateness_is_the_producers_own_while_the_watermark_does_not_forbid_it() -> None:
    log = kept(lateness=2)
    for producer, time in ((1, 10), (1, 8), (1, 7), (2, 3), (2, 1), (2, 0)):
        log.send(0, time, ("x",), {}, producer)
    assert [False, False, True, False, False, True] == [row.late for row in log.history().rows]


def test_a_change_carries_the_floors_of_its_record() -> None:
    log = kept()
    log.send(0, 5, ("x",), {})
    log.send(1, 9, ("x",), {})
    log.cut(change=(Time(1), Time(1)))
    assert (WindowChange(0, (Time(1), Time(1)), (6, 5)),) == log.history().changes


def test_an_ended_stream_takes_no_row() -> None:
    log = kept()
    log.end(0)
    with pytest.raises(ValueError, match="ended"):
        log.send(0, 1, ("x",), {})


def test_a_history_that_breaks_the_rules_is_refused() -> None:
    history = History(question=asked(Time(0), Time(0)), schemas=(pa.schema([]),) * 2, rows=(), records=((3, 3), (2, 3)))
    with pytest.raises(ValueError, match="goes back"):
        history.check()
    timely = replace(history, records=((3, 3), (3, 3)), rows=tuple(recorded("", "a: x")))
    with pytest.raises(ValueError, match="not late"):
        timely.check()


@pytest.mark.parametrize(("type_", "count"), [*((type_, 2) for type_ in TYPES), ("inner", 3), ("inner", 4)])
def test_histories_of_every_type_have_results(type_: JoinType, count: int) -> None:
    found: list[bool] = []

    @SEEN
    @given(histories(asked=questions(types=(type_,), counts=(count,))))
    def look(history: History) -> None:
        found.append(bool(naive.join(history.question, history.rows, final=history.final)))

    look()
    assert sum(found) >= 3


def test_histories_hold_what_they_promise() -> None:
    seen: Counter[str] = Counter()

    @SEEN
    @given(histories(with_changes=True))
    def look(history: History) -> None:
        seen["in order"] += history.question.in_order
        seen["not in order"] += not history.question.in_order
        seen["open end"] += FOREVER not in history.final
        seen["late"] += any(row.late for row in history.rows)
        seen["null key"] += any(None in row.key for row in history.rows)
        seen["ties"] += len({row.time for row in history.rows}) < len(history.rows)
        seen["producers"] += len({row.producer for row in history.rows}) > 1
        seen["changes"] += bool(history.changes)
        seen["rows after a change"] += any(
            row.record > change.record for row in history.rows for change in history.changes
        )

    look()
    assert [] == [what for what in seen if seen[what] == 0]
