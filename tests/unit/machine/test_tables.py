"""Versions of a stored table on their way: into the log, into batches, to a worker; and messages whose rows wait."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from joinery.adapters.metrics_roles import worker_samples
from joinery.hybrid.hybrid import Probe
from joinery.hybrid.segments import Segment
from joinery.join.plan import JoinPlan
from joinery.machine import facts
from joinery.machine.buffering import Waiting
from joinery.machine.deferring import MOST_PROBES, Deferred
from joinery.machine.intake import Intake
from joinery.machine.log import TableVersion, version_at
from joinery.machine.messages import Exchange
from joinery.machine.table_orders import LookAfterWaiting, ReadTable, TakeTable
from joinery.machine.worker import WorkerMachine
from joinery.model.errors import Bug
from joinery.model.ids import MapVersion, RecordNo, Term, WorkerId
from joinery.model.spec import JoinQuerySpec
from joinery.model.time import FOREVER
from joinery.window.sliding import Marks
from tests.unit.model.test_spec_table import QUERY

SPEC = JoinQuerySpec.parse(QUERY)
MS = 1_000_000


def intake() -> Intake:
    return Intake(SPEC, JoinPlan.of(SPEC))


def test_a_version_holds_from_the_record_after_its_own() -> None:
    tables = (TableVersion(RecordNo(3), 1), TableVersion(RecordNo(7), 2))
    assert [0, 0, 1, 1, 2] == [version_at(tables, record) for record in (0, 3, 4, 7, 8)]


def test_the_table_is_a_stream_that_has_ended_from_the_beginning() -> None:
    head = intake().head
    assert (False, True) == tuple(clock.ended for clock in head.clocks)
    assert FOREVER == head.watermarks[1]
    assert not head.ended


def test_a_new_version_is_one_entry_of_the_next_record_and_an_old_one_is_none() -> None:
    one = intake()
    assert one.cut(Term(1), 5) is None
    one.table_is(0)
    assert one.cut(Term(1), 5) is None
    one.table_is(4)
    cut = one.cut(Term(1), 6)
    assert cut is not None
    assert (TableVersion(RecordNo(0), 4),) == cut.record.entries
    one.head = cut.head
    one.table_is(3)
    one.table_is(4)
    assert one.cut(Term(1), 7) is None


def test_versions_that_no_record_can_ask_for_are_forgotten() -> None:
    one = intake()
    tables = tuple(TableVersion(RecordNo(record), version) for record, version in ((0, 1), (5, 2), (9, 3)))
    one.head = replace(one.head, tables=tables)
    one.forget_tables(RecordNo(5))
    assert tables == one.head.tables
    one.forget_tables(RecordNo(6))
    assert tables[1:] == one.head.tables
    one.forget_tables(RecordNo(100))
    assert tables[2:] == one.head.tables


def message(upto: int) -> Waiting:
    exchange = Exchange(
        Term(1), MapVersion(1), np.array([0]), np.array([upto - 1]), RecordNo(upto), Marks((0, FOREVER)), (), ()
    )
    return Waiting(exchange, np.array([1]), 10)


def test_what_is_wanted_while_a_question_is_under_way_is_the_next_question() -> None:
    deferred = Deferred(SPEC)
    assert [ReadTable(2, ())] == deferred.handle(facts.TableWanted(version=2), 0)
    probes = tuple(Probe(1, number) for number in range(MOST_PROBES + 3))
    assert [] == deferred.handle(facts.TableWanted(probes=probes[:5]), 0)
    assert [] == deferred.handle(facts.TableWanted(probes=probes[5:]), 0)
    read = facts.TableRead(None, ())
    for now, asked in enumerate(([ReadTable(None, probes[:MOST_PROBES])], [ReadTable(None, probes[MOST_PROBES:])], [])):
        take, *rest = deferred.handle(read, now)
        assert isinstance(take, TakeTable)
        assert (take.read, take.now_ns) == (read, now)
        assert asked == rest


def test_results_come_in_the_order_of_their_messages() -> None:
    deferred = Deferred(SPEC)
    first, second = message(1), message(2)
    deferred.add(first)
    deferred.add(second)
    assert first is deferred.first_of(None)
    with pytest.raises(Bug, match="another order"):
        deferred.told(second)
    deferred = Deferred(SPEC)
    deferred.add(first)
    deferred.told(first)
    assert second is deferred.first_of(second)
    with pytest.raises(Bug, match="nobody asked"):
        deferred.first_of(None)


def test_rows_that_wait_are_looked_at_four_times_in_the_longest_wait_also_if_the_clock_is_set_back() -> None:
    deferred = Deferred(SPEC)
    assert [LookAfterWaiting(1000 * MS)] == deferred.look(1000 * MS)
    assert [] == deferred.look(1249 * MS)
    assert 1250 * MS == deferred.next_ns
    assert [LookAfterWaiting(1250 * MS)] == deferred.look(1250 * MS)
    assert [] == deferred.look(1000 * MS)
    assert 1250 * MS == deferred.next_ns
    assert [LookAfterWaiting(1250 * MS)] == deferred.look(1250 * MS)


def test_a_worker_shows_what_waits_and_what_was_read() -> None:
    machine = WorkerMachine(SPEC, WorkerId("worker-0"))
    machine.handle(facts.Started("worker-0/1"), 0)
    segments = tuple(Segment(number, 1, np.array([1]), pa.record_batch({"key": [1]}), 100) for number in (1, 2))
    machine.deferred.handle(facts.TableWanted(probes=(Probe(1, 1), Probe(1, 2))), 0)
    machine.deferred.add(message(1))
    machine.handle(facts.TableRead(None, segments), 0)
    machine.handle(facts.StateMeasured(0, (), waiting_rows=7), 1)
    shown = {one.name.removeprefix("joinery_worker_table_"): one.value for one in worker_samples(machine)(2)}
    wanted = {"waiting_rows": 7, "waiting_messages": 1, "segments_read_total": 2, "read_bytes_total": 200}
    assert wanted.items() <= shown.items()
