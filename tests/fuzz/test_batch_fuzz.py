"""Bad batches: each is refused whole with one clear `BadBatch`, or gives the documented result; nothing else is raised.

What is accepted: columns in any order, in any Arrow type that holds the same values as the stream's type (a narrower
integer, a dictionary, a view, a large text, nulls). What loses a bit or changes its meaning is refused.
"""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joinery.flow import ingest
from joinery.join import results
from joinery.join.logic import WindowJoin
from joinery.join.plan import JoinPlan
from joinery.model.errors import BadBatch
from joinery.model.time import TIME_MAX, TIME_MIN
from joinery.model.tuples import TupleBatch
from joinery.window.sliding import Marks
from joinery.window.store import RowStore
from tests.support.queries import joined, plan_of

METHODS = ("hash", "nested-loop")
PLAN = plan_of({"k": "int64", "s": "string", "x": "float64"})
GOOD = {
    "k": pa.array([1, 2, None]), "s": pa.array(["a", None, "c"]), "x": pa.array([0.5, None, float("nan")]),
    "ts": pa.array([10, 20, 30]),
}  # fmt: skip


def read(plan: JoinPlan = PLAN, stream: int = 0, **columns: pa.Array) -> TupleBatch:
    return ingest.read(plan.formats[stream], pa.RecordBatch.from_pydict(columns), first_place=0)


def attempt(batch: pa.RecordBatch, plan: JoinPlan = PLAN) -> TupleBatch | BadBatch:
    """What stream a makes of a batch; a refusal must be clear, and any other error is one of ours."""
    try:
        return ingest.read(plan.formats[0], batch, first_place=0)
    except BadBatch as refusal:
        error = refusal
    assert "a" == error.stream
    assert all((error.found, error.wanted, error.remedy))
    assert "\n" not in str(error), "one line, fit for a status condition"
    return error


def refused(batch: pa.RecordBatch, plan: JoinPlan = PLAN) -> BadBatch:
    error = attempt(batch, plan)
    assert isinstance(error, BadBatch), "it was taken"
    return error


# --- columns


def test_a_good_batch_is_taken_and_its_columns_are_ordered_by_name() -> None:
    batch = read(**{name: GOOD[name] for name in ("ts", "x", "k", "s")})
    assert ["k", "s", "ts", "x"] == batch.rows.schema.names
    assert [10, 20, 30] == batch.times.tolist()
    assert batch.keyed is not None
    assert [True, True, False] == batch.keyed.tolist()
    assert [0, 1, 2] == batch.places.tolist()


@pytest.mark.parametrize("name", sorted(GOOD))
def test_a_missing_column_is_named(name: str) -> None:
    error = refused(pa.RecordBatch.from_pydict({one: column for one, column in GOOD.items() if one != name}))
    assert f"lacks ['{name}']" in error.found


@pytest.mark.parametrize("name", ["y", "K", "", " k", "k\n", "ключ"])
def test_an_unknown_column_is_named(name: str) -> None:
    error = refused(pa.RecordBatch.from_pydict({**GOOD, name: GOOD["k"]}))
    assert f"unknown [{name!r}]" in error.found


def test_a_misspelt_column_is_both_missing_and_unknown() -> None:
    error = refused(pa.RecordBatch.from_arrays(list(GOOD.values()), ["key", "s", "x", "ts"]))
    assert "lacks ['k']" in error.found
    assert "unknown ['key']" in error.found


@pytest.mark.parametrize("names", [["k", "s", "x", "ts", "k"], ["k", "k", "s", "x", "ts"], ["k"] * 5])
def test_a_column_that_comes_twice_is_refused(names: list[str]) -> None:
    columns = [GOOD["k"] if name == "k" else GOOD[name] for name in names]
    assert "every column once" == refused(pa.RecordBatch.from_arrays(columns, names)).wanted


def test_a_batch_without_columns_is_refused() -> None:
    refused(pa.RecordBatch.from_arrays([], schema=pa.schema([])))
    refused(pa.RecordBatch.from_pydict({name: column.slice(0, 0) for name, column in GOOD.items() if name != "x"}))


def test_a_batch_of_too_many_rows_is_refused_before_it_is_looked_at() -> None:
    many = pa.nulls(ingest.MAX_ROWS + 1)
    assert str(ingest.MAX_ROWS + 1) in refused(pa.RecordBatch.from_pydict(dict.fromkeys(GOOD, many))).found


# --- types

VALUES = {
    "int64": pa.array([5, 2, None]),
    "int8": pa.array([5, -2, None], pa.int8()),
    "uint64": pa.array([5, 2**64 - 1, None], pa.uint64()),
    "float16": pa.array(np.array([1.5, 2, 3], np.float16)),
    "float32": pa.array([1.5, 2, None], pa.float32()),
    "float64": pa.array([1.1, 1e300, None]),
    "nan": pa.array([float("nan"), float("inf"), None]),
    "whole floats": pa.array([1.0, 2.0, None]),
    "string": pa.array(["12", "", None]),
    "digits": pa.array(["1", "2", None]),
    "large_string": pa.array(["a", "ä", None], pa.large_string()),
    "string_view": pa.array(["a", "far longer than twelve bytes", None], pa.string_view()),
    "binary": pa.array([b"\xff", b"ab", None]),
    "large_binary": pa.array([b"abcd", b"\xff\xff\xff\xff", None], pa.large_binary()),
    "binary_view": pa.array([b"abcd", b"far longer than twelve bytes", None], pa.binary_view()),
    "binary(4)": pa.array([b"abcd", b"\xff\xff\xff\xff", None], pa.binary(4)),
    "bool": pa.array([True, False, None]),
    "null": pa.nulls(3),
    "date": pa.array([date(2024, 2, 29), date(1, 1, 1), None]),
    "date64": pa.array([date(2024, 2, 29), date(1970, 1, 1), None], pa.date64()),
    "timestamp(ns)": pa.array([1, 1_000_001, None], pa.timestamp("ns")),
    "timestamp(us)": pa.array([86_400_000_005, 1, None], pa.timestamp("us")),
    "whole seconds": pa.array([5_000_000_000, 0, None], pa.timestamp("ns")),
    "timestamp(us, UTC)": pa.array([1, 2, None], pa.timestamp("us", "UTC")),
    "timestamp(us, Berlin)": pa.array([1, 2, None], pa.timestamp("us", "Europe/Berlin")),
    "timestamp(us, nowhere)": pa.array([1, 2, None], pa.timestamp("us", "Mars/Phobos")),
    "timestamp(s), far": pa.array([2**60, 1, None], pa.timestamp("s")),
    "time32": pa.array([1, 2, None], pa.time32("s")),
    "time64": pa.array([1, 2, None], pa.time64("us")),
    "duration": pa.array([1, 2, None], pa.duration("us")),
    "interval": pa.array([(1, 2, 3), (0, 0, 0), None], pa.month_day_nano_interval()),
    "decimal(10,3)": pa.array([Decimal("1.234"), Decimal("2.000"), None], pa.decimal128(10, 3)),
    "decimal(5,1)": pa.array([Decimal("1.2"), Decimal("-9999.9"), None], pa.decimal128(5, 1)),
    "decimal256": pa.array([Decimal("1.2"), Decimal("9" * 60), None], pa.decimal256(70, 1)),
    "list": pa.array([[1], [], None]),
    "struct": pa.array([{"a": 1}, {}, None]),
    "map": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
    "union": pa.UnionArray.from_sparse(
        pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])]
    ),
    "dictionary of texts": pa.array(["a", "b", None]).dictionary_encode(),
    "dictionary of integers": pa.array([7, 8, None]).dictionary_encode(),
    "dictionary with a null": pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", None])),
    "categories of polars": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None], pa.uint32()), pa.array(["a", "b"], pa.string_view())
    ),
    "run ends": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3]), pa.array([1, 2])),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16] * 3, pa.binary(16))),
}
TYPES = (
    "int8", "int32", "int64", "uint8", "uint64", "float32", "float64", "string", "binary", "binary(4)", "bool", "date",
    "timestamp(s)", "timestamp(us)", "timestamp(ns)", "timestamp(us, UTC)", "decimal(10,2)", "decimal(38,10)",
)  # fmt: skip
PLANS = {kind: plan_of({"k": "int64", "p": kind}) for kind in TYPES}


def lost(was: pa.Array, now: pa.Array) -> bool:
    """Whether values were lost: cast back, they are not what they were (if there is a way back)."""
    stored = was.storage if isinstance(was.type, pa.ExtensionType) else was
    kind = (
        stored.type.value_type
        if pa.types.is_dictionary(stored.type) or pa.types.is_run_end_encoded(stored.type)
        else stored.type
    )
    if pa.types.is_string(kind) and not (pa.types.is_string(now.type) or pa.types.is_binary(now.type)):
        return False  # a number has many texts
    try:
        back, before = now.cast(kind), stored if kind == stored.type else stored.cast(kind)
    except pa.ArrowNotImplementedError:
        return False
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return True
    nan_safe = (
        [one.cast(pa.float64()).fill_null(-1.5).to_numpy(zero_copy_only=False) for one in (back, before)]
        if (pa.types.is_floating(kind))
        else None
    )
    return not (np.array_equal(*nan_safe, equal_nan=True) if nan_safe else back.equals(before))


@pytest.mark.parametrize("source", VALUES)
@pytest.mark.parametrize("target", TYPES)
def test_a_column_of_another_type_keeps_its_values_or_is_refused(target: str, source: str) -> None:
    batch = pa.RecordBatch.from_pydict({"k": pa.array([1, 2, 3]), "p": VALUES[source], "ts": pa.array([1, 2, 3])})
    taken = attempt(batch, PLANS[target])
    if isinstance(taken, BadBatch):
        assert "column p" in taken.found
        return
    column = taken.rows.column("p")
    column.validate(full=True)
    assert not lost(VALUES[source], column), f"{VALUES[source].type} became {column}"


def test_what_the_documentation_promises_is_taken() -> None:
    for target, source in [("int64", "int8"), ("string", "dictionary of texts"), ("string", "large_string"),
                           ("string", "string_view"), ("string", "categories of polars"), ("binary", "large_binary"),
                           ("float64", "float32"),
                           ("timestamp(ns)", "timestamp(us)"), ("timestamp(s)", "whole seconds"),
                           ("decimal(38,10)", "decimal(5,1)"), ("int32", "null"), ("string", "null")]:  # fmt: skip
        batch = pa.RecordBatch.from_pydict({"k": pa.array([1, 2, 3]), "p": VALUES[source], "ts": pa.array([1, 2, 3])})
        assert 3 == len(ingest.read(PLANS[target].formats[0], batch, first_place=0))


@pytest.mark.parametrize(
    ("target", "source"),
    [
        ("timestamp(us)", "timestamp(us, UTC)"),
        ("timestamp(us)", "timestamp(us, Berlin)"),
        ("timestamp(us, UTC)", "timestamp(us)"),
    ],
)
def test_an_instant_is_no_time_on_a_wall_nor_the_other_way_round(target: str, source: str) -> None:
    refused(
        pa.RecordBatch.from_pydict({"k": pa.array([1, 2, 3]), "p": VALUES[source], "ts": pa.array([1, 2, 3])}),
        PLANS[target],
    )


# --- times


@pytest.mark.parametrize(
    "times",
    [pa.array([1, None, 3]), pa.nulls(3), pa.nulls(3, pa.int64()), pa.array([1, 2, None], pa.int32())],
    ids=["one", "untyped", "all", "narrow"],
)
def test_a_null_time_is_refused(times: pa.Array) -> None:
    assert "null" in refused(pa.RecordBatch.from_pydict({**GOOD, "ts": times})).found


@pytest.mark.parametrize("time", [TIME_MIN, TIME_MIN - 1, -(2**63), TIME_MAX, TIME_MAX + 1, 2**63 - 1])
def test_a_time_out_of_range_is_refused_and_named(time: int) -> None:
    assert str(time) in refused(pa.RecordBatch.from_pydict({**GOOD, "ts": pa.array([1, time, 3])})).found


@pytest.mark.parametrize("time", [TIME_MIN + 1, TIME_MAX - 1])
def test_the_first_and_last_times_are_taken(time: int) -> None:
    assert [time] * 3 == read(**{**GOOD, "ts": pa.array([time] * 3)}).times.tolist()


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("time", [-(2**63), 2**63 - 1, 2**62, -(2**62), 2**55, -(2**55)])
def test_a_time_whose_nanoseconds_overflow_is_refused(unit: str, time: int) -> None:
    stamped = plan_of({"ts": f"timestamp({unit})", "k": "int64"}, unit=None)
    for plan, kind in ((plan_of({"k": "int64"}, unit=unit), pa.int64()), (stamped, pa.timestamp(unit))):
        batch = pa.RecordBatch.from_pydict({"k": pa.array([1]), "ts": pa.array([time], kind)})
        if abs(time) * {"s": 10**9, "ms": 10**6, "us": 1000}[unit] >= TIME_MAX:
            refused(batch, plan)
        else:
            assert 1 == len(ingest.read(plan.formats[0], batch, first_place=0))


@pytest.mark.parametrize("times", [pa.array([1.5, 2, 3]), pa.array([float("nan"), 2, 3]), pa.array(["x", "y", "z"])])
def test_a_time_that_is_no_whole_number_is_refused(times: pa.Array) -> None:
    refused(pa.RecordBatch.from_pydict({**GOOD, "ts": times}))


@pytest.mark.parametrize("kind", ["uint64", "uint32", "int8"])
def test_a_time_column_may_be_any_integer(kind: str) -> None:
    plan = plan_of({"ts": kind, "k": "int64"})
    column = plan.formats[0].schema.field("ts").type
    assert [7] == read(plan, k=pa.array([1]), ts=pa.array([7], column)).times.tolist()
    if kind == "uint64":
        refused(pa.RecordBatch.from_pydict({"k": pa.array([1]), "ts": pa.array([2**64 - 1], column)}), plan)


def test_a_timestamp_does_not_pass_as_a_number_of_another_unit() -> None:
    #  the stream says int64 in microseconds; milliseconds read as microseconds would be a day in 1970
    plan = plan_of({"k": "int64"}, unit="us")
    refused(
        pa.RecordBatch.from_pydict({"k": pa.array([1]), "ts": pa.array([1_700_000_000_000], pa.timestamp("ms"))}), plan
    )


# --- sizes and shapes


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["int64", "string", "binary(4)", "bool", "date", "timestamp(us)", "decimal(10,2)"])
def test_an_empty_batch_is_taken_and_changes_nothing(method: str, kind: str) -> None:
    plan = plan_of({"k": kind}, method=method)
    schema = plan.formats[0].schema
    batch = ingest.read(plan.formats[0], pa.RecordBatch.from_pylist([], schema=schema), first_place=5)
    assert 0 == len(batch)
    assert [] == joined(WindowJoin(plan), batch, replace(batch, stream=1), marks=(1, 1))


@pytest.mark.parametrize("method", METHODS)
def test_a_slice_is_read_where_it_begins(method: str) -> None:
    plan = plan_of({"k": "string", "p": "bool", "x": "binary(3)"}, method=method)
    whole = pa.RecordBatch.from_pydict({
        "k": pa.array(["no", None, "yes", "also", "no"]), "p": pa.array([True, False, None, True, False]),
        "x": pa.array([b"000", b"111", b"222", None, b"444"], pa.binary(3)), "ts": pa.array([-1, -1, 5, 6, -1]),
    })  # fmt: skip
    batch = ingest.read(plan.formats[0], whole.slice(2, 2), first_place=0)
    join = WindowJoin(plan)
    assert [(0, 0), (1, 1)] == joined(join, batch, replace(batch, stream=1), marks=(0, 0))
    assert [5, 6] == batch.times.tolist()
    store = join.method.stores[0]
    kept = store.read(store.rows_of(np.ones(60, np.bool_), np.full(60, -1)))[0]
    wanted = whole.slice(2, 2).select(batch.rows.schema.names).to_pylist()
    assert wanted == kept.take(np.argsort(kept.places)).rows.to_pylist()


@pytest.mark.parametrize("method", METHODS)
def test_huge_texts_are_taken(method: str) -> None:
    plan = plan_of({"k": "string", "p": "binary"}, method=method)
    text, data = "ä" * 2_000_000, b"\0" * 3_000_001
    columns = {"k": pa.array([text, "x"]), "p": pa.array([data, b""]), "ts": pa.array([1, 1])}
    mine, yours = read(plan, 0, **columns), read(plan, 1, **columns)
    parts = list(WindowJoin(plan).on_batch([mine, yours], Marks((0, 0))))
    rows = [row for part in parts for row in part.rows.to_pylist()]
    wanted = {"x": (b"", b""), text: (data, data)}
    assert wanted == {row["a_k"]: (row["a_p"], row["b_p"]) for row in rows}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("where", [None, "a.s = b.s"], ids=["key", "where"])
def test_a_hot_key_with_long_texts_is_joined_in_parts_that_fit(
    method: str, where: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    #  an Arrow array holds 2 GiB of text; made 1 MiB here, so that 40 x 40 pairs of 4 KiB are too many for one part
    monkeypatch.setattr(results, "_TEXT_LIMIT", 1 << 20)
    gather, gathered = RowStore.column, []

    def noted(*args: object) -> pa.Array:
        gathered.append(gather(*args))  # type: ignore[arg-type]
        return gathered[-1]

    monkeypatch.setattr(RowStore, "column", noted)
    more = {} if where is None else {"where": where}
    plan = plan_of({"k": "string"} if where is None else {"k": "int64", "s": "string"}, method=method, **more)
    texts = pa.array(["x" * 4096] * 40)
    columns = {"k": texts, "ts": pa.array([1] * 40)}
    if where is not None:
        columns |= {"s": texts, "k": pa.array([1] * 40)}
    batches = [read(plan, stream, **columns) for stream in (0, 1)]
    assert 1600 == sum(part.rows.num_rows for part in WindowJoin(plan).on_batch(batches, Marks((0, 0))))
    assert max(column.nbytes for column in gathered) < 1.1 * (1 << 20)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("kind", "edges"),
    [
        ("int64", [-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1]),
        ("uint64", [0, 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]),
        ("int8", [-128, -1, 0, 127]),
        ("timestamp(ns)", [-(2**63), -1, 0, 2**63 - 1]),
    ],
)
def test_keys_at_the_edges_of_their_type_meet_only_themselves(method: str, kind: str, edges: list[int]) -> None:
    plan = plan_of({"k": kind}, method=method)
    keys = pa.array(edges, plan.formats[0].schema.field("k").type)
    join = WindowJoin(plan)
    batches = [read(plan, stream, k=keys, ts=pa.array([0] * len(edges))) for stream in (0, 1)]
    parts = list(join.on_batch(batches, Marks((0, 0))))
    assert [(at, at) for at in range(len(edges))] == sorted(
        pair
        for part in parts
        for pair in zip(part.members[0].tolist(), part.members[1].tolist(), strict=True)  # type: ignore[union-attr]
    )
    for part in parts:
        assert part.rows.column("a_k").equals(part.rows.column("b_k"))
        assert part.rows.column("a_k").equals(keys.take(pa.array(part.members[0])))


# --- what no well-behaved producer sends: buffers that contradict each other


def tampered(batch: pa.RecordBatch, old: bytes, new: bytes) -> pa.RecordBatch:
    """The batch as it would come over the wire from somebody who changed some bytes; readers of IPC do not check."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    raw = sink.getvalue().to_pybytes()
    assert 1 == raw.count(old)
    return next(iter(pa.ipc.open_stream(raw.replace(old, new))))


def offsets(*values: int) -> bytes:
    return np.array(values, np.int32).tobytes()


@pytest.mark.parametrize(
    "bad", [(0, 11, 60), (0, 14, 11), (-3, 11, 14), (0, 60, 14), (0, -5, 14), (12, 11, 14)], ids=str
)
def test_a_text_whose_offsets_lie_is_refused(bad: tuple[int, ...]) -> None:
    plan = plan_of({"k": "int64", "s": "string"})
    good = pa.RecordBatch.from_pydict(
        {"k": pa.array([1, 2]), "s": pa.array(["abcdefghijk", "xyz"]), "ts": pa.array([1, 2])}
    )
    refused(tampered(good, offsets(0, 11, 14), offsets(*bad)), plan)


def test_a_text_that_is_not_utf8_is_refused() -> None:
    good = pa.RecordBatch.from_pydict({**GOOD, "s": pa.array(["abcdefgh", "b", "c"])})
    refused(tampered(good, b"abcdefgh", b"abcd\xff\xfegh"))


def test_a_dictionary_with_an_index_beyond_its_values_is_refused() -> None:
    lying = pa.DictionaryArray.from_arrays(pa.array([0, 1, 99], pa.int32()), pa.array(["a", "b"]), safe=False)
    refused(pa.RecordBatch.from_pydict({**GOOD, "s": lying}))


# --- anything at all

kinds = st.sampled_from(sorted(VALUES))
names = st.sampled_from(["k", "s", "x", "ts", "ts", "k", "z", ""])


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(columns=st.lists(st.tuples(names, kinds), max_size=5), start=st.integers(0, 3), rows=st.integers(0, 3))
def test_any_columns_give_a_batch_or_a_clear_refusal(columns: list[tuple[str, str]], start: int, rows: int) -> None:
    batch = pa.RecordBatch.from_arrays([VALUES[kind] for _, kind in columns], [name for name, _ in columns])
    part = batch.slice(start, rows) if columns else batch
    taken = attempt(part)
    if isinstance(taken, TupleBatch):
        assert part.num_rows == len(taken)
        list(WindowJoin(PLAN).on_batch([taken, replace(taken, stream=1)], Marks((0, 0))))


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(key=kinds, text=kinds, number=kinds, time=kinds)
def test_the_right_names_with_any_types_give_a_batch_or_a_clear_refusal(
    key: str, text: str, number: str, time: str
) -> None:
    columns = {"k": VALUES[key], "s": VALUES[text], "x": VALUES[number], "ts": VALUES[time].slice(0, 2)}
    batch = pa.RecordBatch.from_pydict({name: column.slice(0, 2) for name, column in columns.items()})
    taken = attempt(batch)
    if isinstance(taken, TupleBatch):
        for method in METHODS:
            join = WindowJoin(replace(PLAN, method=method))
            list(join.on_batch([taken, replace(taken, stream=1)], Marks((0, 0))))
