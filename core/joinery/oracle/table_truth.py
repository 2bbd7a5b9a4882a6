"""What a query with a stored table must give, from recorded rows and versions alone: `joinery verify` asks this.

It shares no code with the hybrid join: no segments, no hashing, no waiting. Rows and a whole version of the table meet
in Arrow's own join.

Rule 1: a row meets the version in force at its record: the last entry of an earlier record. Late rows meet none.
Rule 2: a null in a key meets nothing. `where` is part of the meeting: a left join keeps a row that it leaves alone.
Rule 3: every result carries its version, also of a row without a partner.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joinery.join.plan import JoinPlan, JoinType
from joinery.model.errors import UserMustAct
from joinery.model.expression_arrow import Predicate
from joinery.model.spec_table import VERSION
from joinery.model.tuples import I64Array
from joinery.oracle.truth import RecordedStream

_LEFT, _RIGHT = "left row", "right row"


def table_truth(
    plan: JoinPlan, stream: RecordedStream, entries: Sequence[tuple[int, int]], tables: Mapping[int, pa.Table]
) -> Iterator[pa.Table]:
    """Every result row, in pieces. `entries`: record and version of each change of the table, in their order."""
    if stream.records is None:
        raise ValueError("a row's version depends on its record")
    records, versions = (np.array(column, np.int64) for column in zip(*entries, strict=True))
    at = np.searchsorted(records, stream.records, side="left") - 1
    for place, version in enumerate(versions.tolist()):
        chosen = np.flatnonzero((at == place) & ~stream.late)
        if chosen.size:
            if version not in tables:
                raise UserMustAct(f"found no version {version} of the table, wanted it; record the run again")
            yield _joined(plan, stream.rows.take(pa.array(chosen)), tables[version], version)


def _joined(plan: JoinPlan, rows: pa.Table, table: pa.Table, version: int) -> pa.Table:
    left, right = _pairs(plan, rows, table)
    sides = {plan.formats[0].name: (rows, left), plan.formats[1].name: (table, right)}
    if plan.where is not None and left.size:
        mask = plan.where.mask(_columns(plan.where, sides, version), left.size)
        left, right = left[mask], right[mask]
    missing = np.empty(0, np.int64)
    if plan.type is JoinType.LEFT:
        missing = np.setdiff1d(np.arange(rows.num_rows), left)
    left = np.concatenate([left, missing])
    right = np.concatenate([right, np.full(missing.size, -1)])
    sides = {plan.formats[0].name: (rows, left), plan.formats[1].name: (table, right)}
    names = [(plan.formats[one.stream].name, plan.formats[one.stream].schema.names[one.number]) for one in plan.output]
    columns = [_column(sides, stream, name, version) for stream, name in names]
    made = pa.Table.from_arrays(columns, schema=plan.schema)
    if plan.filter is None or not left.size:
        return made
    return made.filter(pa.array(plan.filter.mask(_columns(plan.filter, sides, version), left.size)))


def _pairs(plan: JoinPlan, rows: pa.Table, table: pa.Table) -> tuple[I64Array, I64Array]:
    """The places of rows with equal keys."""
    ours, theirs = (form.key for form in plan.formats)
    names = [f"key {place}" for place in range(len(ours.forms))]
    left, right = (
        pa.table([*_keys(key.columns, key.forms, side), pa.array(np.arange(side.num_rows))], [*names, own])
        for key, side, own in ((ours, rows, _LEFT), (theirs, table, _RIGHT))
    )
    met = left.join(right, names, join_type="inner", use_threads=False)
    return met[_LEFT].to_numpy(), met[_RIGHT].to_numpy()


def _keys(names: Sequence[str], forms: Sequence[pa.DataType], rows: pa.Table) -> list[pa.ChunkedArray]:
    return [rows.column(name).cast(form) for name, form in zip(names, forms, strict=True)]


def _columns(
    condition: Predicate, sides: Mapping[str, tuple[pa.Table, I64Array]], version: int
) -> dict[tuple[str, str], pa.Array]:
    return {(stream, name): _column(sides, stream, name, version) for stream, name in condition.columns}


def _column(sides: Mapping[str, tuple[pa.Table, I64Array]], stream: str, name: str, version: int) -> pa.Array:
    rows, places = sides[stream]
    if name == VERSION and name not in rows.column_names:
        return pa.array(np.full(places.size, version, np.int64))
    nobody: NDArray[np.bool_] = places < 0
    index = pa.array(np.where(nobody, 0, places), mask=nobody)
    column = rows.column(name).combine_chunks()
    return column.take(index) if len(column) else pa.nulls(places.size, column.type)
