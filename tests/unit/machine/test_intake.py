"""From producers' batches to the next record: late rows, watermarks, alignment, silence, ends, changes, replay."""

import random

import pytest

from joinery.join.plan import JoinPlan
from joinery.machine.intake import MAX_RECORD_BYTES, Cut, Intake, first_head
from joinery.machine.log import Head, ProducerEnded, ProducerIdle, ProducerJoined, Record, StreamEnded
from joinery.model.ids import ProducerId, RecordNo
from joinery.model.time import DEAD, FOREVER
from tests.unit.machine.building import SECOND, Feed, entries, late_of, spec_of, told, window, wish

P, Q = ProducerId("p"), ProducerId("q")
QUIET = SECOND // 2
"""A quarter of the reorganization epoch: so often the clock of a stream with arrival time is written down."""


def times(cut: Cut) -> list[list[int]]:
    return [batch.rows.column("ts").to_pylist() for batch in cut.record.batches]


# --- rule 1: what a record takes


def test_a_record_takes_what_waits_in_the_order_in_which_it_came() -> None:
    feed = Feed()
    feed.send(1, (1, 5))
    feed.send(0, (1, 7), name="q")
    feed.send(0, (1, 6))
    assert [(1, P), (0, Q), (0, P)] == [(batch.stream, batch.producer) for batch in feed.cut().record.batches]


def test_records_are_numbered_one_after_the_other() -> None:
    feed = Feed()
    feed.send(0, (1, 1))
    feed.cut()
    feed.send(0, (1, 2))
    assert RecordNo(1) == feed.cut().number


def test_rows_get_their_places_in_the_order_of_the_record() -> None:
    feed = Feed()
    feed.send(0, (1, 1), (2, 2))
    feed.send(0, (3, 3), name="q")
    assert [0, 2] == [batch.first_place for batch in feed.cut().record.batches]


def test_workers_get_the_batches_of_a_record_as_they_came() -> None:
    feed = Feed()
    feed.send(1, (1, 1))
    feed.send(0, (1, 2))
    feed.send(1, (1, 3))
    assert [(1, [0]), (0, [0]), (1, [1])] == [(batch.stream, batch.places.tolist()) for batch in feed.cut().released]


def test_what_is_to_be_acknowledged_is_what_was_recorded() -> None:
    feed = Feed()
    feed.send(0, (1, 1))
    feed.send(0, (1, 2))
    feed.send(1, (1, 2), name="q")
    assert (((0, P), 0), ((0, P), 1), ((1, Q), 0)) == feed.cut().acknowledge


def test_a_full_record_leaves_the_rest_for_the_next() -> None:
    feed = Feed()
    large = [(1, 1)] * (MAX_RECORD_BYTES // 16 + 1)
    for _ in range(2):
        feed.send(0, *large)
    assert ([1, 1], 0) == ([len(feed.cut().record.batches) for _ in range(2)], feed.intake.waiting_bytes)


def test_if_memory_is_short_only_one_stream_is_recorded() -> None:
    feed = Feed()
    feed.send(0, (1, 1))
    feed.send(1, (1, 2))
    assert [[2]] == times(feed.cut(only=1))


def test_the_slowest_stream_is_the_one_with_the_smallest_watermark() -> None:
    feed = Feed()
    feed.send(0, (1, 9))
    feed.send(1, (1, 2))
    feed.cut()
    assert 1 == feed.intake.slowest_stream()


def test_a_stream_that_nobody_feeds_is_not_the_slowest() -> None:
    feed = Feed()
    feed.send(0, (1, 9))
    feed.cut()
    assert 0 == feed.intake.slowest_stream()


def test_waiting_bytes_are_those_not_yet_recorded() -> None:
    feed = Feed()
    feed.send(0, (1, 1), (1, 2))
    assert 32 == feed.intake.waiting_bytes


def test_the_latest_time_of_a_record_is_that_of_its_timely_rows() -> None:
    feed = Feed()
    feed.send(0, (1, 50))
    first = feed.cut()
    feed.send(0, (1, 3), name="q")
    assert (50, DEAD) == (first.latest_ns, feed.cut().latest_ns)


# --- rule 1: late rows


def test_a_row_is_late_if_it_is_more_than_the_lateness_below_its_producers_greatest_time() -> None:
    feed = Feed(spec_of(lateness=5))
    feed.send(0, (1, 10), (1, 20), (1, 15), (1, 14))
    assert [[False, False, False, True]] == late_of(feed.cut())


def test_a_producers_greatest_time_counts_across_batches_of_one_record() -> None:
    feed = Feed()
    feed.send(0, (1, 20))
    feed.send(0, (1, 10))
    assert [[False], [True]] == late_of(feed.cut())


def test_a_producers_greatest_time_counts_across_records() -> None:
    feed = Feed(spec_of(lateness=100))
    feed.send(0, (1, 200))
    feed.send(0, (1, 0), name="q")
    feed.cut()
    feed.send(0, (1, 99), (1, 100))
    assert [[True, False]] == late_of(feed.cut())


def test_another_producers_rows_make_nobody_late() -> None:
    feed = Feed()
    feed.send(0, (1, 1000), name="q")
    feed.send(0, (1, 1))
    assert [[False], [False]] == late_of(feed.cut())


def test_another_streams_rows_make_nobody_late() -> None:
    feed = Feed()
    feed.send(1, (1, 1000))
    feed.cut()
    feed.send(0, (1, 1))
    assert [[False]] == late_of(feed.cut())


def test_a_row_below_the_watermark_of_the_record_before_is_late() -> None:
    feed = Feed()
    feed.send(0, (1, 100))
    feed.cut()
    feed.send(0, (1, 99), (1, 100), name="q")
    assert [[True, False]] == late_of(feed.cut())


def test_batches_of_the_same_record_do_not_raise_the_watermark_for_each_other() -> None:
    feed = Feed(spec_of(idle="1s"))
    feed.send(0, (1, 10), name="q")
    feed.send(0, (1, 10))
    feed.cut()
    feed.send(0, (1, 10), now=2 * SECOND)
    feed.cut(now=2 * SECOND)  # q is idle: it no longer holds the watermark
    feed.send(0, (1, 100), now=2 * SECOND)
    feed.send(0, (1, 10), name="q", now=2 * SECOND)
    assert [[False], [False]] == late_of(feed.cut(now=2 * SECOND))


@pytest.mark.parametrize("cuts", [(), (1,), (1, 2, 3), (2,)])
def test_where_records_are_cut_makes_no_row_late(cuts: tuple[int, ...]) -> None:
    feed = Feed(spec_of(lateness=3))
    found: list[bool] = []
    feed.send(0, (1, 0), name="q")
    feed.cut()
    for number, time in enumerate((10, 20, 16, 18, 25, 5)):
        if number in cuts:
            found += [flag for batch in late_of(feed.cut()) for flag in batch]
        feed.send(0, (1, time))
    found += [flag for batch in late_of(feed.cut()) for flag in batch]
    assert [False, False, True, False, False, True] == found


def test_a_late_row_does_not_change_its_producers_greatest_time() -> None:
    feed = Feed()
    feed.send(0, (1, 20), (1, 3))
    assert {P: 20} == feed.cut().head.clocks[0].greatest


# --- watermarks


def test_the_watermark_is_the_smallest_greatest_time_of_live_producers_less_the_lateness() -> None:
    feed = Feed(spec_of(lateness=5))
    feed.send(0, (1, 30))
    feed.send(0, (1, 20), name="q")
    assert (15, DEAD) == feed.cut().record.watermarks


def test_a_producer_that_joined_and_sent_nothing_holds_the_watermark() -> None:
    feed = Feed()
    feed.open("q")
    feed.send(0, (1, 30))
    assert DEAD == feed.cut().record.watermarks[0]


def test_the_watermark_never_goes_back_for_a_producer_that_joins() -> None:
    feed = Feed()
    feed.send(0, (1, 30))
    feed.cut()
    feed.send(0, (1, 10), name="q")
    assert 30 == feed.cut().record.watermarks[0]


def test_the_watermark_never_goes_back_for_a_lateness_that_grew() -> None:
    feed = Feed()
    feed.send(0, (1, 30))
    feed.cut()
    feed.intake.change_spec(wish(1, lateness=20))
    feed.cut()
    feed.send(0, (1, 31))
    assert 30 == feed.cut().record.watermarks[0]


def test_without_a_live_producer_the_watermark_stays() -> None:
    feed = Feed(spec_of(idle="1s"))
    feed.send(0, (1, 30))
    feed.cut()
    assert 30 == feed.cut(now=2 * SECOND).record.watermarks[0]


# --- arrival time


def test_rows_without_a_time_column_get_the_time_at_which_the_record_is_cut() -> None:
    feed = Feed(spec_of(arrival=[0]))
    feed.send(0, (1, 7), now=3)
    assert ([5], 5) == (feed.cut(now=5).released[0].times.tolist(), feed.cuts[0].record.batches[0].stamp_ns)


def test_with_arrival_time_the_clock_is_the_watermark() -> None:
    feed = Feed(spec_of(arrival=[0]))
    feed.send(0, (1, 7))
    assert 5 == feed.cut(now=5).record.watermarks[0]


def test_with_arrival_time_nothing_is_late() -> None:
    feed = Feed(spec_of(arrival=[0]))
    feed.send(0, (1, 7))
    feed.cut(now=5)
    feed.send(0, (1, 3), name="q")
    assert [[False]] == late_of(feed.cut(now=5))


def test_arrival_stamps_never_go_back_with_the_clock() -> None:
    feed = Feed(spec_of(arrival=[0]))
    feed.send(0, (1, 7))
    feed.cut(now=50)
    feed.send(0, (1, 8))
    assert [50] == [batch.stamp_ns for batch in feed.cut(now=20).record.batches]


def test_stamps_never_go_back_where_they_are_not_the_time_either() -> None:
    feed = Feed()
    feed.send(0, (1, 7))
    feed.cut(now=50)
    feed.send(0, (1, 8))
    assert [50] == [batch.stamp_ns for batch in feed.cut(now=20).record.batches]


def test_arrival_stamps_do_not_fall_below_a_watermark_that_the_clock_alone_has_raised() -> None:
    feed = Feed(spec_of(arrival=[0]))
    feed.cut(now=QUIET)
    feed.send(0, (1, 8))
    assert [QUIET] == [batch.stamp_ns for batch in feed.cut(now=20).record.batches]


def test_the_watermark_of_arrival_time_never_goes_back_with_the_clock() -> None:
    feed = Feed(spec_of(arrival=[0]))
    feed.cut(now=QUIET)
    feed.send(0, (1, 8))
    assert QUIET == feed.cut(now=20).record.watermarks[0]


# --- rule 2: alignment


def aligned() -> Feed:
    """Stream 0 is at 1000, stream 1 at 10; nobody may be more than 100 ahead."""
    feed = Feed(spec_of(alignment="100ns", idle="1s"))
    feed.send(0, (1, 1000))
    feed.send(1, (1, 10))
    feed.cut()
    return feed


def test_a_producer_too_far_ahead_waits() -> None:
    feed = aligned()
    feed.send(0, (1, 1001))
    assert feed.begin() is None


def test_a_producer_may_send_the_batch_that_brings_it_ahead() -> None:
    feed = Feed(spec_of(alignment="100ns"))
    feed.send(0, (1, 0))
    feed.send(1, (1, 0))
    feed.cut()
    feed.send(0, (1, 1000))
    assert [[1000]] == times(feed.cut())


def test_what_stands_behind_the_batch_that_brings_it_ahead_waits() -> None:
    feed = Feed(spec_of(alignment="100ns"))
    feed.send(0, (1, 0))
    feed.send(1, (1, 0))
    feed.cut()
    feed.send(0, (1, 1000))
    feed.send(0, (1, 5))
    assert [[1000]] == times(feed.cut())


def test_a_producer_exactly_at_the_bound_does_not_wait() -> None:
    feed = Feed(spec_of(alignment="100ns"))
    feed.send(0, (1, 110))
    feed.send(1, (1, 10))
    feed.cut()
    feed.send(0, (1, 111))
    assert [[111]] == times(feed.cut())


def test_the_slow_producer_goes_on_while_the_fast_one_waits() -> None:
    feed = aligned()
    feed.send(0, (1, 1001))
    feed.send(1, (1, 11))
    assert [[11]] == times(feed.cut())


def test_a_producer_goes_on_when_the_others_have_followed() -> None:
    feed = aligned()
    feed.send(0, (1, 1001))
    feed.send(1, (1, 950))
    feed.cut()
    assert [[1001]] == times(feed.cut())


def test_a_producer_that_waits_for_us_is_not_idle() -> None:
    feed = aligned()
    feed.send(0, (1, 1001))
    feed.send(1, (1, 11), now=2 * SECOND)
    assert [] == entries(feed.cut(now=2 * SECOND), ProducerIdle)


def test_a_producer_that_waited_is_silent_only_since_it_was_let_through() -> None:
    feed = aligned()
    feed.send(0, (1, 1001))
    feed.send(1, (1, 950), now=2 * SECOND)
    feed.cut(now=2 * SECOND)
    feed.cut(now=2 * SECOND)
    assert [] == [key for key in feed.intake._live() if (feed.intake._idle_at(key) or 0) < 3 * SECOND]


def test_a_producer_that_joined_and_sent_nothing_holds_the_others_after_their_first_batch() -> None:
    feed = Feed()
    feed.open("q", 1)
    feed.send(0, (1, 1))
    first = feed.cut()
    feed.send(0, (1, 2))
    assert ([[1]], None) == (times(first), feed.begin())


def test_a_stream_that_ended_holds_nobody() -> None:
    feed = aligned()
    feed.send(1, (1, 11), end=True)
    feed.cut()
    feed.send(0, (1, 1001))
    assert [[1001]] == times(feed.cut())


def test_a_stream_without_a_live_producer_holds_nobody() -> None:
    feed = aligned()
    feed.send(0, (1, 1001))
    feed.cut(now=2 * SECOND)
    assert [[1001]] == times(feed.cut(now=2 * SECOND))


def test_an_unbounded_window_aligns_nobody() -> None:
    feed = Feed(spec_of("unbounded", "100ns", alignment="auto"))
    feed.send(0, (1, 1000))
    feed.send(1, (1, 10))
    feed.cut()
    feed.send(0, (1, 1001))
    assert [[1001]] == times(feed.cut())


def test_a_window_that_grew_aligns_less() -> None:
    feed = Feed(spec_of(alignment="auto"))
    feed.send(0, (1, 1000))
    feed.send(1, (1, 10))
    feed.cut()
    feed.send(0, (1, 1001))
    feed.intake.change_spec(wish(1, "100ns", "10us"))
    assert ([], [[1001]]) == (times(feed.cut()), times(feed.cut()))


# --- silence


def test_a_producer_silent_for_the_timeout_is_idle() -> None:
    feed = Feed(spec_of(idle="1s"))
    feed.send(0, (1, 1), now=5)
    feed.cut(now=5)
    assert (None, [ProducerIdle(0, P)]) == (feed.begin(now=SECOND), entries(feed.cut(now=SECOND + 5), ProducerIdle))


def test_an_idle_producer_is_told_once() -> None:
    feed = Feed(spec_of(idle="1s"))
    feed.send(0, (1, 1))
    feed.cut()
    feed.cut(now=2 * SECOND)
    assert feed.begin(now=9 * SECOND) is None


def test_the_watermark_rises_when_the_producer_that_held_it_is_idle() -> None:
    feed = Feed(spec_of(idle="1s"))
    feed.send(0, (1, 1))
    feed.send(0, (1, 50), name="q")
    feed.cut()
    feed.send(0, (1, 60), name="q", now=2 * SECOND)
    assert 60 == feed.cut(now=2 * SECOND).record.watermarks[0]


def test_a_row_of_a_producer_that_returns_below_the_watermark_is_late() -> None:
    feed = Feed(spec_of(idle="1s"))
    feed.send(0, (1, 1))
    feed.send(0, (1, 50), name="q")
    feed.cut()
    feed.send(0, (1, 60), name="q", now=2 * SECOND)
    feed.cut(now=2 * SECOND)
    feed.send(0, (1, 59), (1, 60), now=2 * SECOND)
    assert [[True, False]] == late_of(feed.cut(now=2 * SECOND))


def test_the_next_silence_is_known_before_it_comes() -> None:
    feed = Feed(spec_of(idle="1s"))
    feed.send(0, (1, 1), now=7)
    feed.cut(now=7)
    assert SECOND + 7 == feed.intake.next_idle_ns()


def test_nobody_falls_silent_who_may_be_silent_for_ever() -> None:
    feed = Feed(spec_of(idle="never"))
    feed.send(0, (1, 1))
    feed.cut()
    assert (None, None) == (feed.intake.next_idle_ns(), feed.begin(now=10**9 * SECOND))


def test_after_a_restart_everybody_has_the_whole_timeout_again() -> None:
    feed = Feed(spec_of(idle="1s"))
    feed.send(0, (1, 1))
    feed.cut()
    after = Feed(feed.spec)
    after.intake.restore(first_head(feed.spec), feed.log(), 5 * SECOND)
    assert 6 * SECOND == after.intake.next_idle_ns()


# --- rule 3: records without rows


def test_nothing_new_is_no_record() -> None:
    assert Feed().begin() is None


def test_a_producer_that_joined_is_a_record() -> None:
    feed = Feed()
    feed.open("p")
    assert [ProducerJoined(0, P, 1)] == entries(feed.cut(), ProducerJoined)


def test_a_producer_that_joined_is_told_once() -> None:
    feed = Feed()
    feed.open("p")
    feed.cut()
    assert feed.begin() is None


def test_a_new_session_of_the_same_producer_is_a_record() -> None:
    feed = Feed()
    feed.send(0, (1, 1))
    feed.cut()
    feed.open("p")
    assert [ProducerJoined(0, P, 2)] == entries(feed.cut(), ProducerJoined)


def test_an_end_without_rows_is_a_record() -> None:
    feed = Feed()
    feed.send(0, end=True)
    assert [ProducerEnded(0, P)] == entries(feed.cut(), ProducerEnded)


def test_a_change_of_the_spec_is_a_record() -> None:
    feed = Feed()
    feed.intake.change_spec(wish(1))
    assert 1 == len(feed.cut().record.changes())


def test_the_clock_of_arrival_time_is_written_every_quarter_of_an_epoch() -> None:
    feed = Feed(spec_of(arrival=[0]))
    assert (None, (QUIET, DEAD)) == (feed.begin(now=QUIET - 1), feed.cut(now=QUIET).record.watermarks)


def test_without_arrival_time_the_clock_writes_nothing() -> None:
    feed = Feed()
    feed.send(0, (1, 1))
    feed.cut()
    assert feed.begin(now=100 * QUIET) is None


def test_a_lateness_made_smaller_raises_the_watermark_in_the_record_after() -> None:
    feed = Feed(spec_of(lateness=50))
    feed.send(0, (1, 100))
    feed.cut()
    feed.intake.change_spec(wish(1, lateness=10))
    assert (50, 90, None) == (feed.cut().record.watermarks[0], feed.cut().record.watermarks[0], feed.begin())


# --- ends


def test_a_stream_ends_when_all_its_producers_have() -> None:
    feed = Feed()
    feed.send(0, (1, 1), end=True)
    feed.send(0, (1, 1), name="q")
    first = feed.cut()
    feed.send(0, name="q", end=True)
    assert ([], [StreamEnded(0)]) == (entries(first, StreamEnded), entries(feed.cut(), StreamEnded))


def test_a_producer_that_opened_and_sent_nothing_keeps_its_stream_open() -> None:
    feed = Feed()
    feed.open("q")
    feed.send(0, (1, 1), end=True)
    assert [] == entries(feed.cut(), StreamEnded)


def test_an_idle_producer_keeps_its_stream_open() -> None:
    feed = Feed(spec_of(idle="1s"))
    feed.send(0, (1, 1), name="q")
    feed.cut()
    feed.cut(now=2 * SECOND)
    feed.send(0, (1, 2), end=True, now=2 * SECOND)
    assert [] == entries(feed.cut(now=2 * SECOND), StreamEnded)


def test_a_stream_that_ended_has_passed_every_time() -> None:
    feed = Feed()
    feed.send(0, (1, 1), end=True)
    assert (FOREVER, DEAD) == feed.cut().record.watermarks


def test_a_stream_with_arrival_time_that_ended_has_passed_every_time() -> None:
    feed = Feed(spec_of(arrival=[0]))
    feed.send(0, (1, 1), end=True)
    assert FOREVER == feed.cut(now=5).record.watermarks[0]


def test_a_producer_that_ended_no_longer_holds_the_watermark() -> None:
    feed = Feed()
    feed.send(0, (1, 1), end=True)
    feed.send(0, (1, 50), name="q")
    assert 50 == feed.cut().record.watermarks[0]


def test_after_the_end_of_every_stream_there_are_no_records() -> None:
    feed = Feed(spec_of(arrival=[0, 1]))
    feed.send(0, (1, 1), end=True)
    feed.send(1, (1, 1), end=True)
    feed.cut()
    feed.intake.change_spec(wish(1))
    assert feed.begin(now=100 * QUIET) is None


def test_who_opens_a_stream_that_has_just_ended_does_not_join_it() -> None:
    feed = Feed()
    feed.send(0, (1, 1), end=True)
    ended = feed.begin()
    assert ended is not None
    feed.open("r")
    feed.intake.head = ended.head
    assert feed.begin() is None


# --- changes of the spec


def changed() -> Feed:
    """Streams at 1000 and 2000 with windows of 100 and 30, two and one rows; then the windows change."""
    feed = Feed(spec_of("100ns", "30ns"))
    feed.send(0, (1, 900), (1, 1000))
    feed.send(1, (1, 2000))
    feed.cut()
    feed.intake.change_spec(wish(1, "500ns", "10ns", lateness=7))
    return feed


def test_a_change_names_the_record_that_holds_it() -> None:
    (change,) = changed().cut().record.changes()
    assert (RecordNo(1), 1) == (change.record, change.version)


def test_a_changes_floors_are_the_others_watermarks_less_the_old_windows() -> None:
    (change,) = changed().cut().record.changes()
    assert (2000 - 100, 1000 - 30) == change.floors


def test_a_changes_floors_count_the_watermarks_of_its_own_record() -> None:
    feed = changed()
    feed.send(1, (1, 3000))
    (change,) = feed.cut().record.changes()
    assert (3000 - 100, 1000 - 30) == change.floors


def test_a_change_reaches_up_to_the_last_row_of_its_own_record() -> None:
    feed = changed()
    feed.send(1, (1, 2001), (1, 2002))
    (change,) = feed.cut().record.changes()
    assert (1, 2) == change.upto


def test_a_change_of_a_query_in_order_reaches_up_to_the_last_rank() -> None:
    feed = Feed(spec_of({"count": 2}, "30ns"))
    feed.send(0, (1, 1), (1, 2), (1, 9))
    feed.send(1, (1, 1), (1, 5))
    feed.intake.change_spec(wish(1, {"count": 3}, "30ns"))
    (change,) = feed.cut().record.changes()
    assert (2, 2) == change.upto


def test_a_change_holds_only_from_the_next_record_on() -> None:
    feed = changed()
    feed.send(0, (1, 999))
    assert [[True]] == late_of(feed.cut())


def test_after_a_change_the_new_lateness_holds() -> None:
    feed = Feed()
    feed.send(0, (1, 0), name="q")
    feed.send(0, (1, 100))
    feed.intake.change_spec(wish(1, lateness=7))
    feed.cut()
    feed.send(0, (1, 93), (1, 92))
    assert [[False, True]] == late_of(feed.cut())


def test_the_next_changes_floors_follow_from_the_windows_of_the_last() -> None:
    feed = changed()
    feed.cut()
    feed.intake.change_spec(wish(2))
    (change,) = feed.cut().record.changes()
    assert (2000 - 500, 1000 - 10) == change.floors


def test_the_windows_in_force_are_those_of_the_last_change() -> None:
    feed = changed()
    before = feed.intake.windows
    feed.cut()
    assert ((window("100ns"), window("30ns")), (window("500ns"), window("10ns"))) == (before, feed.intake.windows)


def test_a_change_told_twice_before_its_record_is_written_once() -> None:
    feed = changed()
    feed.intake.change_spec(wish(1))
    feed.cut()
    assert feed.begin() is None


def test_a_change_told_twice_while_its_record_is_written_is_written_once() -> None:
    feed = changed()
    first = feed.begin()
    assert first is not None
    feed.intake.change_spec(wish(1))
    feed.intake.head = first.head
    feed.send(0, (1, 1000))
    assert ((), None) == (feed.cut().record.changes(), feed.begin())


def test_a_change_told_again_after_its_record_is_not_written() -> None:
    feed = changed()
    feed.cut()
    feed.intake.change_spec(wish(1))
    assert feed.begin() is None


def test_a_change_that_leaves_out_a_version_is_not_taken() -> None:
    feed = Feed()
    feed.intake.change_spec(wish(2))
    assert feed.begin() is None


def test_a_change_that_leaves_out_a_version_does_not_displace_the_next_one() -> None:
    feed = changed()
    feed.intake.change_spec(wish(3))
    assert [1] == [change.version for change in feed.cut().record.changes()]


# --- in order


def test_a_query_in_order_gives_workers_only_what_every_watermark_has_passed() -> None:
    feed = Feed(spec_of({"count": 2}, "30ns"))
    feed.send(0, (1, 1), (1, 5))
    feed.send(1, (1, 3), (1, 4))
    cut = feed.cut()
    assert ([(0, [1]), (1, [3])], (1, 1)) == ([(b.stream, b.times.tolist()) for b in cut.released], cut.marks.counts)


def test_the_head_counts_what_was_released() -> None:
    feed = Feed(spec_of({"count": 2}, "30ns"))
    feed.send(0, (1, 1), (1, 5))
    feed.send(1, (1, 3), (1, 4))
    assert (1, 1) == feed.cut().head.counts


# --- rule 4: replay


def history(seed: int, *, in_order: bool) -> Feed:
    """Random producers, times, silences, ends and changes of the spec."""
    draw = random.Random(seed)
    windows = ({"count": 3}, "30ns") if in_order else ("40ns", "30ns")
    feed = Feed(spec_of(*windows, lateness=10, idle="1s", arrival=[1] if seed % 3 == 0 and not in_order else []))
    now, over, versions = 0, set(), 0
    for _ in range(30):
        now += draw.choice([0, 5, SECOND // 3])
        for _ in range(draw.randrange(3)):
            stream, name = draw.randrange(2), draw.choice("pq")
            if (stream, name) in over or feed.intake.head.clocks[stream].ended:
                continue
            end = draw.random() < 0.05
            over |= {(stream, name)} if end else set()
            drawn = [(draw.randrange(9), draw.randrange(200)) for _ in range(draw.randrange(5))]
            feed.send(stream, *drawn, name=name, end=end, now=now)
        if draw.random() < 0.1:
            versions += 1
            own = ({"count": draw.randrange(1, 5)}, "50ns") if in_order else ("60ns", "20ns")
            feed.intake.change_spec(wish(versions, *own, lateness=draw.randrange(20), idle_ns=SECOND))
        if draw.random() < 0.7 and (cut := feed.begin(now)) is not None:
            feed.intake.head = cut.head
            feed.cuts.append(cut)
            feed.intake.sessions.refuse_ended(cut.head)
    return feed


def restored(feed: Feed, head: Head, records: list[tuple[RecordNo, Record]]) -> tuple[Intake, list[Cut]]:
    intake = Intake(feed.spec, JoinPlan.of(feed.spec))
    _, cuts = intake.restore(head, records, now_ns=0)
    return intake, cuts


def shown(cut: Cut) -> tuple[object, ...]:
    """What follows from a record."""
    return (cut.number, cut.head, cut.marks, cut.latest_ns, sorted(told(cut.released), key=str))


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_a_record_that_is_read_again_has_the_same_consequences(seed: int, in_order: bool) -> None:
    feed = history(seed, in_order=in_order)
    _, cuts = restored(feed, first_head(feed.spec), feed.log())
    assert [shown(cut) for cut in feed.cuts] == [shown(cut) for cut in cuts]


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_after_a_trim_the_rest_has_the_same_consequences(seed: int, in_order: bool) -> None:
    feed = history(seed, in_order=in_order)
    at = 1 + seed % (len(feed.cuts) - 2)
    keep = 0 if in_order else at + 1
    _, cuts = restored(feed, feed.cuts[at].head, feed.log()[keep:])
    assert [shown(cut) for cut in feed.cuts[at + 1 :]] == [shown(cut) for cut in cuts]


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_gateway_that_starts_again_goes_on_with_the_same_record(seed: int, in_order: bool) -> None:
    feed = history(seed, in_order=in_order)
    intake, _ = restored(feed, first_head(feed.spec), feed.log())
    assert (feed.intake.head, feed.intake.windows) == (intake.head, intake.windows)


def test_records_from_before_the_head_are_told_with_their_latest_times() -> None:
    feed = Feed(spec_of({"count": 2}, "30ns"))
    for time in (5, 9):
        feed.send(0, (1, time))
        feed.cut()
    intake = Intake(feed.spec, JoinPlan.of(feed.spec))
    kept, cuts = intake.restore(feed.cuts[-1].head, feed.log(), now_ns=0)
    assert ([(0, 5), (1, 9)], []) == (kept, cuts)


def test_rows_that_were_late_are_not_held_again() -> None:
    feed = Feed(spec_of({"count": 2}, "30ns"))
    feed.send(0, (1, 50), (1, 3))
    feed.cut()
    intake, _ = restored(feed, feed.cuts[-1].head, feed.log())
    assert [50] == [time for batch in intake.release._held.values() for time in batch.times.tolist()]


def test_rows_that_were_released_are_not_held_again() -> None:
    feed = Feed(spec_of({"count": 2}, "30ns"))
    feed.send(0, (1, 1), (1, 5))
    feed.send(1, (1, 3), (1, 4))
    feed.cut()
    intake, _ = restored(feed, feed.cuts[-1].head, feed.log())
    assert [4, 5] == sorted(time for batch in intake.release._held.values() for time in batch.times.tolist())


def test_a_query_in_order_goes_on_counting_where_the_head_stood() -> None:
    feed = Feed(spec_of({"count": 2}, "30ns"))
    feed.send(0, (1, 1), (1, 5))
    feed.send(1, (1, 3), (1, 4))
    feed.cut()
    intake, _ = restored(feed, feed.cuts[-1].head, feed.log())
    assert (1, 1) == intake.release.counts


def test_who_does_not_come_back_after_a_restart_falls_silent_although_records_are_cut() -> None:
    feed = Feed(spec_of(idle="50ns"))
    feed.send(0, (1, 100))
    feed.send(0, (1, 100), name="dead")
    feed.cut()
    after = Feed(spec_of(idle="50ns"))
    after.intake.restore(feed.intake.head, [], 1000)
    for now in range(1000, 1100, 20):
        after.send(0, (1, now), now=now)
        after.cut(now)
    assert {"p"} == after.intake.head.clocks[0].live
