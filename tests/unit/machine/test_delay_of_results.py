"""Production delay from end to end: a worker's results say when their later members arrived, the collector adds up."""

import numpy as np
import pytest

from joinery.flow.stamps import NO_ARRIVALS, Arrivals, Steps
from joinery.join.results import Kind
from joinery.machine import messages
from joinery.machine.arrivals import arrivals_of
from joinery.machine.facts import BatchJoined
from joinery.machine.join_module import JoinModule
from joinery.machine.messages import Exchange
from joinery.machine.orders import JoinBatch, RestoreGroup
from joinery.machine.tallying import Tallying
from joinery.model.ids import GroupId, MapVersion
from tests.unit.machine.building import exchange, key_in, plan_of, results, tuples
from tests.unit.machine.result_parts import part

PLAN = plan_of()
KEY = key_in(0)


def stamped(batch: Exchange, *steps: Steps, stamp: int) -> Exchange:
    return Exchange(
        batch.term, batch.map_version, batch.groups, batch.after, batch.upto, batch.marks, batch.batches, batch.changes,
        steps, stamp, 1,
    )  # fmt: skip


def steps(*lines: tuple[int, int]) -> Steps:
    return Steps(np.array([end for end, _ in lines]), np.array([stamp for _, stamp in lines]))


def joined(*batches: Exchange, kind: str = "inner") -> list[BatchJoined]:
    module = JoinModule(plan_of(kind=kind))
    list(module.perform(RestoreGroup(GroupId(0), MapVersion(1), (), None, ())))
    return [fact for batch in batches for fact in module.perform(JoinBatch(batch)) if isinstance(fact, BatchJoined)]


def counted(arrivals: Arrivals) -> dict[int, int]:
    return {
        int(stamp): int(arrivals.rows[arrivals.stamps == stamp].sum()) for stamp in np.unique(arrivals.stamps)
    }  # fmt: skip


def test_a_result_counts_from_the_arrival_of_its_later_member() -> None:
    early = exchange([0], -1, 0, tuples(PLAN, 0, (KEY, 1), (KEY, 2)))
    late = exchange([0], 0, 2, tuples(PLAN, 1, (KEY, 1), (KEY, 2), (KEY, 3)))
    (_, fact) = joined(
        stamped(early, steps((2, 100)), stamp=100), stamped(late, steps((1, 200), (3, 300)), stamp=300)
    )  # fmt: skip
    assert {200: 2, 300: 4} == counted(fact.arrivals)


def test_an_unmatched_row_counts_from_the_record_that_closed_it() -> None:
    batch = exchange([0], -1, 5, tuples(PLAN, 0, (KEY, 1)), marks=(500, 500))
    (fact,) = joined(stamped(batch, steps((1, 100)), stamp=700), kind="left")
    assert {700: 1} == counted(fact.arrivals)


def test_without_stamps_nothing_is_counted() -> None:
    batch = exchange([0], -1, 0, tuples(PLAN, 0, (KEY, 1)), tuples(PLAN, 1, (KEY, 1)))
    (fact,) = joined(batch)
    assert (1, NO_ARRIVALS) == (fact.parts[0].times.size, fact.arrivals)


def test_late_rows_are_no_results() -> None:
    late = part([(1, 0, 1), (2, 0, 2)], Kind.LATE)
    assert 0 == arrivals_of((late,), stamped(exchange([0], -1, 0), stamp=5)).total


# --- the collector's side


def message(rows: int, produced: int, *arrivals: tuple[int, int]) -> messages.Results:
    made = results([0], -1, 0, part([(number, 0, number) for number in range(rows)]))
    stamps, counts = (np.array(column) for column in zip(*arrivals, strict=True))
    return messages.Results(
        made.groups, made.after, made.versions, made.upto, made.marks, 0, True, made.parts, produced,
        Arrivals(stamps, counts),
    )  # fmt: skip


@pytest.fixture
def tallying() -> Tallying:
    return Tallying(in_order=False)


def test_delays_are_told_once_when_their_commit_is_durable(tallying: Tallying) -> None:
    one = message(3, 1000, (400, 1), (900, 2))
    tallying.clock_ahead_ns = 50
    tallying.took([one], 3)
    assert tallying.tell() is None
    tallying.drafted()
    tallying.written(2050)
    told = tallying.tell()
    assert told is not None
    assert (3, 600, 800.0) == (told.produced.rows, told.produced.max_ns, told.produced.total_ns)
    assert (1600, 1600.0 + 2 * 1100) == (told.delivered.max_ns, told.delivered.total_ns)
    assert tallying.tell() is None


def test_what_is_taken_while_a_commit_is_under_way_counts_with_the_next(tallying: Tallying) -> None:
    tallying.took([message(1, 10, (5, 1))], 1)
    tallying.drafted()
    tallying.took([message(2, 10, (5, 2))], 2)
    tallying.written(20)
    told = tallying.tell()
    assert told is not None
    assert 1 == told.produced.rows


def test_of_a_message_that_is_taken_in_part_the_delays_count_in_proportion(tallying: Tallying) -> None:
    tallying.took([message(10, 10, (1, 5), (2, 5))], 4)
    tallying.drafted()
    tallying.written(20)
    told = tallying.tell()
    assert told is not None
    assert 4 == told.produced.rows


def test_delivery_in_order_is_not_counted() -> None:
    tallying = Tallying(in_order=True)
    tallying.took([message(1, 10, (5, 1))], 1)
    tallying.drafted()
    tallying.written(20)
    told = tallying.tell()
    assert told is not None
    assert (1, 0) == (told.produced.rows, told.delivered.rows)
