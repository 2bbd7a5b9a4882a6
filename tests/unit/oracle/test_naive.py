"""One picture per rule of docs/design.md §2: a column is a time, a letter a key, a capital a late row, ? a null key.

Where pictures stand beside each other, each is a record.
"""

import pytest

from tests.oracle import naive
from tests.oracle.drawing import answered, asked, recorded
from tests.oracle.recorded import FOREVER, Count, Time, Unbounded, WindowChange, floors


def test_both_ends_of_a_window_belong_to_it() -> None:
    rows = recorded("""
        t: 012345
        a: x.....
        b: ..xx..
    """)
    assert [(0, 2)] == answered(asked(Time(2), Time(0)), rows)


def test_the_window_of_the_earlier_row_decides() -> None:
    rows = recorded("""
        t: 01234567
        a: x......x
        b: ...xx...
    """)
    # a(0) is the earlier row of (0, 3) and (0, 4): W1 = 3. a(7) is the later row: W2 = 3 reaches back to 4.
    assert [(0, 3), (7, 4)] == answered(asked(Time(3), Time(3)), rows)
    assert [(0, 3), (0, 4)] == answered(asked(Time(4), Time(1)), rows)
    assert [(7, 3), (7, 4)] == answered(asked(Time(1), Time(4)), rows)


def test_zero_windows_match_equal_times_only() -> None:
    rows = recorded("""
        t: 0123
        a: xx..
        b: .xx.
    """)
    assert [(1, 1)] == answered(asked(Time(0), Time(0)), rows)


def test_an_unbounded_window_reaches_back_to_the_first_row_but_not_forward() -> None:
    rows = recorded("""
        t: 012345
        a: x....x
        b: ...x..
    """)
    assert [(0, 3)] == answered(asked(Unbounded(), Time(0)), rows)
    assert [(0, 3), (5, 3)] == answered(asked(Unbounded(), Unbounded()), rows)


def test_different_keys_never_match() -> None:
    rows = recorded("""
        t: 012
        a: xy.
        b: yx.
    """)
    assert [(0, 1), (1, 0)] == answered(asked(Time(9), Time(9)), rows)


def test_a_null_key_matches_nothing_not_even_a_null() -> None:
    rows = recorded("""
        t: 01
        a: ?x
        b: ?x
    """)
    assert [(1, 1)] == answered(asked(Time(9), Time(9)), rows)


def test_equal_rows_are_different_rows() -> None:
    rows = recorded("""
        t: 0
        a: x
        a: x
        b: x
    """)
    assert [(0, 0), (1, 0)] == naive.join(asked(Time(0), Time(0)), rows)


def test_a_late_row_is_no_match_and_no_unmatched_row_but_late_output() -> None:
    rows = recorded("""
        t: 012
        a: xX.
        b: ..x
    """)
    assert [(0, 2)] == answered(asked(Time(9), Time(9), type="left"), rows)
    assert [(0, 1)] == naive.late(rows)


def test_of_three_streams_every_member_is_in_its_window_at_the_time_of_the_latest() -> None:
    rows = recorded("""
        t: 0123456
        a: x......
        b: ..x..x.
        c: ...x..x
    """)
    # a(0) b(2) c(3): the latest is c(3), a is 3 old, b is 1 old.
    assert [(0, 2, 3)] == answered(asked(Time(3), Time(1), Time(0)), rows)
    assert [] == answered(asked(Time(2), Time(1), Time(0)), rows)
    # a(0) b(5) c(3): b is the latest; a is 5 old, c 2 old.
    assert [(0, 2, 3), (0, 5, 3)] == answered(asked(Time(5), Time(1), Time(2)), rows)


def test_of_four_streams_one_member_outside_its_window_is_enough_to_miss() -> None:
    rows = recorded("""
        t: 0123
        a: x...
        b: .x..
        c: ..x.
        d: ...x
    """)
    assert [(0, 1, 2, 3)] == answered(asked(Time(3), Time(2), Time(1), Time(0)), rows)
    assert [] == answered(asked(Time(3), Time(1), Time(1), Time(0)), rows)


def test_where_must_be_true_and_unknown_is_not_true() -> None:
    rows = recorded("""
        t: 012
        a: xx.
        b: ..x
    """)
    unknown_at_0 = asked(Time(9), Time(9), where=lambda seen: True if seen["a.time"] == 1 else None)
    assert [(1, 2)] == answered(unknown_at_0, rows)


# --- outer, semi, anti: which rows are left over, and when they are closed ---


@pytest.mark.parametrize(
    ("type_", "results"),
    [
        ("inner", [(0, 1)]),
        ("left", [(0, 1), (5, None)]),
        ("right", [(0, 1), (None, 8)]),
        ("full", [(0, 1), (5, None), (None, 8)]),
        ("semi", [(0,)]),
        ("anti", [(5,)]),
    ],
)
def test_each_type_keeps_its_own_left_over_rows(type_: str, results: list[tuple[int | None, ...]]) -> None:
    rows = recorded("""
        t: 012345678
        a: x....x...
        b: .x......x
    """)
    assert results == answered(asked(Time(1), Time(1), type=type_), rows)


def test_a_semi_row_comes_once_however_often_it_matches() -> None:
    rows = recorded("""
        t: 012
        a: x..
        b: .xx
    """)
    assert [(0,)] == answered(asked(Time(9), Time(9), type="semi"), rows)


def test_a_row_that_fails_only_where_is_left_over() -> None:
    rows = recorded("""
        t: 01
        a: x.
        b: .x
    """)
    assert [(0, None)] == answered(asked(Time(9), Time(9), type="left", where=lambda _: None), rows)


def test_a_null_key_is_left_over() -> None:
    rows = recorded("""
        t: 0
        a: ?
        b: ?
    """)
    assert [(0, None), (None, 0)] == answered(asked(Time(9), Time(9), type="full"), rows)


def test_a_row_closes_when_the_other_watermark_is_above_time_and_window() -> None:
    rows = recorded("a: ..x....")
    left = asked(Time(3), Time(0), type="left")
    assert [] == answered(left, rows, final=(FOREVER, 5))
    assert [(2, None)] == answered(left, rows, final=(0, 6))


def test_the_second_stream_closes_by_the_watermark_of_the_first_and_its_own_window() -> None:
    rows = recorded("b: ..x....")
    right = asked(Time(0), Time(3), type="right")
    assert [] == answered(right, rows, final=(5, FOREVER))
    assert [(None, 2)] == answered(right, rows, final=(6, 0))


def test_an_unbounded_window_closes_only_at_the_end_of_the_other_stream() -> None:
    rows = recorded("a: x")
    anti = asked(Unbounded(), Time(0), type="anti")
    assert [] == answered(anti, rows, final=(FOREVER, FOREVER - 1))
    assert [(0,)] == answered(anti, rows, final=(0, FOREVER))


# --- count windows: the order of rows, the whole stream, the release ---


def test_a_count_window_holds_the_last_rows_of_the_whole_stream_whatever_their_key() -> None:
    rows = recorded("""
        t: 0123456
        a: xyxy...
        b: ....x..
    """)
    # At b(4) the last two rows of a are x(2) and y(3).
    assert [(2, 4)] == answered(asked(Count(2), Time(0)), rows)
    assert [(0, 4), (2, 4)] == answered(asked(Count(4), Time(0)), rows)


def test_a_count_window_is_taken_at_the_place_of_the_latest_member() -> None:
    rows = recorded("""
        t: 012345
        a: x.y..y
        b: .x..x.
    """)
    # At b(1) the last row of a is x(0); at b(4) it is y(2).
    assert [(0, 1)] == answered(asked(Count(1), Count(1)), rows)


def test_ties_in_time_are_ordered_by_stream_and_then_by_position() -> None:
    first = recorded("""
        t: 0
        a: x
        a: y
        b: x
    """)
    # Place: a x, a y, b x. When b comes, y has pushed x out.
    assert [] == answered(asked(Count(1), Time(0)), first)
    second = recorded("""
        t: 0
        b: x
        b: y
        a: x
    """)
    # Stream a stands before b: at b's x the last row of a is x.
    assert [(0, 0)] == answered(asked(Count(1), Count(1)), second)


def test_a_late_row_has_no_rank() -> None:
    rows = recorded("""
        t: 0123
        a: xYY.
        b: ...x
    """)
    assert [(0, 3)] == answered(asked(Count(1), Time(0)), rows)


def test_a_row_takes_part_in_order_only_below_every_watermark() -> None:
    rows = recorded("""
        t: 0123
        a: x...
        b: ..xx
    """)
    assert [(0, 2)] == answered(asked(Count(1), Time(0)), rows, final=(FOREVER, 3))
    assert [] == answered(asked(Count(1), Time(0)), rows, final=(2, FOREVER))


def test_a_count_window_closes_by_later_rows_of_its_own_stream() -> None:
    rows = recorded("a: xyz.")
    left = asked(Count(2), Time(0), type="left")
    assert [] == answered(left, rows, final=(2, 2))
    assert [(0, None)] == answered(left, rows, final=(3, 3))
    assert [(0, None), (1, None), (2, None)] == answered(left, rows)


def test_in_order_a_row_is_not_closed_while_the_other_stream_is_held_back() -> None:
    rows = recorded("""
        t: 01234
        a: x....
        b: ...x.
    """)
    # b has ended, but b(3) waits for the watermark of a: x(0) may not be called unmatched.
    for window in (Count(2), Time(3), Unbounded()):
        left = asked(window, Count(1), type="left")
        assert [] == answered(left, rows, final=(2, FOREVER))
        assert [(0, 3)] == answered(left, rows, final=(4, FOREVER))


# --- changes of the windows ---


def test_a_change_holds_for_combinations_completed_after_its_record() -> None:
    rows = recorded("a: x.....", "b: ....x.", "b: .....x")
    grown = WindowChange(record=1, windows=(Time(5), Time(0)), floors=(0, 0))
    # b(4) in record 1 is judged by the old window of 3, b(5) in record 2 by the new one.
    assert [(0, 5)] == answered(asked(Time(3), Time(0)), rows, [grown])


def test_a_member_is_judged_by_the_record_that_completes_the_combination() -> None:
    rows = recorded("b: ....x", "", "a: x....")
    shrunk = WindowChange(record=1, windows=(Time(3), Time(0)), floors=(0, 0))
    assert [] == answered(asked(Time(4), Time(0)), rows, [shrunk])
    assert [(0, 4)] == answered(asked(Time(4), Time(0)), rows)


def test_a_row_below_the_floor_matches_nothing_later_and_was_closed_with_the_old_window() -> None:
    rows = recorded("a: x.x.....", "b: ......x.")
    # Record 0: watermark of b is 4, old window 3: the floor is 1, a(0) is gone; a(2) is still there.
    change = WindowChange(record=0, windows=(Time(9), Time(0)), floors=floors((Time(3), Time(0)), (0, 4), (2, 0)))
    assert (1, 0) == change.floors
    assert [(2, 6)] == answered(asked(Time(3), Time(0)), rows, [change])
    left = asked(Time(3), Time(0), type="left")
    assert [(0, None), (2, 6)] == answered(left, rows, [change], final=(0, 7))


def test_a_row_recorded_after_the_change_does_not_mind_its_floor() -> None:
    rows = recorded("b: ......x", "a: x......")
    change = WindowChange(record=0, windows=(Time(9), Time(0)), floors=(3, 0))
    assert [(0, 6)] == answered(asked(Time(3), Time(0)), rows, [change])


def test_a_row_that_the_old_window_kept_open_closes_by_the_new_one() -> None:
    rows = recorded("a: x")
    left = asked(Time(9), Time(0), type="left")
    shrunk = WindowChange(record=0, windows=(Time(3), Time(0)), floors=floors((Time(9), Time(0)), (0, 2), (1, 0)))
    assert [] == answered(left, rows, [shrunk], final=(0, 3))
    assert [(0, None)] == answered(left, rows, [shrunk], final=(0, 4))


def test_the_floor_of_a_count_window_is_a_rank() -> None:
    rows = recorded("a: xxx.....", "b: .....x..")
    # Record 0 released three rows, the old window held one of them: its rank is 2.
    change = WindowChange(record=0, windows=(Count(3), Time(0)), floors=floors((Count(1), Time(0)), (4, 4), (3, 0)))
    assert (2, 4) == change.floors
    assert [(2, 5)] == answered(asked(Count(1), Time(0)), rows, [change])


def test_floors_have_no_limits_at_both_ends() -> None:
    windows = (Unbounded(), Time(5), Time(2**63))
    assert (-(2**62), FOREVER, -(2**62)) == floors(windows, (FOREVER, 7, FOREVER), (0, 0, 0))


def test_a_change_between_time_and_count_is_refused() -> None:
    change = WindowChange(record=0, windows=(Count(3), Time(0)), floors=(0, 0))
    with pytest.raises(ValueError, match="another query"):
        naive.join(asked(Time(1), Time(0)), [], [change])


# --- result rows ---


def test_result_columns_are_in_spec_order_and_sorted_by_name_within_a_stream() -> None:
    rows = recorded("""
        t: 01
        a: x.
        b: .x
    """)
    question = asked(Time(9), Time(9))
    rendered = naive.render(question, rows, naive.join(question, rows))
    assert [{"a_key": "x", "a_time": 0, "b_key": "x", "b_time": 1}] == rendered
    assert ["a_key", "a_time", "b_key", "b_time"] == list(rendered[0])


def test_select_chooses_renames_and_orders() -> None:
    rows = recorded("""
        t: 01
        a: x.
        b: .x
    """)
    question = asked(Time(9), Time(9), select=(("b", "time", "when"), ("a", "key", None)))
    rendered = naive.render(question, rows, naive.join(question, rows))
    assert [[("when", 1), ("a_key", "x")]] == [list(row.items()) for row in rendered]


def test_filter_sees_null_where_there_is_no_member() -> None:
    rows = recorded("""
        t: 012
        a: xy.
        b: ..x
    """)
    question = asked(Time(9), Time(9), type="left", filter=lambda seen: seen["b.key"] is None)
    rendered = naive.render(question, rows, naive.join(question, rows))
    assert [{"a_key": "y", "a_time": 1, "b_key": None, "b_time": None}] == rendered


def test_a_filter_that_is_unknown_drops_the_row() -> None:
    rows = recorded("a: x")
    question = asked(Time(9), Time(9), type="anti", filter=lambda _: None)
    assert [] == naive.filtered(question, rows, naive.join(question, rows))


def test_semi_and_anti_rows_have_the_columns_of_the_first_stream_only() -> None:
    rows = recorded("a: x")
    question = asked(Time(9), Time(9), type="anti")
    assert [{"a_key": "x", "a_time": 0}] == naive.render(question, rows, naive.join(question, rows))


def test_colliding_result_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="collide"):
        asked(Time(0), Time(0), select=(("a", "key", "k"), ("b", "key", "k")))


@pytest.mark.parametrize("wrong", [lambda: Time(-1), lambda: Count(0)])
def test_a_window_that_holds_nothing_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="wanted"):
        wrong()
