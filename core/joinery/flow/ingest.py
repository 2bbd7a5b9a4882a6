"""Station 1 of 8, ingest, pure half: an Arrow batch as it came becomes a checked `TupleBatch`, or one clear refusal.

A batch is refused whole or taken whole. Columns may come in any order and in any type that casts to the stream's
without loss (int32 for int64, a dictionary of texts, a large string); they leave ordered by name and exactly of the
schema's type. Nulls are fine except in the time column; a null in a key matches nothing. NaN is an ordinary value of
a payload.
"""

from typing import Final

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from joinery.model.errors import BadBatch
from joinery.model.time import TIME_MAX, TIME_MIN
from joinery.model.tuples import TupleBatch
from joinery.model.views import readonly
from joinery.partition.format import StreamFormat

MAX_ROWS: Final = 1 << 24
"""Rows of one batch; messages are near 1 MB, so this only stops what is surely a mistake."""


def read(form: StreamFormat, batch: pa.RecordBatch, *, first_place: int, arrival_ns: int = 0) -> TupleBatch:
    """The batch as tuples, its rows standing at `first_place` and after in the stream."""
    rows = _conform(form, batch)
    hashes, words, keyed = form.key.digest(rows)
    places = np.arange(first_place, first_place + rows.num_rows, dtype=np.int64)
    return TupleBatch(form.index, times(form, rows, arrival_ns), hashes, words, keyed, places, rows)


def conform(form: StreamFormat, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows as the stream wants them, with their times checked; what a client can say before it sends anything."""
    rows = _conform(form, batch)
    times(form, rows, 0)
    return rows


def times(form: StreamFormat, rows: pa.RecordBatch, arrival_ns: int) -> NDArray[np.int64]:
    """The time of each row of a batch that was read: from its column, or when it arrived."""
    if form.time_column is None:
        return np.full(rows.num_rows, arrival_ns, np.int64)
    return _times(form, form.time_column, rows)


def _conform(form: StreamFormat, batch: pa.RecordBatch) -> pa.RecordBatch:
    if batch.num_rows > MAX_ROWS:
        raise BadBatch(form.name, f"a batch of {batch.num_rows} rows", f"at most {MAX_ROWS}", "send smaller batches")
    found, wanted = set(batch.schema.names), set(form.schema.names)
    if len(found) != len(batch.schema.names):
        raise BadBatch(form.name, f"columns {batch.schema.names}", "every column once", "drop the repeated column")
    if found != wanted:
        lacks = f"lacks {sorted(wanted - found)}" if wanted - found else ""
        extra = f"has unknown {sorted(found - wanted)}" if found - wanted else ""
        what = " and ".join(part for part in (lacks, extra) if part)
        raise BadBatch(
            form.name, f"a batch that {what}", f"columns {sorted(wanted)}", "send exactly the stream's columns"
        )
    try:
        batch.validate(full=True)  # readers of Arrow's wire format check nothing, and our kernels believe every offset
    except pa.ArrowException as error:
        found_wrong = f"a damaged batch ({str(error).splitlines()[0]})"
        raise BadBatch(form.name, found_wrong, "valid Arrow buffers", "write it with an Arrow library") from error
    columns = [_cast(form, field.name, batch.column(field.name), field.type) for field in form.schema]
    return pa.RecordBatch.from_arrays(columns, schema=form.schema)


def _cast(form: StreamFormat, name: str, column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if not _holds(column.type, kind):
        raise BadBatch(form.name, f"column {name} of {column.type}", str(kind), "send that type")
    try:
        if pa.types.is_dictionary(column.type):  # Arrow decodes no dictionary of string views, which polars sends
            return column.dictionary.cast(kind).take(column.indices)
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        reason = str(error).splitlines()[0]
        raise BadBatch(form.name, f"column {name} of {column.type} ({reason})", str(kind), "send that type") from error


def _times(form: StreamFormat, name: str, rows: pa.RecordBatch) -> NDArray[np.int64]:
    column, unit = rows.column(name), form.time_unit_ns
    if column.null_count:
        raise BadBatch(
            form.name,
            f"{column.null_count} nulls in the time column {name}",
            "a time in every row",
            "fill or drop them",
        )
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    values = _cast(form, name, column, pa.int64()).to_numpy()
    times = np.empty(values.size, np.int64)
    outside = _to_ns(readonly(values), unit, TIME_MIN // unit, TIME_MAX // unit, times)
    if outside >= 0:
        found, remedy = f"a time of {values[outside]} in {name}", "check spec.streams[].time.unit against the data"
        raise BadBatch(form.name, found, "a time from 1824 to 2116", remedy)
    return times


@njit(cache=True, nogil=True)
def _to_ns(values: NDArray[np.int64], unit: int, low: int, high: int, out: NDArray[np.int64]) -> int:
    """Nanoseconds; the first row whose time is not between the bounds, or -1."""
    for row in range(values.size):
        if values[row] <= low or values[row] >= high:
            return row
        out[row] = values[row] * unit
    return -1


def _holds(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a checked cast keeps every value and its meaning: Arrow would also make 5 true, and noon a date."""
    kinds = pa.types
    if kinds.is_dictionary(found) or kinds.is_run_end_encoded(found):
        found = found.value_type
    if kinds.is_null(found):
        return True
    if kinds.is_integer(wanted):
        return bool(kinds.is_integer(found))
    if kinds.is_floating(wanted):
        return bool(kinds.is_integer(found) or (kinds.is_floating(found) and found.bit_width <= wanted.bit_width))
    if kinds.is_decimal(wanted):
        return bool(kinds.is_integer(found) or kinds.is_decimal(found))
    if kinds.is_timestamp(wanted):
        return bool(kinds.is_timestamp(found) and (found.tz is None) == (wanted.tz is None))
    if kinds.is_date(wanted):
        return bool(kinds.is_date(found))
    if kinds.is_string(wanted):
        return bool(kinds.is_string(found) or kinds.is_large_string(found) or kinds.is_string_view(found))
    if kinds.is_binary(wanted) or kinds.is_fixed_size_binary(wanted):
        plain = kinds.is_binary(found) or kinds.is_large_binary(found) or kinds.is_binary_view(found)
        return bool(plain or kinds.is_fixed_size_binary(found))
    return False
