"""Arrival stamps: a table per record says when every row came."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joinery.flow.stamps import Arrivals, Ledger


def ledger(*records: tuple[int, int, int]) -> Ledger:
    """Records of stream 0: number, end, stamp."""
    made = Ledger(2)
    for number, end, stamp in records:
        made.add(number, 0, end, stamp)
    return made


def test_rows_are_counted_by_the_stamps_of_their_records() -> None:
    steps = ledger((0, 10, 100), (1, 20, 200), (2, 30, 300)).steps(0, np.array([25, 9, 10, 29]))
    assert ([100, 200, 300], [1, 1, 2]) == (steps.stamps.tolist(), steps.rows_at(np.array([25, 9, 10, 29])).tolist())


def test_a_table_holds_only_the_records_of_the_rows() -> None:
    steps = ledger((0, 10, 100), (1, 20, 200), (2, 30, 300)).steps(0, np.array([12, 19]))
    assert ([20], [200], [2]) == (
        steps.ends.tolist(),
        steps.stamps.tolist(),
        steps.rows_at(np.array([12, 19])).tolist(),
    )


def test_two_batches_of_a_record_are_one_line() -> None:
    made = ledger((0, 10, 100), (0, 20, 100))
    assert [20] == made.steps(0, np.array([0, 19])).ends.tolist()


def test_a_batch_without_rows_is_no_line_but_its_record_has_a_stamp() -> None:
    made = ledger((0, 10, 100), (1, 10, 200), (2, 20, 300))
    assert ([10, 20], 200) == (made.steps(0, np.array([0, 19])).ends.tolist(), made.stamp_at(1))


def test_no_rows_have_no_table() -> None:
    assert 0 == ledger((0, 10, 100)).steps(0, np.empty(0, np.int64)).ends.size


def test_the_newest_stamp_up_to_a_record_is_that_of_any_stream() -> None:
    made = ledger((0, 10, 100))
    made.add(2, 1, 5, 150)
    made.add(4, 0, 20, 200)
    assert [100, 150, 150, 200] == [made.stamp_at(record) for record in (1, 2, 3, 9)]
    assert 0 == Ledger(1).stamp_at(5)


def test_dropped_records_are_forgotten() -> None:
    made = ledger((0, 10, 100), (1, 20, 200))
    made.drop(1)
    assert [20] == made.steps(0, np.array([3, 15])).ends.tolist()


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.data())
def test_every_row_is_counted_once_at_its_own_stamp(sizes: list[int], data: st.DataObject) -> None:
    ends = np.cumsum(sizes)
    made = ledger(*[(number, int(end), 1000 + number) for number, end in enumerate(ends)])
    places = np.array(data.draw(st.lists(st.integers(0, int(ends[-1]) - 1), min_size=1, max_size=30)))
    steps = made.steps(0, places)
    wanted = 1000 + np.searchsorted(ends, places, side="right")
    found = dict(zip(steps.stamps.tolist(), steps.rows_at(places).tolist(), strict=True))
    assert {stamp: int((wanted == stamp).sum()) for stamp in found} == found
    assert places.size == sum(found.values())


def test_a_share_keeps_the_number_of_rows() -> None:
    whole = Arrivals(np.array([5, 1, 9]), np.array([10, 10, 10]))
    assert (whole, 7, 0) == (whole.share(30), whole.share(7).total, whole.share(0).total)
