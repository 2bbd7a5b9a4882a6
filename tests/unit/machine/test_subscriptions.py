"""Subscribers with credits, the end of results, and the subscriber's own machine against them."""

import numpy as np
import pyarrow as pa
import pytest

from joinery.join.results import ResultPart
from joinery.machine import facts, messages, orders, subscriptions
from joinery.machine.messages import Delivery, Ended, Grant, Subscribe, Token, TokenTooOld
from joinery.machine.subscriber import CREDIT, SubscriberMachine
from joinery.machine.subscriptions import PATIENCE_NS, Subscriptions
from joinery.model.ids import COLLECTOR, Peer
from tests.unit.machine.result_parts import numbers, part

ONE, OTHER = Peer("one"), Peer("other")
SCHEMA = pa.schema([("n", pa.int64())])


def rows(*numbers_: int) -> tuple[ResultPart, ...]:
    return tuple(part([(number, 0, 5)]) for number in numbers_)


def kept(retain: int = 1 << 20) -> Subscriptions:
    return Subscriptions(retain, 0, SCHEMA)


@pytest.fixture(autouse=True)
def _one_row_in_a_delivery(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "PIECE_BYTES", 1)


def shown(answers: list[subscriptions.Answer]) -> list[object]:
    return [(numbers(one.parts), one.token) if isinstance(one, Delivery) else one for one in answers]


def test_a_credit_is_how_many_deliveries_come_and_a_grant_brings_the_next() -> None:
    found = kept()
    found.committed(1, rows(1, 2, 3))
    assert [([1], Token(1, 1)), ([2], Token(1, 2))] == shown(found.subscribe(ONE, Subscribe(None, 2)))
    assert [] == found.committed(2, rows(4))
    assert [([3], Token(2, 0))] == shown(found.grant(ONE, 1))
    assert [([4], Token(3, 0))] == shown(found.grant(ONE, 5))
    assert [(ONE, [5])] == [(peer, numbers(one.parts)) for peer, one in found.committed(3, rows(5))]  # type: ignore[union-attr]
    found.check()


def test_one_who_falls_behind_what_is_kept_is_told_and_others_are_not_disturbed() -> None:
    found = kept(retain=100)
    found.subscribe(ONE, Subscribe(None, 1))
    found.subscribe(OTHER, Subscribe(None))
    told = [(peer, one) for number in range(1, 30) for peer, one in found.committed(number, rows(number))]
    assert list(range(1, 30)) == [numbers(one.parts)[0] for peer, one in told if peer == OTHER]  # type: ignore[union-attr]
    ((_, first), (_, last)) = [one for one in told if one[0] == ONE]
    assert ([1], True) == (numbers(first.parts), isinstance(last, TokenTooOld))  # type: ignore[union-attr]
    assert [] == found.grant(ONE, 1)
    found.check()


def test_the_end_is_told_after_the_last_row_to_everybody_who_has_it() -> None:
    found = kept()
    found.committed(1, rows(1, 2))
    found.subscribe(ONE, Subscribe(None, 1))
    found.subscribe(OTHER, Subscribe(None))
    assert [(OTHER, Ended(Token(2, 0), SCHEMA))] == found.end()
    assert [([2], Token(2, 0)), Ended(Token(2, 0), SCHEMA)] == shown(found.grant(ONE, 1))
    assert [Ended(Token(2, 0), SCHEMA)] == found.subscribe(Peer("late"), Subscribe(Token(2, 0), 1))


def test_one_who_wants_what_is_there_gets_that_and_the_end() -> None:
    found = kept()
    assert [Ended(Token(1, 0), SCHEMA)] == found.subscribe(OTHER, Subscribe(None, 1, only_kept=True))
    found.committed(1, rows(1, 2))
    found.subscribe(ONE, Subscribe(None, 1, only_kept=True))
    found.committed(2, rows(3))
    assert [([2], Token(2, 0)), Ended(Token(2, 0), SCHEMA)] == shown(found.grant(ONE, 9))


def test_the_end_waits_for_readers_who_read_on_but_not_for_ever() -> None:
    found = kept()
    found.committed(1, rows(1, 2, 3))
    found.subscribe(ONE, Subscribe(None, 1))
    assert PATIENCE_NS == found.wait_until_ns(0)
    found.grant(ONE, 1)
    assert 7 + PATIENCE_NS == found.wait_until_ns(7)
    assert None is found.wait_until_ns(7 + PATIENCE_NS)
    found.leave(ONE)
    assert None is found.wait_until_ns(8)


@pytest.mark.parametrize("seed", range(20))
def test_a_subscriber_gets_every_row_once_across_broken_connections(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found, reader, got, number, commit = kept(), SubscriberMachine(None), list[int](), 0, 0
    wire: list[object] = []

    def tell(fact: facts.Fact) -> None:
        for order in reader.handle(fact, 0):
            match order:
                case orders.Send(_, Subscribe() as asked):
                    wire.extend(found.subscribe(ONE, asked))
                case orders.Send(_, Grant(credit)):
                    wire.extend(found.grant(ONE, credit))
        reader.check_invariants()

    tell(facts.Connected(COLLECTOR))
    for step in range(300):
        if step < 150 and rng.random() < 0.5:
            commit, size = commit + 1, int(rng.integers(0, 6))
            wire += [one for _, one in found.committed(commit, rows(*range(number, number + size)))]
            number += size
        elif step == 200:
            wire += [one for _, one in found.end()]
        elif rng.random() < 0.1:
            wire.clear()
            found.leave(ONE)
            tell(facts.Disconnected(COLLECTOR))
            tell(facts.Connected(COLLECTOR))
        while wire and rng.random() < 0.8:
            tell(facts.Received(COLLECTOR, wire.pop(0)))  # type: ignore[arg-type]
        assert len(reader.deliveries) <= CREDIT + 1
        while reader.deliveries and rng.random() < 0.7:
            got += numbers(reader.deliveries.popleft().parts)
            tell(facts.Consumed(1))
        found.check()
    while wire or reader.deliveries:
        if wire:
            tell(facts.Received(COLLECTOR, wire.pop(0)))  # type: ignore[arg-type]
        if reader.deliveries:
            got += numbers(reader.deliveries.popleft().parts)
            tell(facts.Consumed(1))
    assert list(range(number)) == got
    assert reader.ended is not None


def test_a_subscriber_whose_token_is_gone_says_which_is_left() -> None:
    reader = SubscriberMachine(Token(3, 1))
    (sent,) = reader.handle(facts.Connected(COLLECTOR), 0)
    assert orders.Send(COLLECTOR, messages.Subscribe(Token(3, 1), CREDIT)) == sent
    (stop,) = reader.handle(facts.Received(COLLECTOR, TokenTooOld(Token(9, 0))), 0)
    assert isinstance(stop, orders.Stop)
    assert "the results after 3:1 are no longer kept" in str(reader.failed)
    assert "subscribe from 9:0" in str(reader.failed)
