"""The core alone, in one process: join generated streams by every method and check each result.

What gateway and worker will do is done here in a few lines: read batches, flag late rows, raise watermarks, join
(`streams.py`). The truth is an SQL query of DuckDB over the same rows, which shares no code with the join
(`tests/oracle`).
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[2]))

from streams import Record, as_joined, check, recorded

from joinery.join.logic import WindowJoin
from joinery.join.plan import JoinPlan, JoinType
from joinery.join.results import Kind
from joinery.model.errors import BadSpec, UserMustAct
from joinery.model.quantities import CountWindow, Window
from joinery.model.spec import JoinQuery, JoinQuerySpec
from joinery.model.tuples import TupleBatch
from tests.oracle import duck
from tests.oracle import recorded as oracle
from tests.oracle.compare import compare
from tests.oracle.recorded import LATE, POSITION, RECORD, TIME, Question

QUERY: Final = Path(__file__).with_name("query.yaml")
METHODS: Final = ("hash", "nested-loop")
TYPES: Final = (JoinType.INNER, JoinType.LEFT, JoinType.ANTI)
"""Run besides the type of the file."""
USED: Final = {"streams", "join", "filter", "select", "partitions", "fine_tuning"}
"""Sections of a query that say something to the core."""
WARM_RECORDS: Final = 8
DUCKDB: Final = """SET GLOBAL error_on_division_by_zero = false; SET GLOBAL ieee_floating_point_ops = false;
SET GLOBAL disabled_optimizers = 'expression_rewriter'"""
"""x / 0 and x % 0 are null, as in a query. On overflow, null in a query, DuckDB stops if it rewrites nothing."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a join gave."""

    rows: pa.Table
    late: int
    seconds: float


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


def truth(spec: JoinQuerySpec, plan: JoinPlan, log: list[Record]) -> pa.Table:
    """The result rows by DuckDB, which reads `where` and `filter` as they stand in the file."""
    question = Question(
        streams=tuple(form.name for form in plan.formats),
        columns=tuple(tuple(form.schema.names) for form in plan.formats),
        keys=tuple(form.key.columns for form in plan.formats),
        windows=tuple(_window(window) for window in plan.windows),
        type=plan.type.value,
        where_sql=spec.join.where,
        filter_sql=spec.filter,
        select=spec.select and tuple((item.stream, item.column, item.name) for item in spec.select),
    )
    tables = [_facts(log, stream) for stream in range(plan.streams)]
    return duck.render(question, tables, duck.join(question, tables))


def _window(window: Window) -> oracle.Window:
    if isinstance(window, CountWindow):
        return oracle.Count(window.rows)
    return oracle.Unbounded() if window.is_unbounded else oracle.Time(window.length_ns)


def _facts(log: list[Record], stream: int) -> pa.Table:
    """The rows of a stream as the oracle wants them."""
    own = [(record, batch) for record, (batches, _) in enumerate(log) for batch in batches if batch.stream == stream]
    batches: list[TupleBatch] = [batch for _, batch in own]
    facts = {
        POSITION: np.concatenate([batch.places for batch in batches]),
        TIME: np.concatenate([batch.times for batch in batches]),
        LATE: np.concatenate([batch.late for batch in batches]),
        RECORD: np.repeat([record for record, _ in own], [len(batch) for batch in batches]),
    }
    rows = pa.Table.from_batches([batch.rows for batch in batches])
    return pa.table({**facts, **dict(zip(rows.column_names, rows.columns, strict=True))})


def plan_of(spec: JoinQuerySpec, method: str, kind: JoinType) -> JoinPlan:
    """The query's plan with another method and join type."""
    changed = {**spec.to_dict(), "join": {**spec.to_dict()["join"], "method": method, "type": kind.value}}
    return JoinPlan.of(JoinQuerySpec.parse(changed))


def plans_of(spec: JoinQuerySpec) -> list[JoinPlan]:
    """The plans to run: the file's own join type by every method, then the other types that its query allows."""
    own, found = JoinType(spec.join.type), []
    for kind in dict.fromkeys((own, *TYPES)):
        try:
            found += [plan_of(spec, method, kind) for method in METHODS]
        except BadSpec as refused:
            print(f"no {kind} join of this query ({refused.complaints[0].found})")
    return found


def verify(spec: JoinQuerySpec) -> bool:
    """Join by every plan, and say of each how it compares with the truth."""
    check(spec)
    if unused := sorted(spec.model_fields_set - USED):
        print(f"not used here, because there is no service: {', '.join(unused)}")
    plans = plans_of(spec)
    print("making the streams, with rows out of order and some too late ...", flush=True)
    log = list(recorded(spec, plans[0]))
    tuples = sum(len(batch) for batches, _ in log for batch in batches)
    print("warming up the kernels (compiled the first time) ...", flush=True)
    for plan in plans:
        run(plan, as_joined(plan, [*log[:-1][:WARM_RECORDS], log[-1]]))
    print(f"\n{'method':12} {'type':6} {'rows in':>9} {'results':>9} {'late':>6} {'tuples/s':>10}  against DuckDB")
    duck._database().execute(DUCKDB)
    fed, exact, wanted = as_joined(plans[0], log), True, {}
    for plan in plans:
        done = run(plan, fed)
        if plan.type not in wanted:
            wanted = {plan.type: truth(spec, plan, log)}
        verdict = compare(done.rows, wanted[plan.type])
        exact = exact and verdict.exact
        figures = f"{tuples:9,} {done.rows.num_rows:9,} {done.late:6,} {tuples / done.seconds:10,.0f}"
        print(f"{plan.method:12} {plan.type:6} {figures}  {verdict}", flush=True)
    return exact


def main(arguments: Sequence[str]) -> int:
    """Join and check the query of a file; 0 if every result is exact, 1 if not, 2 if it cannot be run."""
    path = Path(arguments[0]) if arguments else QUERY
    try:
        return 0 if verify(JoinQuery.parse_yaml(path.read_text()).spec) else 1
    except OSError as error:
        print(f"{path}: {error.strerror}", file=sys.stderr)
    except UserMustAct as error:
        print(error, file=sys.stderr)
    except duckdb.Error as error:
        remedy = 'a name that is a word of SQL stands in double quotes: "order".price'
        print(f"DuckDB cannot answer this query, so it was not checked; {remedy}\n{error}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
