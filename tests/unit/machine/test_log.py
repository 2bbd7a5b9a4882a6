"""Records and the head that the next one builds on: `Head.after` takes every decision from the record."""

from functools import reduce

import pytest

from joinery.machine.intake import first_head
from joinery.machine.log import (
    Head,
    ProducerEnded,
    ProducerIdle,
    ProducerJoined,
    Record,
    Session,
    StreamEnded,
    tuples_of,
)
from joinery.model.errors import Bug
from joinery.model.ids import ProducerId
from joinery.model.time import DEAD, FOREVER
from tests.unit.machine.building import SECOND, change_of, logged, plan_of, record, spec_of

PLAN = plan_of()
P, Q = ProducerId("p"), ProducerId("q")


def head_after(*records: Record, first: Head | None = None) -> Head:
    return reduce(lambda head, one: head.after(one, PLAN), records, first or first_head(spec_of()))


def joined(producer: ProducerId = P, session: int = 1) -> ProducerJoined:
    return ProducerJoined(0, producer, session)


# --- numbers and positions


def test_every_record_raises_the_number_of_the_next_by_one() -> None:
    assert 2 == head_after(record(), record()).next_record


def test_a_streams_position_grows_by_its_rows() -> None:
    assert (3, 1) == head_after(
        record(logged(0, (1, 1), (2, 2)), logged(0, (3, 3), place=2), logged(1, (1, 1)))
    ).positions


def test_a_batch_at_another_position_than_the_next_is_a_bug() -> None:
    with pytest.raises(Bug, match="at the wrong position"):
        head_after(record(logged(0, (1, 1), place=1)))


def test_the_head_before_stays_as_it_was() -> None:
    before = head_after(record(logged(0, (1, 1))))
    known = dict(before.sessions)
    before.after(record(logged(0, (2, 9), place=1, sequence=1)), PLAN)
    assert (known, (1, 0)) == (dict(before.sessions), before.positions)


def test_counts_are_what_the_record_had_released() -> None:
    assert (4, 2) == first_head(spec_of()).after(record(), PLAN, counts=(4, 2)).counts


# --- sessions


def test_a_batch_leaves_its_session_its_sequence_and_its_checksum() -> None:
    batch = logged(0, (1, 1), session=3, sequence=7)
    assert Session(3, 8, 7, batch.checksum) == head_after(record(batch)).sessions[0, P]


def test_the_same_name_in_another_stream_is_another_producer() -> None:
    assert {(0, P), (1, P)} == set(head_after(record(logged(0, (1, 1)), logged(1, (1, 1)))).sessions)


def test_a_producer_that_joined_has_a_session_and_a_free_first_sequence() -> None:
    assert Session(1, expected=None) == head_after(record(entries=[joined()])).sessions[0, P]


def test_a_new_session_goes_on_with_the_sequence_of_the_one_before() -> None:
    batch = logged(0, (1, 1), sequence=4)
    after = head_after(record(batch), record(entries=[joined(session=2)]))
    assert Session(2, 5, 4, batch.checksum) == after.sessions[0, P]


def test_a_session_that_joins_and_sends_in_one_record_knows_its_sequence() -> None:
    after = head_after(record(logged(0, (1, 1), session=2, sequence=4), entries=[joined(session=2)]))
    assert (2, 5) == (after.sessions[0, P].number, after.sessions[0, P].expected)


# --- who is live


def test_a_producer_that_joined_is_live_before_it_has_sent() -> None:
    assert frozenset({P}) == head_after(record(entries=[joined()])).clocks[0].live


def test_an_idle_producer_is_no_longer_live() -> None:
    assert frozenset() == head_after(record(logged(0, (1, 1))), record(entries=[ProducerIdle(0, P)])).clocks[0].live


def test_an_idle_producers_greatest_time_is_remembered() -> None:
    assert {P: 9} == head_after(record(logged(0, (1, 9))), record(entries=[ProducerIdle(0, P)])).clocks[0].greatest


def test_an_idle_producer_that_sends_again_is_live() -> None:
    idle = head_after(record(logged(0, (1, 1))), record(entries=[ProducerIdle(0, P)]))
    assert frozenset({P}) == idle.after(record(logged(0, (1, 2), place=1, sequence=1)), PLAN).clocks[0].live


# --- ends


def test_a_producer_that_ended_is_not_live_and_its_session_says_so() -> None:
    after = head_after(record(logged(0, (1, 1)), entries=[ProducerEnded(0, P)]))
    assert (frozenset(), True) == (after.clocks[0].live, after.sessions[0, P].ended)


def test_a_producer_that_ended_keeps_its_sequence() -> None:
    assert 1 == head_after(record(logged(0, (1, 1)), entries=[ProducerEnded(0, P)])).sessions[0, P].expected


def test_a_stream_ends_by_its_entry_only() -> None:
    ended = head_after(record(entries=[joined(), ProducerEnded(0, P)]))
    assert (False, True) == (ended.clocks[0].ended, head_after(record(entries=[StreamEnded(0)])).clocks[0].ended)


def test_the_log_has_ended_when_every_stream_has() -> None:
    one = head_after(record(entries=[StreamEnded(0)], marks=(FOREVER, DEAD)))
    assert (False, True) == (one.ended, head_after(record(entries=[StreamEnded(1)]), first=one).ended)


# --- decisions are the record's


def test_watermarks_are_what_the_record_says() -> None:
    assert (3, 4) == head_after(record(logged(0, (1, 50)), marks=(3, 4))).watermarks


def test_greatest_times_are_taken_from_the_rows() -> None:
    after = head_after(record(logged(0, (1, 50), (2, 20)), logged(0, (1, 30), place=2, producer="q")))
    assert {P: 50, Q: 30} == after.clocks[0].greatest


def test_the_last_arrival_stamp_is_kept() -> None:
    assert 5 == head_after(record(logged(0, (1, 1), stamp=5)), record()).stamp_ns


def test_the_arrival_stamp_never_goes_back() -> None:
    later = logged(0, (1, 2), place=1, sequence=1, stamp=3)
    assert 5 == head_after(record(logged(0, (1, 1), stamp=5)), record(later)).stamp_ns


def test_before_the_first_batch_there_is_no_arrival_stamp() -> None:
    assert DEAD == head_after(record()).stamp_ns


# --- changes of the spec


def test_a_change_of_the_spec_is_remembered_with_all_before_it() -> None:
    one, two = change_of(0), change_of(1, version=2)
    assert (one, two) == head_after(record(entries=[one]), record(entries=[two]), record()).changes


def test_a_change_sets_lateness_and_idle_timeouts_for_the_next_record() -> None:
    after = head_after(record(entries=[change_of(0, lateness=9)]))
    assert ((9, 9), (7 * SECOND,) * 2) == (tuple(clock.lateness_ns for clock in after.clocks), after.idle_timeout_ns)


def test_a_change_does_not_touch_the_watermarks() -> None:
    assert (40, 41) == head_after(record(entries=[change_of(0, lateness=99)], marks=(40, 41))).watermarks


def test_a_record_names_its_change() -> None:
    change = change_of(0)
    assert (change,) == record(entries=[joined(), change]).changes()


# --- replay decides nothing


def test_a_row_is_late_if_the_record_says_so_whatever_the_watermark() -> None:
    one = record(logged(0, (1, 50), late=[True]), marks=(DEAD, DEAD))
    (batch,) = tuples_of(one, PLAN)
    assert batch.late is not None
    assert [True] == batch.late.tolist()


def test_a_row_is_not_late_if_the_record_says_nothing_whatever_the_watermark() -> None:
    (batch,) = tuples_of(record(logged(0, (1, 50), (1, 2)), marks=(1000, 1000)), PLAN)
    assert batch.late is None


def test_rows_read_again_stand_where_they_stood() -> None:
    (batch,) = tuples_of(record(logged(0, (1, 5), (2, 6), place=7)), PLAN)
    assert [7, 8] == batch.places.tolist()


def test_event_times_are_read_again_from_their_column() -> None:
    (batch,) = tuples_of(record(logged(0, (1, 5), (2, 6), stamp=99)), PLAN)
    assert [5, 6] == batch.times.tolist()


def test_arrival_times_are_read_again_from_the_stamp() -> None:
    (batch,) = tuples_of(record(logged(0, (1, 5), (2, 6), stamp=99)), plan_of(arrival=[0]))
    assert [99, 99] == batch.times.tolist()


def test_a_record_is_as_large_as_its_rows() -> None:
    assert 3 * 16 == record(logged(0, (1, 1), (2, 2)), logged(1, (1, 1))).nbytes
