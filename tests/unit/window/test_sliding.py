"""Windows: inclusive edges, zero, unbounded, counts, and the ends of time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.model.quantities import UNBOUNDED_WINDOW, CountWindow, Nanoseconds, TimeWindow, Window
from joinery.model.time import DEAD, FOREVER, TIME_MAX, TIME_MIN
from joinery.model.tuples import Order
from joinery.window.sliding import Marks, closing, deadline, earliest, in_count_windows, past_before

LONGEST = TIME_MAX - 1
FIRST, LAST = TIME_MIN + 1, TIME_MAX - 1


def of(ns: int) -> TimeWindow:
    return TimeWindow(Nanoseconds(ns))


def times(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("window", "wanted"),
    [
        (of(0), [0, 5]),
        (of(5), [-5, 0]),
        (UNBOUNDED_WINDOW, [TIME_MIN, TIME_MIN]),
        (CountWindow(3), [TIME_MIN, TIME_MIN]),
    ],
    ids=str,
)
def test_the_earliest_partner_stands_on_the_edge_of_its_window(window: Window, wanted: list[int]) -> None:
    assert wanted == earliest(times(0, 5), window).tolist()


@pytest.mark.parametrize(
    ("window", "wanted"),
    [
        (of(0), [0, 5]),
        (of(5), [5, 10]),
        (UNBOUNDED_WINDOW, [TIME_MAX, TIME_MAX]),
        (CountWindow(3), [TIME_MAX, TIME_MAX]),
    ],
    ids=str,
)
def test_the_deadline_is_the_end_of_the_window(window: Window, wanted: list[int]) -> None:
    assert wanted == deadline(times(0, 5), window).tolist()


@pytest.mark.parametrize("length", [0, 1, 2**61, LONGEST])
@pytest.mark.parametrize("time", [FIRST, -1, 0, LAST])
def test_bounds_near_the_ends_of_time_do_not_overflow(length: int, time: int) -> None:
    assert [max(time - length, TIME_MIN)] == earliest(times(time), of(length)).tolist()
    assert [min(time + length, TIME_MAX)] == deadline(times(time), of(length)).tolist()
    assert [min(time + length, TIME_MAX)] == closing(times(time), of(length)).tolist()


@settings(max_examples=200)
@given(
    first=st.integers(FIRST, LAST) | st.integers(-20, 20), second=st.integers(FIRST, LAST) | st.integers(-20, 20),
    lengths=st.tuples(*[st.one_of(st.integers(0, 40), st.integers(0, LONGEST), st.just(TIME_MAX))] * 2),
)  # fmt: skip
def test_the_bounds_say_what_the_predicate_says(first: int, second: int, lengths: tuple[int, int]) -> None:
    wanted = second - lengths[0] <= first <= second or first - lengths[1] <= second <= first
    if TIME_MAX in lengths:  # unbounded
        wanted = all(
            later - earlier <= length or length == TIME_MAX
            for later, earlier, length in ((second, first, lengths[0]), (first, second, lengths[1]))
        )
    one, other = of(lengths[0]), of(lengths[1])
    found = earliest(times(first), other)[0] <= second <= deadline(times(first), one)[0]
    assert wanted == found == (earliest(times(second), one)[0] <= first <= deadline(times(second), other)[0])


def test_an_unmatched_row_is_told_with_the_end_of_its_window_or_else_its_own_time() -> None:
    assert [15] == closing(times(10), of(5)).tolist()
    assert [10] == closing(times(10), of(0)).tolist()
    assert [10] == closing(times(10), UNBOUNDED_WINDOW).tolist()
    assert [10] == closing(times(10), CountWindow(5)).tolist()


def test_a_row_is_past_when_the_other_watermark_is_above_the_end_of_its_window() -> None:
    #  t + 5 < 20, so 14 is past and 15 is not
    assert 15 == past_before(0, of(5), Marks((99, 20)))
    assert 20 == past_before(0, of(0), Marks((99, 20)))
    assert 94 == past_before(1, of(5), Marks((99, 20)))


def test_every_other_stream_must_have_passed() -> None:
    assert 5 == past_before(0, of(5), Marks((0, 20, 10)))
    assert 5 == past_before(0, of(5), Marks((0, FOREVER, 10)))
    assert DEAD == past_before(0, of(5), Marks((0, FOREVER, DEAD)))


def test_the_own_watermark_does_not_count_unless_rows_are_released_in_order() -> None:
    assert 15 == past_before(0, of(5), Marks((3, 20)))
    assert -2 == past_before(0, of(5), Marks((3, 20), (0, 0)))


def test_unbounded_windows_are_past_only_when_the_others_ended() -> None:
    assert DEAD == past_before(0, UNBOUNDED_WINDOW, Marks((0, LAST)))
    assert FOREVER == past_before(0, UNBOUNDED_WINDOW, Marks((0, FOREVER)))
    assert FOREVER == past_before(0, of(7), Marks((0, FOREVER)))


def test_nothing_is_past_before_the_first_watermark() -> None:
    assert DEAD == past_before(0, of(5), Marks((DEAD, DEAD)))
    assert DEAD == past_before(0, of(5), Marks((0, TIME_MIN - 1000)))


@pytest.mark.parametrize("mark", [FIRST, 0, LAST, LAST + 1])
def test_the_longest_window_does_not_overflow_at_any_watermark(mark: int) -> None:
    before = past_before(0, of(LONGEST), Marks((0, mark)))
    assert -(2**63) < before < 2**63
    assert mark - LONGEST == before


def test_a_row_of_a_count_window_is_past_when_that_many_came_after_it() -> None:
    #  counts 1 2 3 4 5, window of 2: 4 and 5 are inside
    assert 4 == past_before(0, CountWindow(2), Marks((9, 9), (5, 0)))
    assert 5 == past_before(0, CountWindow(1), Marks((9, 9), (5, 0)))
    assert 0 >= past_before(0, CountWindow(6), Marks((9, 9), (5, 0)))
    assert FOREVER == past_before(0, CountWindow(6), Marks((FOREVER, FOREVER), (5, 0)))


def test_a_count_window_holds_the_last_rows_at_the_place_of_the_latest_member() -> None:
    # order: a0 a1 b0 a2 b1, Count(2) of a: at b0 it holds a0 a1, at b1 it holds a1 a2
    ranks, counts = np.array([0, 1, 2, 3, 4]), np.array([[1, 0], [2, 0], [2, 1], [3, 1], [3, 2]])
    a, b = [0, 1, 3], [2, 4]
    pairs = [(x, y) for x in a for y in b]
    left, right = (np.array(side) for side in zip(*pairs, strict=True))
    members = [(0, Order(ranks[left], counts[left])), (1, Order(ranks[right], counts[right]))]
    held = in_count_windows((CountWindow(2), of(99)), members)
    assert [True, False, True, True, True, True] == held.tolist()
    # b's window of 1: at a2 only b0 has come, and it is in
    assert [True, False, True, True, True, True] == in_count_windows((CountWindow(2), CountWindow(1)), members).tolist()
    assert [False, False, True, False, True, True] == in_count_windows((CountWindow(1), of(99)), members).tolist()
