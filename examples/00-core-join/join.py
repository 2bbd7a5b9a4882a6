"""The core alone, in one process: join two generated streams by every method and check each result.

What gateway and worker will do is done here in a few lines: read batches, flag late rows, raise watermarks, join. The
truth is an SQL query of DuckDB over the same rows, which shares no code with the join (`tests/oracle`).
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[2]))

from joinery.flow import ingest
from joinery.generate.bmodel import BModelKeys
from joinery.generate.payload import Integers, RowNumbers
from joinery.generate.points import Independent
from joinery.generate.poisson import PoissonArrivals
from joinery.generate.streams import StreamGenerator
from joinery.join.logic import WindowJoin
from joinery.join.plan import JoinPlan, JoinType
from joinery.join.results import Kind
from joinery.model.ids import ProducerId
from joinery.model.quantities import TimeWindow
from joinery.model.spec import JoinQuery, JoinQuerySpec
from joinery.model.spec_sections import StreamSpec
from joinery.model.tuples import TupleBatch
from joinery.window.sliding import Marks
from joinery.window.watermark import StreamClock
from tests.oracle import duck
from tests.oracle.compare import compare
from tests.oracle.recorded import LATE, POSITION, RECORD, TIME, Question, Time

QUERY: Final = Path(__file__).with_name("query.yaml")
METHODS: Final = ("hash", "nested-loop")
TYPES: Final = (JoinType.INNER, JoinType.LEFT, JoinType.ANTI)
BATCH_ROWS: Final = 4096
DISORDER_NS: Final = 300_000_000
"""Rows are held back by up to this: more than the query's lateness, so that some are late."""
PRODUCER: Final = ProducerId("example")

Record = tuple[tuple[TupleBatch, ...], Marks]
"""A batch of each stream, and the watermarks after it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a join gave."""

    rows: pa.Table
    late: int
    seconds: float


def generator(stream: StreamSpec, key: str) -> StreamGenerator:
    """The stream that the query's `source` describes, with every 20th row held back on its way."""
    assert stream.source is not None and stream.source.generator is not None and stream.time is not None  # noqa: S101, PT018
    wanted = stream.source.generator
    points = Independent(PoissonArrivals.at(wanted.rate), BModelKeys(wanted.keys.range, wanted.keys.skew))
    payload = (RowNumbers("number"), Integers("price", 1, 1000))
    return StreamGenerator(
        points=points, seed=wanted.seed, key_column=key, time_column=stream.time.column, payload=payload,
        lateness_ns=DISORDER_NS, delayed_share=0.05, limit=wanted.rows,
    )  # fmt: skip


def recorded(spec: JoinQuerySpec, plan: JoinPlan) -> Iterator[Record]:
    """The log of the query: batch after batch, late rows flagged, watermarks written, and both streams' end."""
    streams = [generator(stream, plan.formats[0].key.columns[0]).batches(0, BATCH_ROWS) for stream in spec.streams]
    clocks = [StreamClock(stream.lateness) for stream in spec.streams]
    for number, batches in enumerate(zip(*streams, strict=True)):
        read = []
        for form, batch in zip(plan.formats, batches, strict=True):
            rows = ingest.read(form, batch, first_place=number * BATCH_ROWS)
            read.append(replace(rows, late=clocks[form.index].late(PRODUCER, rows.times)))
            clocks[form.index] = clocks[form.index].sent(PRODUCER, rows.times).recorded()
        yield tuple(read), Marks(tuple(clock.watermark for clock in clocks))
    yield (), Marks(tuple(clock.end().recorded().watermark for clock in clocks))


def run(plan: JoinPlan, log: list[Record]) -> Outcome:
    """Join the whole log."""
    join, found, late, start = WindowJoin(plan), [], 0, time.perf_counter()
    for batches, marks in log:
        for part in join.on_batch(batches, marks):
            if part.kind is Kind.LATE:
                late += part.rows.num_rows
            else:
                found.append(part.rows)
    return Outcome(pa.Table.from_batches(found, plan.schema), late, time.perf_counter() - start)


def truth(plan: JoinPlan, log: list[Record]) -> pa.Table:
    """The result rows by DuckDB."""
    question = Question(
        streams=tuple(form.name for form in plan.formats),
        columns=tuple(tuple(form.schema.names) for form in plan.formats),
        keys=tuple(form.key.columns for form in plan.formats),
        windows=tuple(Time(window.length_ns) for window in plan.windows if isinstance(window, TimeWindow)),
        type=plan.type.value,
    )
    tables = [_facts([batches[stream] for batches, _ in log if batches]) for stream in range(plan.streams)]
    return duck.render(question, tables, duck.join(question, tables))


def _facts(batches: list[TupleBatch]) -> pa.Table:
    """The rows of a stream as the oracle wants them."""
    numbers = np.repeat(np.arange(len(batches)), [len(batch) for batch in batches])
    facts = {
        POSITION: np.concatenate([batch.places for batch in batches]),
        TIME: np.concatenate([batch.times for batch in batches]),
        LATE: np.concatenate([batch.late for batch in batches]),
        RECORD: numbers,
    }
    rows = pa.Table.from_batches([batch.rows for batch in batches])
    return pa.table({**facts, **dict(zip(rows.column_names, rows.columns, strict=True))})


def plan_of(spec: JoinQuerySpec, method: str, kind: JoinType) -> JoinPlan:
    """The query's plan with another method and join type."""
    changed = {**spec.to_dict(), "join": {**spec.to_dict()["join"], "method": method, "type": kind.value}}
    return JoinPlan.of(JoinQuerySpec.parse(changed))


def main() -> int:
    """Join and check; 0 if every result is exact."""
    spec = JoinQuery.parse_yaml(QUERY.read_text()).spec
    print("making two streams, with rows out of order and some too late ...", flush=True)
    log = list(recorded(spec, plan_of(spec, "hash", JoinType.INNER)))
    tuples = sum(len(batch) for batches, _ in log for batch in batches)
    print("compiling the kernels (the first time only) ...", flush=True)
    for method in METHODS:
        run(plan_of(spec, method, JoinType.LEFT), [*log[:8], log[-1]])
    print(f"\n{'method':12} {'type':6} {'rows in':>9} {'results':>9} {'late':>6} {'tuples/s':>10}  against DuckDB")
    exact = True
    for kind in TYPES:
        wanted = truth(plan_of(spec, "hash", kind), log)
        for method in METHODS:
            done = run(plan_of(spec, method, kind), log)
            verdict = compare(done.rows, wanted)
            exact = exact and verdict.exact
            figures = f"{tuples:9,} {done.rows.num_rows:9,} {done.late:6,} {tuples / done.seconds:10,.0f}"
            print(f"{method:12} {kind:6} {figures}  {verdict}", flush=True)
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main())
