"""Rows as Arrow IPC record batch messages, without a schema: both sides know it.

Our own parts are believed to send valid columns (only sizes are looked at); producers are not. Arrow's reader checks
the frame of a message, `flow.ingest` the buffers in it. Two things must be seen before either: how many rows the
message claims, and whether its buffers are compressed. A message of 4 MB can hold 40 GB of compressed zeros, so
compressed batches are refused; Arrow has no option for that, so the flag is looked up in the message's metadata.
"""

import struct
from functools import lru_cache
from typing import Final

import pyarrow as pa

from joinery.adapters.codec.errors import BadMessage, WireError
from joinery.flow.ingest import MAX_ROWS

MAX_SCHEMA_BYTES: Final = 1 << 16
_UNREADABLE: Final = (pa.ArrowException, OSError, EOFError, ValueError, KeyError, OverflowError)
_RECORD_BATCH: Final = 3
"""MessageHeader.RecordBatch in Arrow's Message.fbs."""
_BY_HAND: Final = "write it with an Arrow library"


def read_rows(where: str, body: memoryview, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of one of our own parts."""
    try:
        rows = pa.ipc.read_record_batch(pa.py_buffer(body), schema)
        rows.validate()
    except _UNREADABLE as error:
        raise WireError(where, f"{body.nbytes} bytes that do not hold rows ({_first_line(error)})", "rows") from error
    return rows


def plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows without dictionaries: those would have to travel in messages of their own."""
    if not any(pa.types.is_dictionary(kind) for kind in rows.schema.types):
        return rows
    columns = [one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in rows.columns]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


@lru_cache(maxsize=64)
def read_schema(data: bytes) -> pa.Schema:
    """The schema that somebody outside tells."""
    if len(data) > MAX_SCHEMA_BYTES:
        raise BadMessage(f"a schema of {len(data)} bytes", f"at most {MAX_SCHEMA_BYTES}", "drop its metadata")
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(data))
        types = {field.name: field.type for field in schema}  # whether names are UTF-8 is seen only here
        str(types)  # and of time zones here
    except _UNREADABLE as error:
        found = f"{len(data)} bytes that hold no schema ({_first_line(error)})"
        raise BadMessage(found, "an Arrow IPC schema message", _BY_HAND) from error
    for name, kind in types.items():
        if pa.types.is_dictionary(kind):
            found = f"column {name} as a dictionary"
            raise BadMessage(found, "plain values", "decode the dictionary before sending")
        if pa.types.is_decimal(kind) and not 0 <= kind.scale <= kind.precision:  # Arrow's casts do not survive it
            raise BadMessage(f"column {name} of {kind}", "a scale from 0 to the precision", "send such decimals")
    return schema


def read_foreign_rows(body: memoryview, schema: pa.Schema) -> pa.RecordBatch:
    """A producer's batch; its buffers are still to be checked (`flow.ingest.read`)."""
    try:
        message = pa.ipc.read_message(pa.py_buffer(body))  # which proves that the metadata is sound
        count, is_compressed = _claims(message.metadata.to_pybytes())
    except (*_UNREADABLE, struct.error) as error:
        found = f"{body.nbytes} bytes that hold no rows ({_first_line(error)})"
        raise BadMessage(found, "an Arrow IPC record batch message", _BY_HAND) from error
    if not 0 <= count <= MAX_ROWS:
        raise BadMessage(f"a batch of {count} rows", f"at most {MAX_ROWS}", "send smaller batches")
    if is_compressed:
        raise BadMessage("compressed buffers", "plain ones", "switch the compression of Arrow IPC off")
    try:
        rows = pa.ipc.read_record_batch(message, schema)
        return rows if rows.num_rows else pa.RecordBatch.from_pylist([], schema=schema)  # others may have no buffers
    except _UNREADABLE as error:
        found = f"rows that do not fit their schema ({_first_line(error)})"
        raise BadMessage(found, f"columns {schema.names}", "send the schema with the batch") from error


def _claims(metadata: bytes) -> tuple[int, bool]:
    """How many rows a message claims to hold, and whether they are compressed (Arrow's Message.fbs, RecordBatch)."""
    message = struct.unpack_from("<I", metadata)[0]
    kind = _slot(metadata, message, 1)
    header = _slot(metadata, message, 2)
    if kind is None or metadata[kind] != _RECORD_BATCH or header is None:
        raise ValueError("no record batch")
    batch = header + struct.unpack_from("<I", metadata, header)[0]
    length = _slot(metadata, batch, 0)
    count = 0 if length is None else struct.unpack_from("<q", metadata, length)[0]
    return count, _slot(metadata, batch, 3) is not None


def _slot(data: bytes, table: int, field: int) -> int | None:
    """Where a field of a flatbuffer's table lies; None if it was left out."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    if 4 + 2 * field >= struct.unpack_from("<H", data, vtable)[0]:
        return None
    offset = struct.unpack_from("<H", data, vtable + 4 + 2 * field)[0]
    return table + offset if offset else None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
