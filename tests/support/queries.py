"""Small queries for tests of the core: a plan from a few words, rows from plain columns, results as plain rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from joinery.flow import ingest
from joinery.join.logic import WindowJoin
from joinery.join.plan import JoinPlan
from joinery.join.results import Kind, ResultPart
from joinery.model.spec import JoinQuerySpec
from joinery.model.time import FOREVER
from joinery.model.tuples import TupleBatch
from joinery.window.sliding import Marks

NAMES = "abcd"
ENDED = Marks((FOREVER, FOREVER))


def plan_of(
    schemas: Sequence[Mapping[str, str]] | Mapping[str, str],
    on: Sequence[object] = ("k",),
    windows: Sequence[object] = ("100ns", "100ns"),
    *,
    unit: str | None = "ns",
    partitions: int = 60,
    theta: int | None = None,
    block: int = 4096,
    **join: object,
) -> JoinPlan:
    """A query over streams a, b ...; every schema gets a time column `ts` (int64, unless it says otherwise)."""
    each = [schemas] * len(windows) if isinstance(schemas, Mapping) else schemas
    streams = [
        {
            "name": name,
            "schema": {"ts": "int64", **schema},
            "window": window,
            "time": {"column": "ts"} | ({"unit": unit} if "ts" not in schema or unit else {}),
        }
        for name, schema, window in zip(NAMES, each, windows, strict=False)
    ]
    spec = {"streams": streams, "join": {"on": list(on), **join}, "partitions": partitions}
    return replace(JoinPlan.of(JoinQuerySpec.parse(spec)), theta_bytes=theta, block_bytes=block)


def read(plan: JoinPlan, stream: int, first_place: int = 0, **columns: object) -> TupleBatch:
    """Rows of one stream; a column is an Arrow array or a list of values of its type."""
    form = plan.formats[stream]
    arrays = {
        name: values if isinstance(values, pa.Array) else pa.array(values, form.schema.field(name).type)
        for name, values in columns.items()
    }
    return ingest.read(form, pa.RecordBatch.from_pydict(arrays), first_place=first_place)


def told(parts: Iterable[ResultPart]) -> list[tuple[int | None, ...]]:
    """Results by their members' places, in order."""
    found: list[tuple[int | None, ...]] = []
    for part in parts:
        part.rows.validate(full=True)
        if part.kind is Kind.RESULT:
            columns = [[None] * len(part.groups) if one is None else one.tolist() for one in part.members]
            found += zip(*columns, strict=True)
    return sorted(found, key=lambda one: [-1 if place is None else place for place in one])


def joined(join: WindowJoin, *batches: TupleBatch, marks: Sequence[int] | Marks) -> list[tuple[int | None, ...]]:
    """Let the join take these batches; its results by their members' places."""
    return told(join.on_batch(batches, marks if isinstance(marks, Marks) else Marks(tuple(marks))))
