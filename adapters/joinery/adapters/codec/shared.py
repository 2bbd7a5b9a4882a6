"""What several conversations say (common.proto)."""

from collections.abc import Iterable

import numpy as np

from joinery.adapters.codec.errors import WireError
from joinery.adapters.codec.fields import (
    MAX_I64,
    MIN_I64,
    flag,
    groups,
    i64,
    inner,
    number,
    numbers,
    raw,
    real,
    text,
    vector,
)
from joinery.elastic.load import GroupLoad, LoadReport
from joinery.flow.delays import BUCKETS, Delays
from joinery.join.plan import JoinPlan
from joinery.machine.log import SpecChange
from joinery.machine.messages import Committed, Holdings, Ping, Pong, Tally, WorkerHello
from joinery.machine.totals import Totals
from joinery.model.errors import Bug
from joinery.model.ids import GroupId, RecordNo, Term, WorkerId
from joinery.model.quantities import MAX_COUNT, CountWindow, Nanoseconds, TimeWindow, Window
from joinery.model.time import UNBOUNDED
from joinery.v1 import common_pb2 as wire
from joinery.v1 import control_pb2 as control
from joinery.window.sliding import Marks


def write_marks(marks: Marks) -> wire.Marks:
    """Watermarks and counts."""
    return wire.Marks(watermarks_ns=marks.watermarks, released_rows=marks.counts)


def read_marks(message: wire.Marks, plan: JoinPlan) -> Marks:
    """Watermarks and counts: one per stream of the query."""
    counts = plan.streams if plan.runs_in_order else 0
    return Marks(numbers(message, "watermarks_ns", plan.streams), numbers(message, "released_rows", counts, low=0))


def write_windows(windows: Iterable[Window]) -> list[wire.Window]:
    """Windows, one per stream."""
    return [
        wire.Window(count_rows=window.rows)
        if isinstance(window, CountWindow)
        else wire.Window(time_ns=window.length_ns)
        for window in windows
    ]


def read_windows(found: Iterable[wire.Window], plan: JoinPlan) -> tuple[Window, ...]:
    """Windows, one per stream of the query."""
    windows = tuple(_window(one) for one in found)
    if len(windows) != plan.streams:
        raise WireError("windows", f"{len(windows)} windows", f"{plan.streams}")
    return windows


def _window(message: wire.Window) -> Window:
    if message.WhichOneof("window") == "count_rows":
        return CountWindow(number(message, "count_rows", 1, MAX_COUNT))
    return TimeWindow(Nanoseconds(number(message, "time_ns", 0, UNBOUNDED)))


def write_changes(changes: Iterable[SpecChange]) -> list[wire.SpecChange]:
    """Changes of the spec, in their order."""
    return [
        wire.SpecChange(
            record=change.record,
            version=change.version,
            windows=write_windows(change.windows),
            lateness_ns=change.lateness_ns,
            idle_timeout_ns=change.idle_timeout_ns,
            floors=change.floors,
            upto_serials=change.upto,
        )
        for change in changes
    ]


def read_changes(found: Iterable[wire.SpecChange], plan: JoinPlan) -> tuple[SpecChange, ...]:
    """Changes of the spec, in their order."""
    return tuple(
        SpecChange(
            record=RecordNo(number(one, "record")),
            version=number(one, "version"),
            windows=read_windows(one.windows, plan),
            lateness_ns=numbers(one, "lateness_ns", plan.streams, low=0),
            idle_timeout_ns=numbers(one, "idle_timeout_ns", plan.streams, low=0),
            floors=numbers(one, "floors", plan.streams, MIN_I64, MAX_I64),
            upto=numbers(one, "upto_serials", plan.streams, MIN_I64, MAX_I64),
        )
        for one in found
    )


def write_holdings(holdings: Holdings) -> wire.Holdings:
    """What a worker has."""
    return wire.Holdings(
        groups=i64(holdings.groups),
        versions=i64(holdings.versions),
        tags=i64(holdings.tags),
        received=i64(holdings.received),
        silent=i64(holdings.silent),
        seen=i64(holdings.seen),
    )


def read_holdings(message: wire.Holdings, plan: JoinPlan) -> Holdings:
    """What a worker has."""
    own = groups(message, plan.partitions)
    columns = [vector(message, name, own.size) for name in ("versions", "tags", "received", "silent", "seen")]
    return Holdings(own, *columns)


def write_hello(hello: WorkerHello) -> wire.WorkerHello:
    """A worker's introduction."""
    return wire.WorkerHello(
        worker=hello.worker,
        instance=hello.instance,
        holdings=write_holdings(hello.holdings),
        buffered_bytes=hello.buffered_bytes,
        buffered_messages=hello.buffered_messages,
    )


def read_hello(message: wire.WorkerHello, plan: JoinPlan) -> WorkerHello:
    """A worker's introduction."""
    return WorkerHello(
        WorkerId(text(message, "worker")),
        text(message, "instance"),
        read_holdings(inner(message, "holdings"), plan),
        number(message, "buffered_bytes"),
        number(message, "buffered_messages"),
    )


def write_committed(news: Committed) -> wire.Committed:
    """News of a commit."""
    return wire.Committed(
        term=news.term,
        number=news.number,
        groups=i64(news.groups),
        upto=i64(news.upto),
        tally=None if news.tally is None else _write_tally(news.tally),
        totals=write_totals(news.totals),
    )


def read_committed(message: wire.Committed, plan: JoinPlan) -> Committed:
    """News of a commit."""
    own = groups(message, plan.partitions)
    return Committed(
        Term(number(message, "term")),
        number(message, "number"),
        own,
        vector(message, "upto", own.size),
        _read_tally(message.tally) if message.HasField("tally") else None,
        read_totals(message, plan),
    )


def _write_tally(tally: Tally) -> wire.Tally:
    return wire.Tally(
        results_rows=0,  # older gateways want a number
        late_rows=0,
        produced=write_delays(tally.produced),
        delivered=write_delays(tally.delivered),
    )


def _read_tally(message: wire.Tally) -> Tally:
    return Tally(read_delays(inner(message, "produced")), read_delays(inner(message, "delivered")))


def write_totals(totals: Totals | None) -> wire.Totals | None:
    """How much was committed."""
    return None if totals is None else wire.Totals(results_rows=totals.results, late_rows=totals.late)


def read_totals(message: wire.Committed | control.Vector, plan: JoinPlan) -> Totals | None:
    """How much was committed, of a message that may say it; an older collector does not."""
    if not message.HasField("totals"):
        return None
    size = len(message.totals.late_rows)
    return Totals(
        number(message.totals, "results_rows"), numbers(message.totals, "late_rows", min(size, plan.streams), low=0)
    )


def write_delays(delays: Delays) -> wire.Delays:
    """Delays, without the empty buckets."""
    buckets = np.flatnonzero(delays.counts)
    return wire.Delays(
        buckets=i64(buckets), rows=i64(delays.counts[buckets]), total_ns=delays.total_ns, max_ns=delays.max_ns
    )


def read_delays(message: wire.Delays) -> Delays:
    """Delays."""
    buckets = groups(message, BUCKETS, "buckets")
    counts = np.zeros(BUCKETS, np.int64)
    counts[buckets] = vector(message, "rows", buckets.size, low=1)
    return Delays(counts, real(message, "total_ns"), number(message, "max_ns"))


def write_ping(ping: Ping) -> wire.Ping:
    """The gateway's question for the time."""
    return wire.Ping(sent_ns=ping.sent_ns, ahead_ns=ping.ahead_ns)


def read_ping(message: wire.Ping) -> Ping:
    """The gateway's question for the time."""
    return Ping(number(message, "sent_ns", MIN_I64), number(message, "ahead_ns", MIN_I64))


def write_pong(pong: Pong) -> wire.Pong:
    """The answer to it."""
    return wire.Pong(sent_ns=pong.sent_ns, clock_ns=pong.clock_ns)


def read_pong(message: wire.Pong) -> Pong:
    """The answer to it."""
    return Pong(number(message, "sent_ns", MIN_I64), number(message, "clock_ns", MIN_I64))


def write_report(report: LoadReport) -> wire.LoadReport:
    """A load report; its groups as vectors."""
    parts = report.groups
    return wire.LoadReport(
        worker=report.worker,
        occupancy_share=report.occupancy,
        busy_share=report.busy,
        memory_bytes=report.memory_bytes,
        memory_limit_bytes=report.memory_limit,
        back_pressure=report.back_pressure,
        groups=i64([part.group for part in parts]),
        group_weights=np.array([part.weight for part in parts], "<f8").tobytes(),
        group_memory_bytes=i64([part.memory_bytes for part in parts]),
        elapsed_s=report.elapsed_s,
        cpu_s=report.cpu_s,
        idle_s=report.idle_s,
        comm_s=report.comm_s,
        comparisons=report.comparisons,
        demand_share=report.demand,
    )


def read_report(message: wire.LoadReport, plan: JoinPlan) -> LoadReport:
    """A load report."""
    own = vector(message, "groups", low=0)
    if own.size and int(own.max()) >= plan.partitions:
        raise WireError("LoadReport.groups", f"group {own.max()}", f"groups below {plan.partitions}")
    weights = raw(message, "group_weights", "<f8", own.size).tolist()
    sizes = vector(message, "group_memory_bytes", own.size, low=0).tolist()
    try:  # a report cannot be made of numbers that make no sense
        return LoadReport(
            worker=WorkerId(text(message, "worker")),
            occupancy=real(message, "occupancy_share"),
            busy=real(message, "busy_share"),
            memory_bytes=number(message, "memory_bytes"),
            memory_limit=number(message, "memory_limit_bytes"),
            groups=tuple(
                GroupLoad(group=GroupId(group), weight=weight, memory_bytes=size)
                for group, weight, size in zip(own.tolist(), weights, sizes, strict=True)
            ),
            back_pressure=flag(message, "back_pressure"),
            elapsed_s=message.elapsed_s,
            cpu_s=message.cpu_s,
            idle_s=message.idle_s,
            comm_s=message.comm_s,
            comparisons=message.comparisons,
            demand=real(message, "demand_share") if message.HasField("demand_share") else None,
        )
    except Bug as error:
        raise WireError("LoadReport", str(error), "a load that can be") from error
