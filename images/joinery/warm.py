"""Compiles the kernels when the image is built: small queries of every kind run through all machines, simulated.

A kernel is compiled for the types that it is called with, so the queries have every type of column, window and join,
with and without nulls, moves and a crash (whose state is restored).
"""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from joinery.join.plan import JoinPlan
from joinery.machine.effects import Effect
from joinery.model.ids import ProducerId
from joinery.model.spec import JoinQuerySpec
from joinery.simulate import world
from joinery.simulate.process import START_NS
from joinery.simulate.schedule import MS, Batch, Crash, CrashPoint, MoveGroup, Role, Schedule, Script
from joinery.window import scanning

Query = dict[str, Any]

START = datetime.fromtimestamp(START_NS / 1e9, UTC).replace(tzinfo=None)
VALUES: dict[str, tuple[str, Callable[[int], object]]] = {
    "k": ("int64", lambda i: i % 7),
    "name": ("string", lambda i: f"name {i % 5}" * (1 + i % 3)),
    "price": ("float64", lambda i: i / 3),
    "small": ("float32", lambda i: i / 2),
    "n": ("int32", lambda i: i),
    "ok": ("bool", lambda i: i % 2 == 0),
    "day": ("date", lambda i: date(2020, 1, 1 + i % 28)),
    "cost": ("decimal(20,4)", Decimal),
    "raw": ("binary", lambda i: b"x" * (i % 50)),
    "ts": ("timestamp(us)", lambda i: START + timedelta(milliseconds=i)),
}
"""A column's type, and its value in row i (of `ts`: at the i-th millisecond)."""
ROWS = 24
"""Rows of a batch."""


def queries() -> Iterator[Query]:
    """What is asked."""
    for kind in ("inner", "left", "full", "semi", "anti"):
        yield query({"on": ["k"], "type": kind})
    yield query({"on": ["name"], "type": "full"})
    yield query({"on": ["k", "name"]}, output={"order": "time"})
    yield query({"on": ["k"]}, windows=("10ms", "6ms", "10ms"))
    yield query({"on": ["k"], "type": "left"}, windows=({"count": 5}, "40ms"))
    yield query({"on": ["k"]}, windows=("0s", "unbounded"), by_arrival=True)
    yield query({"on": ["k"], "type": "full", "method": "nested-loop", "where": "orders.price < fulfilments.price"})


def query(join: Query, windows: tuple[Any, ...] = ("100ms", "60ms"), by_arrival: bool = False, **more: Any) -> Query:
    """A query as YAML would hold it."""
    time = {} if by_arrival else {"time": {"column": "ts", "lateness": "5ms", "idleTimeout": "50ms"}}
    schema = {name: kind for name, (kind, _) in VALUES.items()}
    streams = [
        {"name": name, "schema": schema, "window": window, **time}
        for name, window in zip(("orders", "fulfilments", "returns"), windows, strict=False)
    ]
    tuning = {"theta": "2k", "block": "0.5k"}
    small = {"partitions": 4, "checkpoint": {"interval": "20ms"}, "fineTuning": tuning}
    return {"streams": streams, "join": join, **small, **more}


def schedule(seed: int, asked: Query) -> Schedule:
    """Producers that send for a quarter of a second, a move, and a worker that crashes."""
    schemas = [form.schema for form in JoinPlan.of(JoinQuerySpec.parse(asked)).formats]
    scripts = tuple(
        Script(place, ProducerId(f"producer-{place}"), tuple(_batches(schema, place)))
        for place, schema in enumerate(schemas)
    )
    moves = tuple(MoveGroup(60 * MS, group, 1 - group % 2) for group in range(4))  # those that are there already stay
    crash = Crash(CrashPoint(Role.WORKER, 1, Effect.SEND, 20), 5 * MS)
    return Schedule(
        seed=seed, query=asked, scripts=scripts, workers=2, steps=moves, faults=(crash,), subscribers=1
    )  # fmt: skip


def _batches(schema: pa.Schema, place: int) -> Iterator[Batch]:
    for at_ms in range(0, 240, 12):
        yield Batch(at_ms * MS, _rows(schema, at_ms, with_nulls=at_ms // 12 % 3 == place))
    yield Batch(250 * MS, None, end=True)


def _rows(schema: pa.Schema, at_ms: int, *, with_nulls: bool) -> pa.RecordBatch:
    columns = []
    for field in schema:
        values = [VALUES[field.name][1](at_ms - i % 9 if field.name == "ts" else i) for i in range(ROWS)]
        if with_nulls and field.name != "ts":
            values[::5] = [None] * len(values[::5])
        columns.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def unreached() -> None:
    """Kernels of a state that is larger, or lives longer, than in such queries: called on nothing."""
    words, fill = np.zeros(4, np.int64), np.zeros(1, np.int32)
    scanning.count_living(0, 1, 0, words, words, 4, 0, fill)
    scanning.rebook(1, 0, words, words, 4, 0, fill, words, words)


def main() -> None:
    """Run them all; one that does not come to its end ends the build."""
    unreached()
    for seed, asked in enumerate(queries()):
        outcome = world.run(schedule(seed, asked))
        if not outcome.ended:
            raise SystemExit(f"query {seed} did not come to its end: {outcome.failed or outcome.stuck}")


if __name__ == "__main__":
    main()
