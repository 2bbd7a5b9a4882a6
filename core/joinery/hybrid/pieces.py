"""Record batches of one schema under numbers, and rows out of many of them brought together in one pass.

Arrow takes rows out of one batch. With a batch per segment that is a call per segment and column, and one more copy to
put the parts together; here it is one kernel per column, which finds each value by the address of its piece's buffer.

Rule 1: a piece that is put here stays as it is until it is dropped: the addresses point into it.
Rule 2: row -1 of any piece is a row of nulls.
"""

from typing import Final

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from joinery.hybrid.addresses import copy, fetch, i32_at, i64_at, u8_at
from joinery.model.tuples import I64Array
from joinery.window.arrays import empty, grown

I32Array = NDArray[np.int32]

VALUES: Final = 0
"""Address of a column's first value; of texts, of all their bytes."""
STARTS: Final = 1
"""Of texts: address of the first row's offset."""
VALID: Final = 2
"""Address of the bits that say which rows are not null; 0: all of them."""
SHIFT: Final = 3
"""Which bit is the first row's."""
_LANES: Final = 4
_AHEAD: Final = 8
MOST_TEXT: Final = (1 << 31) - 1
"""Bytes of one text column of an Arrow batch."""
_WORD: Final = 8


class TooLong(Exception):
    """These rows have more text than one Arrow array can hold."""


class Pieces:
    """Columns by address."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._kinds = [_width(field.type) for field in schema]
        self._held: dict[int, pa.RecordBatch] = {}
        self._at = [np.zeros(_LANES, np.int64) for _ in schema]
        self._with_nulls = [set[int]() for _ in schema]

    def __contains__(self, number: int) -> bool:
        return number in self._held

    @property
    def numbers(self) -> list[int]:
        """Of the pieces that are here."""
        return sorted(self._held)

    def put(self, number: int, rows: pa.RecordBatch) -> None:
        """A piece, in place of one that had this number."""
        rows = rows if rows.schema.equals(self.schema) else rows.cast(self.schema)
        self._held[number] = rows
        for place, (column, width) in enumerate(zip(rows.columns, self._kinds, strict=True)):
            if self._at[place].size < _LANES * (number + 1):
                self._at[place] = grown(self._at[place], max(_LANES * (number + 1), 2 * self._at[place].size))
            self._at[place][_LANES * number : _LANES * (number + 1)] = _addresses(column, width)
            if column.null_count:
                self._with_nulls[place].add(number)
            else:
                self._with_nulls[place].discard(number)

    def drop(self, number: int) -> None:
        """A piece that is needed no more."""
        if self._held.pop(number, None) is not None:
            for with_nulls in self._with_nulls:
                with_nulls.discard(number)

    def gather(self, numbers: I32Array, rows: I64Array, *, has_missing: bool = False) -> pa.RecordBatch:
        """These rows of these pieces, in their order; `TooLong` if they do not fit one batch."""
        columns = [self._column(place, numbers, rows, has_missing) for place in range(len(self._kinds))]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _column(self, place: int, numbers: I32Array, rows: I64Array, has_missing: bool) -> pa.Array:
        kind, width, at, count = self.schema.field(place).type, self._kinds[place], self._at[place], rows.size
        validity, nulls = None, 0
        if has_missing or self._with_nulls[place]:
            valid = np.empty(count, np.bool_)
            nulls = int(_valid(at, numbers, rows, valid))
            validity = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
        if width == 0:
            bits = np.empty(count, np.bool_)
            _bits(at, numbers, rows, bits)
            return pa.Array.from_buffers(
                kind, count, [validity, pa.py_buffer(np.packbits(bits, bitorder="little"))], nulls
            )
        if width > 0:
            values = np.zeros(count * width, np.uint8) if has_missing else empty(count * width, np.uint8)
            if width == _WORD:
                _words(at, numbers, rows, values.view(np.int64))
            else:
                _fixed(at, width, numbers, rows, values.ctypes.data)
            return pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(values)], nulls)
        starts, sources = empty(count + 1, np.int32), empty(count, np.int64)
        total = int(_lengths(at, numbers, rows, starts, sources))
        if total > MOST_TEXT:
            raise TooLong
        data = empty(total, np.uint8)
        _texts(starts, sources, data.ctypes.data)
        return pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(starts), pa.py_buffer(data)], nulls)


def _width(kind: pa.DataType) -> int:
    """Bytes of a value; 0: a bit, -1: a text."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return -1
    if pa.types.is_boolean(kind):
        return 0
    return int(kind.bit_width // 8)


def _addresses(column: pa.Array, width: int) -> tuple[int, int, int, int]:
    buffers, offset = column.buffers(), column.offset
    valid = _address(buffers[0]) if column.null_count else 0
    if width < 0:
        return _address(buffers[2]), _address(buffers[1]) + 4 * offset, valid, offset
    return _address(buffers[1]) + width * offset, 0, valid, offset  # of bits (width 0) `SHIFT` says where the first is


def _address(buffer: pa.Buffer | None) -> int:
    return 0 if buffer is None else int(buffer.address)


@njit(cache=True, nogil=True)
def _fixed(at: I64Array, width: int, numbers: I32Array, rows: I64Array, out: int) -> None:
    for i in range(rows.size):
        if i + _AHEAD < rows.size:
            fetch(at[_LANES * numbers[i + _AHEAD] + VALUES] + rows[i + _AHEAD] * width)
        if rows[i] >= 0:
            copy(out + i * width, at[_LANES * numbers[i] + VALUES] + rows[i] * width, width)


@njit(cache=True, nogil=True)
def _words(at: I64Array, numbers: I32Array, rows: I64Array, out: I64Array) -> None:
    for i in range(rows.size):
        if i + _AHEAD < rows.size:
            fetch(at[_LANES * numbers[i + _AHEAD] + VALUES] + rows[i + _AHEAD] * _WORD)
        if rows[i] >= 0:
            out[i] = i64_at(at[_LANES * numbers[i] + VALUES] + rows[i] * _WORD)


@njit(cache=True, nogil=True)
def _bit(at: I64Array, lane: int, number: int, row: int) -> bool:
    place = at[_LANES * number + SHIFT] + row
    return bool((u8_at(at[_LANES * number + lane] + (place >> 3)) >> (place & 7)) & 1)


@njit(cache=True, nogil=True)
def _bits(at: I64Array, numbers: I32Array, rows: I64Array, out: NDArray[np.bool_]) -> None:
    for i in range(rows.size):
        out[i] = rows[i] >= 0 and _bit(at, VALUES, numbers[i], rows[i])


@njit(cache=True, nogil=True)
def _valid(at: I64Array, numbers: I32Array, rows: I64Array, out: NDArray[np.bool_]) -> int:
    """Which rows are not null; how many are."""
    nulls = 0
    for i in range(rows.size):
        out[i] = rows[i] >= 0 and (at[_LANES * numbers[i] + VALID] == 0 or _bit(at, VALID, numbers[i], rows[i]))
        nulls += not out[i]
    return nulls


@njit(cache=True, nogil=True)
def _lengths(at: I64Array, numbers: I32Array, rows: I64Array, starts: I32Array, sources: I64Array) -> int:
    """Where each text will begin, and the address where it lies; the bytes of all of them."""
    total = 0
    for i in range(rows.size):
        if i + _AHEAD < rows.size:
            fetch(at[_LANES * numbers[i + _AHEAD] + STARTS] + 4 * rows[i + _AHEAD])
        starts[i] = total
        if rows[i] >= 0:
            place = at[_LANES * numbers[i] + STARTS] + 4 * rows[i]
            begin = i32_at(place)
            sources[i] = at[_LANES * numbers[i] + VALUES] + begin
            total += i32_at(place + 4) - begin
        else:
            sources[i] = 0
    starts[rows.size] = total
    return total


@njit(cache=True, nogil=True)
def _texts(starts: I32Array, sources: I64Array, out: int) -> None:
    for i in range(sources.size):
        if i + _AHEAD < sources.size:
            fetch(sources[i + _AHEAD])
            fetch(sources[i + _AHEAD] + 64)
        copy(out + starts[i], sources[i], starts[i + 1] - starts[i])
