"""Frames as Arrow batches, whatever library made them; none of them is imported here.

Whoever speaks Arrow's PyCapsule interface is understood (`__arrow_c_stream__`, `__arrow_c_array__`: pyarrow, polars,
pandas, DuckDB, nanoarrow ...). A mapping of columns is one frame, any other iterable holds frames. An index of pandas
is not data: columns are.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from joinery.adapters.sources.pieces import cut
from joinery.flow import ingest
from joinery.model.errors import BadBatch
from joinery.partition.format import StreamFormat

Frame = Any
"""A frame, a mapping of columns, or an iterable of them."""


def pieces_of(form: StreamFormat, data: Frame) -> Iterator[pa.RecordBatch]:
    """Rows in batches as they are sent, of the stream's own types; a frame is checked whole before its first batch."""
    for frame in frames_of(form, data):
        checked = [ingest.conform(form, batch) for batch in frame]
        for rows in checked:
            yield from cut(rows)


def frames_of(form: StreamFormat, data: Frame) -> Iterator[list[pa.RecordBatch]]:
    """Each frame as its batches."""
    if isinstance(data, pa.RecordBatchReader):
        for batch in data:
            yield [batch]
    elif (table := _table(form, data)) is not None:
        yield table.to_batches()
    elif isinstance(data, Iterable) and not isinstance(data, str | bytes):
        for one in data:
            yield from frames_of(form, one)
    else:
        found, wanted = f"a {type(data).__name__}", "a pandas, polars or Arrow frame, columns by name, or an iterable"
        raise BadBatch(form.name, found, wanted, "convert it with pyarrow.table(...)")


def _table(form: StreamFormat, data: Frame) -> pa.Table | None:
    """One frame; None: this is none."""
    try:
        if isinstance(data, pa.Table):
            return data
        if isinstance(data, pa.RecordBatch):
            return pa.Table.from_batches([data])
        if type(data).__module__.split(".")[0] == "pandas" and hasattr(data, "columns"):
            return pa.Table.from_pandas(data, preserve_index=False)
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data).read_all()
        if hasattr(data, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(data)])
        return pa.table(dict(data)) if isinstance(data, Mapping) else None
    except (pa.ArrowException, TypeError, ValueError) as error:
        found = f"a {type(data).__name__} that does not become columns ({str(error).splitlines()[0]})"
        raise BadBatch(form.name, found, "columns of one length and type each", "look at its types") from error
