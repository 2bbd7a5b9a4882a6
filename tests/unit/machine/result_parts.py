"""Short ways to write result parts: every row is known by its number."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from joinery.join.results import Kind, ResultPart
from joinery.model.tuples import I64Array
from joinery.window.sliding import Marks

Row = tuple[int, int, int]
"""Number, group, time."""


def vector(*values: int) -> I64Array:
    return np.array(values, np.int64)


def part(rows: Sequence[Row], kind: Kind = Kind.RESULT, stream: int = 0) -> ResultPart:
    numbers, groups, times = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    return ResultPart(
        kind=kind,
        rows=pa.RecordBatch.from_pydict({"number": pa.array(numbers, pa.int64())}),
        groups=np.array(groups, np.uint16),
        times=np.array(times, np.int64),
        stream=stream,
        origin=None,
        members=(np.array(numbers, np.int64), None) if stream == 0 else (None, np.array(numbers, np.int64)),
    )


def numbers(parts: Iterable[ResultPart], kind: Kind = Kind.RESULT) -> list[int]:
    return [number for one in parts if one.kind is kind for number in one.rows.column(0).to_pylist()]


def times(parts: Iterable[ResultPart]) -> list[int]:
    return [time for one in parts if one.kind is Kind.RESULT for time in one.times.tolist()]


def marks(watermark: int) -> Marks:
    return Marks((watermark, watermark + 5))
