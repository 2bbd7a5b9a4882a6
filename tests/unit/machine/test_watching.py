"""What the gateway measures and tells: counts, clocks, delays, moves, events; to the operator, if it is there."""

import numpy as np
import pytest

from joinery.elastic.load import GroupLoad, LoadReport
from joinery.flow.delays import Delays
from joinery.machine import facts, messages
from joinery.machine.messages import EventKind, Exchange, Overview, Ping, Pong, Tally
from joinery.machine.totals import Totals
from joinery.model.ids import OPERATOR, GroupId, Term, WorkerId
from tests.unit.machine.building import SECOND, hello, key_in, sent, spec_of
from tests.unit.machine.result_parts import vector
from tests.unit.machine.test_gateway import COLLECTOR, LOST, PEER0, PEER1, A, B, Driver

BEAT = SECOND


@pytest.fixture
def driver() -> Driver:
    driver = Driver().run()
    driver.tell(facts.Connected(OPERATOR))
    return driver


def seen(driver: Driver, by: int = BEAT) -> Overview:
    """What the operator is told with the next beat."""
    ((peer, view),) = sent(driver.tick(by), Overview)
    assert OPERATOR == peer
    return view


def kinds(view: Overview) -> list[EventKind]:
    return [event.kind for event in view.events]


def test_nothing_is_told_without_an_operator() -> None:
    driver = Driver().run()
    assert [] == sent(driver.tick(BEAT), Overview)
    driver.tell(facts.Connected(OPERATOR))
    driver.tell(facts.Disconnected(OPERATOR))
    assert [] == sent(driver.tick(BEAT), Overview)


def test_rows_and_late_rows_are_counted_by_stream(driver: Driver) -> None:
    seen(driver)
    driver.push(A, 0, (1, 10), (1, 5), (1, 7))
    driver.durable()
    driver.push(B, 0, (1, 20))
    driver.durable()
    view = seen(driver)
    assert [(3, 2), (1, 0)] == [(stream.rows, stream.late) for stream in view.streams]
    assert [3.0, 1.0] == [stream.rows_per_s for stream in view.streams]
    assert [10, 20] == [stream.watermark_ns for stream in view.streams]


def test_each_worker_is_told_with_the_slot_that_it_is_served_in(driver: Driver) -> None:
    assert [0, 1] == [worker.slot for worker in seen(driver).workers]


def test_delays_are_added_up_and_totals_are_those_of_the_newest_commit(driver: Driver) -> None:
    tally = Tally(Delays.of(np.array([7]), np.array([5])), Delays())
    for number, totals in ((1, Totals(5, (0, 2))), (2, Totals(10, (0, 4))), (1, Totals(5, (0, 2)))):
        driver.say(COLLECTOR, messages.Committed(Term(1), number, vector(), vector(), tally, totals))
    view = seen(driver)
    assert (10, 4, 15, 7) == (view.results, view.late, view.produced.rows, view.produced.max_ns)
    assert [0, 4] == [stream.late for stream in view.streams]


def test_a_gateway_that_was_started_again_hears_the_totals_with_the_vector(driver: Driver) -> None:
    nothing = vector(-1, -1, -1, -1)
    driver.say(COLLECTOR, messages.Vector(Term(1), vector(1, 1, 1, 1), nothing, nothing, Totals(7, (3,))))
    view = seen(driver)
    assert (7, 3, [3, 0]) == (view.results, view.late, [stream.late for stream in view.streams])


def test_clocks_are_asked_for_at_every_beat_and_told_what_was_found(driver: Driver) -> None:
    peers = [peer for peer, _ in sent(driver.tick(BEAT), Ping)]
    assert {PEER0, PEER1, COLLECTOR} == set(peers)
    at = driver.now
    driver.now += 10
    driver.say(PEER0, Pong(at, at + 5 + 300))
    pings = dict(sent(driver.tick(BEAT), Ping))
    assert (300, 0) == (pings[PEER0].ahead_ns, pings[PEER1].ahead_ns)
    assert {"worker-0": 300, "worker-1": 0} == {one.worker: one.clock_ahead_ns for one in seen(driver).workers}


def test_a_clock_is_forgotten_with_its_connection(driver: Driver) -> None:
    at = driver.now
    driver.say(PEER0, Pong(at, at + 300))
    driver.tell(facts.Disconnected(PEER0))
    driver.say(PEER0, hello("worker-0", 0, 1))
    assert 0 == dict(sent(driver.tick(BEAT), Ping))[PEER0].ahead_ns


def test_workers_are_shown_with_their_reports_and_roles(driver: Driver) -> None:
    assert [(None, 2), (None, 2)] == [(one.role, one.groups) for one in seen(driver).workers]
    report = LoadReport(worker=WorkerId("worker-0"), occupancy=0.9, busy=1.0, comparisons=77)
    driver.say(PEER0, messages.Load(report))
    driver.say(PEER1, messages.Load(LoadReport(worker=WorkerId("worker-1"), occupancy=0.0, busy=0.0)))
    view = seen(driver)
    assert ["supplier", "consumer"] == [one.role for one in view.workers]
    assert (77, 1, 1, 2) == (view.workers[0].report.comparisons, view.n_sup, view.n_con, view.degree)  # type: ignore[union-attr]


def test_a_move_is_shown_with_its_pause_and_what_it_carried(driver: Driver) -> None:
    parts = tuple(GroupLoad(group=GroupId(group), memory_bytes=100 + group) for group in (0, 1))
    driver.say(PEER0, messages.Load(LoadReport(worker=WorkerId("worker-0"), occupancy=0, busy=0, groups=parts)))
    driver.say(OPERATOR, messages.MoveGroup(GroupId(1), WorkerId("worker-1")))
    driver.checkpoint(PEER0, 0, 1)
    (under_way,) = seen(driver).under_way
    assert (1, "worker-0", "worker-1", 101, None) == (
        under_way.group, under_way.source, under_way.target, under_way.nbytes, under_way.pause_ns,
    )  # fmt: skip
    driver.commit(0)
    driver.say(PEER1, messages.Preloaded(vector(1), vector(0)))
    driver.durable()
    begun = driver.now
    driver.answer(0, 0, 0, 0)
    driver.now += 25
    driver.hold(PEER1, 1, version=2, received=0)
    view = seen(driver)
    (move,) = view.moves
    assert (1, (), True, 25, begun) == (view.moves_done, view.under_way, move.is_planned, move.pause_ns, move.begun_ns)


def test_a_lost_worker_is_told_once_and_its_groups_moves_are_no_plan(driver: Driver) -> None:
    driver.tell(facts.Disconnected(PEER1))
    for _ in range(4):
        driver.now += LOST // 2
        driver.say(PEER0, messages.Alive())
        driver.tick()
        driver.durable()
    driver.answer()
    driver.hold(PEER0, 2, 3, version=2)
    view = seen(driver)
    assert 1 == kinds(view).count(EventKind.WORKER_LOST)
    assert [False, False] == [move.is_planned for move in view.moves]


def test_a_worker_that_comes_back_as_another_instance_is_told(driver: Driver) -> None:
    driver.say(PEER1, hello("worker-1", instance="another"))
    view = seen(driver)
    assert [EventKind.WORKER_LOST, EventKind.WORKER_JOINED] == kinds(view)[-2:]


def test_groups_that_a_killed_workers_successor_takes_back_are_shown_as_moves(driver: Driver) -> None:
    parts = tuple(GroupLoad(group=GroupId(group), memory_bytes=100 + group) for group in (2, 3))
    driver.say(PEER1, messages.Load(LoadReport(worker=WorkerId("worker-1"), occupancy=0, busy=0, groups=parts)))
    driver.tell(facts.Disconnected(PEER1))
    driver.say(PEER1, hello("worker-1", instance="another"))
    driver.durable()
    driver.answer()
    driver.now += 25
    driver.hold(PEER1, 2, 3, version=2)
    view = seen(driver)
    told = [(move.group, move.source, move.target, move.nbytes, move.is_planned, move.why) for move in view.moves]
    why = "its worker was lost and came back"
    assert [(group, "worker-1", "worker-1", 100 + group, False, why) for group in (2, 3)] == told
    assert (2, ()) == (view.moves_done, view.under_way)


def test_a_worker_that_only_connects_again_has_moved_nothing(driver: Driver) -> None:
    driver.tell(facts.Disconnected(PEER1))
    driver.say(PEER1, hello("worker-1", 2, 3))
    assert (0, ()) == (seen(driver).moves_done, seen(driver).under_way)


def test_results_that_are_made_again_by_their_owner_are_no_move(driver: Driver) -> None:
    driver.say(PEER1, messages.ResultsLost(vector(2), vector(1)))
    driver.durable()
    driver.answer()
    driver.hold(PEER1, 2, version=2)
    assert (0, ()) == (seen(driver).moves_done, seen(driver).under_way)


def test_windows_that_reach_the_memory_limit_are_told_and_their_end_too(driver: Driver) -> None:
    def report(nbytes: int) -> None:
        load = LoadReport(worker=WorkerId("worker-0"), occupancy=0, busy=0, memory_bytes=nbytes, memory_limit=100)
        driver.say(PEER0, messages.Load(load))

    report(100)
    assert EventKind.STATE_TOO_LARGE == kinds(seen(driver))[-1]
    assert 1 == kinds(seen(driver)).count(EventKind.STATE_TOO_LARGE)
    report(50)
    assert EventKind.STATE_FITS_AGAIN == kinds(seen(driver))[-1]


def test_results_of_records_that_the_log_does_not_hold_are_lost_data(driver: Driver) -> None:
    driver.answer(99, -1, -1, -1)
    assert EventKind.DATA_LOST == kinds(seen(driver))[-1]


def test_the_last_overview_comes_with_the_end(driver: Driver) -> None:
    last = driver.end()
    driver.commit(last)
    ((_, view),) = sent(driver.say(COLLECTOR, messages.Finished()), Overview)
    assert (True, 2) == (view.is_last, sum(stream.rows for stream in view.streams))


def test_a_message_carries_the_stamps_of_its_rows_and_the_start_of_its_slot() -> None:
    driver = Driver(spec_of(replicas=2, epochs={"distribution": "1s", "subgroups": 2})).run()
    key = key_in(0)
    driver.now += SECOND // 10
    first = driver.now
    driver.push(B, 0, (key_in(3), 1))
    driver.durable()
    driver.push(A, 0, (key, 1))
    made = driver.durable()
    driver.now += 7
    driver.push(A, 1, (key, 2))
    made += driver.durable()
    made += driver.tick(SECOND)
    exchanges = [message for peer, message in sent(made, Exchange) if peer == PEER0 and message.batches]
    stamps = [stamp for one in exchanges for steps in one.steps for stamp in steps.stamps.tolist()]
    assert [first, first + 7] == stamps
    assert all(0 < one.slot_ns <= driver.now and one.stamp_ns == max(stamps) for one in exchanges[-1:])
