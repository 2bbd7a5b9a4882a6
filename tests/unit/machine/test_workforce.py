"""The gateway's book of workers: connections, instances, losses, credit."""

import pytest

from joinery.machine.messages import WorkerHello
from joinery.machine.workforce import MAX_MESSAGES, Workforce, ordinal
from joinery.model.ids import Peer, WorkerId
from tests.unit.machine.building import hello, holdings, workforce_of

W0, W1 = WorkerId("worker-0"), WorkerId("worker-1")
PEER, OTHER = Peer("worker-0"), Peer("worker-0/2")


@pytest.fixture
def force() -> Workforce:
    """Worker 0 is up, with a buffer of 1000 bytes; it is lost after 100 ns."""
    return workforce_of("worker-0")


# --- instances and connections


def test_a_worker_is_up_from_its_hello_on(force: Workforce) -> None:
    assert (True, False) == (force.is_up(W0), force.is_up(W1))


def test_a_worker_is_reached_by_its_newest_connection(force: Workforce) -> None:
    force.hello(OTHER, hello(instance="two"), 1)
    assert OTHER == force.peer(W0)


def test_an_older_instance_is_not_listened_to(force: Workforce) -> None:
    force.hello(OTHER, hello(instance="two"), 1)
    assert (False, OTHER) == (force.hello(PEER, hello(instance="one"), 2), force.peer(W0))


def test_every_older_instance_is_remembered(force: Workforce) -> None:
    force.hello(OTHER, hello(instance="two"), 1)
    force.hello(OTHER, hello(instance="three"), 2)
    assert [False, False, True] == [force.hello(PEER, hello(instance=name), 3) for name in ("one", "two", "three")]


def test_the_same_instance_may_come_back(force: Workforce) -> None:
    force.disconnected(W0)
    assert (True, True) == (force.hello(OTHER, hello(instance="one"), 1), force.is_up(W0))


def test_a_worker_that_is_expected_is_not_up_and_any_instance_may_come() -> None:
    force = Workforce(1000, 100)
    force.expect((W0,), now_ns=0)
    assert (False, True) == (force.is_up(W0), force.hello(PEER, hello(instance="any"), 1))


def test_a_worker_that_is_there_is_not_expected_anew(force: Workforce) -> None:
    force.expect((W0,), now_ns=50)
    assert (True, "one") == (force.is_up(W0), force.hands[W0].instance)


def test_a_drained_instance_does_not_come_back(force: Workforce) -> None:
    force.retire(W0)
    assert (False, False) == (force.hello(PEER, hello(instance="one"), 1), force.is_up(W0))


def test_a_new_instance_of_a_drained_worker_may_come(force: Workforce) -> None:
    force.retire(W0)
    assert (True, {}) == (force.hello(OTHER, hello(instance="two"), 1), force.retired)


def test_what_comes_over_an_older_connection_does_not_count(force: Workforce) -> None:
    force.hello(OTHER, hello(instance="two"), 1)
    assert (False, True) == (force.heard(W0, PEER, 2), force.heard(W0, OTHER, 2))


def test_what_comes_after_a_disconnect_does_not_count(force: Workforce) -> None:
    force.disconnected(W0)
    assert not force.heard(W0, PEER, 1)


def test_a_worker_that_nobody_knows_is_not_heard(force: Workforce) -> None:
    assert not force.heard(W1, Peer("worker-1"), 1)


def test_workers_are_ordered_by_their_ordinals() -> None:
    force = workforce_of("worker-10", "worker-2", "worker-0")
    force.disconnected(W0)
    assert ["worker-2", "worker-10"] == force.up()


def test_a_name_without_a_number_is_ordered_by_its_text() -> None:
    assert ["a", "b", "w-2", "w-10"] == sorted([WorkerId(name) for name in ("w-10", "b", "w-2", "a")], key=ordinal)


# --- losses


def test_a_worker_is_lost_after_too_long_a_silence(force: Workforce) -> None:
    assert ([], [W0]) == (force.lost(100), force.lost(101))


def test_a_worker_that_is_heard_is_not_lost(force: Workforce) -> None:
    force.heard(W0, PEER, 50)
    assert ([], [W0]) == (force.lost(150), force.lost(151))


def test_a_worker_that_was_expected_and_never_came_is_lost() -> None:
    force = Workforce(1000, 100)
    force.expect((W0,), now_ns=7)
    assert ([], [W0]) == (force.lost(107), force.lost(108))


def test_a_retired_worker_is_not_lost(force: Workforce) -> None:
    force.retire(W0)
    assert [] == force.lost(1000)


# --- credit


def test_a_worker_has_credit_while_its_buffer_has_room(force: Workforce) -> None:
    force.sent(W0, 999)
    assert force.has_credit(W0)


def test_a_worker_with_a_full_buffer_has_no_credit(force: Workforce) -> None:
    force.sent(W0, 500)
    force.sent(W0, 500)
    assert not force.has_credit(W0)


def test_the_next_message_may_come_while_one_is_joined_however_large_it_is(force: Workforce) -> None:
    force.sent(W0, 10**6)
    before = force.has_credit(W0)
    force.sent(W0, 10**6)
    assert (True, False) == (before, force.has_credit(W0))


def test_a_message_larger_than_the_buffer_may_be_sent_to_a_worker_with_credit(force: Workforce) -> None:
    force.sent(W0, 10**6)
    force.credit(W0, 10**6)
    assert force.has_credit(W0)


def test_a_worker_with_many_messages_has_no_credit(force: Workforce) -> None:
    for _ in range(MAX_MESSAGES - 1):
        force.sent(W0, 0)
    before = force.has_credit(W0)
    force.sent(W0, 0)
    assert (True, False) == (before, force.has_credit(W0))


def test_a_joined_message_gives_credit_back(force: Workforce) -> None:
    force.sent(W0, 600)
    force.sent(W0, 600)
    force.credit(W0, 600)
    assert (600, 1, True) == (force.hands[W0].outstanding_bytes, force.hands[W0].outstanding, force.has_credit(W0))


def test_credit_never_exceeds_the_buffer(force: Workforce) -> None:
    force.credit(W0, 500)
    assert (0, 0) == (force.hands[W0].outstanding_bytes, force.hands[W0].outstanding)


def test_a_worker_that_comes_back_says_what_it_still_has_in_its_buffer(force: Workforce) -> None:
    force.sent(W0, 100)
    force.hello(OTHER, WorkerHello(W0, "one", holdings(), buffered_bytes=1000, buffered_messages=3), 1)
    assert (1000, 3, False) == (
        force.hands[W0].outstanding_bytes,
        force.hands[W0].outstanding,
        force.has_credit(W0),
    )


def test_a_worker_that_had_no_credit_was_held_back(force: Workforce) -> None:
    force.sent(W0, 500)
    force.sent(W0, 500)
    force.has_credit(W0)
    force.credit(W0, 500)
    force.has_credit(W0)
    assert force.hands[W0].was_held_back


def test_a_worker_that_always_had_credit_was_not_held_back(force: Workforce) -> None:
    force.has_credit(W0)
    assert not force.hands[W0].was_held_back
