"""Refusals, deliveries and patience: what each of these checks lets pass, and what it stops."""

import numpy as np
import pytest

from joinery.elastic.plan import Move
from joinery.join.results import Kind, ResultPart
from joinery.machine import facts, messages, orders
from joinery.machine.gateway import GatewayMachine
from joinery.machine.log import ProducerJoined, Record, StreamEnded
from joinery.machine.messages import Delivery, Open, Opened, Push, Refuse, Token, TokenTooOld
from joinery.machine.moving import Moving
from joinery.model.errors import Bug
from joinery.model.ids import GroupId, Peer, ProducerId, RecordNo, Term, WorkerId
from joinery.model.spec import JoinQuerySpec
from joinery.simulate.deliveries import Deliveries
from joinery.simulate.patience import PATIENCE_NS, Patience
from joinery.simulate.process import Process
from joinery.simulate.refusals import Refusals
from joinery.simulate.schedule import MS, Role
from tests.unit.simulate.toys import QUERY, Toy, rows

P, Q = ProducerId("p"), ProducerId("q")
P1, Q1 = Peer("p#1"), Peer("q#1")
ENDED = Refuse(None, "the stream has ended")


class Desk:
    def __init__(self) -> None:
        self.refusals = Refusals({Peer("p"): (0, P), Peer("q"): (0, Q)})
        self.gateway = Process(Role.GATEWAY, 0, "gateway/1", Peer("gateway"), Toy(), 0, 0)

    def hears(self, peer: Peer, message: messages.Message) -> None:
        self.refusals.received(self.gateway, facts.Received(peer, message))

    def says(self, peer: Peer, message: messages.Message) -> None:
        self.refusals.sent(self.gateway, orders.Send(peer, message))

    def writes(self, number: int, *entries: StreamEnded | ProducerJoined) -> None:
        record = Record(Term(1), (), (0, 0), entries)
        self.refusals.appended(self.gateway, orders.AppendRecord(Term(1), RecordNo(number), record))

    def opens(self, peer: Peer, name: ProducerId, session: int = 1) -> None:
        self.hears(peer, Open(0, name))
        self.says(peer, Opened(Term(1), name, session, None))


@pytest.fixture
def desk() -> Desk:
    return Desk()


def push(sequence: int, checksum: int = 7, *, end: bool = False) -> Push:
    return Push(1, sequence, sequence + 1, checksum, rows(1), end)


def test_a_producer_that_did_nothing_wrong_must_not_be_refused(desk: Desk) -> None:
    desk.hears(P1, Open(0, P))
    with pytest.raises(Bug, match="who did nothing wrong"):
        desk.says(P1, ENDED)


def test_a_batch_of_a_good_session_must_not_be_refused_without_a_number(desk: Desk) -> None:
    desk.opens(P1, P)
    desk.hears(P1, push(0))
    desk.says(P1, Refuse(0, "sequence 0, wanted 1", expected=1))
    with pytest.raises(Bug, match="who did nothing wrong"):
        desk.says(P1, Refuse(0, "no"))


def test_who_comes_after_the_end_is_fenced_or_sends_other_rows_may_be_refused(desk: Desk) -> None:
    desk.opens(P1, P)
    desk.hears(P1, push(0))
    desk.hears(P1, push(0, checksum=8))
    desk.says(P1, Refuse(0, "other rows"))
    desk.opens(Peer("p#2"), P, session=2)
    desk.hears(P1, push(5))
    desk.says(P1, Refuse(5, "fenced"))
    desk.writes(0, StreamEnded(0))
    desk.says(Q1, ENDED)


def test_a_producer_is_excused_only_if_the_gateway_heard_of_it_too_late(desk: Desk) -> None:
    assert not desk.refusals.is_excused((0, Q))
    desk.writes(0, ProducerJoined(0, P, 1))
    desk.opens(Q1, Q)
    desk.writes(1)
    desk.writes(2, StreamEnded(0))
    assert not desk.refusals.is_excused((0, Q))
    assert not desk.refusals.is_excused((0, P))


def test_a_producer_that_came_while_the_end_was_being_written_is_excused(desk: Desk) -> None:
    desk.writes(0, ProducerJoined(0, P, 1))
    desk.opens(Q1, Q)
    desk.writes(1, StreamEnded(0))
    assert desk.refusals.is_excused((0, Q))


# --- deliveries


def part(*numbers: int) -> ResultPart:
    places = np.arange(len(numbers))
    return ResultPart(Kind.RESULT, rows(*numbers), places * 0, places, 0, None, members=(places, places))


def part_of_three() -> ResultPart:
    """The last row of the first commit."""
    return part(1, 2, 3).take(np.array([2]))


@pytest.fixture
def delivered() -> tuple[Deliveries, Process]:
    """Commits 1 and 3 have rows, commit 2 has none; commit 4 is staged only."""
    deliveries = Deliveries()
    collector = Process(Role.COLLECTOR, 0, "collector/1", Peer("collector"), Toy(), 0, 0)
    for number, parts in ((1, (part(1, 2, 3),)), (2, ()), (3, (part(4), part(5))), (4, (part(6),))):
        deliveries.staged(collector, orders.StageResults(number, parts))
        if number < 4:
            deliveries.committed(collector, number)
    return deliveries, Process(None, 0, "subscriber-0/1", Peer("subscriber-0"), Toy(), 0, 0)


def test_each_row_once_in_the_order_of_tokens_is_right(delivered: tuple[Deliveries, Process]) -> None:
    deliveries, reader = delivered
    deliveries.received(reader, Delivery((part(1, 2),), Token(1, 2)))
    deliveries.received(reader, Delivery((part_of_three(),), Token(2, 0)))
    deliveries.received(reader, Delivery((part(4), part(5)), Token(4, 0)))
    assert 5 == deliveries.rows


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (Delivery((part(6),), Token(5, 0)), "not durable"),
        (Delivery((part(4, 6),), Token(4, 0)), "other rows"),
        (Delivery((part(1, 2),), Token(1, 2)), "stands at"),
        (Delivery((part(4), part(5)), Token(4, 0)), "stands at"),
        (TokenTooOld(Token(1, 0)), "sent back"),
    ],
)
def test_what_is_not_durable_other_again_or_left_out_is_seen(
    delivered: tuple[Deliveries, Process], wrong: messages.Message, why: str
) -> None:
    deliveries, reader = delivered
    deliveries.received(reader, Delivery((part(1, 2),), Token(1, 2)))
    with pytest.raises(Bug, match=why):
        deliveries.received(reader, wrong)


# --- patience


def gateway_with_a_move() -> GatewayMachine:
    machine = GatewayMachine(JoinQuerySpec.parse(QUERY))
    move = Move(GroupId(1), WorkerId("worker-0"), WorkerId("worker-1"))
    machine.moves.under_way[GroupId(1)] = Moving(move)
    return machine


def test_a_move_that_stays_open_is_seen_once_nothing_has_disturbed_it_for_long_enough() -> None:
    patience, machine = Patience(), gateway_with_a_move()
    patience.look(machine, [], 0)
    patience.disturbed(500 * MS)
    patience.look(machine, [], PATIENCE_NS + 500 * MS)
    with pytest.raises(Bug, match="the move of group 1 from worker-0 to worker-1"):
        patience.look(machine, [], PATIENCE_NS + 501 * MS)


def test_a_drain_that_stays_open_is_seen_and_one_that_ended_is_forgotten() -> None:
    patience, worker = Patience(), WorkerId("worker-1")
    patience.look(Toy(), [worker], 0)
    patience.look(Toy(), [], PATIENCE_NS)
    patience.look(Toy(), [worker], PATIENCE_NS + MS)
    patience.look(Toy(), [worker], 2 * PATIENCE_NS)
    with pytest.raises(Bug, match="the drain of worker-1"):
        patience.look(Toy(), [worker], 2 * PATIENCE_NS + 2 * MS)
