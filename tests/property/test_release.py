"""Rows of a query with a count window are released as the oracle says, and joined from there they are exact."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joinery.flow.release import Release
from joinery.join.logic import WindowJoin
from joinery.join.plan import JoinPlan
from joinery.window.sliding import Marks
from tests.oracle.history import History, released, released_counts
from tests.oracle.strategies import histories, questions
from tests.property.test_join_agrees_with_the_oracle import assert_exact
from tests.support.driving import Outcome, batches, spec_of

counting = histories(questions(kinds=("count", "time")).filter(lambda asked: asked.question.in_order))
SETTINGS = settings(max_examples=150, suppress_health_check=list(HealthCheck))


@SETTINGS
@given(history=counting, data=st.data())
def test_rows_are_released_in_the_order_of_the_oracle_with_its_ranks_and_counts(
    history: History, data: st.DataObject
) -> None:
    plan = JoinPlan.of(spec_of(history))
    release, found = Release(plan.streams), []
    for record, watermarks in enumerate(history.records):
        rows = batches(history, plan, record - 1, record, None)
        for batch in release.admit(data.draw(st.permutations(rows)), watermarks):
            assert batch.order is not None
            for place, rank, counts in zip(batch.places, batch.order.ranks, batch.order.counts, strict=True):
                found.append((record, batch.stream, int(place), int(rank), tuple(counts.tolist())))
        assert released_counts(history, record) == release.counts
    none = (0,) * plan.streams
    wanted = [
        (one.record, one.row.stream, one.row.position, -1 if one.rank is None else one.rank, one.counts or none)
        for one in released(history)
    ]
    assert sorted(wanted) == sorted(found)


@SETTINGS
@given(history=counting)
def test_what_was_released_joins_exactly(history: History) -> None:
    plan = JoinPlan.of(spec_of(history))
    release, join, outcome = Release(plan.streams), WindowJoin(plan), Outcome()
    for record, watermarks in enumerate(history.records):
        rows = release.admit(batches(history, plan, record - 1, record, None), watermarks)
        for part in join.on_batch(rows, Marks(watermarks, release.counts)):
            outcome.add(history.question, part)
    assert_exact(history, outcome)
