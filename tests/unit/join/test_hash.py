"""The hash method with more rows than a block: rings, index, chains out of time order, evacuation, memory."""

import numpy as np
import pytest

from joinery.join.kernels.chains import BLOCK
from joinery.join.logic import WindowJoin
from joinery.join.plan import JoinPlan
from joinery.join.results import ResultPart
from joinery.join.state import Checkpoints
from joinery.model.ids import GroupId, RecordNo
from joinery.window.sliding import Marks
from tests.support.pairs import assert_same, found, unmatched, wanted
from tests.support.queries import ENDED, plan_of, read

FAR = 10**12


def take(
    join: WindowJoin, stream: int, keys: np.ndarray, times: np.ndarray, marks: tuple[int, int], first: int = 0
) -> list[ResultPart]:
    batch = read(join.plan, stream, first, k=keys.tolist() if keys.dtype == object else keys, ts=times)
    return list(join.on_batch([batch], Marks(marks)))


def plan(window: str = "100ns", other: str | None = None, **join: object) -> JoinPlan:
    return plan_of({"k": "int64"}, windows=(window, other or window), method="hash", **join)


def index_bytes(join: WindowJoin) -> int:
    return join.bytes_held() - sum(store.bytes_held() for store in join.method.stores)


@pytest.mark.parametrize("windows", [(300, 300), (0, 500), (1000, 0), (0, 0)])
def test_a_probe_does_not_stop_at_the_first_old_row_of_its_chain(windows: tuple[int, int]) -> None:
    rng = np.random.default_rng(7)
    size, keys = 3 * BLOCK // 2, rng.integers(0, 40, (2, 3 * BLOCK // 2))
    times = rng.integers(0, 5000, (2, size))
    join = WindowJoin(plan(*[f"{length}ns" for length in windows]))
    parts, step = [], 1000
    for at in range(0, size, step):
        for stream in (0, 1):
            cut = slice(at, at + step)
            parts += take(join, stream, keys[stream, cut], times[stream, cut], (0, 0), at)
    assert_same(wanted((keys[0], keys[1]), (times[0], times[1]), windows), found(parts))


def test_a_hot_key_makes_more_pairs_than_a_part_holds() -> None:
    join = WindowJoin(plan())
    size = 600
    take(join, 0, np.zeros(size, np.int64), np.ones(size, np.int64), (0, 0))
    parts = take(join, 1, np.zeros(size, np.int64), np.ones(size, np.int64), (0, 0))
    assert len(parts) > 1
    assert max(part.rows.num_rows for part in parts) <= 1 << 16
    assert_same(wanted((np.zeros(size), np.zeros(size)), (np.ones(size), np.ones(size)), (100, 100)), found(parts))


def test_a_long_stream_goes_round_the_ring_many_times_and_stays_exact() -> None:
    rng, join, parts = np.random.default_rng(3), WindowJoin(plan("2000ns")), []
    every: list[tuple[np.ndarray, np.ndarray]] = []
    held = []
    for step in range(60):
        keys, times = rng.integers(0, 3000, (2, 3000)), 1000 * step + rng.integers(0, 1000, (2, 3000))
        for stream in (0, 1):
            parts += take(join, stream, keys[stream], times[stream], (1000 * step, 1000 * step), 3000 * step)
        every.append((keys, times))
        held.append(join.bytes_held())
    keys, times = (np.concatenate(column, axis=1) for column in zip(*every, strict=True))
    assert_same(wanted((keys[0], keys[1]), (times[0], times[1]), (2000, 2000)), found(parts))
    assert max(held[20:]) <= max(held[:20]), "a window that does not grow must not take more memory"
    assert all(store.used_blocks <= 6 for store in join.method.stores)


def test_the_index_grows_with_the_window_and_shrinks_with_it() -> None:
    join = WindowJoin(plan())
    small = index_bytes(join)
    keys = np.arange(60_000)
    take(join, 0, keys, np.full(keys.size, 1), (0, 0))
    large = index_bytes(join)
    assert 1.5 * keys.size * 8 <= large <= 12 * keys.size * 8
    pairs = found(take(join, 1, keys[::1000], np.full(60, 50), (0, 0)))
    assert keys[::1000].tolist() == pairs[0].tolist()
    assert [] == list(join.on_batch([], Marks((FAR, FAR))))
    take(join, 0, np.arange(BLOCK), np.full(BLOCK, FAR), (FAR, FAR), 60_000)
    assert small <= index_bytes(join) < large / 2
    assert BLOCK == found(take(join, 1, np.arange(BLOCK), np.full(BLOCK, FAR), (FAR, FAR), 60))[0].size


@pytest.mark.parametrize("type_", ["inner", "left"])
def test_a_few_rows_of_the_far_future_do_not_keep_old_blocks(type_: str) -> None:
    #  every 100th row lies far ahead of the watermark, so no block ever holds only past rows
    join = WindowJoin(plan(type=type_))
    steps, size = 120, 2000
    for step in range(steps):
        times = np.full(size, 1000 * step)
        times[::100] = FAR
        keys = np.arange(size) + size * step
        told = take(join, 0, keys, times, (1000 * step, 1000 * step + 900), size * step)
        closed = [] if type_ == "inner" else (np.flatnonzero(times < FAR) + size * step).tolist()
        assert closed == unmatched(told, 0), "what is past was told at once"
    living = steps * size // 100
    assert join.method.stores[0].used_blocks <= 4 * (living // BLOCK + 2)
    ahead = np.arange(0, steps * size, 100)
    pairs = found(take(join, 1, ahead, np.full(ahead.size, FAR + 100), (FAR, FAR)))
    assert_same((ahead, np.arange(ahead.size)), pairs)
    assert [] == unmatched(join.on_batch([], ENDED), 0), "each of them has matched"


def test_evacuated_rows_keep_what_is_known_of_them() -> None:
    #  far rows: one matches before it is moved, one has no key, one never matches
    join = WindowJoin(plan_of({"k": "int64", "s": "string"}, method="hash", type="left"))
    far = read(join.plan, 0, 0, k=[1, None, 2], s=["matched", "keyless", None], ts=[FAR] * 3)
    list(join.on_batch([far, read(join.plan, 1, 0, k=[1], s=["x"], ts=[FAR])], Marks((0, 0))))
    place = 3
    for step in range(12):
        time = 10_000 * (step + 1)
        rows = read(join.plan, 0, place, k=np.arange(BLOCK) + 100, s=["y" * (step % 7)] * BLOCK, ts=[time] * BLOCK)
        place += BLOCK
        list(join.on_batch([rows], Marks((time, time + 500))))
    assert join.method.stores[0].used_blocks <= 4, "the far rows were moved"
    pairs = list(join.on_batch([read(join.plan, 1, 1, k=[1, 2, 0], s=["a", "b", "c"], ts=[FAR] * 3)], Marks((0, FAR))))
    assert_same((np.array([0, 2]), np.array([1, 2])), found(pairs))
    assert {"matched": 1, None: 2} == {row["a_s"]: row["a_k"] for part in pairs for row in part.rows.to_pylist()}
    assert [1] == unmatched(join.on_batch([], ENDED), 0)


@pytest.mark.parametrize(("window", "rows", "moves"), [("1h", 50_000, 20), ("unbounded", 200_000, 4)])
def test_dead_rows_of_groups_that_left_do_not_pile_up(window: str, rows: int, moves: int) -> None:
    join = WindowJoin(plan(window))
    state = Checkpoints(join)
    take(join, 0, np.arange(rows), np.arange(rows), (0, 0))
    groups = [GroupId(group) for group in range(join.plan.partitions)]
    held = join.bytes_held()
    for move in range(moves):
        increments = state.take(groups, RecordNo(move))
        for group in groups:
            state.release(group)
        for increment in increments:
            state.restore([increment])
        assert [] == list(join.on_batch([], Marks((0, 0))))
    assert rows == found(take(join, 1, np.arange(rows), np.arange(rows), (0, 0)))[0].size
    assert join.method.stores[0].bytes_held() <= 5 * held


def test_blocks_of_groups_that_left_are_given_back() -> None:
    #  a worker above its memory gives groups away; it must then be below
    join = WindowJoin(plan("unbounded"))
    keys = np.arange(50 * BLOCK)
    take(join, 0, keys, keys, (0, 0))
    state = Checkpoints(join)
    for group in range(join.plan.partitions - 3):
        state.release(GroupId(group))
    for _ in range(10):
        assert [] == list(join.on_batch([], Marks((0, 0))))
    assert join.method.stores[0].used_blocks <= 12


def test_a_stream_that_ended_leaves_at_most_an_open_block() -> None:
    join = WindowJoin(plan("unbounded"))
    take(join, 0, np.arange(5 * BLOCK + 7), np.zeros(5 * BLOCK + 7, np.int64), (0, 0))
    assert [] == list(join.on_batch([], ENDED))
    assert 1 == join.method.stores[0].used_blocks


@pytest.mark.parametrize("first", [2**32 - 5000, 2**33 - BLOCK])
def test_positions_may_pass_the_32_bits_that_the_index_keeps(first: int) -> None:
    join = WindowJoin(plan("2000ns"))
    method = join.method
    start = first // BLOCK * BLOCK
    method._tail, method._head = [start, start], [start, start]  # type: ignore[attr-defined]
    rng, parts, every = np.random.default_rng(5), [], []
    for step in range(8):
        keys, times = rng.integers(0, 500, (2, 2500)), 1000 * step + rng.integers(0, 1000, (2, 2500))
        for stream in (0, 1):
            parts += take(join, stream, keys[stream], times[stream], (1000 * step, 1000 * step), 2500 * step)
        every.append((keys, times))
    keys, times = (np.concatenate(column, axis=1) for column in zip(*every, strict=True))
    assert_same(wanted((keys[0], keys[1]), (times[0], times[1]), (2000, 2000)), found(parts))


@pytest.mark.parametrize("size", [50_000, 200_000])
def test_rows_of_the_far_future_do_not_pile_up_whatever_the_size_of_batches(size: int) -> None:
    join = WindowJoin(plan())
    for step in range(6):
        times = np.full(size, 1000 * step)
        times[::2048] = FAR
        take(join, 0, np.arange(size), times, (1000 * step, 1000 * step + 900), size * step)
    assert join.method.stores[0].used_blocks <= 2 * size // BLOCK + 4


def test_a_head_from_four_billion_rows_ago_is_not_taken_for_a_new_one() -> None:
    #  key 0 was last seen at position 0; a row without a key, whose word is 0, now stands at position 2^32
    join = WindowJoin(plan(type="left"))
    take(join, 0, np.zeros(1, np.int64), np.zeros(1, np.int64), (0, 0))
    method = join.method
    method._tail[0] = method._head[0] = 1 << 32
    joined_parts = list(join.on_batch([read(join.plan, 0, 1, k=[None], ts=[1])], Marks((0, 0))))
    joined_parts += take(join, 1, np.zeros(1, np.int64), np.zeros(1, np.int64), (0, 0))
    assert 0 == found(joined_parts)[0].size
