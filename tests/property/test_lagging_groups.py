"""Groups of one worker need not be at the same record: one that lags behind loses nothing to the others' watermarks."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joinery.join.logic import WindowJoin
from joinery.join.plan import JoinPlan
from joinery.partition.hashing import groups_of
from tests.oracle.history import History, released
from tests.oracle.strategies import histories
from tests.property.test_join_agrees_with_the_oracle import assert_exact
from tests.support.driving import Outcome, batches, marks, spec_of

PARTITIONS = 3


@pytest.mark.parametrize("method", ["hash", "nested-loop"])
@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(history=histories(), data=st.data())
def test_groups_that_go_on_at_their_own_pace_change_no_result(
    method: str, history: History, data: st.DataObject
) -> None:
    plan = JoinPlan.of(spec_of(history, join__method=method, partitions=PARTITIONS))
    join, outcome = WindowJoin(replace(plan, block_bytes=1)), Outcome()
    known = released(history) if history.question.in_order else None
    reached, last = [-1] * PARTITIONS, len(history.records) - 1
    steps = data.draw(st.lists(st.tuples(st.integers(0, PARTITIONS - 1), st.integers(0, last)), max_size=12))
    for group, record in [*steps, *((group, last) for group in range(PARTITIONS))]:
        if record <= reached[group]:
            continue
        wanted = np.arange(PARTITIONS) == group
        rows = [
            batch.take(wanted[groups_of(batch.hashes, PARTITIONS)])
            for batch in batches(history, plan, reached[group], record, known)
        ]
        for part in join.on_batch(rows, marks(history, record), wanted):
            outcome.add(history.question, part)
        reached[group] = record
    assert_exact(history, outcome)
