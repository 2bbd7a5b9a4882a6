"""An increment of a group's state as bytes, for a checkpoint store; no pickle, nothing is ever executed.

    head     magic, format version, CRC-32 of all that follows, length of all     24 bytes, little-endian
    numbers  every plain number of the increment, as one vector of int64
    columns  of each stream in turn: numpy's bytes of each column, then the rows as an Arrow IPC stream

Every item has its length before it and begins at a multiple of 8, so that columns are read where they lie.

Rule 1: what is read back equals what was written, down to which optional columns are there.
Rule 2: whatever is not exactly what was written is refused: another format by its version, damage by the checksum.
Rule 3: one copy to write, one to read; what was read belongs to the reader, who may write into it.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joinery.join.state import Increment
from joinery.model.errors import UserMustAct, require
from joinery.model.ids import GroupId, RecordNo
from joinery.model.tuples import I64Array, Order, TupleBatch
from joinery.window.sliding import Floor, Marks

FORMAT: Final = 1
"""Raised with every change of the layout; each version reads its own only."""
_MAGIC: Final = b"JOINERYI"
_HEAD: Final = struct.Struct("<8sIIQ")
_LENGTH: Final = struct.Struct("<Q")
_END_OF_STREAM: Final = 8
"""Bytes with which an Arrow IPC stream ends."""
_NOBODY: Final = -1

Column = NDArray[Any]


class BadIncrement(UserMustAct):
    """A stored increment that cannot be read: written by another version, or damaged."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"checkpoint: found {found}, wanted an increment of format {FORMAT} as it was written; "
            "run the version of Joinery that wrote it, or restore the store"
        )


# --- writing


def encode(increment: Increment) -> memoryview:
    """The increment as bytes."""
    states = zip(increment.rows, increment.flags, increment.matched, strict=True)
    columns = [_columns_of(batch, flags, matched) for batch, flags, matched in states]
    numbers = np.array(list(_numbers_of(increment)), "<i8")
    rows = [batch.rows for batch in increment.rows]
    size = _HEAD.size + _item(numbers.nbytes)
    for own, batch in zip(columns, rows, strict=True):
        size += sum(_item(column.nbytes) for column in own) + _item(_ipc_size(batch))
    data = bytearray(size)
    writer = pa.FixedSizeBufferWriter(pa.py_buffer(data))
    writer.write(bytes(_HEAD.size))
    _put(writer, numbers)
    for own, batch in zip(columns, rows, strict=True):
        for column in own:
            _put(writer, column)
        _put_rows(writer, batch)
    writer.close()
    view = memoryview(data)
    _HEAD.pack_into(view, 0, _MAGIC, FORMAT, zlib.crc32(view[_HEAD.size :]), size)
    return view


def _columns_of(batch: TupleBatch, flags: NDArray[np.uint8], matched: I64Array) -> list[Column]:
    """Every column but the rows, in the order of the format; one that is not there is left out."""
    order = batch.order
    found: list[tuple[Column | None, str]] = [
        (batch.times, "<i8"),
        (batch.hashes, "<u8"),
        (batch.words, "<i8"),
        (batch.places, "<i8"),
        (flags, "u1"),
        (matched, "<i8"),
        (batch.keyed, "?"),
        (batch.late, "?"),
        (None if order is None else order.ranks, "<i8"),
        (None if order is None else order.counts, "<i8"),
    ]
    return [np.ascontiguousarray(column, kind) for column, kind in found if column is not None]


def _numbers_of(one: Increment) -> Iterator[int]:
    yield from (one.group, one.tag, one.since is not None, _NOBODY if one.since is None else one.since, len(one.rows))
    for batch in one.rows:
        counts = 0 if batch.order is None else batch.order.counts.shape[1]
        yield from (batch.stream, batch.keyed is not None, batch.late is not None, batch.order is not None, counts)
    for vector in (one.marks.watermarks, one.marks.counts, one.closed, one.directory):
        yield from _vector(vector)
    yield len(one.floors)
    for floors in one.floors:
        yield from _vector(
            number
            for floor in floors
            for number in (floor.serial, floor.clock, _NOBODY if floor.lane is None else floor.lane)
        )


def _vector(numbers: Iterable[int]) -> Iterator[int]:
    known = tuple(numbers)
    yield len(known)
    yield from known


def _item(size: int) -> int:
    """Bytes that an item of this size takes."""
    return _LENGTH.size + size + -size % 8


def _ipc_size(rows: pa.RecordBatch) -> int:
    return int(rows.schema.serialize().size + pa.ipc.get_record_batch_size(rows)) + _END_OF_STREAM


def _put(writer: pa.NativeFile, column: Column) -> None:
    writer.write(_LENGTH.pack(column.nbytes))
    writer.write(column.reshape(-1))
    writer.write(bytes(-column.nbytes % 8))


def _put_rows(writer: pa.NativeFile, rows: pa.RecordBatch) -> None:
    size = _ipc_size(rows)
    writer.write(_LENGTH.pack(size))
    start = writer.tell()
    with pa.ipc.new_stream(writer, rows.schema) as stream:
        stream.write_batch(rows)
    require(writer.tell() - start == size, f"Arrow wrote {writer.tell() - start} bytes of rows, and had said {size}")
    writer.write(bytes(-size % 8))


# --- reading


def decode(pieces: Sequence[bytes | memoryview]) -> Increment:
    """The increment of these bytes, in whatever pieces they come."""
    data = memoryview(bytearray().join(pieces))
    _check(data)
    reader = _Reader(data)
    numbers = iter(reader.column("<i8").tolist())
    group, tag, has_since, since, streams = (next(numbers) for _ in range(5))
    shapes = [tuple(next(numbers) for _ in range(5)) for _ in range(streams)]
    watermarks, counts, closed, directory = (_take(numbers) for _ in range(4))
    floors = tuple(_floors(_take(numbers)) for _ in range(next(numbers)))
    parts = [_stream(reader, *shape) for shape in shapes]
    rows, flags, matched = zip(*parts, strict=True) if parts else ((), (), ())
    return Increment(
        group=GroupId(group),
        tag=RecordNo(tag),
        since=RecordNo(since) if has_since else None,
        rows=rows,
        flags=flags,
        matched=matched,
        marks=Marks(watermarks, counts),
        closed=closed,
        floors=floors,
        directory=directory,
    )


def _check(data: memoryview) -> None:
    """Rule 2."""
    if len(data) < _HEAD.size:
        raise BadIncrement(f"{len(data)} bytes")
    magic, version, checksum, size = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise BadIncrement(f"bytes that begin with {magic!r}")
    if version != FORMAT:
        raise BadIncrement(f"format {version}")
    if size != len(data):
        raise BadIncrement(f"{len(data)} of {size} bytes")
    if zlib.crc32(data[_HEAD.size :]) != checksum:
        raise BadIncrement("a wrong checksum")


def _take(numbers: Iterator[int]) -> tuple[int, ...]:
    return tuple(next(numbers) for _ in range(next(numbers)))


def _floors(flat: tuple[int, ...]) -> tuple[Floor, ...]:
    triples = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
    return tuple(Floor(serial, clock, None if lane == _NOBODY else lane) for serial, clock, lane in triples)


def _stream(
    reader: "_Reader", stream: int, has_keyed: int, has_late: int, has_order: int, counts: int
) -> tuple[TupleBatch, NDArray[np.uint8], I64Array]:
    times, hashes, words, places = (reader.column(kind) for kind in ("<i8", "<u8", "<i8", "<i8"))
    flags, matched = reader.column("u1"), reader.column("<i8")
    keyed = reader.column("?") if has_keyed else None
    late = reader.column("?") if has_late else None
    order = Order(reader.column("<i8"), reader.column("<i8").reshape(times.size, counts)) if has_order else None
    batch = TupleBatch(stream, times, hashes, words, keyed, places, reader.rows(), late, order)
    return batch, flags, matched


class _Reader:
    """Items one after the other, read where they lie."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, _HEAD.size

    def column(self, kind: str) -> Column:
        return np.frombuffer(self._next(), kind)

    def rows(self) -> pa.RecordBatch:
        with pa.ipc.open_stream(pa.py_buffer(self._next())) as stream:
            return stream.read_next_batch()

    def _next(self) -> memoryview:
        [size] = _LENGTH.unpack_from(self._data, self._at)
        start = self._at + _LENGTH.size
        self._at = start + size + -size % 8
        return self._data[start : start + size]
