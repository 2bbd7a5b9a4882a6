"""Producers that joined, never recorded anything and are gone: no stream waits for them."""

import pytest

from joinery.machine.log import ProducerForgotten, ProducerIdle, ProducerJoined, StreamEnded
from joinery.model.ids import Peer, ProducerId
from tests.unit.machine.building import Feed, entries, push, spec_of

LOST = "unnamed-1"
PEER = Peer(f"0/{LOST}")
FORGOTTEN = ProducerForgotten(0, ProducerId(LOST))


@pytest.fixture
def feed() -> Feed:
    """A producer without a name has joined stream 0, and sent nothing."""
    feed = Feed(spec_of(idle="5ns"))
    feed.open(LOST)
    feed.cut()
    return feed


def hang_up(feed: Feed, peer: Peer = PEER) -> None:
    feed.intake.sessions.disconnected(peer, hung_up=True)


def test_one_that_hung_up_is_forgotten_at_once(feed: Feed) -> None:
    hang_up(feed)
    cut = feed.cut()
    assert (FORGOTTEN,) == cut.record.entries
    assert {} == cut.head.sessions
    assert ({}, frozenset()) == (cut.head.clocks[0].greatest, cut.head.clocks[0].live)


def test_one_that_was_refused_is_forgotten_when_it_hangs_up(feed: Feed) -> None:
    feed.push(PEER, push(1, 0, batch=push(1, 0).rows.select(["k"])))
    assert 1 == feed.intake.sessions.rejections
    hang_up(feed)
    assert [FORGOTTEN] == entries(feed.cut(), ProducerForgotten)


def test_the_stream_ends_without_it(feed: Feed) -> None:
    feed.send(0, (1, 1), end=True)
    assert [] == entries(feed.cut(), StreamEnded)
    hang_up(feed)
    assert [StreamEnded(0)] == entries(feed.cut(), StreamEnded)


def test_a_stream_in_which_nobody_has_ended_goes_on_without_it(feed: Feed) -> None:
    hang_up(feed)
    assert [] == entries(feed.cut(), StreamEnded)
    feed.send(0, (1, 1), end=True)
    assert [StreamEnded(0)] == entries(feed.cut(), StreamEnded)


def test_the_watermark_rises_without_it(feed: Feed) -> None:
    feed.send(0, (1, 7))
    held = feed.cut().head.watermarks[0]
    hang_up(feed)
    assert held < 7 == feed.cut().head.watermarks[0]


def test_one_with_a_name_is_waited_for() -> None:
    feed = Feed()
    feed.open("p")
    feed.cut()
    hang_up(feed, Peer("0/p"))
    assert None is feed.begin()


def test_one_that_has_recorded_something_is_waited_for(feed: Feed) -> None:
    feed.send(0, (1, 1), name=LOST)
    feed.cut()
    hang_up(feed)
    assert None is feed.begin()


def test_one_whose_rows_wait_to_be_recorded_is_waited_for(feed: Feed) -> None:
    feed.send(0, (1, 1), name=LOST)
    hang_up(feed)
    cut = feed.cut()
    assert (1, []) == (len(cut.record.batches), entries(cut, ProducerForgotten))


def test_one_that_hung_up_before_the_log_knew_of_it_never_joins() -> None:
    feed = Feed()
    feed.open(LOST)
    hang_up(feed)
    assert None is feed.begin()


def test_one_whose_connection_broke_is_waited_for_as_one_that_is_silent(feed: Feed) -> None:
    feed.intake.sessions.disconnected(PEER)
    assert (None, 5) == (feed.begin(now=4), feed.intake.next_idle_ns())
    assert (FORGOTTEN,) == feed.cut(now=5).record.entries


def test_one_that_fell_silent_before_its_connection_broke_is_forgotten_too(feed: Feed) -> None:
    assert [ProducerIdle(0, ProducerId(LOST))] == entries(feed.cut(now=5), ProducerIdle)
    feed.intake.sessions.disconnected(PEER)
    assert (FORGOTTEN,) == feed.cut(now=6).record.entries


def test_one_that_does_not_come_back_after_a_restart_is_forgotten(feed: Feed) -> None:
    after = Feed(feed.spec)
    after.intake.restore(feed.intake.head, [], now_ns=10)
    assert (None, 15) == (after.begin(now=14), after.intake.next_idle_ns())
    assert (FORGOTTEN,) == after.cut(now=15).record.entries


def test_one_that_comes_back_joins_anew(feed: Feed) -> None:
    hang_up(feed)
    feed.cut()
    feed.open(LOST)
    feed.send(0, (1, 1), name=LOST)
    assert [ProducerJoined(0, ProducerId(LOST), 1)] == entries(feed.cut(), ProducerJoined)
    assert 1 == feed.intake.head.sessions[0, ProducerId(LOST)].expected


def test_what_was_forgotten_is_forgotten_after_a_restart(feed: Feed) -> None:
    head = Feed(feed.spec).intake.head
    hang_up(feed)
    feed.cut()
    after = Feed(feed.spec)
    after.intake.restore(head, feed.log(), now_ns=0)
    assert feed.intake.head == after.intake.head
