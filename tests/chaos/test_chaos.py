"""Real processes that are killed and stopped under load, by seed: exact every time (`make chaos` runs more of them)."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from joinery.adapters.recording import Recording
from tests.chaos.feeding import Rows, rows_of
from tests.chaos.plans import MOMENTS, Fault, Plan, draw, draw_long
from tests.chaos.runs import differences, judge


@pytest.mark.parametrize("seed", range(8))
def test_results_are_exact_whoever_dies_or_hangs_at_any_moment(seed: int) -> None:
    verdict = judge(draw(seed))
    assert verdict.is_exact, str(verdict)


@pytest.mark.timeout(400)
def test_results_are_exact_after_thirty_faults() -> None:
    verdict = judge(draw_long(100))
    assert verdict.is_exact, str(verdict)


# --- what would be found


def test_a_seed_says_all_of_a_plan() -> None:
    assert draw(3) == draw(3)
    assert draw(3) != draw(4)


def test_the_seeded_runs_meet_everybody_at_every_moment() -> None:
    faults = [fault for seed in range(8) for fault in draw(seed).faults]
    assert {"gateway", "collector", "redis", "worker-0", "worker-1"} <= {one for f in faults for one in f.victims}
    assert set(MOMENTS) == {fault.moment for fault in faults}
    assert any(fault.stop_s is not None and fault.stop_s > 1.5 for fault in faults)
    assert any(len(fault.victims) > 1 for fault in faults)


def calm(seconds: float = 3.0) -> Plan:
    """A short plan of few rows without harm."""
    plan = draw(0, seconds=seconds)
    return replace(plan, faults=(), ordered=(), feeds=tuple(replace(one, rows=200) for one in plan.feeds))


def test_a_loss_that_is_possible_is_found() -> None:
    """With the log in the gateway's memory its death costs rows."""
    plan = calm()
    spec = {**plan.spec, "checkpoint": {"interval": "100ms", "durability": "memory"}}
    verdict = judge(replace(plan, spec=spec, faults=(Fault(0.5, ("gateway",), None),)))
    assert not verdict.is_exact
    assert "DataLost" in str(verdict)


def recorded(rows: Rows, order: np.ndarray) -> Recording:
    """These rows of a producer, as a recording has them."""
    names = pa.chunked_array([pa.array([rows.feed.name] * order.size)])
    table = rows.table.take(order)
    return Recording(table, table["ts"].to_numpy(), rows.late[order], names, np.arange(order.size))


@pytest.mark.parametrize(
    ("order", "found"),
    [
        (np.arange(200), None),
        (np.delete(np.arange(200), 7), "missing 1, extra 0, duplicate 0"),
        (np.insert(np.arange(200), 7, 7), "missing 0, extra 0, duplicate 1"),
        (np.concatenate([np.arange(100, 200), np.arange(100)]), "in another order"),
    ],
    ids=["all", "lost", "doubled", "turned"],
)
def test_what_is_recorded_is_held_to_what_was_pushed(order: np.ndarray, found: str | None) -> None:
    plan = calm()
    rows = rows_of(plan, plan.feeds[0])
    wrong = differences("a", recorded(rows, order), [rows])
    assert (found is None) == (wrong == [])
    assert found is None or found in wrong[0]


def test_a_row_that_is_late_in_the_recording_alone_is_found() -> None:
    plan = calm()
    rows = rows_of(plan, plan.feeds[0])
    other = recorded(rows, np.arange(200))
    other.late[3] = not other.late[3]
    (wrong,) = differences("a", other, [Rows(rows.feed, rows.table, rows_of(plan, rows.feed).late)])
    assert "1 rows of a-0 are late, or not" in wrong
