"""The producer, fact by fact: numbering, acknowledgements, and what a broken connection leaves open."""

import pyarrow as pa
import pytest

from joinery.flow.checksum import checksum_of
from joinery.machine import facts, messages, orders
from joinery.machine.facts import Fact
from joinery.machine.messages import Push
from joinery.machine.orders import Order
from joinery.machine.producer import IN_FLIGHT, ProducerMachine
from joinery.model.errors import UserMustAct
from joinery.model.ids import GATEWAY, Peer, ProducerId, RecordNo, Term

NAME = ProducerId("meter")


def rows(value: int = 0) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"k": pa.array([value], pa.int64())})


class Driver:
    """Tells a machine facts, and checks it after each one."""

    def __init__(self, name: ProducerId | None = NAME) -> None:
        self.machine = ProducerMachine(1, name)

    def tell(self, fact: Fact) -> list[Order]:
        made = self.machine.handle(fact, now_ns=0)
        self.machine.check_invariants()
        return made

    def connect(self) -> list[Order]:
        return self.tell(facts.Connected(GATEWAY))

    def opened(self, expected: int | None = None, *, session: int = 1, ended: bool = False) -> list[Order]:
        return self.say(messages.Opened(Term(1), NAME, session, expected, ended))

    def say(self, message: messages.Message) -> list[Order]:
        return self.tell(facts.Received(GATEWAY, message))

    def offer(self, count: int = 1, *, end: bool = False) -> list[Order]:
        made: list[Order] = []
        for number in range(count):
            made += self.tell(facts.Offered(rows(number), end and number == count - 1))
        return made

    def acknowledge(self, sequence: int) -> list[Order]:
        return self.say(messages.Acknowledge(sequence, RecordNo(0)))

    def refuse(self, sequence: int | None, expected: int | None = None) -> list[Order]:
        return self.say(messages.Refuse(sequence, "no", expected))


def pushes(made: list[Order]) -> list[Push]:
    return [one.message for one in made if isinstance(one, orders.Send) and isinstance(one.message, Push)]


def sequences(made: list[Order]) -> list[int]:
    return [push.sequence for push in pushes(made)]


@pytest.fixture
def driver() -> Driver:
    """A named producer in a session, with a free choice of the first sequence."""
    driver = Driver()
    driver.connect()
    driver.opened()
    return driver


# --- sessions


def test_a_connection_opens_a_session_under_the_name() -> None:
    assert [orders.Send(GATEWAY, messages.Open(1, NAME))] == Driver().connect()


def test_connections_of_others_are_ignored() -> None:
    assert [] == Driver().tell(facts.Connected(Peer("other")))


def test_a_producer_without_a_name_keeps_the_id_that_it_got() -> None:
    driver = Driver(name=None)
    assert [orders.Send(GATEWAY, messages.Open(1, None))] == driver.connect()
    driver.opened()
    assert [orders.Send(GATEWAY, messages.Open(1, NAME))] == driver.connect()


def test_a_producer_without_a_name_is_named_by_its_instance_before_it_was_ever_answered() -> None:
    driver = Driver(name=None)
    driver.tell(facts.Started("client/7"))
    wanted = [orders.Send(GATEWAY, messages.Open(1, ProducerId("unnamed-client/7")))]
    assert (wanted, wanted) == (driver.connect(), driver.connect())


def test_nothing_is_sent_before_the_session_is_open() -> None:
    driver = Driver()
    driver.connect()
    assert ([], None) == (driver.offer(2), driver.machine.next_sequence)


def test_a_producer_that_is_free_to_choose_begins_at_zero() -> None:
    driver = Driver()
    driver.connect()
    driver.offer(2)
    assert [0, 1] == sequences(driver.opened(None))


def test_a_producer_that_was_started_again_goes_on_where_the_gateway_is() -> None:
    driver = Driver()
    driver.connect()
    driver.opened(5)
    assert [5, 6] == sequences(driver.offer(2))


def test_what_was_offered_before_is_not_sent_under_a_number_of_somebody_else() -> None:
    """Found by seed 1701: a producer that was replaced before it was opened sent its first rows a second time."""
    driver = Driver()
    driver.connect()
    driver.offer(2)
    assert [] == sequences(driver.opened(5))
    assert "ask for next_sequence first" in (driver.machine.failed or "")


def test_the_program_learns_what_to_offer_next() -> None:
    driver = Driver()
    driver.connect()
    driver.opened(5)
    driver.offer()
    assert 6 == driver.machine.next_sequence


def test_a_batch_carries_session_sequences_and_checksum(driver: Driver) -> None:
    (push,) = pushes(driver.tell(facts.Offered(rows(7))))
    assert (1, 0, 1, checksum_of(rows(7)), False) == (
        push.session,
        push.sequence,
        push.next_sequence,
        push.checksum,
        push.end,
    )


# --- a new connection


def test_what_was_recorded_before_the_connection_broke_counts_as_acknowledged(driver: Driver) -> None:
    driver.offer(3)
    driver.connect()
    assert [2] == sequences(driver.opened(2, session=2))
    assert [0, 1] == driver.machine.acknowledged


def test_what_was_not_recorded_is_sent_again_in_the_new_session(driver: Driver) -> None:
    driver.offer(2)
    driver.tell(facts.Disconnected(GATEWAY))
    driver.connect()
    assert [(2, 0), (2, 1)] == [(push.session, push.sequence) for push in pushes(driver.opened(0, session=2))]


def test_a_gateway_that_recorded_nothing_gets_everything_again(driver: Driver) -> None:
    driver.offer(2)
    driver.connect()
    assert [0, 1] == sequences(driver.opened(None, session=2))


def test_without_a_connection_batches_wait(driver: Driver) -> None:
    driver.tell(facts.Disconnected(GATEWAY))
    assert [] == driver.offer()


def test_a_gateway_that_forgot_what_it_acknowledged_is_an_error(driver: Driver) -> None:
    driver.offer(2)
    driver.acknowledge(0)
    driver.connect()
    driver.opened(0, session=2)
    assert "DataLost" in (driver.machine.failed or "")


def test_a_gateway_that_knows_more_than_was_ever_offered_is_an_error(driver: Driver) -> None:
    driver.offer()
    driver.connect()
    driver.opened(9, session=2)
    assert "another client" in (driver.machine.failed or "")


# --- acknowledgements


def test_an_acknowledged_batch_is_gone(driver: Driver) -> None:
    driver.offer(2)
    driver.acknowledge(0)
    assert [0] == driver.machine.acknowledged
    driver.connect()
    assert [1] == sequences(driver.opened(1, session=2))


def test_an_acknowledgement_that_comes_twice_counts_once(driver: Driver) -> None:
    driver.offer(2)
    driver.acknowledge(0)
    driver.acknowledge(0)
    assert [0] == driver.machine.acknowledged


def test_only_so_many_batches_are_under_way(driver: Driver) -> None:
    assert list(range(IN_FLIGHT)) == sequences(driver.offer(IN_FLIGHT + 3))
    assert [IN_FLIGHT] == sequences(driver.acknowledge(0))


def test_there_is_room_until_enough_waits(driver: Driver) -> None:
    assert driver.machine.room
    driver.offer(2 * IN_FLIGHT)
    assert not driver.machine.room
    driver.acknowledge(0)
    assert driver.machine.room


# --- refusals


def test_a_refused_batch_is_sent_again_from_the_expected_one(driver: Driver) -> None:
    driver.offer(3)
    assert [1, 2] == sequences(driver.refuse(2, expected=1))


def test_the_refusals_of_batches_behind_a_refused_one_say_nothing_new(driver: Driver) -> None:
    driver.offer(4)
    assert [1, 2, 3] == sequences(driver.refuse(2, expected=1))
    assert [] == driver.refuse(3, expected=1)
    assert [1, 2, 3] == sequences(driver.refuse(1, expected=1))


def test_a_refusal_is_no_acknowledgement_of_what_came_before(driver: Driver) -> None:
    driver.offer(3)
    driver.refuse(2, expected=1)
    assert [] == driver.machine.acknowledged


def test_a_refusal_from_before_what_is_kept_is_an_error(driver: Driver) -> None:
    driver.offer(3)
    driver.acknowledge(1)
    driver.refuse(2, expected=0)
    assert "DataLost" in (driver.machine.failed or "")


def test_a_refusal_without_a_number_fails_with_its_reason(driver: Driver) -> None:
    driver.offer(2)
    assert [orders.Stop("no")] == driver.refuse(0)
    assert ("no", False, False) == (driver.machine.failed, driver.machine.done, driver.machine.room)


def test_a_refused_session_fails_too() -> None:
    driver = Driver()
    driver.connect()
    driver.refuse(None)
    assert "no" == driver.machine.failed


def test_a_producer_that_failed_sends_nothing_more(driver: Driver) -> None:
    driver.offer(2)
    driver.refuse(0)
    assert [] == driver.connect() + driver.acknowledge(0)


# --- the end


def test_the_last_batch_says_so(driver: Driver) -> None:
    assert [False, True] == [push.end for push in pushes(driver.offer(2, end=True))]


def test_a_producer_is_done_when_everything_up_to_its_end_is_acknowledged(driver: Driver) -> None:
    driver.offer(2, end=True)
    assert ([], False) == (driver.acknowledge(0), driver.machine.done)
    assert isinstance(driver.acknowledge(1)[0], orders.Stop)
    assert driver.machine.done


def test_an_end_without_rows_is_an_empty_batch_of_the_same_columns(driver: Driver) -> None:
    driver.offer()
    (push,) = pushes(driver.tell(facts.Offered(None, end=True)))
    assert (0, ["k"], True) == (push.rows.num_rows, push.rows.schema.names, push.end)


def test_an_end_of_a_producer_that_never_had_rows_has_no_columns(driver: Driver) -> None:
    (push,) = pushes(driver.tell(facts.Offered(None, end=True)))
    assert (0, 0, True) == (push.rows.num_rows, push.rows.num_columns, push.end)


def test_nothing_can_be_offered_after_the_end(driver: Driver) -> None:
    driver.offer(end=True)
    assert not driver.machine.room
    with pytest.raises(UserMustAct, match="after the end"):
        driver.offer()


def test_an_end_whose_acknowledgement_got_lost_is_done_at_the_next_session(driver: Driver) -> None:
    driver.offer(2, end=True)
    driver.connect()
    driver.opened(2, session=2, ended=True)
    assert (True, [0, 1]) == (driver.machine.done, driver.machine.acknowledged)


def test_a_producer_that_had_ended_before_it_was_started_again_is_done() -> None:
    driver = Driver()
    driver.connect()
    assert isinstance(driver.opened(4, ended=True)[0], orders.Stop)
    assert driver.machine.done


def test_the_end_alone_offered_once_more_is_done_too() -> None:
    driver = Driver()
    driver.tell(facts.Offered(None, end=True))
    driver.connect()
    driver.opened(4, ended=True)
    assert driver.machine.done


def test_rows_after_a_recorded_end_are_an_error() -> None:
    driver = Driver()
    driver.offer()
    driver.connect()
    driver.opened(4, ended=True)
    assert "after the end" in (driver.machine.failed or "")
