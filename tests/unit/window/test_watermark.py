"""Late rows and watermarks, rule by rule (docs/design.md §2)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.model.errors import Bug
from joinery.model.ids import ProducerId
from joinery.model.time import DEAD, FOREVER, TIME_MAX, TIME_MIN
from joinery.window.watermark import StreamClock

P, Q = ProducerId("p"), ProducerId("q")


def late(clock: StreamClock, producer: ProducerId, *times: int) -> list[bool]:
    return clock.late(producer, np.array(times, np.int64)).tolist()


def sent(clock: StreamClock, producer: ProducerId, *times: int) -> StreamClock:
    return clock.sent(producer, np.array(times, np.int64))


def test_a_row_is_late_if_it_is_more_than_the_lateness_below_its_producers_greatest() -> None:
    # lateness 5:   10 sets the bound to 5, so 5 is on it and 4 is below; 20 raises it to 15
    assert [False, False, True, False, True, False] == late(StreamClock(5), P, 10, 5, 4, 20, 14, 15)


def test_without_lateness_a_row_may_be_equal_but_not_smaller() -> None:
    assert [False, False, True] == late(StreamClock(0), P, 10, 10, 9)


def test_the_bound_does_not_depend_on_how_a_producers_rows_are_cut() -> None:
    clock = StreamClock(5)
    assert [False] == late(clock, P, 10)
    clock = sent(clock, P, 10)
    assert [False, True, False] == late(clock, P, 5, 4, 20)
    assert [True, False] == late(sent(clock, P, 5, 4, 20), P, 14, 15)


def test_a_late_row_does_not_lower_the_bound() -> None:
    clock = sent(StreamClock(5), P, 100)
    assert [True] == late(sent(clock, P, 1), P, 94)
    assert [False] == late(sent(clock, P, 1), P, 95)


def test_another_producers_rows_make_nothing_late_as_long_as_they_are_not_recorded() -> None:
    clock = sent(StreamClock(0), P, 1000)
    assert [False] == late(clock, Q, 3)


def test_who_joins_below_the_watermark_is_late() -> None:
    clock = sent(StreamClock(10), P, 1000).recorded()
    assert 990 == clock.watermark
    assert [True, False] == late(clock, Q, 989, 990)


def test_the_watermark_is_the_smallest_over_the_live_producers() -> None:
    clock = sent(sent(StreamClock(10), P, 1000), Q, 700)
    assert 690 == clock.recorded().watermark
    assert 990 == sent(clock, Q, 2000).recorded().watermark


def test_a_watermark_rises_only_with_a_record() -> None:
    clock = sent(StreamClock(0), P, 50)
    assert DEAD == clock.watermark
    assert 50 == clock.recorded().watermark


def test_a_silent_producer_no_longer_holds_the_watermark() -> None:
    clock = sent(sent(StreamClock(0), P, 1000), Q, 700).recorded()
    assert 700 == clock.watermark
    assert 1000 == clock.silent(Q).recorded().watermark


def test_a_producer_that_returns_goes_on_from_its_greatest_time_and_the_watermark_does_not_go_back() -> None:
    clock = sent(sent(StreamClock(0), P, 1000), Q, 700).silent(Q).recorded()
    assert [True, False] == late(clock, Q, 999, 1000)
    back = sent(clock, Q, 800).recorded()
    assert 1000 == back.watermark
    assert frozenset({P, Q}) == back.live
    held = sent(back, P, 5000).recorded()
    assert 1000 == held.watermark, "the one that returned holds it again"
    assert 1200 == sent(held, Q, 1200).recorded().watermark


def test_without_a_live_producer_the_watermark_stays() -> None:
    clock = sent(StreamClock(3), P, 10).recorded().silent(P)
    assert 7 == clock.recorded().watermark
    assert DEAD == StreamClock(3).recorded().watermark


def test_a_producer_that_sent_no_row_yet_holds_the_watermark_where_it_is() -> None:
    clock = sent(StreamClock(0), P, 10).recorded()
    waiting = sent(clock, Q)
    assert 10 == sent(waiting, P, 99).recorded().watermark
    assert 50 == sent(sent(waiting, P, 99), Q, 50).recorded().watermark


def test_an_empty_batch_has_no_late_rows_and_changes_no_greatest_time() -> None:
    clock = sent(StreamClock(0), P, 10)
    assert [] == late(clock, P)
    assert 10 == sent(clock, P).greatest[P]


def test_silence_of_somebody_unknown_changes_nothing() -> None:
    clock = sent(StreamClock(0), P, 10)
    assert clock == clock.silent(Q)


def test_the_end_of_a_stream_is_forever() -> None:
    ended = sent(StreamClock(5), P, 10).end()
    assert DEAD == ended.watermark
    assert FOREVER == ended.recorded().watermark == ended.recorded().recorded().watermark
    with pytest.raises(Bug, match="after the end"):
        sent(ended, P, 11)


def test_a_clock_is_a_value() -> None:
    clock = StreamClock(0)
    sent(clock, P, 10)
    assert StreamClock(0) == clock
    assert {} == clock.greatest


@pytest.mark.parametrize("lateness", [0, 1, TIME_MAX - 1])
@pytest.mark.parametrize("time", [TIME_MIN + 1, -1, 0, TIME_MAX - 1])
def test_the_ends_of_time_do_not_overflow(lateness: int, time: int) -> None:
    clock = sent(StreamClock(lateness), P, time)
    assert time - lateness == clock.recorded().watermark
    assert [False] == late(StreamClock(lateness), P, time)
    assert [time < TIME_MAX - 1 - lateness] == late(sent(clock, P, TIME_MAX - 1), P, time)
    assert [TIME_MIN + 1 < time - lateness] == late(clock, P, TIME_MIN + 1)


producers = st.sampled_from((P, Q, ProducerId("r")))
events = st.one_of(
    st.tuples(st.just("sent"), producers, st.lists(st.integers(-30, 30), max_size=5)),
    st.tuples(st.just("silent"), producers, st.just([])),
    st.tuples(st.just("record"), producers, st.just([])),
)


@settings(max_examples=200)
@given(history=st.lists(events, max_size=30), lateness=st.integers(0, 8))
def test_a_clock_agrees_with_a_slow_one(history: list[tuple[str, ProducerId, list[int]]], lateness: int) -> None:
    clock = StreamClock(lateness)
    greatest: dict[ProducerId, int] = {}
    live: set[ProducerId] = set()
    watermark: int | None = None
    for what, who, times in history:
        if what == "silent":
            clock, live = clock.silent(who), live - {who}
        elif what == "record":
            clock = clock.recorded()
            if live and all(one in greatest for one in live):
                reach = min(greatest[one] for one in live) - lateness
                watermark = reach if watermark is None else max(watermark, reach)
        else:
            wanted = []
            flags = late(clock, who, *times)
            for time in times:
                below_own = who in greatest and time < greatest[who] - lateness
                wanted.append(below_own or (watermark is not None and time < watermark))
                greatest[who] = max(greatest.get(who, time), time)
            assert wanted == flags
            clock = sent(clock, who, *times)
            live.add(who)
        assert (DEAD if watermark is None else watermark) == clock.watermark
