"""Messages of every kind with random contents, the two directions of every conversation, and what must come back."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator

from joinery.adapters.codec import collect, control, exchange, ingest
from joinery.elastic.guarded import Wish
from joinery.elastic.load import ClusterLoad, GroupLoad, LoadReport, Role
from joinery.flow import ingest as reading
from joinery.flow.delays import Delays
from joinery.flow.stamps import NO_ARRIVALS, NO_STEPS, Arrivals, Steps
from joinery.join.plan import JoinPlan
from joinery.join.results import Kind, ResultPart
from joinery.machine import messages as m
from joinery.machine.log import SpecChange
from joinery.machine.totals import Totals
from joinery.model.errors import Complaint
from joinery.model.ids import GroupId, MapVersion, ProducerId, RecordNo, Term, WorkerId
from joinery.model.quantities import UNBOUNDED_WINDOW, CountWindow, Nanoseconds, TimeWindow
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import FieldChange, SpecChanges
from joinery.model.time import DEAD, FOREVER
from joinery.model.tuples import Order, TupleBatch
from joinery.window.sliding import Marks


def plan(key: str = "int64", windows: tuple[object, ...] = ("10s", "5s"), *, arrival: bool = False) -> JoinPlan:
    """A query over streams of a key, a text, a number and a time."""
    time = {} if arrival else {"time": {"column": "ts", "unit": "us"}}
    schema = {"k": key, "ts": "int64", "s": "string", "b": "bool", "x": "float64"}
    streams = [
        {"name": name, "schema": schema, "window": one, **time}
        for name, one in zip("abcd"[: len(windows)], windows, strict=True)
    ]
    return JoinPlan.of(JoinQuerySpec.parse({"streams": streams, "join": {"on": ["k"]}, "partitions": 12}))


PLANS = {
    "integer key": plan(),
    "text key, arrival time": plan("string", arrival=True),
    "decimal key": plan("decimal(10,2)"),
    "date key": plan("date"),
    "count windows": plan("int32", ("10s", {"count": 5}, {"count": 7})),
}


Draw = Callable[[Generator, JoinPlan], Any]


@dataclass(frozen=True)
class Direction:
    """One direction of a conversation, and how to draw a message of it."""

    encode: Callable[[Any, JoinPlan], bytes]
    decode: Callable[[bytes, JoinPlan], Any]
    draw: tuple[Draw, ...]


# --- drawing


def groups(rng: Generator, plan: JoinPlan) -> np.ndarray:
    size = int(rng.integers(0, plan.partitions + 1))
    return np.sort(rng.permutation(plan.partitions)[:size]).astype(np.int64)


def records(rng: Generator, size: int) -> np.ndarray:
    return rng.integers(-1, rng.choice([2, 1000, 2**62]), size)


def term(rng: Generator) -> Term:
    return Term(int(rng.integers(0, 2**40)))


def name(rng: Generator) -> str:
    return str(rng.choice(["worker-0", "worker-17", "ä", "x" * 200, "line\nline"]))


def marks(rng: Generator, plan: JoinPlan) -> Marks:
    watermarks = tuple(int(rng.choice([DEAD, FOREVER, -1, 0, 10**18])) for _ in plan.formats)
    return Marks(watermarks, tuple(rng.integers(0, 2**40, plan.streams).tolist()) if plan.runs_in_order else ())


def windows(rng: Generator, plan: JoinPlan) -> tuple[Any, ...]:
    some = (TimeWindow(Nanoseconds(0)), TimeWindow(Nanoseconds(10**12)), UNBOUNDED_WINDOW, CountWindow(3))
    return tuple(some[rng.integers(len(some))] for _ in plan.formats)


def changes(rng: Generator, plan: JoinPlan) -> tuple[SpecChange, ...]:
    def ints(low: int, high: int) -> tuple[int, ...]:
        return tuple(rng.integers(low, high, plan.streams).tolist())

    return tuple(
        SpecChange(
            RecordNo(10 * at), at, windows(rng, plan), ints(0, 2**62), ints(0, 2**62), ints(DEAD, FOREVER), ints(-1, 9)
        )
        for at in range(rng.integers(3))
    )


def column(rng: Generator, kind: pa.DataType, rows: int) -> pa.Array:
    """Values with some nulls."""
    drawn = rng.integers(0, 1000, rows)
    values: dict[str, Callable[[], list[Any]]] = {
        "string": lambda: [f"text {value}" * (value % 3) for value in drawn],
        "double": lambda: [float(value) / 7 for value in drawn],
        "bool": lambda: [bool(value % 2) for value in drawn],
        "decimal128(10, 2)": lambda: [Decimal(int(value)).scaleb(-2) for value in drawn],
    }
    plain = values.get(str(kind), lambda: [int(value) for value in drawn])()
    some = rng.random() < 0.5
    array = [None if some and rng.random() < 0.1 else value for value in plain]
    return pa.array(array, pa.int32()).cast(kind) if pa.types.is_date(kind) else pa.array(array, kind)


def rows_of(rng: Generator, schema: pa.Schema, rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([column(rng, field.type, rows) for field in schema], schema=schema)


def batch(rng: Generator, plan: JoinPlan, stream: int, rows: int | None = None) -> TupleBatch:
    """Rows as the gateway sends them: taken out of records, in another order."""
    form, size = plan.formats[stream], int(rng.choice([0, 1, 9, 300])) if rows is None else rows
    columns = rows_of(rng, form.schema, size + 5)
    if form.time_column is not None:
        at = form.schema.get_field_index("ts")
        columns = columns.set_column(at, form.schema.field(at), pa.array(rng.integers(0, 2**50, size + 5)))
    first, stamp = int(rng.choice([0, 10, 2**50])), int(rng.choice([0, 10**18]))
    read = reading.read(form, columns, first_place=first, arrival_ns=stamp)
    chosen = read.take(rng.permutation(size + 5)[:size])
    times = chosen.times if form.time_column else chosen.times + rng.integers(0, rng.choice([1, 60000, 2**40]), size)
    places = chosen.places * int(rng.choice([1, 100, 2**12]))
    late = rng.random(size) < 0.1 if rng.random() < 0.5 else None
    order = None
    if plan.runs_in_order:
        counts = rng.integers(0, 2**33, (size, plan.streams))
        order = Order(rng.integers(-1, 2**20, size), counts)
    return TupleBatch(
        stream, times, chosen.hashes, chosen.words, chosen.keyed, places, chosen.rows, late, order
    )  # fmt: skip


def exchanged(rng: Generator, plan: JoinPlan, rows: int | None = None) -> m.Exchange:
    own = groups(rng, plan)
    streams = [stream for stream in range(plan.streams) if rows is not None or rng.random() < 0.8]
    steps = tuple(NO_STEPS if rng.random() < 0.3 else Steps(np.array([3, 2**50]), instants(rng, 2)) for _ in streams)
    return m.Exchange(
        term(rng), MapVersion(3), own, records(rng, own.size), RecordNo(int(rng.integers(0, 2**62))), marks(rng, plan),
        tuple(batch(rng, plan, stream, rows) for stream in streams), changes(rng, plan), steps, instant(rng),
        instant(rng),
    )  # fmt: skip


def part(rng: Generator, plan: JoinPlan, kind: Kind, rows: int | None = None) -> ResultPart:
    size = int(rng.choice([0, 1, 9, 300])) if rows is None else rows
    stream = int(rng.integers(0 if kind is Kind.LATE else -1, plan.streams))
    schema = plan.formats[stream].schema if kind is Kind.LATE else plan.schema
    times = rng.integers(0, rng.choice([1, 60000, 2**31, 2**62]), size) - 7
    own = rng.integers(0, plan.partitions, size).astype(np.uint16)
    return ResultPart(kind, rows_of(rng, schema, size), own, times, stream, np.zeros(size, np.int32), (times, None))


def results(rng: Generator, plan: JoinPlan, rows: int | None = None) -> m.Results:
    own = groups(rng, plan)
    parts = [part(rng, plan, Kind.LATE if rng.random() < 0.3 else Kind.RESULT, rows) for _ in range(rng.integers(3))]
    return m.Results(
        own, records(rng, own.size), records(rng, own.size), RecordNo(7), marks(rng, plan), int(rng.integers(9)),
        bool(rng.random() < 0.5), tuple(parts), instant(rng),
        NO_ARRIVALS if rng.random() < 0.5 else Arrivals(instants(rng, 3), rng.integers(0, 2**40, 3)),
    )  # fmt: skip


def delivery(rng: Generator, plan: JoinPlan) -> m.Delivery:
    parts = tuple(part(rng, plan, Kind.RESULT) for _ in range(rng.integers(3)))
    return m.Delivery(parts, m.Token(int(rng.integers(0, 2**62)), 5))


def holdings(rng: Generator, plan: JoinPlan) -> m.Holdings:
    own = groups(rng, plan)
    return m.Holdings(own, *[records(rng, own.size) for _ in range(5)])


def hello(rng: Generator, plan: JoinPlan) -> m.WorkerHello:
    return m.WorkerHello(WorkerId(name(rng)), name(rng), holdings(rng, plan), int(rng.integers(2**40)), 3)


def report(rng: Generator, plan: JoinPlan, worker: int = 0, own: np.ndarray | None = None) -> LoadReport:
    parts = tuple(
        GroupLoad(group=GroupId(group), weight=float(rng.random()), memory_bytes=int(rng.integers(2**40)))
        for group in (groups(rng, plan) if own is None else own).tolist()
    )
    return LoadReport(
        worker=WorkerId(f"worker-{worker}"), occupancy=float(rng.random()), busy=float(rng.random()), memory_bytes=5,
        memory_limit=7, groups=parts, back_pressure=bool(rng.random() < 0.5), elapsed_s=2.0, cpu_s=float(rng.random()),
        idle_s=float(rng.random()), comm_s=float(rng.random()), comparisons=int(rng.integers(2**50)),
        demand=maybe(rng, float(rng.random())),
    )  # fmt: skip


def cluster(rng: Generator, plan: JoinPlan) -> m.ClusterReport:
    pieces = np.array_split(rng.permutation(plan.partitions), rng.integers(1, 4))
    reports = tuple(report(rng, plan, at, own) for at, own in enumerate(pieces))
    roles = tuple(list(Role)[rng.integers(3)] for _ in reports)
    return m.ClusterReport(ClusterLoad(reports=reports, roles=roles, degree=int(rng.integers(9))))


def push(rng: Generator, plan: JoinPlan) -> m.Push:
    sequence, end = int(rng.integers(0, 2**40)), bool(rng.random() < 0.3)
    rows = rows_of(rng, plan.formats[0].schema, int(rng.choice([0, 1, 300])))
    if end and rows.num_rows == 0:
        rows = pa.RecordBatch.from_arrays([], names=[])
    return m.Push(int(rng.integers(9)), sequence, sequence + 1, int(rng.integers(2**32)), rows, end)


def whole(rng: Generator, plan: JoinPlan) -> np.ndarray:
    return records(rng, plan.partitions)


def maybe(rng: Generator, value: Any) -> Any:
    return value if rng.random() < 0.5 else None


def committed(rng: Generator, plan: JoinPlan) -> m.Committed:
    own = groups(rng, plan)
    tally = maybe(rng, m.Tally(delays(rng), delays(rng)))
    return m.Committed(term(rng), int(rng.integers(2**40)), own, records(rng, own.size), tally, totals(rng, plan))


def totals(rng: Generator, plan: JoinPlan) -> Totals | None:
    late = tuple(rng.integers(0, 2**40, int(rng.integers(plan.streams + 1))).tolist())
    return maybe(rng, Totals(int(rng.integers(2**62)), late))


def instants(rng: Generator, size: int) -> np.ndarray:
    return rng.integers(0, 2**62, size)


def instant(rng: Generator) -> int:
    return int(rng.choice([0, 1, 2**62]))


def delays(rng: Generator) -> Delays:
    size = int(rng.integers(3))
    return Delays.of(rng.integers(-5, 2**62, size), rng.integers(0, 2**40, size))


def ping(rng: Generator, _: JoinPlan) -> m.Ping:
    return m.Ping(instant(rng), int(rng.integers(-(2**40), 2**40)))


def pong(rng: Generator, _: JoinPlan) -> m.Pong:
    return m.Pong(instant(rng), instant(rng))


def move(rng: Generator, plan: JoinPlan) -> m.MoveView:
    return m.MoveView(
        group=GroupId(int(rng.integers(plan.partitions))), source=WorkerId(name(rng)), target=WorkerId("b"), nbytes=7,
        is_planned=bool(rng.random() < 0.5), begun_ns=instant(rng), pause_ns=maybe(rng, 0),
    )  # fmt: skip


def worker_view(rng: Generator, plan: JoinPlan) -> m.WorkerView:
    return m.WorkerView(
        worker=WorkerId(name(rng)), is_up=bool(rng.random() < 0.5), groups=3,
        role=maybe(rng, list(Role)[rng.integers(3)]), report=maybe(rng, report(rng, plan)), clock_ahead_ns=-4,
        slot=maybe(rng, 2),
    )  # fmt: skip


def overview(rng: Generator, plan: JoinPlan) -> m.Overview:
    stream = m.StreamView(rows=int(rng.integers(2**40)), late=2, rows_per_s=float(rng.random()), watermark_ns=DEAD)
    event = m.Event(instant(rng), list(m.EventKind)[rng.integers(len(m.EventKind))], name(rng))
    return m.Overview(
        at_ns=instant(rng), records=RecordNo(5), streams=(stream,) * plan.streams,
        workers=tuple(worker_view(rng, plan) for _ in range(rng.integers(3))), degree=2, n_sup=1, n_con=0,
        map_version=MapVersion(4), results=int(rng.integers(2**40)), late=1, produced=delays(rng),
        delivered=delays(rng), moves=tuple(move(rng, plan) for _ in range(rng.integers(3))), moves_done=9,
        under_way=(move(rng, plan),), events=(event,), events_seen=8, unsent_bytes=1, unsent_peak_bytes=2,
        replay_bytes=3, epoch_ns=4, uncommitted=7, rejected=2, checkpointed_ns=9, stored_bytes=8,
        is_last=bool(rng.random() < 0.5), settings=maybe(rng, settings(rng, plan)),
    )  # fmt: skip


def settings(rng: Generator, plan: JoinPlan) -> m.SettingsView:
    return m.SettingsView(
        changes=3, windows=windows(rng, plan), replicas=2, beta=float(rng.random()), supplier_threshold=0.5,
        consumer_threshold=0.0,
    )  # fmt: skip


def any_spec(rng: Generator, **more: Any) -> JoinQuerySpec:
    streams = [{"name": one, "schema": {"k": "int64"}, "window": f"{rng.integers(1, 99)}s"} for one in "ab"]
    replicas = int(rng.integers(1, 9))
    return JoinQuerySpec.parse({"streams": streams, "join": {"on": ["k"]}, "replicas": replicas, **more})


def spec_now(rng: Generator, _: JoinPlan) -> m.SpecNow:
    return m.SpecNow(term(rng), any_spec(rng))


def query_changed(rng: Generator, _: JoinPlan) -> m.QueryChanged:
    one, wrong = FieldChange(name(rng), "10s", name(rng)), Complaint(name(rng), "a", "b", name(rng))
    found = SpecChanges((one,) * int(rng.integers(3)), (one,) * int(rng.integers(3)), (wrong,) * int(rng.integers(2)))
    return m.QueryChanged(found, maybe(rng, RecordNo(0)))


def decided(rng: Generator, plan: JoinPlan) -> m.Decided:
    load = cluster(rng, plan).load
    return m.Decided(
        at_ns=instant(rng), load=load, wish=list(Wish)[rng.integers(3)], by=int(rng.integers(5)), because=name(rng),
        blocked_by=("target", "memory")[: rng.integers(3)], blocked_until_ns=maybe(rng, instant(rng)),
    )  # fmt: skip


def place(rng: Generator, plan: JoinPlan) -> m.RecordPlace:
    found = [
        m.GroupPlace(
            group=GroupId(group), rows=int(rng.integers(2**40)), station=list(m.Station)[rng.integers(6)],
            worker=maybe(rng, WorkerId(name(rng))), sent=int(rng.integers(-1, 9)), committed=int(rng.integers(-1, 9)),
        )
        for group in groups(rng, plan).tolist()
    ]  # fmt: skip
    is_kept = bool(rng.random() < 0.5)
    return m.RecordPlace(record=RecordNo(7), is_recorded=is_kept, is_kept=is_kept, groups=tuple(found))


def looked(rng: Generator, _: JoinPlan) -> m.Looked:
    now = spec_now(rng, _)
    plan = JoinPlan.of(now.spec)
    told = tuple(decided(rng, plan) for _ in range(rng.integers(3)))
    return m.Looked(
        term=now.term, spec=now.spec, view=overview(rng, plan), decisions=told, place=maybe(rng, place(rng, plan))
    )


def damaged(rng: Generator, plan: JoinPlan) -> m.CheckpointDamaged:
    group, tag = GroupId(int(rng.integers(plan.partitions))), RecordNo(int(rng.integers(-1, 2**40)))
    return m.CheckpointDamaged(group, MapVersion(int(rng.integers(9))), tag, name(rng), name(rng), 7)


def with_groups(
    kind: Callable[..., Any], vectors: int, *, has_term: bool = True
) -> Callable[[Generator, JoinPlan], Any]:
    def draw(rng: Generator, plan: JoinPlan) -> Any:
        own = groups(rng, plan)
        columns = [records(rng, own.size) for _ in range(vectors)]
        return kind(term(rng), own, *columns) if has_term else kind(own, *columns)

    return draw


DIRECTIONS = {
    "producer to gateway": Direction(
        lambda message, _: ingest.encode_to_gateway(message),
        lambda data, _: ingest.decode_to_gateway(data),
        (
            lambda rng, _: m.Open(int(rng.integers(9)), maybe(rng, ProducerId(name(rng)))),
            push,
            lambda *_: m.Describe(),
        ),
    ),
    "gateway to producer": Direction(
        lambda message, _: ingest.encode_to_producer(message),
        lambda data, _: ingest.decode_to_producer(data),
        (
            lambda rng, _: m.Opened(term(rng), ProducerId(name(rng)), 4, maybe(rng, 0), bool(rng.random() < 0.5)),
            lambda rng, _: m.Acknowledge(int(rng.integers(2**40)), maybe(rng, RecordNo(0))),
            lambda rng, _: m.Refuse(maybe(rng, 0), name(rng), maybe(rng, 7)),
            lambda rng, plan: m.Description(plan.formats, plan.schema, maybe(rng, name(rng))),
        ),
    ),
    "gateway to worker": Direction(
        exchange.encode_to_worker,
        exchange.decode_to_worker,
        (
            exchanged,
            lambda rng, plan: with_groups(lambda *one: m.Assign(*one, changes(rng, plan)), 3)(rng, plan),
            with_groups(m.Release, 0), with_groups(m.Preload, 0), with_groups(m.CheckpointNow, 0),
            with_groups(lambda *one: m.CheckpointNow(*one, whole=True), 0), with_groups(m.Trim, 1),
            lambda *_: m.Finished(), ping, spec_now,
        ),
    ),
    "worker to gateway": Direction(
        lambda message, _: exchange.encode_to_gateway(message),
        exchange.decode_to_gateway,
        (
            hello, lambda rng, plan: m.Holding(holdings(rng, plan)), lambda rng, _: m.Credit(int(rng.integers(2**40))),
            with_groups(m.Checkpointed, 2, has_term=False), with_groups(m.Preloaded, 1, has_term=False),
            with_groups(m.ResultsLost, 1, has_term=False), lambda rng, plan: m.Load(report(rng, plan)),
            lambda *_: m.Alive(), pong, damaged,
        ),
    ),
    "worker to collector": Direction(collect.encode_to_collector, collect.decode_to_collector, (hello, results)),
    "collector to worker": Direction(
        lambda message, _: collect.encode_to_worker(message),
        collect.decode_to_worker,
        (lambda rng, plan: m.Resume(term(rng), whole(rng, plan)), committed),
    ),
    "subscriber to collector": Direction(
        lambda message, _: collect.encode_from_subscriber(message),
        lambda data, _: collect.decode_from_subscriber(data),
        (
            lambda rng, _: m.Subscribe(
                maybe(rng, m.Token(int(rng.integers(2**40)), 0)), maybe(rng, 8), bool(rng.random() < 0.5)
            ),
            lambda rng, _: m.Grant(int(rng.integers(1, 100))),
        ),
    ),
    "collector to subscriber": Direction(
        collect.encode_to_subscriber,
        lambda data, _: collect.decode_to_subscriber(data),
        (
            delivery,
            lambda rng, _: m.TokenTooOld(m.Token(int(rng.integers(2**40)), 0)),
            lambda rng, plan: m.Ended(m.Token(int(rng.integers(2**40)), 0), plan.schema),
        ),
    ),
    "attendant to gateway": Direction(
        lambda message, _: control.encode_to_gateway(message),
        control.decode_to_gateway,
        (
            lambda rng, _: control.Attending(list(control.Party)[rng.integers(2)]),
            lambda rng, _: m.CollectorHello(term(rng)),
            lambda rng, plan: m.Vector(term(rng), *[whole(rng, plan) for _ in range(3)], totals(rng, plan)),
            committed, pong, lambda *_: m.Finished(),
            lambda rng, _: m.Drain((WorkerId(name(rng)), WorkerId("b"))[: rng.integers(3)]),
            lambda rng, plan: m.MoveGroup(GroupId(int(rng.integers(plan.partitions))), WorkerId(name(rng))),
            lambda rng, plan: m.ChangeSpec(
                2, windows(rng, plan), tuple(rng.integers(0, 9, plan.streams).tolist()), (FOREVER,) * plan.streams
            ),
            lambda rng, _: m.ChangeQuery(any_spec(rng, redis={"url": "redis://host:1/2"})), lambda *_: m.EndStreams(),
            lambda rng, _: m.Look(maybe(rng, RecordNo(int(rng.integers(2**40))))), decided,
        ),
    ),
    "gateway to attendant": Direction(
        lambda message, _: control.encode_from_gateway(message),
        control.decode_from_gateway,
        (
            lambda rng, plan: m.Owners(term(rng), whole(rng, plan)), lambda rng, _: m.Drained(term(rng)), cluster,
            lambda rng, _: m.Empty((WorkerId(name(rng)),)), lambda *_: m.Finished(),
            ping, overview, spec_now, query_changed,
            lambda rng, _: m.StreamsEnded(RecordNo(int(rng.integers(2**40)))), looked,
        ),
    ),
}  # fmt: skip


# --- what must come back


def seen(value: Any) -> Any:
    """All that a message says, as plain values; what does not travel, or says nothing, is left out."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tolist()
    if isinstance(value, pa.RecordBatch):
        return value.schema, value.to_pydict()
    if isinstance(value, tuple):
        return [seen(one) for one in value]
    if isinstance(value, m.Exchange):
        names = [field.name for field in fields(m.Exchange)]
        return ["Exchange", value.nbytes, *(seen(getattr(value, one)) for one in names)]
    if not is_dataclass(value):
        return value
    plain = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, TupleBatch):
        plain["keyed"] = None if value.keyed is None or value.keyed.all() else value.keyed
        plain["late"] = None if value.late is None or not value.late.any() else value.late
    if isinstance(value, ResultPart):
        del plain["origin"], plain["members"]
    return [type(value).__name__, *((field, seen(one)) for field, one in plain.items())]
