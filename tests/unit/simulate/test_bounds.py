"""Memory within its bounds: each bound broken by hand is seen, and what lies within it is not."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from joinery.join.results import Kind, ResultPart
from joinery.machine import facts, gateway, intake, messages, orders
from joinery.machine.collector import CollectorMachine
from joinery.machine.gateway import GatewayMachine
from joinery.machine.log import LoggedBatch, Record
from joinery.machine.messages import Acknowledge, Open, Opened, Push, Refuse, Results
from joinery.machine.orders import Order
from joinery.machine.ports import Commit
from joinery.machine.producer import IN_FLIGHT, ProducerMachine
from joinery.model.errors import Bug
from joinery.model.ids import GATEWAY, MapVersion, Peer, ProducerId, RecordNo, Term
from joinery.model.spec import JoinQuerySpec
from joinery.simulate.bounds import Bounds
from joinery.simulate.process import Machine, Process
from joinery.simulate.schedule import Role
from joinery.window.sliding import Marks
from tests.unit.simulate.toys import HEAD, QUERY, Toy, rows

SPEC = JoinQuerySpec.parse({**QUERY, "results": {"retain": "0.1k"}})
P, W = Peer("p#1"), Peer("worker-0#1")


@pytest.fixture
def bounds() -> Bounds:
    return Bounds(SPEC, retain_bytes=100)


def process(role: Role, machine: Machine) -> Process:
    return Process(role, 0, f"{role}/1", Peer(role), machine, 0, 0)


def heard(bounds: Bounds, of: Process, peer: Peer, message: messages.Message) -> list[Order]:
    """A message reaches a process, and its machine deals with it."""
    fact = facts.Received(peer, message)
    bounds.received(of, fact)
    made = of.machine.handle(fact, 1)
    bounds.after(of, fact)
    return made


# --- workers


class Greedy(Toy):
    buffered_bytes = 0
    retained_bytes = 0


def exchange() -> messages.Exchange:
    nothing = np.empty(0, np.int64)
    return messages.Exchange(Term(1), MapVersion(1), nothing, nothing, RecordNo(0), Marks((0, 0)), (), ())


def worker(buffered: int, retained: int) -> Process:
    machine = Greedy()
    machine.buffered_bytes, machine.retained_bytes = buffered, retained
    return process(Role.WORKER, machine)


@pytest.mark.parametrize(("buffered", "retained"), [(1 << 20, 100), (0, 0)])
def test_a_worker_within_its_bounds_is_right(bounds: Bounds, buffered: int, retained: int) -> None:
    heard(bounds, worker(buffered, retained), GATEWAY, exchange())


@pytest.mark.parametrize(
    ("buffered", "retained", "why"), [((1 << 20) + 1, 0, "bytes of messages"), (0, 101, "bytes of results")]
)
def test_a_worker_that_holds_too_much_is_seen(bounds: Bounds, buffered: int, retained: int, why: str) -> None:
    with pytest.raises(Bug, match=why):
        heard(bounds, worker(buffered, retained), GATEWAY, exchange())


# --- producers


def push(sequence: int, session: int = 1) -> Push:
    return Push(session, sequence, sequence + 1, sequence, rows(sequence))


def test_a_producer_that_sends_beyond_its_window_is_seen(bounds: Bounds) -> None:
    producer = process(Role.PRODUCER, Toy())
    for sequence in range(IN_FLIGHT):
        bounds.pushed(producer, push(sequence))
    with pytest.raises(Bug, match="has 9 batches under way"):
        bounds.pushed(producer, push(IN_FLIGHT))


@pytest.mark.parametrize(
    "news",
    [Acknowledge(0, RecordNo(0)), Refuse(0, "other rows"), Opened(Term(1), ProducerId("p"), 2, 0)],
)
def test_what_was_answered_makes_room(bounds: Bounds, news: messages.Message) -> None:
    producer = process(Role.PRODUCER, Toy())
    for sequence in range(IN_FLIGHT):
        bounds.pushed(producer, push(sequence))
    heard(bounds, producer, GATEWAY, news)
    bounds.pushed(producer, push(IN_FLIGHT))


def test_a_producer_machine_with_a_wider_window_is_seen(bounds: Bounds) -> None:
    machine = ProducerMachine(0, ProducerId("p"))
    producer = process(Role.PRODUCER, machine)

    def send_all() -> None:
        machine.handle(facts.Connected(GATEWAY), 1)
        made = heard(bounds, producer, GATEWAY, Opened(Term(1), ProducerId("p"), 1, None))
        for number in range(2 * IN_FLIGHT):
            made += machine.handle(facts.Offered(rows(number)), 1)
        for order in made:
            if isinstance(order, orders.Send) and isinstance(order.message, Push):
                bounds.pushed(producer, order.message)

    with patch("joinery.machine.producer.IN_FLIGHT", IN_FLIGHT + 1), pytest.raises(Bug, match="under way"):
        send_all()


# --- gateways


@pytest.fixture
def opened() -> Process:
    """A gateway that has its log, and a producer with a session; its first record is never written."""
    machine = GatewayMachine(SPEC)
    machine.handle(facts.Started("gateway/1"), 1)
    machine.handle(facts.GatewayOpened(Term(1), machine.intake.head, (), None), 1)
    machine.handle(facts.Connected(P), 1)
    machine.handle(facts.Received(P, Open(0, ProducerId("p"))), 1)
    return process(Role.GATEWAY, machine)


def test_a_gateway_that_admits_more_than_a_producers_window_is_seen(bounds: Bounds, opened: Process) -> None:
    for sequence in range(IN_FLIGHT):
        heard(bounds, opened, P, push(sequence))
    with pytest.raises(Bug, match="has 9 unrecorded batches of"):
        heard(bounds, opened, P, push(IN_FLIGHT))


def append(number: int = 0, *sizes: int) -> orders.AppendRecord:
    batches = tuple(
        LoggedBatch(0, ProducerId("p"), 1, turn, turn + 1, 0, 0, 0, None, rows(*range(size)))
        for turn, size in enumerate(sizes)
    )
    return orders.AppendRecord(Term(1), RecordNo(number), Record(Term(1), batches, (0, 0)))


@pytest.fixture
def small() -> Iterator[None]:
    with patch.object(gateway, "MAX_UNSENT_BYTES", 100), patch.object(intake, "MAX_RECORD_BYTES", 100):
        yield


def full_gateway(opened: Process) -> Process:
    """A record of it is durable, and no worker is there to take its rows."""
    machine: Any = opened.machine
    machine.handle(facts.Received(P, push(0)), 1)
    while machine._appending is not None:
        machine.handle(facts.Appended(machine._appending.number), 1)
    return opened


@pytest.mark.usefixtures("small")
def test_a_record_that_is_cut_while_too_much_waits_for_workers_is_seen(bounds: Bounds, opened: Process) -> None:
    gateway_ = full_gateway(opened)
    bounds.cutting(gateway_, append(9))
    with patch.object(gateway, "MAX_UNSENT_BYTES", 1), pytest.raises(Bug, match=r"cuts record 9 while \d+ bytes wait"):
        bounds.cutting(gateway_, append(9))


@pytest.mark.usefixtures("small")
def test_a_record_that_is_too_large_is_seen(bounds: Bounds, opened: Process) -> None:
    bounds.cutting(opened, append(0, 2, 200))
    with pytest.raises(Bug, match=r"record 0 has \d+ bytes"):
        bounds.cutting(opened, append(0, 5, 5, 5))


def test_rows_that_are_kept_although_the_log_was_trimmed_are_seen(bounds: Bounds, opened: Process) -> None:
    from dataclasses import replace

    gateway_: Any = full_gateway(opened)
    last = gateway_.machine.backlog.last
    trim = orders.TrimLog(Term(1), replace(HEAD, next_record=RecordNo(last + 1)), RecordNo(last + 1))
    with pytest.raises(Bug, match="keeps rows from record 0 on"):
        bounds.trimmed(gateway_, trim)
    gateway_.machine.backlog.drop(last)
    bounds.trimmed(gateway_, trim)


# --- collectors


def results(upto: int, *numbers: int) -> Results:
    one = np.array([0], np.int64)
    part = ResultPart(
        Kind.RESULT, rows(*numbers), np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.int64), 0, None,
        members=(np.arange(len(numbers)), np.arange(len(numbers))),
    )  # fmt: skip
    after = one + (upto - 1 if upto > 1 else -1)
    return Results(one, after, one + 1, RecordNo(upto), Marks((0, 0)), 0, True, (part,))


@pytest.fixture
def collector() -> Process:
    machine = CollectorMachine(SPEC)
    machine.handle(facts.Started("collector/1"), 1)
    machine.handle(facts.CollectorOpened(Term(1), None), 1)
    machine.handle(facts.SinksReady(), 1)
    for peer in (GATEWAY, W):
        machine.handle(facts.Connected(peer), 1)
    machine.handle(facts.Received(GATEWAY, messages.Owners(Term(1), np.ones(4, np.int64))), 1)
    nothing = np.empty(0, np.int64)
    holdings = messages.Holdings(nothing, nothing, nothing, nothing, nothing, nothing)
    machine.handle(facts.Received(W, messages.WorkerHello("worker-0", "worker-0/1", holdings)), 1)
    return process(Role.COLLECTOR, machine)


def take(bounds: Bounds, collector: Process, upto: int, *numbers: int) -> None:
    for order in heard(bounds, collector, W, results(upto, *numbers)):
        if isinstance(order, orders.Take):
            bounds.taken(collector, order)


def commit(bounds: Bounds, collector: Process, number: int, upto: int) -> None:
    made = collector.machine.handle(facts.Staged(number, ()), 1)
    assert [orders.WriteCommit] == [type(order) for order in made]
    committed = Commit(number, np.array([upto, -1, -1, -1], np.int64))
    bounds.committed(collector, orders.WriteCommit(Term(1), committed))
    fact = facts.CommitWritten(number)
    collector.machine.handle(fact, 1)
    bounds.after(collector, fact)


def test_a_collector_that_lets_go_of_what_is_committed_is_right(bounds: Bounds, collector: Process) -> None:
    take(bounds, collector, 1, 5, 6)
    commit(bounds, collector, 1, 1)
    take(bounds, collector, 3, 7)  # does not follow: not taken
    take(bounds, collector, 2, 7)


def test_a_collector_that_keeps_what_it_has_committed_is_seen(bounds: Bounds, collector: Process) -> None:
    machine: Any = collector.machine
    take(bounds, collector, 1, 5, 6)
    commit(bounds, collector, 1, 1)
    machine._output._parts = list(results(1, 5, 6).parts)
    with pytest.raises(Bug, match="holds 3 rows, but took and did not commit 1"):
        take(bounds, collector, 2, 7)


def test_a_collector_that_keeps_what_it_did_not_take_is_seen(bounds: Bounds, collector: Process) -> None:
    machine: Any = collector.machine
    take(bounds, collector, 1, 5, 6)
    machine._output._parts = list(results(9, 1, 2, 3).parts)
    with pytest.raises(Bug, match="holds 6 rows, but took and did not commit 3"):
        take(bounds, collector, 2, 7)


def test_a_collector_that_keeps_too_much_for_subscribers_is_seen(bounds: Bounds, collector: Process) -> None:
    machine: Any = collector.machine
    take(bounds, collector, 1, 5)
    machine._subscriptions._nbytes = 101
    with pytest.raises(Bug, match="keeps 101 bytes for subscribers, at most 100"):
        take(bounds, collector, 2, 6)
