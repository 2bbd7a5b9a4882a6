"""Generators as sources: the rows that `source: {generator: ...}` describes, in the stream's columns and types.

Row n is a function of the query's spec and n (`generate.streams`), so a place is a row's number and any place can be
gone on from. Times begin at 0 (1970) in every run; without `time` they only say how far apart rows are.

| column                | what it holds                                            | types                    |
|-----------------------|----------------------------------------------------------|--------------------------|
| first of `join.on`    | as `keys` says                                           | integer, decimal, string |
| others of `join.on`   | 0 to 3                                                   | integer, decimal, string |
| `time.column`         | the time of arrival                                      | integer, timestamp       |
| `number`, if int64    | the number of the row                                    | int64                    |
| integer               | 1 to 999 (8 bits: 1 to 99)                               | all                      |
| decimal(p,s)          | up to three digits, s of them behind the point           | all                      |
| float                 | 0 to 1000                                                | all                      |
| string, binary        | 16 letters a to p; binary(N): N of them                  | N up to 1024             |
| bool, date, timestamp | one of both; a day, a moment of the years 1970 to 2001   | all                      |
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from joinery.adapters.sources.pieces import Pause, Piece, cut
from joinery.flow import ingest
from joinery.generate.draws import CHUNK
from joinery.generate.from_spec import points_of
from joinery.generate.payload import Floats, Integers, Letters, PayloadColumn, RowNumbers
from joinery.generate.points import PointProcess
from joinery.generate.streams import StreamGenerator
from joinery.model.errors import BadSpec, Complaint
from joinery.model.spec_sections import GeneratorSpec, StreamSpec
from joinery.model.time import NS_PER_UNIT
from joinery.model.types import ColumnType, Family
from joinery.partition.format import StreamFormat

LETTERS: Final = 16
MAX_WIDTH: Final = 1024
_SMALL: Final = 4
"""Keys after the first."""
_DAYS: Final = 11_574
_SECONDS: Final = 10**9
_KEY_FAMILIES: Final = (Family.INTEGER, Family.DECIMAL, Family.TEXT)


class GeneratedReader:
    """The rows of one stream's generator."""

    def __init__(
        self,
        field: str,
        stream: StreamSpec,
        form: StreamFormat,
        wanted: GeneratorSpec,
        points: PointProcess | None = None,
    ) -> None:
        """With `points` rows come at other times, and with other keys, than the generator says."""
        self._form, self._kinds, self._keys = form, dict(stream.columns), form.key.columns
        complaints = list(_complaints(field, stream, form, wanted))
        if complaints:
            raise BadSpec(complaints)
        self._time = form.time_column or _free_name(stream)
        others = [name for name, _ in stream.columns if name not in (self._keys[0], self._time)]
        self._rows = StreamGenerator(
            points=points or points_of(wanted),
            seed=wanted.seed,
            limit=wanted.rows,
            key_column=self._keys[0],
            time_column=self._time,
            time_unit=_unit(stream),
            payload=tuple(_payload(name, self._kinds[name], is_key=name in self._keys) for name in others),
        )

    @property
    def title(self) -> str:
        return "generator"

    def check(self) -> None:
        """It was checked when it was made."""

    def read(self, start: int | None) -> Iterator[Piece | Pause]:
        """The rows from this one on."""
        place = start or 0
        skip = place % CHUNK
        for chunk in self._rows.chunks(place // CHUNK):
            rows = chunk.slice(skip)
            skip = 0
            columns = [self._column(rows.column(field.name), field) for field in self._form.schema]
            made = pa.RecordBatch.from_arrays(columns, schema=self._form.schema)
            times = self._times(rows, made)
            for batch in cut(made):
                yield Piece(place, place + batch.num_rows, batch, times[: batch.num_rows])
                place, times = place + batch.num_rows, times[batch.num_rows :]

    def _times(self, rows: pa.RecordBatch, made: pa.RecordBatch) -> np.typing.NDArray[np.int64]:
        if self._form.time_column is None:
            return np.asarray(rows.column(self._time).to_numpy(), np.int64)
        return ingest.times(self._form, made, 0)

    def _column(self, drawn: pa.Array, field: pa.Field) -> pa.Array:
        """What was drawn, in the type of the schema."""
        kind = self._kinds[field.name]
        if drawn.type == kind.arrow:
            return drawn
        match kind.family:
            case Family.DECIMAL:
                unit = 10**kind.arrow.scale if field.name in self._keys else 1
                return _decimal(drawn.to_numpy() * unit, kind.arrow)
            case Family.DATE:
                return drawn.cast(pa.int32()).cast(kind.arrow)
            case Family.TEXT if pa.types.is_fixed_size_binary(drawn.type):
                return drawn.cast(pa.binary()).cast(kind.arrow)
            case _:
                return drawn.cast(kind.arrow)


def _complaints(field: str, stream: StreamSpec, form: StreamFormat, wanted: GeneratorSpec) -> Iterator[Complaint]:
    kinds, keys = dict(stream.columns), form.key.columns
    if form.time_column in keys:
        remedy = "join on another column, or read this stream from a file"
        yield Complaint(
            "spec.join.on", f"the time column {form.time_column} of {stream.name}", "keys apart from it", remedy
        )
        return
    for name in keys:
        if kinds[name].family not in _KEY_FAMILIES:
            remedy = f"give {name} such a type, or read this stream from a file"
            wanted_types = "a type that a generator has keys of: an integer, a decimal or string"
            yield Complaint(f"{field}.schema.{name}", str(kinds[name]), wanted_types, remedy)
            return
    most = _most_keys(kinds[keys[0]])
    if wanted.keys.range > most:
        place, remedy = f"{field}.source.generator.keys.range", f"lower it, or give {keys[0]} a wider type"
        yield Complaint(place, str(wanted.keys.range), f"at most {most}, the keys that fit {kinds[keys[0]]}", remedy)
    for name in keys[1:]:
        if _most_keys(kinds[name]) < _SMALL:
            remedy = "give it a wider type"
            yield Complaint(f"{field}.schema.{name}", str(kinds[name]), f"a type for keys below {_SMALL}", remedy)
    for name, kind in stream.columns:
        if pa.types.is_fixed_size_binary(kind.arrow) and kind.arrow.byte_width > MAX_WIDTH:
            remedy = "shorten it, or read this stream from a file"
            yield Complaint(f"{field}.schema.{name}", str(kind), f"at most binary({MAX_WIDTH}) of a generator", remedy)


def _most_keys(kind: ColumnType) -> int:
    """How many keys a column can tell apart."""
    if kind.family is Family.INTEGER:
        return int(2 ** (kind.arrow.bit_width - pa.types.is_signed_integer(kind.arrow)))
    if kind.family is Family.DECIMAL:
        return int(min(10 ** (kind.arrow.precision - kind.arrow.scale), 2**63 // 10**kind.arrow.scale))
    return 2**62


def _payload(name: str, kind: ColumnType, *, is_key: bool) -> PayloadColumn:
    """How the values of a column are drawn; `_column` gives them their type."""
    if is_key:
        return Integers(name, 0, _SMALL)
    match kind.family:
        case Family.FLOAT:
            return Floats(name, 0.0, 1000.0)
        case Family.TEXT | Family.BYTES:
            is_fixed = pa.types.is_fixed_size_binary(kind.arrow)
            return Letters(name, kind.arrow.byte_width if is_fixed else LETTERS)
        case Family.BOOLEAN:
            return Integers(name, 0, 2)
        case Family.DATE:
            return Integers(name, 0, _DAYS)
        case Family.TIMESTAMP:
            return Integers(name, 0, _SECONDS * _SECONDS // NS_PER_UNIT[kind.arrow.unit])
        case Family.DECIMAL:
            return Integers(name, 0, 10 ** min(3, kind.arrow.precision))
        case _ if (name, kind.name) == ("number", "int64"):
            return RowNumbers(name)
        case _:
            return Integers(name, 1, 100 if kind.arrow.bit_width == 8 else 1000)


def _decimal(digits: np.typing.NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    """Decimals by their digits, none negative: 16 bytes each, the low half first."""
    halves = np.zeros((digits.size, 2), dtype="<i8")
    halves[:, 0] = digits
    return pa.Array.from_buffers(kind, digits.size, [None, pa.py_buffer(halves)])


def _unit(stream: StreamSpec) -> str:
    """The unit of the generated time; without a column: nanoseconds."""
    if stream.time is None:
        return "ns"
    kind = stream.column_type(stream.time.column)
    is_timestamp = kind is not None and kind.family is Family.TIMESTAMP
    return str(kind.arrow.unit) if kind is not None and is_timestamp else stream.time.unit or "ns"


def _free_name(stream: StreamSpec) -> str:
    """A name for the time of a stream that has no column for it."""
    name = "time"
    while stream.column_type(name) is not None:
        name += "_"
    return name
