"""Producers' sessions: who may send what next, by what is durable."""

from dataclasses import replace

import pyarrow as pa
import pytest

from joinery.machine.messages import Acknowledge, Open, Opened, Push, Refuse
from joinery.model.ids import Peer, ProducerId, Term
from tests.unit.machine.building import Feed, push, rows

PEER, OTHER = Peer("0/p"), Peer("again")
KEY = (0, ProducerId("p"))


@pytest.fixture
def feed() -> Feed:
    """Producer p of stream 0 has a session."""
    feed = Feed()
    feed.open("p")
    return feed


def recorded(feed: Feed, count: int = 1) -> Feed:
    """So many batches of p are durable, each in a record of its own."""
    for number in range(count):
        feed.send(0, (number, number))
        feed.cut()
    return feed


def sequences(feed: Feed) -> list[int]:
    return [one.push.sequence for one in feed.intake.sessions.waiting]


# --- rule 1: opening


def test_a_new_producer_may_begin_with_any_sequence() -> None:
    assert Opened(Term(1), ProducerId("p"), 1, None) == Feed().open("p")


def test_a_producer_without_a_name_gets_one_of_its_own() -> None:
    feed = Feed()
    one, other = feed.open("", peer="one"), feed.open("", peer="other")
    assert isinstance(one, Opened)
    assert isinstance(other, Opened)
    assert ("unnamed-1-1", "unnamed-1-2") == (one.producer, other.producer)


def test_a_stream_that_the_query_does_not_have_is_refused() -> None:
    answer = Feed().open("p", stream=2)
    assert isinstance(answer, Refuse)
    assert "stream 2 of 2" in answer.reason


def test_opening_again_gives_a_higher_session(feed: Feed) -> None:
    answer = feed.open("p")
    assert isinstance(answer, Opened)
    assert 2 == answer.session


def test_opening_again_tells_the_durable_sequence(feed: Feed) -> None:
    recorded(feed, 2)
    answer = feed.open("p")
    assert isinstance(answer, Opened)
    assert 2 == answer.expected


def test_opening_again_does_not_count_what_waits_to_be_recorded(feed: Feed) -> None:
    recorded(feed)
    feed.send(0, (5, 5))
    answer = feed.open("p")
    assert isinstance(answer, Opened)
    assert 1 == answer.expected


def test_opening_again_is_answered_when_the_record_that_is_being_written_is_durable(feed: Feed) -> None:
    recorded(feed)
    feed.send(0, (5, 5))
    made = feed.begin()
    assert made is not None
    assert None is feed.open("p")
    feed.intake.head = made.head
    assert [("0/p", Open(0, ProducerId("p")))] == feed.intake.sessions.written()
    answer = feed.open("p")
    assert isinstance(answer, Opened)
    assert 2 == answer.expected


def test_opening_again_drops_what_the_older_session_has_waiting(feed: Feed) -> None:
    feed.send(0, (5, 5))
    feed.open("p")
    assert [] == feed.intake.sessions.waiting


def test_a_restarted_producer_is_not_acknowledged_for_the_rows_of_its_older_session(feed: Feed) -> None:
    feed.send(0, (5, 5))
    feed.open("p")
    assert None is feed.push(PEER, push(2, 0, (6, 6)))
    assert [6] == feed.cut().record.batches[0].rows.column("k").to_pylist()


def test_a_sequence_inside_a_batch_that_waits_is_refused_with_the_expected_one(feed: Feed) -> None:
    feed.push(PEER, replace(push(1, 0, (1, 1)), next_sequence=10))
    answer = feed.push(PEER, push(1, 4, (1, 1)))
    assert isinstance(answer, Refuse)
    assert 10 == answer.expected


def test_sessions_go_on_rising_after_a_restart_of_the_gateway(feed: Feed) -> None:
    feed.open("p")
    recorded(feed)
    after = Feed()
    after.intake.head = feed.intake.head
    answer = after.open("p")
    assert answer == Opened(Term(1), ProducerId("p"), 3, 1)


def test_opening_tells_a_producer_that_it_has_ended(feed: Feed) -> None:
    feed.send(0, (1, 1), end=True)
    feed.cut()
    answer = feed.open("p")
    assert isinstance(answer, Opened)
    assert answer.ended


# --- rule 1: fencing


def test_an_older_session_of_the_name_is_fenced(feed: Feed) -> None:
    feed.open("p", peer=OTHER)
    answer = feed.push(PEER, push(1, 0, (1, 1)))
    assert isinstance(answer, Refuse)
    assert ("session 1 is fenced" in answer.reason, None) == (True, answer.expected)


def test_a_push_with_an_older_session_number_is_fenced(feed: Feed) -> None:
    feed.open("p")
    answer = feed.push(PEER, push(1, 0, (1, 1)))
    assert isinstance(answer, Refuse)
    assert "session 1 is fenced" in answer.reason


def test_a_push_without_a_session_is_refused() -> None:
    assert isinstance(Feed().push(PEER, push(1, 0, (1, 1))), Refuse)


def test_a_fenced_batch_does_not_wait(feed: Feed) -> None:
    feed.open("p", peer=OTHER)
    feed.push(PEER, push(1, 0, (1, 1)))
    assert [] == sequences(feed)


def test_another_producer_of_the_stream_is_not_fenced(feed: Feed) -> None:
    feed.open("r", 0, peer=OTHER)
    assert feed.push(PEER, push(1, 0, (1, 1))) is None


def test_a_broken_connection_keeps_the_session_but_nobody_can_be_told(feed: Feed) -> None:
    feed.intake.sessions.disconnected(PEER)
    assert (1, None) == (feed.intake.sessions.producers[KEY].session, feed.intake.sessions.peer_of(KEY))


def test_the_end_of_an_older_connection_does_not_touch_the_newer_one(feed: Feed) -> None:
    feed.open("p", peer=OTHER)
    feed.intake.sessions.disconnected(PEER)
    assert OTHER == feed.intake.sessions.peer_of(KEY)


# --- rule 2: sequences


@pytest.mark.parametrize("first", [0, 17])
def test_the_first_sequence_of_a_new_producer_is_free(feed: Feed, first: int) -> None:
    assert feed.push(PEER, push(1, first, (1, 1))) is None


def test_a_batch_that_was_taken_waits_and_has_no_answer_yet(feed: Feed) -> None:
    assert (None, [0]) == (feed.send(0, (1, 1)), sequences(feed))


def test_the_batch_after_one_that_waits_is_taken(feed: Feed) -> None:
    assert (None, None, [0, 1]) == (feed.send(0, (1, 1)), feed.send(0, (2, 2)), sequences(feed))


def test_the_next_sequence_is_the_one_that_the_batch_names(feed: Feed) -> None:
    feed.push(PEER, Push(1, 10, 25, 0, rows((1, 1))))
    assert feed.push(PEER, push(1, 25, (1, 1))) is None
    assert 26 == feed.push(PEER, push(1, 30, (1, 1))).expected


def test_a_higher_sequence_is_refused_with_the_expected_number(feed: Feed) -> None:
    recorded(feed)
    answer = feed.push(PEER, push(1, 3, (1, 1)))
    assert isinstance(answer, Refuse)
    assert (3, 1) == (answer.sequence, answer.expected)


def test_a_lower_sequence_that_is_durable_is_acknowledged(feed: Feed) -> None:
    recorded(feed)
    assert Acknowledge(0, None) == feed.push(PEER, push(1, 0, (0, 0)))


def test_a_lower_sequence_that_is_durable_is_not_recorded_again(feed: Feed) -> None:
    recorded(feed)
    feed.push(PEER, push(1, 0, (0, 0)))
    assert [] == sequences(feed)


def test_a_lower_sequence_that_waits_is_not_acknowledged(feed: Feed) -> None:
    feed.send(0, (0, 0))
    assert (None, [0]) == (feed.push(PEER, push(1, 0, (0, 0))), sequences(feed))


def test_a_lower_sequence_that_is_being_written_is_not_acknowledged(feed: Feed) -> None:
    feed.send(0, (0, 0))
    feed.begin()
    assert (None, []) == (feed.push(PEER, push(1, 0, (0, 0))), sequences(feed))


def test_what_waits_is_not_acknowledged_to_a_later_session_either(feed: Feed) -> None:
    feed.send(0, (0, 0))
    feed.open("p")
    assert (None, [0]) == (feed.push(PEER, push(2, 0, (0, 0))), sequences(feed))


def test_the_last_durable_sequence_with_another_checksum_is_refused(feed: Feed) -> None:
    recorded(feed)
    answer = feed.push(PEER, push(1, 0, (99, 99)))
    assert isinstance(answer, Refuse)
    assert "was taken with other rows" in answer.reason


def test_an_older_sequence_is_acknowledged_because_its_checksum_is_not_known_any_more(feed: Feed) -> None:
    recorded(feed, 2)
    assert Acknowledge(0, None) == feed.push(PEER, push(1, 0, (99, 99)))


def test_what_waited_when_the_gateway_crashed_is_expected_again(feed: Feed) -> None:
    recorded(feed)
    feed.send(0, (5, 5))
    after = Feed()
    after.intake.head = feed.intake.head
    after.open("p")
    assert after.push(PEER, push(2, 1, (5, 5))) is None


# --- ends


def test_a_producer_that_said_end_may_send_no_more(feed: Feed) -> None:
    feed.send(0, (1, 1), end=True)
    answer = feed.send(0, (2, 2))
    assert isinstance(answer, Refuse)
    assert "had ended" in answer.reason


def test_a_producer_whose_end_is_durable_may_send_no_more_after_a_restart_of_the_gateway(feed: Feed) -> None:
    feed.send(0, (1, 1), end=True)
    feed.send(0, (1, 1), name="r")
    feed.cut()
    after = Feed()
    after.intake.head = feed.intake.head
    after.open("p")
    answer = after.push(PEER, push(2, 1, (2, 2)))
    assert isinstance(answer, Refuse)
    assert "had ended" in answer.reason


def test_an_end_that_waits_is_forgotten_with_its_session(feed: Feed) -> None:
    feed.send(0, (1, 1), end=True)
    feed.open("p")
    assert None is feed.push(PEER, push(2, 0, (2, 2)))


def test_a_batch_sent_again_after_the_end_of_its_stream_is_acknowledged(feed: Feed) -> None:
    feed.send(0, (1, 1), end=True)
    feed.cut()
    assert Acknowledge(0, None) == feed.push(PEER, push(1, 0, (1, 1), end=True))


def test_a_stream_that_ended_opens_no_session_for_a_new_name(feed: Feed) -> None:
    feed.send(0, (1, 1), end=True)
    feed.cut()
    answer = feed.open("r")
    assert isinstance(answer, Refuse)
    assert "stream a has ended" in answer.reason


def test_a_producer_that_opened_before_its_stream_ended_is_refused_after_it(feed: Feed) -> None:
    feed.send(0, (1, 1), end=True)
    cut = feed.begin()
    assert cut is not None
    feed.open("r", 0, peer=OTHER)
    feed.intake.head = cut.head
    answer = feed.push(OTHER, push(1, 0, (2, 2)))
    assert isinstance(answer, Refuse)
    assert "stream a has ended" in answer.reason


def test_batches_that_wait_when_their_stream_ends_are_refused(feed: Feed) -> None:
    feed.send(0, (1, 1), end=True)
    cut = feed.begin()
    assert cut is not None
    feed.open("r", 0, peer=OTHER)
    feed.push(OTHER, push(1, 4, (2, 2)))
    refused = feed.intake.sessions.refuse_ended(cut.head)
    assert [(OTHER, 4)] == [(peer, answer.sequence) for peer, answer in refused]


def test_batches_of_other_streams_go_on_waiting_when_one_ends(feed: Feed) -> None:
    feed.send(0, (1, 1), end=True)
    cut = feed.begin()
    assert cut is not None
    feed.send(1, (2, 2), name="q")
    assert ([], [0]) == (feed.intake.sessions.refuse_ended(cut.head), sequences(feed))


def test_a_producer_that_never_sent_may_end_without_knowing_the_columns(feed: Feed) -> None:
    nothing = pa.RecordBatch.from_pydict({})
    assert feed.push(PEER, push(1, 0, end=True, batch=nothing)) is None
    assert feed.cut().head.clocks[0].ended


# --- rule 3: bad batches


def bad(session: int = 1, sequence: int = 0) -> Push:
    return push(session, sequence, batch=pa.RecordBatch.from_pydict({"k": pa.array([1, 2], pa.int64())}))


def test_a_batch_that_does_not_fit_is_refused_whole(feed: Feed) -> None:
    answer = feed.push(PEER, bad())
    assert isinstance(answer, Refuse)
    assert ("lacks ['ts']" in answer.reason, []) == (True, sequences(feed))


def test_why_a_batch_was_refused_is_kept(feed: Feed) -> None:
    feed.push(PEER, bad(sequence=3))
    (reason,) = feed.intake.sessions.rejected
    assert ("p sequence 3" in reason, "lacks ['ts']" in reason) == (True, True)


def test_a_refused_batch_does_not_use_its_sequence(feed: Feed) -> None:
    feed.push(PEER, bad())
    assert feed.push(PEER, push(1, 0, (1, 1))) is None


def test_a_bad_batch_beside_an_end_does_not_end_the_producer(feed: Feed) -> None:
    wrong = bad()
    feed.push(PEER, Push(1, 0, 1, 0, wrong.rows, end=True))
    assert feed.push(PEER, push(1, 0, (1, 1))) is None


def test_only_the_last_hundred_reasons_are_kept(feed: Feed) -> None:
    for number in range(120):
        feed.push(PEER, bad(sequence=number))
    reasons = feed.intake.sessions.rejected
    assert (100, True) == (len(reasons), "sequence 119" in reasons[-1])


# --- what is recorded waits no more


def test_recorded_batches_wait_no_more_and_others_stay() -> None:
    feed = Feed()
    feed.send(0, (1, 1))
    feed.send(1, (1, 1))
    feed.cut(only=1)
    assert [0] == [one.key[0] for one in feed.intake.sessions.waiting]
