"""Connections of simulated processes: order, loss, who hears what when, and who takes whose place."""

from collections import Counter

import numpy as np
import pytest

from joinery.machine.facts import Connected, Disconnected, Fact, Received
from joinery.machine.messages import Credit, Holding, Holdings, Message, Release
from joinery.machine.orders import Order
from joinery.model.ids import OPERATOR, Peer, Term
from joinery.simulate.network import Network, as_on_the_wire
from joinery.simulate.process import Process, State
from joinery.simulate.schedule import MS, Role, Timing
from joinery.simulate.timeline import Dice, Timeline

G, W = Peer("gateway"), Peer("worker-0")
W1, W2 = Peer("worker-0#1"), Peer("worker-0#2")
"""The worker's first and second connection, as the gateway calls them."""


class Silent:
    def handle(self, fact: Fact, now_ns: int) -> list[Order]:  # noqa: ARG002
        return []


class Desk:
    """A network between a gateway and workers, and what each process heard."""

    def __init__(self, seed: int = 1) -> None:
        self.seed, self.timeline, self.counts = seed, Timeline(), Counter[str]()
        self.heard: list[tuple[int, str, Fact]] = []
        self.network = Network(self.timeline, Timing(), seed, self.tell, self.counts)
        self.gateway = self.process("gateway/1", G)
        self.worker = self.process("worker-0/1", W)
        self.network.serve(self.gateway)

    def process(self, instance: str, peer: Peer) -> Process:
        return Process(Role.WORKER, 0, instance, peer, Silent(), self.seed, self.timeline.now)

    def tell(self, process: Process, fact: Fact) -> None:
        if not process.is_away(self.tell, process, fact):
            self.heard.append((self.timeline.now, process.instance, fact))

    def go_on(self, process: Process) -> None:
        process.state = State.RUNNING
        while process.held:
            do, arguments = process.held.popleft()
            do(*arguments)

    def run(self, for_ns: int = 1000 * MS) -> None:
        until = self.timeline.now + for_ns
        while self.timeline.step(until):
            pass
        self.timeline.now = until

    def connected(self) -> "Desk":
        self.network.dial(self.worker, G)
        self.run()
        return self

    def of(self, process: Process) -> list[Fact]:
        return [fact for _, instance, fact in self.heard if instance == process.instance]

    def numbers(self, process: Process) -> list[int]:
        return [
            fact.message.nbytes
            for fact in self.of(process)
            if isinstance(fact, Received) and isinstance(fact.message, Credit)
        ]


@pytest.fixture(params=range(5))
def desk(request: pytest.FixtureRequest) -> Desk:
    return Desk(request.param)


def credit(number: int) -> Message:
    return Credit(number)


def test_both_sides_hear_of_a_connection(desk: Desk) -> None:
    desk.connected()
    assert [Connected(W1)] == desk.of(desk.gateway)
    assert [Connected(G)] == desk.of(desk.worker)
    assert 2 == len({moment for moment, _, _ in desk.heard})


def test_messages_of_one_direction_keep_their_order(desk: Desk) -> None:
    desk.connected()
    for number in range(50):
        desk.network.send(desk.worker, G, credit(number))
    desk.run()
    assert list(range(50)) == desk.numbers(desk.gateway)


def test_messages_of_different_connections_overtake_each_other() -> None:
    firsts = set()
    for seed in range(20):
        desk = Desk(seed)
        other = desk.process("worker-1/1", Peer("worker-1"))
        desk.network.dial(other, G)
        desk.connected()
        desk.network.send(desk.worker, G, credit(1))
        desk.network.send(other, G, credit(2))
        desk.run()
        firsts.add(desk.numbers(desk.gateway)[0])
    assert {1, 2} == firsts


def test_the_accepting_side_can_speak_before_the_other_has_heard_of_the_connection(desk: Desk) -> None:
    desk.network.dial(desk.worker, G)
    while not desk.of(desk.gateway):
        desk.timeline.step(1000 * MS)
    desk.network.send(desk.gateway, W1, credit(7))
    desk.run()
    assert [Connected(G), Received(G, Credit(7))] == desk.of(desk.worker)


def test_a_message_to_nobody_is_lost_without_a_word(desk: Desk) -> None:
    desk.network.send(desk.worker, G, credit(1))
    desk.run()
    assert [] == desk.heard
    assert 1 == desk.counts["messages lost"]


def test_a_broken_connection_loses_what_is_under_way_and_what_is_sent_before_it_is_noticed(desk: Desk) -> None:
    desk.connected()
    desk.network.send(desk.worker, G, credit(1))
    assert desk.network.cut_between("gateway", "worker-0")
    desk.network.send(desk.worker, G, credit(2))
    desk.run()
    assert [] == desk.numbers(desk.gateway)
    assert 2 == desk.counts["messages lost"]


def test_both_sides_notice_a_break_at_different_times_and_connect_again(desk: Desk) -> None:
    desk.connected()
    desk.network.cut_between("worker-0", "gateway")
    desk.run()
    assert [Connected(G), Disconnected(G), Connected(G)] == desk.of(desk.worker)
    assert desk.of(desk.gateway) in (
        [Connected(W1), Disconnected(W1), Connected(W2)],
        [Connected(W1), Connected(W2), Disconnected(W1)],  # the new one came before it had noticed the old one's end
    )
    desk.network.send(desk.worker, G, credit(3))
    desk.run()
    assert [3] == desk.numbers(desk.gateway)


def test_a_connection_that_is_not_there_cannot_break(desk: Desk) -> None:
    assert not desk.network.cut_between("gateway", "worker-0")


def test_who_finds_nobody_connects_when_somebody_is_there(desk: Desk) -> None:
    desk.gateway.state = State.DEAD
    desk.connected()
    assert [] == desk.heard
    newer = desk.process("gateway/2", G)
    desk.network.serve(newer)
    desk.run()
    assert [Connected(W1)] == desk.of(newer)


def test_after_a_crash_the_other_side_notices_and_waits_for_a_new_instance(desk: Desk) -> None:
    desk.connected()
    desk.gateway.state = State.DEAD
    desk.network.leave(desk.gateway, in_peace=False)
    desk.run()
    assert [Connected(G), Disconnected(G)] == desk.of(desk.worker)
    desk.network.serve(desk.process("gateway/2", G))
    desk.run()
    assert [Connected(G), Disconnected(G), Connected(G)] == desk.of(desk.worker)


def test_a_process_that_ends_in_peace_delivers_what_it_had_sent_if_it_is_there_before_the_end_is_noticed() -> None:
    arrived = Counter[tuple[bool, int]]()
    for seed in range(40):
        for in_peace in (True, False):
            desk = Desk(seed).connected()
            desk.network.send(desk.worker, G, credit(1))
            desk.worker.state = State.DEAD
            desk.network.leave(desk.worker, in_peace=in_peace)
            desk.run()
            assert Disconnected(W1) == desk.of(desk.gateway)[-1]
            arrived[in_peace, len(desk.numbers(desk.gateway))] += 1
    assert arrived[True, 1] > arrived[False, 1] > 0
    assert arrived[False, 0] > 0


def test_a_new_instance_has_a_connection_of_its_own_beside_the_older_one(desk: Desk) -> None:
    desk.connected()
    newer = desk.process("worker-0/2", W)
    desk.network.dial(newer, G)
    desk.run()
    assert [Connected(W1), Connected(W2)] == desk.of(desk.gateway)
    assert [Connected(G)] == desk.of(desk.worker)
    desk.network.send(desk.worker, G, credit(1))
    desk.network.send(newer, G, credit(2))
    desk.run()
    assert {Received(W1, Credit(1)), Received(W2, Credit(2))} == set(desk.of(desk.gateway)[2:])


def test_an_older_connection_may_be_heard_of_after_the_newer_one() -> None:
    orders = set()
    for seed in range(60):
        desk = Desk(seed).connected()
        desk.network.send(desk.worker, G, credit(1))
        desk.worker.state = State.DEAD
        desk.network.leave(desk.worker, in_peace=True)
        desk.network.dial(desk.process("worker-0/2", W), G)
        desk.run()
        heard = desk.of(desk.gateway)[1:]
        orders.add(heard.index(Disconnected(W1)) < heard.index(Connected(W2)))
        if Received(W1, Credit(1)) in heard:
            assert heard.index(Received(W1, Credit(1))) < heard.index(Disconnected(W1))
    assert {True, False} == orders


def test_the_operator_keeps_its_name_and_its_older_connection_is_forgotten(desk: Desk) -> None:
    first, second = desk.process("operator/1", OPERATOR), desk.process("operator/2", OPERATOR)
    desk.network.dial(first, G)
    desk.run()
    desk.network.dial(second, G)
    while Connected(G) not in desk.of(second):
        desk.timeline.step(3000 * MS)
    desk.run(500 * MS)
    assert Disconnected(G) in desk.of(first)
    assert Disconnected(OPERATOR) not in desk.of(desk.gateway)


def test_a_zombie_that_finds_its_connection_closed_dials_again_and_waits_longer_each_time(desk: Desk) -> None:
    desk.connected()
    desk.worker.is_zombie = True
    for _ in range(3):
        desk.network.cut_between("worker-0", "gateway")
        desk.run()
    assert 4 * [Connected(G)] == [fact for fact in desk.of(desk.worker) if isinstance(fact, Connected)]
    assert 3 == desk.worker.tries


def test_the_peers_of_a_worker_that_was_replaced_give_it_up(desk: Desk) -> None:
    desk.connected()
    desk.network.abandon(desk.worker)
    desk.run()
    assert [Connected(W1), Disconnected(W1)] == [fact for fact in desk.of(desk.gateway) if fact.peer == W1]


def test_a_paused_process_keeps_its_connections_and_hears_everything_later_in_order(desk: Desk) -> None:
    desk.connected()
    desk.gateway.state = State.PAUSED
    for number in range(3):
        desk.network.send(desk.worker, G, credit(number))
    desk.run()
    assert [Connected(W1)] == desk.of(desk.gateway)
    assert [Connected(G)] == desk.of(desk.worker)
    desk.go_on(desk.gateway)
    assert [0, 1, 2] == desk.numbers(desk.gateway)


def test_a_paused_process_never_hears_of_a_connection_that_came_and_went(desk: Desk) -> None:
    desk.gateway.state = State.PAUSED
    desk.network.dial(desk.worker, G)
    while not desk.of(desk.worker):
        desk.timeline.step(1000 * MS)
    desk.network.send(desk.worker, G, credit(1))
    desk.run(4 * MS)
    desk.worker.state = State.DEAD
    desk.network.leave(desk.worker, in_peace=True)
    desk.run()
    desk.go_on(desk.gateway)
    assert [] == desk.of(desk.gateway)


def test_the_clients_of_a_replaced_process_come_to_the_new_one(desk: Desk) -> None:
    desk.connected()
    desk.gateway.state = State.PAUSED
    newer = desk.process("gateway/2", G)
    desk.gateway.is_zombie = True
    desk.network.serve(newer)
    desk.run()
    assert [Connected(W2)] == desk.of(newer)
    desk.go_on(desk.gateway)
    assert [Connected(W1), Disconnected(W1)] == desk.of(desk.gateway)


def test_a_zombie_may_still_have_clients_for_a_while() -> None:
    taken = []
    for seed in range(40):
        desk = Desk(seed).connected()
        desk.gateway.is_zombie = True
        desk.network.serve(desk.process("gateway/2", G))
        desk.run(40 * MS)
        desk.network.send(desk.worker, G, credit(1))
        desk.run()
        taken.append(len(desk.numbers(desk.gateway)))
    assert {0, 1} == set(taken)


def test_both_sides_hear_of_a_connection_that_one_of_them_closed(desk: Desk) -> None:
    desk.connected()
    desk.network.close(desk.gateway, W1)
    desk.network.send(desk.gateway, W1, credit(1))
    desk.run()
    assert [] == desk.numbers(desk.worker)
    assert [Connected(G), Disconnected(G), Connected(G)] == desk.of(desk.worker)
    assert {Connected(W1), Disconnected(W1), Connected(W2)} == set(desk.of(desk.gateway))


def test_a_message_is_what_it_was_when_it_was_sent() -> None:
    groups = np.array([1, 2], np.int64)
    columns = [np.array([number], np.int64) for number in range(6)]
    release, holding = Release(Term(1), groups), Holding(Holdings(*columns[: len(Holdings.__slots__)]))
    sent, held = as_on_the_wire(release), as_on_the_wire(holding)
    groups[0] = 9
    holding.holdings.tags[0] = 9
    assert isinstance(sent, Release)
    assert isinstance(held, Holding)
    assert [1, 2] == sent.groups.tolist()
    assert [2] == held.holdings.tags.tolist()


def test_dice_of_one_name_do_not_depend_on_what_others_draw() -> None:
    def draws(before: int) -> list[int]:
        other, mine = Dice(7, "other"), Dice(7, "mine")
        for _ in range(before):
            other.draw()
        return [mine.between((0, 1000)) for _ in range(100)]

    assert draws(0) == draws(50)
    assert draws(0) != [Dice(8, "mine").between((0, 1000)) for _ in range(100)]
    assert {3, 4, 5} == {Dice(seed, "bounds").between((3, 5)) for seed in range(60)}


def test_events_happen_by_time_and_then_in_the_order_in_which_they_were_planned() -> None:
    timeline, seen = Timeline(), list[str]()
    timeline.at(5, seen.append, "b")
    timeline.at(3, seen.append, "a")
    timeline.at(5, seen.append, "c")
    timeline.at(9, seen.append, "d")
    while timeline.step(5):
        pass
    assert (["a", "b", "c"], 5) == (seen, timeline.now)
    timeline.at(1, seen.append, "late")
    timeline.step(5)
    assert (["a", "b", "c", "late"], 5) == (seen, timeline.now)
