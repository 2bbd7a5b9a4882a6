"""Figures of the roles, read from machines that were told what happened."""

import pytest

from joinery.adapters.metrics import text_of
from joinery.adapters.metrics_roles import gateway_samples, overview_samples, worker_samples
from joinery.elastic.load import LoadReport
from joinery.machine import facts, messages
from joinery.machine.messages import Overview, StreamView, WorkerView
from joinery.machine.worker import WorkerMachine
from joinery.model.ids import GATEWAY, OPERATOR, GroupId, Peer, RecordNo, WorkerId
from tests.unit.machine.building import SECOND, key_in, spec_of
from tests.unit.machine.result_parts import vector
from tests.unit.machine.test_gateway import LOST, PEER0, PEER1, A, Driver

Found = dict[tuple[str, ...], float]


def of_gateway(driver: Driver) -> Found:
    samples = gateway_samples(driver.machine)(driver.now)
    text_of(samples, {"joinquery": "q"})  # every one is in the list, with its labels
    return {(one.name, *one.labels.values()): one.value for one in samples if isinstance(one.value, float | int)}


def migrations(driver: Driver) -> list[float]:
    results = ("moved", "recovered", "given_up", "state_lost")
    return [of_gateway(driver)["joinery_gateway_migrations_total", result] for result in results]


def begin_move(driver: Driver) -> None:
    """Group 1 is about to go from worker 0 to worker 1."""
    driver.say(OPERATOR, messages.MoveGroup(GroupId(1), WorkerId("worker-1")))
    driver.checkpoint(PEER0, 0, 1)


def test_a_planned_move_is_counted_when_its_group_is_served_again() -> None:
    driver = Driver().run()
    begin_move(driver)
    driver.commit(0)
    driver.say(PEER1, messages.Preloaded(vector(1), vector(0)))
    driver.durable()
    driver.answer(0, 0, 0, 0)
    assert [0, 0, 0, 0] == migrations(driver)
    driver.hold(PEER1, 1, version=2, received=0)
    assert [1, 0, 0, 0] == migrations(driver)


def test_a_lost_workers_groups_are_recovered_and_the_move_to_it_is_given_up() -> None:
    driver = Driver().run()
    begin_move(driver)
    driver.tell(facts.Disconnected(PEER1))
    assert [0, 0, 1, 0] == migrations(driver)
    for _ in range(4):
        driver.now += LOST // 2
        driver.say(PEER0, messages.Alive())
        driver.tick()
        driver.durable()
    driver.answer()
    driver.hold(PEER0, 2, 3, version=2)
    assert [0, 2, 1, 0] == migrations(driver)


def test_rows_that_wait_for_a_slot_are_counted_until_they_are_sent() -> None:
    driver = Driver().run()
    driver.machine.workforce.sent(WorkerId("worker-0"), 1 << 40, vector(), RecordNo(0))  # no credit is left
    driver.push(A, 0, (key_in(0), 1), (key_in(1), 1), (key_in(2), 1))
    driver.durable()
    driver.tick(SECOND)
    assert 2 == of_gateway(driver)["joinery_gateway_backlog_tuples",]
    driver.machine.workforce.credit(WorkerId("worker-0"), 1 << 40)
    driver.tick(SECOND)
    assert 0 == of_gateway(driver)["joinery_gateway_backlog_tuples",]


def served(worker: str, slot: int | None, comm_s: float, elapsed_s: float = 2.0) -> WorkerView:
    report = LoadReport(worker=WorkerId(worker), occupancy=0, busy=0, comm_s=comm_s, elapsed_s=elapsed_s)
    return WorkerView(worker=WorkerId(worker), is_up=True, groups=1, report=report, slot=slot)


def test_a_slot_is_used_until_its_last_worker_has_its_messages() -> None:
    new = WorkerView(worker=WorkerId("worker-3"), is_up=True, groups=0, slot=1)
    workers = (served("worker-0", 0, 0.25), served("worker-1", 0, 0.5), served("worker-2", 1, 1.5), new)
    silent = (served("worker-4", None, 1.0), served("worker-5", 2, 0.0, elapsed_s=0.0))
    streams = (StreamView(rows=0, late=0, rows_per_s=0, watermark_ns=0),) * 2
    view = Overview(at_ns=0, records=RecordNo(0), streams=streams, workers=workers)

    def used(view: Overview) -> dict[str, float]:
        samples = overview_samples(view, spec_of(), 0)
        return {s.labels["slot"]: s.value for s in samples if s.name.endswith("slot_utilization_ratio")}  # type: ignore[misc]

    assert {"0": 0.5, "1": 1.5} == used(view)  # a slot is half of the epoch: 1 s of the 2 s that were reported
    more = Overview(at_ns=0, records=RecordNo(0), streams=streams, workers=(*workers, *silent))
    assert {"0": 0.75, "1": 2.25} == pytest.approx(used(more))  # three slots now; nothing is known of the third


def test_a_worker_tells_how_old_its_oldest_row_is_by_the_gateways_clock() -> None:
    machine = WorkerMachine(spec_of(), WorkerId("worker-0"))
    machine.handle(facts.Started("worker-0/1"), 0)

    def age(now_ns: int) -> float | None:
        samples = worker_samples(machine)(now_ns)
        text_of(samples, {"joinquery": "q"})
        found = {one.name: one.value for one in samples}
        return found.get("joinery_worker_state_oldest_event_age_seconds")  # type: ignore[return-value]

    assert None is age(SECOND)
    machine.handle(facts.StateMeasured(0, (), oldest_ns=2 * SECOND), 3 * SECOND)
    assert 3.0 == age(5 * SECOND)
    machine.handle(facts.Received(Peer(GATEWAY), messages.Ping(0, ahead_ns=SECOND)), 5 * SECOND)
    assert 2.0 == age(5 * SECOND)
    machine.handle(facts.StateMeasured(0, ()), 6 * SECOND)
    assert None is age(6 * SECOND)
