"""Connections overlap, and processes that were replaced come back: who counts is decided by instance and term."""

import numpy as np
import pytest

from joinery.elastic.plan import Move
from joinery.machine import facts, messages, orders
from joinery.machine.collector import SENT_AWAY, CollectorMachine
from joinery.machine.gateway import GatewayMachine
from joinery.machine.messages import CollectorHello, Holdings, Owners, WorkerHello
from joinery.model.ids import GATEWAY, GroupId, Peer, Term, WorkerId
from joinery.model.spec import JoinQuerySpec
from tests.unit.simulate.toys import QUERY

SPEC = JoinQuerySpec.parse(QUERY)
W0, W1 = WorkerId("worker-0"), WorkerId("worker-1")
MS = 1_000_000


def nothing_held() -> Holdings:
    return Holdings(*(np.empty(0, np.int64) for _ in range(6)))


class Desk:
    """A gateway that is open, and connections to it."""

    def __init__(self) -> None:
        self.machine, self.now_ns = GatewayMachine(SPEC), 0
        self.tell(facts.Started("gateway/1"))
        self.tell(facts.GatewayOpened(Term(1), self.machine.intake.head, (), None))

    def tell(self, fact: facts.Fact) -> list[orders.Order]:
        self.now_ns += 1
        return self.machine.handle(fact, self.now_ns)

    def hello(self, peer: str, worker: WorkerId, instance: str) -> list[orders.Order]:
        self.tell(facts.Connected(Peer(peer)))
        return self.tell(facts.Received(Peer(peer), WorkerHello(worker, instance, nothing_held())))

    def mapped(self) -> "Desk":
        """With two workers and a durable map."""
        self.hello("a#1", W0, "worker-0/1")
        made = self.hello("b#1", W1, "worker-1/1")
        assert any(isinstance(order, orders.WriteMap) for order in made)
        self.tell(facts.MapWritten(self.machine.placement._writing.version))  # type: ignore[union-attr]
        return self


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_worker_is_still_there_when_its_older_connection_ends_after_the_newer_one_came(desk: Desk) -> None:
    desk.hello("a#1", W0, "worker-0/1")
    desk.hello("a#2", W0, "worker-0/1")
    desk.tell(facts.Disconnected(Peer("a#1")))
    assert desk.machine.workforce.is_up(W0)
    desk.tell(facts.Disconnected(Peer("a#2")))
    assert not desk.machine.workforce.is_up(W0)


def test_an_older_instance_is_sent_away_only_while_the_newer_one_is_there(desk: Desk) -> None:
    desk.hello("a#1", W0, "worker-0/1")
    desk.hello("a#2", W0, "worker-0/2")
    assert orders.Disconnect(Peer("a#3")) in desk.hello("a#3", W0, "worker-0/1")
    desk.tell(facts.Disconnected(Peer("a#2")))
    assert orders.Disconnect(Peer("a#4")) not in desk.hello("a#4", W0, "worker-0/1")
    assert Peer("a#4") == desk.machine.workforce.peer(W0)
    assert orders.Disconnect(Peer("a#5")) in desk.hello("a#5", W0, "worker-0/2")


def test_a_newer_collector_takes_the_place_of_the_older_one_which_is_sent_away(desk: Desk) -> None:
    desk.tell(facts.Connected(Peer("c#1")))
    desk.tell(facts.Received(Peer("c#1"), CollectorHello(Term(1))))
    desk.tell(facts.Connected(Peer("c#2")))
    assert orders.Disconnect(Peer("c#1")) in desk.tell(facts.Received(Peer("c#2"), CollectorHello(Term(2))))
    desk.tell(facts.Connected(Peer("c#3")))
    assert orders.Disconnect(Peer("c#3")) in desk.tell(facts.Received(Peer("c#3"), CollectorHello(Term(1))))


def collector() -> CollectorMachine:
    machine = CollectorMachine(SPEC)
    for fact in (facts.Started("collector/1"), facts.CollectorOpened(Term(1), None), facts.SinksReady()):
        machine.handle(fact, 1)
    return machine


def sent_away(machine: CollectorMachine) -> list[orders.Order]:
    machine.handle(facts.Connected(GATEWAY), 1)
    return machine.handle(facts.Disconnected(GATEWAY), 1)


def test_a_collector_that_is_sent_away_again_and_again_without_a_word_stops_as_fenced() -> None:
    machine = collector()
    for _ in range(SENT_AWAY - 1):
        assert [] == sent_away(machine)
    [stop] = sent_away(machine)
    assert isinstance(stop, orders.Stop)
    assert "is fenced" in stop.because


def test_a_collector_that_was_answered_may_lose_its_connection_as_often_as_it_likes() -> None:
    machine = collector()
    for _ in range(2 * SENT_AWAY):
        machine.handle(facts.Connected(GATEWAY), 1)
        machine.handle(facts.Received(GATEWAY, Owners(Term(1), np.ones(4, np.int64))), 1)
        assert [] == machine.handle(facts.Disconnected(GATEWAY), 1)


def test_a_move_that_was_begun_while_its_group_moved_is_forgotten_once_it_has(desk: Desk) -> None:
    desk.mapped()
    moves, place = desk.machine.moves, desk.machine.placement
    group = GroupId(int(place.groups_of(W0)[0]))
    place.phase[:] = 3
    place.propose({group: W1})
    moves.start((Move(group, W0, W1),), Term(1))
    assert {group} == set(moves.under_way)
    desk.tell(facts.MapWritten(place._writing.version))  # type: ignore[union-attr]
    assert {} == moves.under_way


def test_a_gateway_whose_clock_is_set_back_looks_again_soon_and_not_when_it_is_there_again() -> None:
    desk = Desk().mapped()
    desk.now_ns = 60_000 * MS
    desk.tell(facts.Tick())
    desk.now_ns = 10_000 * MS
    made = desk.tell(facts.Received(Peer("a#1"), messages.Alive()))
    [wake] = [order for order in made if isinstance(order, orders.WakeAt)]
    assert wake.at_ns <= desk.now_ns + SPEC.epochs.reorganization
