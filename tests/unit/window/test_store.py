"""The store gives back what it was given, whatever the types, wherever blocks were freed and used again."""

import itertools
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joinery.join.plan import JoinPlan
from joinery.model.time import DEAD
from joinery.model.tuples import Order, TupleBatch
from joinery.window.layout import Home, RowLayout
from joinery.window.store import KEYLESS, MATCHED, PLACE, TIME, WORD, RowStore
from tests.support.queries import plan_of, read

QUICK = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
GROUPS = 60
EVERY = np.ones(GROUPS, np.bool_)

NAIVE = datetime(1970, 1, 1)
AWARE = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS = st.integers(-(10**9), 10**9).map(lambda count: timedelta(seconds=count))


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    top = 10**precision - 1
    return st.integers(-top, top).map(lambda value: Decimal(f"{value}e-{scale}"))


TEXTS = st.one_of(st.text(max_size=6), st.integers(0, 700).map("x".__mul__), st.integers(0, 40).map("ä€".__mul__))
BYTES = st.one_of(st.binary(max_size=6), st.integers(0, 700).map(b"\x00\xff".__mul__))
TYPES: dict[str, st.SearchStrategy[object]] = {
    **{f"int{bits}": st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": st.integers(0, 2**bits - 1) for bits in (8, 16, 32, 64)},
    "float32": st.floats(width=32, allow_nan=False),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "date": st.dates(date(1, 1, 1), date(9999, 12, 31)),
    **dict.fromkeys(("timestamp(s)", "timestamp(us)"), SECONDS.map(lambda apart: NAIVE + apart)),
    "timestamp(ms, UTC)": SECONDS.map(lambda apart: AWARE + apart),
    "decimal(38,10)": decimals(38, 10),
    "decimal(5,2)": decimals(5, 2),
    "string": TEXTS,
    "binary": BYTES,
    **{f"binary({width})": st.binary(min_size=width, max_size=width) for width in (1, 3, 8, 12, 16, 33, 64)},
}  # fmt: skip
KEYS = (
    "int8",
    "int64",
    "uint64",
    "uint32",
    "bool",
    "date",
    "timestamp(s)",
    "timestamp(ms, UTC)",
    "string",
    "decimal(5,2)",
)


@st.composite
def plans(draw: st.DrawFn) -> JoinPlan:
    """A query over any key type and up to six payload columns of any types."""
    payload = draw(st.lists(st.sampled_from(sorted(TYPES)), max_size=6))
    schema = {"k": draw(st.sampled_from(KEYS))} | {f"p{number}": kind for number, kind in enumerate(payload)}
    if draw(st.booleans()):
        return plan_of(schema, unit=draw(st.sampled_from(("ns", "us", "s"))))
    return plan_of({"ts": "timestamp(us)", **schema}, unit=None)


@st.composite
def batches(draw: st.DrawFn, plan: JoinPlan, first_place: int) -> TupleBatch:
    """Some rows of stream a, perhaps cut out of a longer batch; a column has nulls in some batches only."""
    size, skip, more = draw(st.integers(1, 9)), draw(st.integers(0, 3)), draw(st.integers(0, 2))
    columns = {}
    for column in plan.formats[0].schema:
        if column.name == "ts":
            values = draw(st.lists(st.integers(-1000, 1000), min_size=skip + size + more, max_size=skip + size + more))
            columns["ts"] = pa.array(values, pa.int64()).cast(column.type)
            continue
        some = TYPES[_name(column.type)]
        one = st.one_of(st.none(), some) if draw(st.booleans()) else some
        values = draw(st.lists(one, min_size=skip + size + more, max_size=skip + size + more))
        columns[column.name] = pa.array(values, column.type)
    rows = {name: column.slice(skip, size) for name, column in columns.items()}
    return read(plan, 0, first_place, **rows)


_NAMES = {str(plan_of({"k": "int64", "p": name}).formats[0].schema.field("p").type): name for name in TYPES}


def _name(kind: pa.DataType) -> str:
    return _NAMES[str(kind)]


@dataclass
class Twin:
    """A store, and beside it what it should hold: for every row number a batch of one row, its group and its flags."""

    store: RowStore
    rows: dict[int, tuple[TupleBatch, int, int]] = field(default_factory=dict)
    blocks: list[int] = field(default_factory=list)

    def add(self, batch: TupleBatch, rng: np.random.Generator) -> None:
        """Write the batch into new blocks, in any order of its rows."""
        size = self.store.block_rows
        new = [self.store.take_block() for _ in range(-(-len(batch) // size))]
        self.blocks += new
        to = np.concatenate([np.arange(block * size, (block + 1) * size) for block in new])[: len(batch)]
        source = rng.permutation(len(batch))
        groups = rng.integers(0, GROUPS, len(batch)).astype(np.uint16)
        flags = np.where(rng.integers(0, 2, len(batch)), MATCHED, 0).astype(np.uint8)
        if batch.keyed is not None:
            flags[~batch.keyed] |= KEYLESS
        self.store.write(to, batch, source, groups, flags)
        for row, at in zip(to.tolist(), source.tolist(), strict=True):
            self.rows[row] = (batch.take(np.array([at])), int(groups[at]), int(flags[at]))

    def free(self, block: int) -> None:
        self.blocks.remove(block)
        self.store.free_block(block)
        size = self.store.block_rows
        self.rows = {row: held for row, held in self.rows.items() if row // size != block}

    def check(self, order: list[int]) -> None:
        """Read all rows, in this order, and compare everything."""
        batch, groups, flags = self.store.read(np.array(order, np.int64))
        batch.rows.validate(full=True)
        held = [self.rows[row] for row in order]
        wanted = pa.Table.from_batches([one.rows for one, _, _ in held], schema=self.store.layout.schema)
        assert wanted.equals(pa.Table.from_batches([batch.rows]))
        assert [one.times[0] for one, _, _ in held] == batch.times.tolist()
        assert [one.words[0] for one, _, _ in held] == batch.words.tolist()
        assert [one.places[0] for one, _, _ in held] == batch.places.tolist()
        keyed = np.ones(len(order), np.bool_) if batch.keyed is None else batch.keyed
        assert [one.keyed is None or bool(one.keyed[0]) for one, _, _ in held] == keyed.tolist()
        assert [one.hashes[0] for one, _, _ in held if one.keyed is None or one.keyed[0]] == batch.hashes[
            keyed
        ].tolist()
        assert [group for _, group, _ in held] == groups.tolist()
        assert [flag for _, _, flag in held] == flags.tolist()


@QUICK
@given(data=st.data(), block_rows=st.sampled_from((1, 4, 64)), seed=st.integers(0, 2**16))
def test_what_was_written_is_read_back(data: st.DataObject, block_rows: int, seed: int) -> None:
    plan, rng = data.draw(plans()), np.random.default_rng(seed)
    twin = Twin(RowStore(RowLayout.of(plan.formats[0]), block_rows))
    place = 0
    for _ in range(data.draw(st.integers(1, 4))):
        batch = data.draw(batches(plan, place))
        place += len(batch)
        twin.add(batch, rng)
        twin.check(rng.permutation(list(twin.rows)).tolist())
        for block in [block for block in list(twin.blocks) if rng.random() < 0.4]:
            twin.free(block)
        if twin.rows:
            twin.check(sorted(twin.rows, reverse=True))
            twin.check([next(iter(twin.rows))] * 3)


def store_of(schema: dict[str, str], block_rows: int = 4) -> tuple[JoinPlan, RowStore]:
    plan = plan_of(schema)
    return plan, RowStore(RowLayout.of(plan.formats[0]), block_rows)


def fill(
    plan: JoinPlan, store: RowStore, times: list[int], groups: list[int] | None = None, flags: list[int] | None = None,
    first_place: int = 0, **columns: object,
) -> np.ndarray:  # fmt: skip
    """Write rows with these times into new blocks; their numbers."""
    batch = read(plan, 0, first_place, **(columns or {"k": list(range(len(times)))}), ts=times)
    blocks = [store.take_block() for _ in range(-(-len(times) // store.block_rows))]
    to = np.concatenate([np.arange(block * store.block_rows, (block + 1) * store.block_rows) for block in blocks])
    to = to[: len(times)].astype(np.int64)
    which = np.array(groups or [0] * len(times), np.uint16)
    store.write(to, batch, np.arange(len(times)), which, np.array(flags or [0] * len(times), np.uint8))
    return to


def times_of(store: RowStore, rows: np.ndarray) -> list[int]:
    return store.lane(rows, TIME).tolist()


def only(*groups: int) -> np.ndarray:
    wanted = np.zeros(GROUPS, np.bool_)
    wanted[list(groups)] = True
    return wanted


def test_texts_far_longer_than_a_chunk_lie_in_many_and_come_back() -> None:
    plan, store = store_of({"k": "int64", "s": "string", "b": "binary"}, 2)
    texts = ["x" * 100_000, "", "ä" * 511, "y" * 512, None, "z" * 513]
    data = [b"\0" * 3, None, b"", b"\xff" * 70_000, b"1" * 512, b"2"]
    at = fill(plan, store, [1] * 6, k=[1] * 6, s=texts, b=data)
    found = store.read(at)[0].rows
    assert texts == found.column("s").to_pylist()
    assert data == found.column("b").to_pylist()
    assert texts[::-1] == store.column(store.layout.index("s"), at[::-1].copy()).to_pylist()


def test_a_null_that_comes_late_makes_no_earlier_value_null() -> None:
    plan, store = store_of({"k": "int64", "v": "int32", "s": "string"})
    early = fill(plan, store, [1, 2], k=[1, 2], v=[1, 2], s=["a", "b"])
    late = fill(plan, store, [3, 4], k=[None, 4], v=[3, None], s=[None, "d"])
    after = fill(plan, store, [5, 6], k=[5, 6], v=[5, 6], s=["e", "f"])
    found = store.read(np.concatenate((early, late, after)))[0].rows
    assert [1, 2, None, 4, 5, 6] == found.column("k").to_pylist()
    assert [1, 2, 3, None, 5, 6] == found.column("v").to_pylist()
    assert ["a", "b", None, "d", "e", "f"] == found.column("s").to_pylist()


def test_a_null_does_not_stay_in_a_block_that_is_used_again() -> None:
    plan, store = store_of({"k": "int64", "v": "int32", "s": "string"}, 2)
    at = fill(plan, store, [1, 2], k=[1, 2], v=[None, None], s=[None, None])
    store.free_block(int(at[0]) // 2)
    again = fill(plan, store, [3, 4], k=[3, 4], v=[3, 4], s=["c", "d"])
    assert at.tolist() == again.tolist()
    assert [{"k": 3, "s": "c", "ts": 3, "v": 3}, {"k": 4, "s": "d", "ts": 4, "v": 4}] == store.read(again)[
        0
    ].rows.to_pylist()


@pytest.mark.parametrize("kind", ["int64", "uint64", "bool", "date", "timestamp(s)"])
def test_a_row_without_a_key_keeps_the_hash_that_it_came_with(kind: str) -> None:
    plan, store = store_of({"k": kind})
    at = fill(plan, store, [1], flags=[KEYLESS], k=[None])
    assert [0] == store.read(at)[0].hashes.tolist()


def test_memory_stays_when_blocks_come_and_go() -> None:
    plan, store = store_of({"k": "int64", "s": "string", "f": "binary(5)"}, 8)
    held, kept = [], np.empty(0, np.int64)
    for step in range(60):
        new = fill(plan, store, [step] * 16, k=[step] * 16, s=["x" * 300] * 16, f=[b"12345"] * 16)
        for block in np.unique(kept // 8).tolist():
            store.free_block(block)
        kept = new
        held.append(store.bytes_held())
    assert held[5] == held[-1]
    assert 2 == store.used_blocks


def test_free_blocks_are_used_again_first() -> None:
    _, store = store_of({"k": "int64"})
    blocks = [store.take_block() for _ in range(10)]
    for block in blocks[3:6]:
        store.free_block(block)
    assert set(blocks[3:6]) == {store.take_block() for _ in range(3)}
    assert 10 == store.used_blocks == store.touched_blocks


def test_rows_before_are_the_living_ones_of_the_groups_below_the_bound() -> None:
    plan, store = store_of({"k": "int64"}, 4)
    at = fill(plan, store, [10, 20, 30, 20, 5, 40], groups=[0, 0, 1, 1, 2, 2])
    assert [10, 20] == times_of(store, store.rows_before(21, only(0)))
    assert [20] == times_of(store, store.rows_before(30, only(1))), "below, not at"
    store.kill(at[[4]])
    assert [40] == times_of(store, store.rows_before(100, only(2)))


def test_rows_before_asks_again_only_for_what_is_left() -> None:
    plan, store = store_of({"k": "int64"}, 4)
    fill(plan, store, [10, 20, 30, 40])
    first = store.rows_before(21, EVERY)
    store.kill(first)
    assert [10, 20] == [10, 20][: first.size]
    assert [] == store.rows_before(30, EVERY).tolist()
    fill(plan, store, [1, 2])
    assert [1, 2] == times_of(store, store.rows_before(5, EVERY))
    assert [30] == times_of(store, store.rows_before(40, EVERY))


def test_rows_of_a_group_that_was_passed_over_are_found_later() -> None:
    plan, store = store_of({"k": "int64"}, 4)
    fill(plan, store, [10, 11, 12, 13], groups=[0, 1, 0, 1])
    store.kill(store.rows_before(100, only(0)))
    assert [11, 13] == times_of(store, store.rows_before(100, only(1)))


def test_rows_before_with_a_flag_die_untold() -> None:
    plan, store = store_of({"k": "int64"}, 4)
    at = fill(plan, store, [1, 2, 3, 9], flags=[MATCHED, 0, MATCHED | KEYLESS, MATCHED])
    assert [2] == times_of(store, store.rows_before(5, EVERY, MATCHED))
    assert [DEAD, 2, DEAD, 9] == times_of(store, at)


def test_rows_of_groups_are_those_above_their_serial_number() -> None:
    plan, store = store_of({"k": "int64"}, 2)
    at = fill(plan, store, [1] * 6, groups=[0, 1, 0, 1, 0, 1], first_place=10)
    after = np.full(GROUPS, -1)
    assert [10, 12, 14] == store.lane(store.rows_of(only(0), after), PLACE).tolist()
    after[1] = 12
    assert [13, 15] == store.lane(store.rows_of(only(1), after), PLACE).tolist()
    store.kill(at[[3]])
    assert [10, 12, 14, 15] == store.lane(store.rows_of(only(0, 1), after), PLACE).tolist()
    assert [] == store.rows_of(only(), after).tolist()


def test_a_row_is_newly_matched_once() -> None:
    plan, store = store_of({"k": "int64"}, 4)
    at = fill(plan, store, [1, 2, 3], flags=[0, MATCHED, KEYLESS])
    assert [0, 2] == store.mark_matched(at[[0, 0, 2, 1, 2]]).tolist()
    assert [] == store.mark_matched(at).tolist()
    assert [MATCHED, MATCHED, MATCHED | KEYLESS] == store.read(at)[2].tolist()


def test_a_count_is_the_clock_of_a_count_window() -> None:
    plan = plan_of({"k": "int64"}, windows=({"count": 3}, "100ns"))
    store = RowStore(RowLayout.of(plan.formats[0]), 4, order_lanes=3, clock_lane=1)
    batch = read(plan, 0, k=[1, 2, 3], ts=[5, 6, 7])
    counts = np.array([[1, 0], [2, 1], [3, 1]])
    batch = replace(batch, order=Order(np.array([0, 2, 3]), counts))
    at = np.arange(3) + 4 * store.take_block()
    store.write(at, batch, np.arange(3), np.zeros(3, np.uint16), np.zeros(3, np.uint8))
    assert [1, 2, 3] == store.clocks(at).tolist()
    assert [1, 2] == [int(count) for count in store.clocks(store.rows_before(3, EVERY))]
    found = store.read(at[::-1].copy())[0]
    assert found.order is not None
    assert ([3, 2, 0], counts[::-1].tolist()) == (found.order.ranks.tolist(), found.order.counts.tolist())
    store.kill(at[:1])
    assert [DEAD, 2, 3] == store.clocks(at).tolist()


def test_nothing_is_kept_twice() -> None:
    layout = RowLayout.of(plan_of({"k": "int32", "v": "int16", "s": "string"}).formats[0])
    homes = {column.name: column.home for column in layout.fields}
    assert {"k": Home.WORD, "s": Home.HEAP, "ts": Home.TIME, "v": Home.PACKED} == homes
    assert 24 == layout.stride
    assert 3 == RowLayout.of(plan_of({"k": "int32", "v": "int16", "b": "bool"}).formats[0]).stride
    assert 0 == RowLayout.of(plan_of({"k": "int32"}).formats[0]).stride


@QUICK
@given(kinds=st.lists(st.sampled_from(sorted(TYPES)), max_size=12))
def test_packed_columns_never_overlap_and_wide_ones_are_aligned(kinds: list[str]) -> None:
    layout = RowLayout.of(plan_of({"k": "string"} | {f"p{at}": kind for at, kind in enumerate(kinds)}).formats[0])
    kept = sorted((one.offset, one.width) for one in layout.fields if one.home in (Home.PACKED, Home.HEAP))
    assert all(before[0] + before[1] <= after[0] for before, after in itertools.pairwise(kept))
    assert kept[-1][0] + kept[-1][1] <= layout.stride
    assert all(offset % 8 == 0 for offset, width in kept if width % 8 == 0)
    assert layout.stride % 8 == 0


def test_words_times_and_places_are_read_by_lane() -> None:
    plan, store = store_of({"k": "int64"}, 4)
    at = fill(plan, store, [7, 8], k=[70, 80], first_place=3)
    assert ([70, 80], [7, 8], [3, 4]) == tuple(store.lane(at, lane).tolist() for lane in (WORD, TIME, PLACE))
