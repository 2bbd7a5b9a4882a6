"""The oracle of `joinery verify` says what the slow oracle of the tests says, for every kind of query."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joinery.join.plan import JoinPlan
from joinery.model.quantities import Nanoseconds, TimeWindow
from joinery.model.time import UNBOUNDED
from joinery.oracle import truth as shipped
from joinery.oracle.truth import RecordedChange, RecordedStream, truth
from tests.oracle import naive
from tests.oracle.compare import compare
from tests.oracle.history import History
from tests.oracle.recorded import FACTS, LATE, RECORD, TIME, JoinType, Time, tables
from tests.oracle.strategies import TYPES, histories, questions
from tests.support.driving import spec_of

QUICK = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


def recorded(history: History, plan: JoinPlan) -> list[RecordedStream]:
    rows = sorted(history.rows, key=lambda row: row.position)
    return [
        RecordedStream(
            table.drop_columns(list(FACTS)).select(form.schema.names).cast(form.schema),
            table[TIME].to_numpy(),
            table[LATE].to_numpy(),
            table[RECORD].to_numpy(),
        )
        for table, form in zip(tables(rows, history.schemas), plan.formats, strict=True)
    ]


def changes_of(history: History) -> list[RecordedChange]:
    made = []
    for change in history.changes:
        lengths = [one.ns if isinstance(one, Time) else UNBOUNDED for one in change.windows]
        windows = tuple(TimeWindow(Nanoseconds(length)) for length in lengths)
        made.append(RecordedChange(change.record, windows, change.floors))
    return made


def check(history: History) -> None:
    plan = JoinPlan.of(spec_of(history))
    found = pa.concat_tables([plan.schema.empty_table(), *truth(plan, recorded(history, plan), changes_of(history))])
    joined = naive.join(history.question, history.rows, history.changes)
    wanted = naive.render(history.question, history.rows, joined)
    shown = [tuple(row.items()) for row in found.to_pylist()]
    assert "missing 0, extra 0, duplicate 0" == str(compare(shown, [tuple(row.items()) for row in wanted]))


@pytest.mark.parametrize("type_", TYPES)
@QUICK
@given(data=st.data())
def test_the_truth_of_any_history_is_that_of_the_slow_oracle(type_: JoinType, data: st.DataObject) -> None:
    check(data.draw(histories(questions(types=(type_,)))))


@QUICK
@given(data=histories(questions(kinds=("time", "time", "unbounded")), with_changes=True))
def test_so_it_is_when_windows_were_changed(data: History) -> None:
    check(data)


@QUICK
@given(data=histories())
def test_so_it_is_when_few_combinations_are_held_at_once(data: History) -> None:
    before = shipped.AT_ONCE
    shipped.AT_ONCE = 3
    try:
        check(data)
    finally:
        shipped.AT_ONCE = before


def test_times_at_the_ends_of_the_calendar_do_not_overflow() -> None:
    ends = np.array([-(2**63) + 5, 2**63 - 5])
    assert [-(2**63), 2**63 - 105] == shipped._moved(ends, -100).tolist()
    assert [-(2**63) + 105, 2**63 - 1] == shipped._moved(ends, 100).tolist()
