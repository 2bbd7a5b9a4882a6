"""Taking and putting back a group's state: what is refused, and what must survive a change of windows."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from joinery.flow.release import Release
from joinery.join import state
from joinery.join.logic import WindowJoin
from joinery.join.state import Checkpoints, Increment
from joinery.model.errors import Bug
from joinery.model.ids import GroupId, RecordNo
from joinery.model.quantities import CountWindow
from joinery.window.sliding import Marks
from tests.support.queries import joined, plan_of, read, told

GROUP = GroupId(0)


def tag(number: int) -> RecordNo:
    return RecordNo(number)


def three_increments() -> list[Increment]:
    join = WindowJoin(plan_of({"k": "int64"}, partitions=1))
    checkpoints, taken = Checkpoints(join), []
    for number in range(3):
        joined(join, read(join.plan, 0, number, k=[number], ts=[number]), marks=(0, 0))
        taken += checkpoints.take([GROUP], tag(number), tag(number - 1) if number else None)
    return taken


def fresh() -> Checkpoints:
    return Checkpoints(WindowJoin(plan_of({"k": "int64"}, partitions=1), []))


def test_a_chain_of_increments_gives_every_row_back() -> None:
    checkpoints = fresh()
    checkpoints.restore(three_increments())
    plan = checkpoints.join.plan
    found = joined(checkpoints.join, read(plan, 1, k=[0, 1, 2], ts=[5, 5, 5]), marks=(0, 0))
    assert [(0, 0), (1, 1), (2, 2)] == found


@pytest.mark.parametrize("chosen", [[], [1, 2], [0, 2], [1, 0, 2]])
def test_a_chain_with_a_gap_is_refused(chosen: list[int]) -> None:
    taken = three_increments()
    with pytest.raises(Bug, match="increment"):
        fresh().restore([taken[at] for at in chosen])


def test_another_groups_increment_is_refused() -> None:
    taken = three_increments()
    with pytest.raises(Bug, match="other groups"):
        fresh().restore([taken[0], replace(taken[1], group=GroupId(7))])


def test_a_group_that_is_here_is_not_put_back_and_one_that_is_not_is_not_taken() -> None:
    checkpoints = fresh()
    with pytest.raises(Bug, match="not all are here"):
        checkpoints.take([GROUP], tag(0))
    checkpoints.restore(three_increments())
    with pytest.raises(Bug, match="already here"):
        checkpoints.restore(three_increments())
    with pytest.raises(Bug, match="since tag 9"):
        checkpoints.take([GROUP], tag(10), tag(9))


def test_a_group_from_before_a_change_of_windows_must_catch_up_elsewhere() -> None:
    join = WindowJoin(plan_of({"k": "int64"}, partitions=2), [GroupId(1)])
    join.change_windows(join.windows, (90, 90), (0, 0))
    old = WindowJoin(join.plan, [GROUP])
    with pytest.raises(Bug, match="1 changes of windows behind"):
        Checkpoints(join).restore(Checkpoints(old).take([GROUP], tag(0)))


def test_a_window_that_becomes_a_count_keeps_its_rows_through_a_move() -> None:
    #  times are large and counts small: what closed by time must not be read as a count
    plan = plan_of({"k": "int64"}, windows=("10ns", {"count": 3}), partitions=1)
    release, join = Release(2), WindowJoin(plan)
    rows = release.admit([read(plan, 0, k=[1, 1], ts=[1000, 1001]), read(plan, 1, k=[2], ts=[1000])], (1002, 1002))
    list(join.on_batch(rows, Marks((1002, 1002), release.counts)))
    join.change_windows((CountWindow(5), CountWindow(3)), (992, -1), (2, 2))
    taken = Checkpoints(join).take([GROUP], tag(0))
    moved = WindowJoin(replace(plan, windows=(CountWindow(5), CountWindow(3))), [])
    Checkpoints(moved).restore(taken)
    rows = release.admit([read(plan, 1, 1, k=[1], ts=[1003])], (1004, 1004))
    assert [(0, 1), (1, 1)] == told(moved.on_batch(rows, Marks((1004, 1004), release.counts)))


def test_groups_with_more_texts_than_one_column_holds_are_taken_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_TEXT_LIMIT", 50)
    plan = plan_of({"k": "int64", "s": "string"})
    join = WindowJoin(plan)
    keys = np.arange(200)
    joined(join, read(plan, 0, k=pa.array(keys), s=[f"text {key}" for key in keys], ts=pa.array(keys)), marks=(0, 0))
    taken = Checkpoints(join).take([GroupId(group) for group in range(60)], tag(0))
    texts = {
        place: text
        for one in taken
        for place, text in zip(one.rows[0].places.tolist(), one.rows[0].rows["s"].to_pylist(), strict=True)
    }
    assert {key: f"text {key}" for key in range(200)} == texts


def test_what_closes_is_told_in_bounded_parts() -> None:
    plan = plan_of({"k": "int64"}, type="left")
    join, size = WindowJoin(plan), 100_000
    joined(join, read(plan, 0, k=pa.array(np.arange(size)), ts=pa.array(np.zeros(size, np.int64))), marks=(0, 0))
    sizes = [part.rows.num_rows for part in join.on_batch([], Marks((500, 500)))]
    assert size == sum(sizes)
    assert max(sizes) <= 1 << 15


def test_marks_and_batches_that_do_not_fit_the_query_are_refused_before_anything_changes() -> None:
    plan = plan_of({"k": "int64"})
    join, batch = WindowJoin(plan), read(plan, 0, k=[1], ts=[1])
    for marks in (Marks((1,)), Marks((1, 1, 1)), Marks((1, 1), (1, 1))):
        with pytest.raises(Bug):
            list(join.on_batch([batch], marks))
    assert 0 == join.method.stores[0].used_blocks
    counting = WindowJoin(plan_of({"k": "int64"}, windows=({"count": 2}, "1s")))
    with pytest.raises(Bug, match=r"flow\.release"):
        list(counting.on_batch([batch], Marks((1, 1), (0, 0))))
