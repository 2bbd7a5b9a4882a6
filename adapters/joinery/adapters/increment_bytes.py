"""An increment of a group's state as bytes, for a checkpoint store (`framed`).

    numbers  every plain number of the increment, as one vector of int64
    columns  of each stream in turn: numpy's bytes of each column, then the rows as an Arrow IPC stream; a column that
             others tell is not written (`told_columns`)

What is read back equals what was written, down to which optional columns are there.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joinery.adapters.framed import Column, Reader, Writer, item_size
from joinery.adapters.told_columns import Found, Told
from joinery.join.state import Increment
from joinery.model.errors import UserMustAct
from joinery.model.ids import GroupId, RecordNo
from joinery.model.tuples import I64Array, Order, TupleBatch
from joinery.window.sliding import Floor, Marks

FORMAT: Final = 2
"""Raised with every change of the layout; each version reads its own only."""
_MAGIC: Final = b"JOINERYI"
_END_OF_STREAM: Final = 8
"""Bytes with which an Arrow IPC stream ends."""
_NOBODY: Final = -1


class BadIncrement(UserMustAct):
    """A stored increment that cannot be read: written by another version, or damaged."""

    def __init__(self, found: str) -> None:
        self.reason = f"found {found}, wanted an increment of format {FORMAT} as it was written"
        super().__init__(f"checkpoint: {self.reason}; run the version of Joinery that wrote it, or restore the store")


# --- writing


def encode(increment: Increment) -> memoryview:
    """The increment as bytes."""
    told = [Told.of(batch, flags) for batch, flags in zip(increment.rows, increment.flags, strict=True)]
    states = zip(told, increment.rows, increment.flags, increment.matched, strict=True)
    columns = [_columns_of(one, batch, flags, matched) for one, batch, flags, matched in states]
    numbers = np.array(list(_numbers_of(increment, told)), "<i8")
    rows = [batch.rows for batch in increment.rows]
    items = item_size(numbers.nbytes)
    for own, batch in zip(columns, rows, strict=True):
        items += sum(item_size(column.nbytes) for column in own) + item_size(_ipc_size(batch))
    writer = Writer(_MAGIC, FORMAT, items)
    writer.put(numbers)
    for own, batch in zip(columns, rows, strict=True):
        for column in own:
            writer.put(column)
        writer.put_with(_ipc_size(batch), partial(_write_rows, batch))
    return writer.sealed()


def _columns_of(told: Told, batch: TupleBatch, flags: NDArray[np.uint8], matched: I64Array) -> list[Column]:
    """Every column but the rows, in the order of the format; one that is not there, or is told, is left out."""
    order = batch.order
    found: list[tuple[Column | None, str]] = [
        *told.written(batch, flags),
        (matched, "<i8"),
        (batch.keyed, "?"),
        (batch.late, "?"),
        (None if order is None else order.ranks, "<i8"),
        (None if order is None else order.counts, "<i8"),
    ]
    return [np.ascontiguousarray(column, kind) for column, kind in found if column is not None]


def _numbers_of(one: Increment, told: Sequence[Told]) -> Iterator[int]:
    yield from (one.group, one.tag, one.since is not None, _NOBODY if one.since is None else one.since, len(one.rows))
    for batch, known in zip(one.rows, told, strict=True):
        counts = 0 if batch.order is None else batch.order.counts.shape[1]
        yield from (batch.stream, batch.keyed is not None, batch.late is not None, batch.order is not None, counts)
        yield from known.numbers()
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


def _ipc_size(rows: pa.RecordBatch) -> int:
    return int(rows.schema.serialize().size + pa.ipc.get_record_batch_size(rows)) + _END_OF_STREAM


def _write_rows(rows: pa.RecordBatch, file: pa.NativeFile) -> None:
    with pa.ipc.new_stream(file, rows.schema) as stream:
        stream.write_batch(rows)


# --- reading


def decode(pieces: Sequence[bytes | memoryview]) -> Increment:
    """The increment of these bytes, in whatever pieces they come."""
    reader = Reader(pieces, _MAGIC, FORMAT, BadIncrement)
    numbers = iter(reader.column("<i8").tolist())
    group, tag, has_since, since, streams = (next(numbers) for _ in range(5))
    shapes = [(*(next(numbers) for _ in range(5)), Told.read(numbers)) for _ in range(streams)]
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


def _take(numbers: Iterator[int]) -> tuple[int, ...]:
    return tuple(next(numbers) for _ in range(next(numbers)))


def _floors(flat: tuple[int, ...]) -> tuple[Floor, ...]:
    triples = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
    return tuple(Floor(serial, clock, None if lane == _NOBODY else lane) for serial, clock, lane in triples)


def _stream(
    reader: Reader, stream: int, has_keyed: int, has_late: int, has_order: int, counts: int, told: Told
) -> tuple[TupleBatch, NDArray[np.uint8], I64Array]:
    found, matched = Found.read(told, reader), reader.column("<i8")
    keyed = reader.column("?") if has_keyed else None
    late = reader.column("?") if has_late else None
    size = found.places.size
    order = Order(reader.column("<i8"), reader.column("<i8").reshape(size, counts)) if has_order else None
    rows = _rows(reader)
    times, hashes, words = found.columns(told, rows)
    return TupleBatch(stream, times, hashes, words, keyed, found.places, rows, late, order), found.flags, matched


def _rows(reader: Reader) -> pa.RecordBatch:
    with pa.ipc.open_stream(pa.py_buffer(reader.next())) as stream:
        return stream.read_next_batch()
