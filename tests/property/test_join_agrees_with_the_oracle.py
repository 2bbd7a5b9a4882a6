"""Both methods, all join types, every kind of window: missing 0, extra 0, duplicate 0, wherever batches are cut."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joinery.join.plan import JoinPlan
from tests.oracle import naive
from tests.oracle.compare import compare
from tests.oracle.history import History, prefix
from tests.oracle.strategies import histories
from tests.support.driving import Outcome, run, spec_of

METHODS = ("hash", "nested-loop")
QUICK = settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))

tunings = st.tuples(st.sampled_from((None, 200, 1000)), st.sampled_from((1, 100, 4096)))
cuts = st.one_of(st.just(range(1000)), st.just(()), st.lists(st.integers(0, 60), max_size=8))


def assert_exact(history: History, outcome: Outcome) -> None:
    question, known = history.question, prefix(history)
    truth = naive.join(question, known.rows, known.changes, known.final)
    shown = naive.filtered(question, known.rows, truth)
    found = compare(outcome.results, shown)
    assert "missing 0, extra 0, duplicate 0" == str(found), str(found)
    rendered = compare(
        [tuple(row.items()) for row in outcome.rows],
        [tuple(row.items()) for row in naive.render(question, known.rows, truth)],
    )
    assert "missing 0, extra 0, duplicate 0" == str(rendered), str(rendered)
    assert sorted(naive.late(known.rows)) == sorted(outcome.late)


@pytest.mark.parametrize("method", METHODS)
@QUICK
@given(history=histories(with_changes=True), cuts=cuts, tuning=tunings, partitions=st.sampled_from((1, 3, 60)))
def test_the_results_of_any_history_are_the_oracles(
    method: str, history: History, cuts: list[int], tuning: tuple[int | None, int], partitions: int
) -> None:
    plan = JoinPlan.of(spec_of(history, join__method=method, partitions=partitions))
    plan = replace(plan, theta_bytes=tuning[0], block_bytes=tuning[1])
    assert_exact(history, run(history, plan, cuts))
