"""The nested-loop method: blocks that expire, mini-groups that split and merge while they are joined."""

import numpy as np
import pytest

from joinery.join.logic import WindowJoin
from joinery.join.nested_loop import NestedLoopMethod, tuple_bytes
from joinery.join.plan import JoinPlan
from joinery.join.results import ResultPart
from joinery.join.state import Checkpoints
from joinery.model.ids import GroupId, RecordNo
from joinery.partition.extendible import Directory, tune
from joinery.window.sliding import Marks
from tests.support.pairs import assert_same, found, unmatched, wanted
from tests.support.queries import ENDED, plan_of, read

TUPLE = 16
THETA = 40 * TUPLE
"""Mini-groups of 40 to 80 tuples, both streams together."""


def plan(
    window: str = "2000ns", *, theta: int | None = THETA, partitions: int = 2, block: int = 64, **join: object
) -> JoinPlan:
    sizes = {"partitions": partitions, "theta": theta, "block": block}
    return plan_of({"k": "int64"}, windows=(window, window), method="nested-loop", **sizes, **join)


def method_of(join: WindowJoin) -> NestedLoopMethod:
    assert isinstance(join.method, NestedLoopMethod)
    return join.method


def take(
    join: WindowJoin, stream: int, keys: np.ndarray, times: np.ndarray, marks: tuple[int, int], first: int = 0
) -> list[ResultPart]:
    return list(join.on_batch([read(join.plan, stream, first, k=keys, ts=times)], Marks(marks)))


def directory_of(join: WindowJoin, group: int) -> Directory:
    minis, numbers = method_of(join).mini_sizes(GroupId(group)), method_of(join).directory(GroupId(group)) or (0, 0)
    shape = zip(numbers[::2], numbers[1::2], strict=True)
    return Directory([(mini, *one) for mini, one in zip(minis, shape, strict=True)])


def left_undone(join: WindowJoin) -> list[object]:
    """What fine tuning would still do if any two tuples can be separated: nothing, if it did its work."""
    theta, method = join.plan.theta_bytes or 1, method_of(join)
    due: list[object] = []
    for group in range(join.plan.partitions):
        due += tune(directory_of(join, group), method.mini_sizes(GroupId(group)), theta, lambda _: True)
    return due


def test_a_tuple_has_the_bytes_of_its_columns() -> None:
    layout = WindowJoin(plan()).method.stores[0].layout
    assert TUPLE == tuple_bytes(layout)
    assert 4 == NestedLoopMethod.block_rows(layout, 64)
    assert 1 == NestedLoopMethod.block_rows(layout, 1)


@pytest.mark.parametrize("theta", [None, THETA])
@pytest.mark.parametrize("block", [1, 64, 4096])
def test_results_are_exact_while_mini_groups_split_and_merge(theta: int | None, block: int) -> None:
    rng, join, parts, every = np.random.default_rng(11), WindowJoin(plan(theta=theta, block=block)), [], []
    sizes = [20, 200, 600, 900, 300, 50, 5, 1, 400, 10]
    at, depths = 0, []
    for step, size in enumerate(sizes):
        keys, times = rng.integers(0, 700, (2, size)), 1000 * step + rng.integers(0, 1000, (2, size))
        for stream in (0, 1):
            parts += take(join, stream, keys[stream], times[stream], (1000 * step, 1000 * step), at)
            if theta is not None:
                assert [] == left_undone(join), f"step {step}"
        every.append((keys, times))
        at += size
        depths.append(len(method_of(join).mini_sizes(GroupId(0))))
    keys, times = (np.concatenate(column, axis=1) for column in zip(*every, strict=True))
    assert_same(wanted((keys[0], keys[1]), (times[0], times[1]), (2000, 2000)), found(parts))
    assert [1] * len(sizes) == depths if theta is None else max(depths) > 4
    assert theta is None or block > THETA or depths[-3] < 4, "blocks larger than a mini-group expire late"


@pytest.mark.parametrize("seed", range(4))
def test_after_every_batch_no_split_and_no_merge_is_due(seed: int) -> None:
    rng, join = np.random.default_rng(seed), WindowJoin(plan("500ns", partitions=1))
    places = [0, 0]
    for step in range(40):
        for stream in (0, 1):
            size = int(rng.integers(0, 120))
            times = 100 * step + rng.integers(0, 600, size)
            take(join, stream, rng.integers(0, 10_000, size), times, (100 * step, 100 * step), places[stream])
            places[stream] += size
            assert [] == left_undone(join), f"step {step}"


def test_a_small_mini_group_is_merged_when_its_buddy_becomes_small_enough() -> None:
    #  sizes before: 70 and 30 of 40..80; the larger one shrinks to 45: below θ is only the other, which nobody touched
    join = WindowJoin(plan("10ns", partitions=1, block=TUPLE))
    keys = np.arange(4000)
    low = read(join.plan, 0, k=keys, ts=keys).hashes & np.uint64(1)
    even, odd = keys[low == 0], keys[low == 1]
    take(join, 0, np.concatenate((even[:45], even[45:70], odd[:30])), np.repeat([100, 0, 100], [45, 25, 30]), (0, 0))
    assert [30, 70] == sorted(size // TUPLE for size in method_of(join).mini_sizes(GroupId(0)).values())
    assert [] == left_undone(join)
    list(join.on_batch([], Marks((0, 50))))
    assert [75] == [size // TUPLE for size in method_of(join).mini_sizes(GroupId(0)).values()]


def test_only_a_hot_key_makes_a_mini_group_larger_than_two_theta() -> None:
    rng, join = np.random.default_rng(2), WindowJoin(plan(partitions=1))
    keys = np.concatenate((np.full(500, 7), rng.integers(1000, 10**6, 2000)))
    take(join, 0, rng.permutation(keys), np.zeros(2500, np.int64), (0, 0))
    sizes = sorted(method_of(join).mini_sizes(GroupId(0)).values())
    assert [500 * TUPLE] == [size for size in sizes if size > 2 * THETA] or sizes[-1] <= 502 * TUPLE
    assert sizes[-2] <= 2 * THETA
    assert 500 == found(take(join, 1, np.array([7]), np.array([0]), (0, 0)))[0].size


def test_blocks_expire_and_their_memory_is_used_again() -> None:
    join, held = WindowJoin(plan()), []
    for step in range(60):
        keys = np.arange(500) + 500 * step
        take(join, 0, keys, np.full(500, 1000 * step), (1000 * step, 1000 * step), 500 * step)
        held.append(join.bytes_held())
    assert max(held[20:]) == max(held[:20])
    list(join.on_batch([], ENDED))
    assert 0 == join.method.stores[0].used_blocks
    assert [0] * 2 == [sum(method_of(join).mini_sizes(GroupId(group)).values()) for group in (0, 1)]
    assert [()] * 2 == [method_of(join).directory(GroupId(group)) for group in (0, 1)]


def test_rows_without_a_key_are_split_and_merged_with_the_others_and_told_once() -> None:
    join = WindowJoin(plan_of({"k": "int64"}, windows=("10ns", "10ns"), method="nested-loop", partitions=1, theta=THETA,
                              block=64, type="left"))  # fmt: skip
    keys = [None if at % 3 == 0 else at for at in range(600)]
    list(join.on_batch([read(join.plan, 0, k=keys, ts=[0] * 600)], Marks((0, 0))))
    assert [] != method_of(join).directory(GroupId(0))
    assert [] == list(found(list(join.on_batch([read(join.plan, 1, k=[0, None], ts=[0, 0])], Marks((0, 0)))))[0])
    assert list(range(600)) == unmatched(join.on_batch([], ENDED), 0)


def test_fine_tuning_makes_fewer_comparisons_and_the_same_results() -> None:
    rng = np.random.default_rng(4)
    keys, times = rng.integers(0, 10**6, (2, 4000)), np.zeros((2, 4000), np.int64)
    keys[1, ::2] = keys[0, ::2]
    results, comparisons = [], []
    for theta in (None, THETA):
        join = WindowJoin(plan(theta=theta))
        results.append(found([*take(join, 0, keys[0], times[0], (0, 0)), *take(join, 1, keys[1], times[1], (0, 0))]))
        comparisons.append(method_of(join).comparisons)
    assert_same(results[0], results[1])
    assert comparisons[0] > 10 * comparisons[1]


def test_another_theta_holds_for_the_groups_that_get_rows_and_changes_no_result() -> None:
    rng = np.random.default_rng(4)
    keys, times = rng.integers(0, 10**6, (2, 4000)), np.zeros((2, 4000), np.int64)
    keys[1, ::2] = keys[0, ::2]
    results, minis = [], []
    for theta in (None, THETA):
        join = WindowJoin(plan(theta=None))
        parts = take(join, 0, keys[0, :2000], times[0, :2000], (0, 0))
        join.method.retune(theta)
        parts += take(join, 0, keys[0, 2000:], times[0, 2000:], (0, 0), first=2000)
        results.append(found([*parts, *take(join, 1, keys[1], times[1], (0, 0))]))
        minis.append(len(method_of(join).mini_sizes(GroupId(0))))
    assert_same(results[0], results[1])
    assert (1, True) == (minis[0], minis[1] > 4)


def test_a_group_takes_its_directory_along() -> None:
    rng = np.random.default_rng(9)
    keys = rng.integers(0, 5000, 3000)
    here, there = WindowJoin(plan()), WindowJoin(plan(), groups=[])
    take(here, 0, keys, np.zeros(3000, np.int64), (0, 0))
    supplier, consumer = Checkpoints(here), Checkpoints(there)
    groups = [GroupId(0), GroupId(1)]
    shapes = [method_of(here).directory(group) for group in groups]
    assert all(len(shape) > 8 for shape in shapes)
    for increment in supplier.take(groups, RecordNo(0)):
        supplier.release(increment.group)
        consumer.restore([increment])
    assert shapes == [method_of(there).directory(group) for group in groups]
    assert [(), ()] == [method_of(here).directory(group) for group in groups]
    assert 0 == here.method.stores[0].used_blocks
    assert [] == left_undone(there)
    probe = np.arange(5000)
    assert_same(
        wanted((keys, probe), (np.zeros(3000), np.zeros(5000)), (2000, 2000)),
        found(take(there, 1, probe, np.zeros(5000, np.int64), (0, 0))),
    )


def test_a_group_may_move_from_nested_loops_to_hash_and_back() -> None:
    keys, times = np.arange(2000) % 300, np.zeros(2000, np.int64)
    first = WindowJoin(plan())
    take(first, 0, keys, times, (0, 0))
    hashed = WindowJoin(plan_of({"k": "int64"}, windows=("2000ns", "2000ns"), method="hash", partitions=2), groups=[])
    last = WindowJoin(plan(), groups=[])
    for source, target in ((first, hashed), (hashed, last)):
        for increment in Checkpoints(source).take([GroupId(0), GroupId(1)], RecordNo(0)):
            Checkpoints(target).restore([increment])
    probe = np.arange(300)
    truth = wanted((keys, probe), (times, np.zeros(300)), (2000, 2000))
    for join in (hashed, last):
        assert_same(truth, found(take(join, 1, probe, np.zeros(300, np.int64), (0, 0))))
