"""Columns of an increment that its other columns tell, and that are not written: three tenths of its bytes.

A time is mostly a column of its row in another unit, a single integer key a column as it is, a hash follows from its
word, places lie close together, and most flags are not set. Whether that is so is looked up, not assumed: what is not
exactly told by the others is written as it is.

    times    (column, scale) or (-1, 0)      words    column or -1       hashes   one of `Hashes`
    places   the smallest one, if 32 bits are enough from there, or -1   flags    1 if some are set
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joinery.adapters.framed import Column, Reader
from joinery.model.tuples import I64Array, TupleBatch
from joinery.partition.hashing import hash_words

_WRITTEN: Final = -1
_SCALES: Final = (1, 10**3, 10**6, 10**9)
"""From the unit of a column to nanoseconds."""


class Hashes(IntEnum):
    """Where hashes come from."""

    WRITTEN = 0
    OF_WORDS = 1
    WORDS = 2


@dataclass(frozen=True, slots=True)
class Told:
    """Which columns of a stream are told by others, and how."""

    times_column: int
    times_scale: int
    words_column: int
    hashes: Hashes
    first_place: int
    has_flags: int

    @staticmethod
    def of(batch: TupleBatch, flags: NDArray[np.uint8]) -> "Told":
        """Looked up in the columns."""
        numbers = _numbers(batch.rows)
        times_column, scale = _scaled(numbers, batch.times)
        words_column, _ = _scaled(numbers, batch.words, (1,))
        return Told(
            times_column, scale, words_column, _hashes(batch), _first(batch.places), int(bool(flags.any()))
        )  # fmt: skip

    @staticmethod
    def read(numbers: Iterator[int]) -> "Told":
        """As `numbers` wrote it."""
        times_column, scale, words_column, hashes, first_place, has_flags = (next(numbers) for _ in range(6))
        return Told(times_column, scale, words_column, Hashes(hashes), first_place, has_flags)

    def numbers(self) -> tuple[int, ...]:
        """All there is to it."""
        return (
            self.times_column, self.times_scale, self.words_column, self.hashes, self.first_place, self.has_flags,
        )  # fmt: skip

    def written(self, batch: TupleBatch, flags: NDArray[np.uint8]) -> list[tuple[Column, str]]:
        """The columns that must be written, in the order in which `Found.read` reads them."""
        made: list[tuple[Column, str]] = []
        if self.times_column == _WRITTEN:
            made.append((batch.times, "<i8"))
        if self.words_column == _WRITTEN:
            made.append((batch.words, "<i8"))
        if self.hashes is Hashes.WRITTEN:
            made.append((batch.hashes, "<u8"))
        near = self.first_place != _WRITTEN
        made.append((batch.places - self.first_place, "<u4") if near else (batch.places, "<i8"))
        if self.has_flags:
            made.append((flags, "u1"))
        return made


@dataclass(frozen=True, slots=True)
class Found:
    """What was written of them."""

    times: I64Array | None
    words: I64Array | None
    hashes: NDArray[np.uint64] | None
    places: I64Array
    flags: NDArray[np.uint8]

    @staticmethod
    def read(told: Told, reader: Reader) -> "Found":
        """In the order of `Told.written`."""
        times = reader.column("<i8") if told.times_column == _WRITTEN else None
        words = reader.column("<i8") if told.words_column == _WRITTEN else None
        hashes = reader.column("<u8") if told.hashes is Hashes.WRITTEN else None
        near = told.first_place != _WRITTEN
        places = reader.column("<u4").astype(np.int64) + told.first_place if near else reader.column("<i8")
        flags = reader.column("u1") if told.has_flags else np.zeros(places.size, np.uint8)
        return Found(times, words, hashes, places, flags)

    def columns(self, told: Told, rows: pa.RecordBatch) -> tuple[I64Array, NDArray[np.uint64], I64Array]:
        """Times, hashes and words, as they were; the reader's own, as all that is read."""
        times = self.times if self.times is not None else _number(rows, told.times_column) * told.times_scale
        words = self.words if self.words is not None else _number(rows, told.words_column).copy()
        hashes = self.hashes
        if hashes is None:
            hashes = hash_words(words) if told.hashes is Hashes.OF_WORDS else words.view(np.uint64).copy()
        return times, hashes, words


def _numbers(rows: pa.RecordBatch) -> dict[int, I64Array]:
    """The columns of 64-bit integers without nulls, times among them."""
    whole = [
        place
        for place, column in enumerate(rows.columns)
        if not column.null_count and (pa.types.is_int64(column.type) or pa.types.is_timestamp(column.type))
    ]
    return {place: _number(rows, place) for place in whole}


def _number(rows: pa.RecordBatch, place: int) -> I64Array:
    found: I64Array = rows.column(place).view(pa.int64()).to_numpy(zero_copy_only=True)
    return found


def _scaled(numbers: dict[int, I64Array], wanted: I64Array, scales: tuple[int, ...] = _SCALES) -> tuple[int, int]:
    """The column, and the scale, of which these are a multiple; the first row shows which is worth a look."""
    for place, column in numbers.items() if wanted.size else ():
        for scale in scales:
            if int(column[0]) * scale == wanted[0] and np.array_equal(column * scale, wanted):
                return place, scale
    return _WRITTEN, 0


def _hashes(batch: TupleBatch) -> Hashes:
    if np.array_equal(batch.hashes, batch.words.view(np.uint64)):
        return Hashes.WORDS
    return Hashes.OF_WORDS if np.array_equal(batch.hashes, hash_words(batch.words)) else Hashes.WRITTEN


def _first(places: I64Array) -> int:
    if not places.size:
        return _WRITTEN
    least = int(places.min())
    return least if least >= 0 and int(places.max()) - least < 1 << 32 else _WRITTEN
