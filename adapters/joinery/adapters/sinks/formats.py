"""How rows lie in files: as parts while a query runs, then as the file that its user named.

A format makes bytes of rows, so that a part only ever grows at its end, and every length that a commit names is a whole
number of rows. `join` makes the named file of such lengths of parts.

| ending            | part                                                  | file                                   |
|-------------------|-------------------------------------------------------|----------------------------------------|
| .parquet          | Arrow IPC stream (a Parquet file is valid only whole) | row groups of about 64 MB              |
| .csv              | lines without the header                              | header and lines                       |
| .ndjson, .jsonl   | lines                                                 | lines                                  |

How values look as text: `texts`. Parquet has no unit of seconds: such times are milliseconds there, and a time that
does not fit (in years: hundreds of millions) is refused.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from joinery.adapters.sinks.texts import base64_of, in_utc, is_bytes, lines_of
from joinery.model.errors import UserMustAct

_ROWS_AT_ONCE: Final = 65_536
"""Rows that are made text at once."""
_GROUP_BYTES: Final = 64 * 2**20
_COPY_BYTES: Final = 2**30


@dataclass(frozen=True, slots=True)
class Piece:
    """What of a part counts: so many bytes from its beginning."""

    path: Path
    length: int


class Format(Protocol):
    """One way to write rows."""

    ending: str
    """Of parts."""
    beginning: bytes
    """What a part begins with."""

    def encode(self, rows: pa.RecordBatch) -> Iterator[bytes | memoryview]:
        """The rows as bytes to add to a part."""
        ...

    def join(self, pieces: Sequence[Piece], to: Path) -> None:
        """The named file of what counts of the parts, in their order."""
        ...


class ParquetFormat:
    """Parquet."""

    ending = "arrow"

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = pa.schema([field.with_type(_without_seconds(field.type)) for field in schema])
        self.beginning = self._schema.serialize().to_pybytes()

    def encode(self, rows: pa.RecordBatch) -> Iterator[bytes | memoryview]:
        try:
            fitting = rows.cast(self._schema)
        except pa.ArrowInvalid as error:
            raise UserMustAct(
                f"found a time that Parquet has no number for ({error}), wanted years below 292 millions; "
                "write to CSV, or give the column the type timestamp(ms)"
            ) from error
        yield memoryview(fitting.serialize())

    def join(self, pieces: Sequence[Piece], to: Path) -> None:
        with pa.parquet.ParquetWriter(to, self._schema) as writer:
            waiting: list[pa.RecordBatch] = []
            size = 0
            for rows in self._batches(pieces):
                waiting.append(rows)
                size += rows.nbytes
                if size >= _GROUP_BYTES:
                    self._write(writer, waiting)
                    waiting, size = [], 0
            self._write(writer, waiting)

    def _write(self, writer: pa.parquet.ParquetWriter, batches: list[pa.RecordBatch]) -> None:
        if batches:
            table = pa.Table.from_batches(batches, self._schema).combine_chunks()  # many commits are small
            writer.write_table(table, row_group_size=table.num_rows)

    def _batches(self, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
        for piece in pieces:
            with pa.memory_map(str(piece.path)) as file:
                yield from pa.ipc.open_stream(pa.BufferReader(file.read_buffer(piece.length)))


def _without_seconds(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("ms", kind.tz) if pa.types.is_timestamp(kind) and kind.unit == "s" else kind


class CsvFormat:
    """CSV with a header (RFC 4180, with \\n at the end of lines)."""

    ending = "csv"
    beginning = b""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def encode(self, rows: pa.RecordBatch) -> Iterator[bytes | memoryview]:
        for slice_ in _slices(rows):
            columns = [base64_of(column) if is_bytes(column.type) else in_utc(column) for column in slice_.columns]
            yield _csv(pa.RecordBatch.from_arrays(columns, names=rows.schema.names), header=False)

    def join(self, pieces: Sequence[Piece], to: Path) -> None:
        _concatenate(self.header(), pieces, to)

    def header(self) -> bytes:
        """The line that names the columns."""
        empty = pa.RecordBatch.from_arrays([pa.array([], pa.string()) for _ in self._schema], names=self._schema.names)
        return bytes(_csv(empty, header=True))


def _csv(rows: pa.RecordBatch, *, header: bool) -> memoryview:
    sink = pa.BufferOutputStream()
    options = pa.csv.WriteOptions(include_header=header, batch_size=_ROWS_AT_ONCE)
    pa.csv.write_csv(rows, sink, options)
    return memoryview(sink.getvalue())


class NdjsonFormat:
    """A JSON object on every line."""

    ending = "ndjson"
    beginning = b""

    def encode(self, rows: pa.RecordBatch) -> Iterator[bytes | memoryview]:
        yield from map(lines_of, _slices(rows))

    def join(self, pieces: Sequence[Piece], to: Path) -> None:
        _concatenate(b"", pieces, to)


def _slices(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows.num_rows, _ROWS_AT_ONCE):
        yield rows.slice(start, _ROWS_AT_ONCE)


def _concatenate(beginning: bytes, pieces: Sequence[Piece], to: Path) -> None:
    with to.open("wb") as file:
        file.write(beginning)
        file.flush()
        for piece in pieces:
            with piece.path.open("rb") as part:
                done = 0
                while done < piece.length:
                    copied = os.sendfile(file.fileno(), part.fileno(), done, min(_COPY_BYTES, piece.length - done))
                    if copied == 0:
                        raise OSError(f"{piece.path} ends after {done} bytes, not {piece.length}")
                    done += copied


ENDINGS: Final = (".parquet", ".csv", ".ndjson", ".jsonl")


def format_of(path: Path, schema: pa.Schema) -> Format | None:
    """The format that a file's ending asks for; None: there is none of it."""
    match path.suffix.lower():
        case ".parquet":
            return ParquetFormat(schema)
        case ".csv":
            return CsvFormat(schema)
        case ".ndjson" | ".jsonl":
            return NdjsonFormat()
    return None


def is_writable(kind: pa.DataType) -> bool:
    """Whether every format can write this type; all that a schema can name are (`joinery.model.types`)."""
    types = pa.types
    known = (
        types.is_integer, types.is_boolean, types.is_date32, types.is_timestamp, types.is_string, is_bytes,
        types.is_float32, types.is_float64, types.is_decimal128,
    )  # fmt: skip
    return any(check(kind) for check in known)
