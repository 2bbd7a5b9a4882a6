"""Clock offsets: the quickest ping counts, and no answer is wrong by more than half its round trip."""

from hypothesis import given
from hypothesis import strategies as st

from joinery.flow.clocks import KEPT, ClockOffset


def test_nothing_is_known_before_the_first_ping() -> None:
    assert (0, None) == (ClockOffset().ahead_ns, ClockOffset().error_ns)


def test_the_quickest_ping_counts() -> None:
    clock = ClockOffset()
    clock.add(0, 100 + 900, 1000)  # went in 900, came back in 100
    clock.add(2000, 100 + 2005, 2010)
    clock.add(3000, 100 + 3001, 3500)
    assert (100, 5) == (clock.ahead_ns, clock.error_ns)


def test_old_pings_go() -> None:
    clock = ClockOffset()
    clock.add(0, 70, 0)
    for number in range(1, KEPT + 1):
        clock.add(number, number + 55, number + 10)
    assert 50 == clock.ahead_ns


def test_a_clock_of_ours_that_was_set_back_makes_us_begin_anew() -> None:
    clock = ClockOffset()
    clock.add(1000, 1100, 1010)
    clock.add(2000, 2100, 500)
    assert (0, None) == (clock.ahead_ns, clock.error_ns)


@given(
    st.integers(-(10**9), 10**9),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=KEPT),
)
def test_the_error_is_at_most_half_of_the_round_trip(ahead: int, ways: list[tuple[int, int]]) -> None:
    clock = ClockOffset()
    for number, (there, back) in enumerate(ways):
        sent = number * 10**7
        clock.add(sent, sent + there + ahead, sent + there + back)
    assert clock.error_ns is not None
    assert abs(clock.ahead_ns - ahead) <= clock.error_ns + 1
