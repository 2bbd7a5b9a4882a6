"""Facts and orders as JSON and blobs, and back: what `tracing` writes. No code is stored, only names of our own types.

A value becomes numbers, texts and lists; everything else an object with one key that begins with "$". Arrays and Arrow
rows are blobs beside the JSON (npy, Arrow IPC), or, where they are only to be compared, a checksum of what they hold.
Arrow sends no mask without a null in it, and no slices; both are put back: they count in `nbytes`, by which machines
decide.
"""

import base64
import io
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import sha256
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from joinery.model.errors import Bug, require
from joinery.model.spec import JoinQuerySpec


class Shelf(Protocol):
    """Where arrays and rows go."""

    def array(self, value: np.ndarray[Any, Any]) -> Any: ...

    def rows(self, value: pa.RecordBatch) -> Any: ...

    def unknown(self, value: object) -> Any: ...


class Blobs:
    """Keeps them whole."""

    def __init__(self) -> None:
        self.data: list[bytes] = []

    def array(self, value: np.ndarray[Any, Any]) -> Any:
        out = io.BytesIO()
        np.save(out, value, allow_pickle=False)
        self.data.append(out.getvalue())
        return {"$array": len(self.data) - 1}

    def rows(self, value: pa.RecordBatch) -> Any:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_batch(value)
        self.data.append(sink.getvalue().to_pybytes())
        masked = [at for at, column in enumerate(value.columns) if column.buffers()[0] is not None]
        shifts = [column.offset % 8 for column in value.columns]
        return {"$rows": len(self.data) - 1, "masked": masked, "shifts": shifts, "nbytes": value.nbytes}

    def unknown(self, value: object) -> Any:
        raise Bug(f"a fact holds a {type(value).__name__}, which cannot be written down")


class Sums:
    """Keeps checksums of what they hold."""

    def array(self, value: np.ndarray[Any, Any]) -> Any:
        return {"$array": [value.dtype.str, list(value.shape), sha256(value.tobytes()).hexdigest()]}

    def rows(self, value: pa.RecordBatch) -> Any:
        told = sha256(repr(value.to_pylist()).encode()).hexdigest()
        return {"$rows": [str(value.schema), value.num_rows, value.nbytes, told]}

    def unknown(self, value: object) -> Any:
        return {"$unknown": type(value).__name__}


def encode(value: object, shelf: Shelf) -> Any:
    """The value as JSON can hold it."""
    if isinstance(value, Enum):
        return {"$enum": _name(type(value)), "value": value.value}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return shelf.array(value)
    if isinstance(value, pa.RecordBatch):
        return shelf.rows(value)
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {"$map": [[encode(key, shelf), encode(item, shelf)] for key, item in value.items()]}
    if isinstance(value, Set):
        return {"$set": [encode(item, shelf) for item in sorted(value)]}
    if isinstance(value, list | tuple):
        items = [encode(item, shelf) for item in value]
        return {"$tuple": items} if isinstance(value, tuple) else items
    if isinstance(value, JoinQuerySpec):
        return {"$spec": value.to_dict()}
    if is_dataclass(value) and not isinstance(value, type):
        inside = {field.name: encode(getattr(value, field.name), shelf) for field in fields(value) if field.init}
        return {"$type": _name(type(value)), "fields": inside}
    return shelf.unknown(value)


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def decode(value: Any, blobs: list[bytes]) -> Any:
    """The value again, from JSON and whole blobs."""
    if isinstance(value, list):
        return [decode(item, blobs) for item in value]
    if not isinstance(value, dict):
        return value
    match next(iter(value)):
        case "$tuple":
            return tuple(decode(item, blobs) for item in value["$tuple"])
        case "$set":
            return frozenset(decode(item, blobs) for item in value["$set"])
        case "$map":
            return {decode(key, blobs): decode(item, blobs) for key, item in value["$map"]}
        case "$bytes":
            return base64.b64decode(value["$bytes"])
        case "$spec":
            return JoinQuerySpec.parse(value["$spec"])
        case "$enum":
            return _kind(value["$enum"])(value["value"])
        case "$array":
            return np.load(io.BytesIO(blobs[value["$array"]]), allow_pickle=False)
        case "$rows":
            return _rows(value, blobs[value["$rows"]])
        case "$type":
            return _kind(value["$type"])(**{key: decode(item, blobs) for key, item in value["fields"].items()})
        case other:
            raise Bug(f"found {other}, wanted what `encode` writes")


def _kind(name: str) -> Any:
    module, _, path = name.partition(":")
    require(module.startswith("joinery."), f"found a type of {module}, wanted one of ours")
    found: Any = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    require(isinstance(found, type), f"{name} is no type")
    return found


def _rows(told: dict[str, Any], blob: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(blob) as reader:
        rows = reader.read_next_batch()
    columns = []
    for at, (column, shift) in enumerate(zip(rows.columns, told["shifts"], strict=True)):
        is_masked = at in told["masked"]
        if shift and len(column) == 0:
            eight = pa.nulls(8, column.type) if is_masked else pa.array([False] * 8).cast(column.type, safe=False)
            column = eight.slice(shift, 0)
        columns.append(_masked(_shifted(column, shift)) if is_masked else _shifted(column, shift))
    rows = pa.RecordBatch.from_arrays(columns, schema=rows.schema)
    require(rows.nbytes == told["nbytes"], f"rows of {rows.nbytes} bytes, but they had {told['nbytes']}")
    return rows


def _shifted(column: pa.Array, shift: int) -> pa.Array:
    """The column as a slice that begins so many rows later: of a slice Arrow counts every byte that it touches."""
    if shift == 0 or len(column) == 0:
        return column
    return pa.concat_arrays([*[column.slice(0, 1)] * shift, column]).slice(shift)


def _masked(column: pa.Array) -> pa.Array:
    buffers = column.buffers()
    if buffers[0] is not None:
        return column
    mask = pa.py_buffer(b"\xff" * ((column.offset + len(column) + 7) // 8))
    return pa.Array.from_buffers(column.type, len(column), [mask, *buffers[1:]], -1, column.offset)
