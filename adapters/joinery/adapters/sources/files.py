"""Files as sources: Parquet, CSV and NDJSON, by the ending of the name; read as a stream, never whole.

Rule 1: a row's place is its number in the file. Parquet passes over whole row groups to get there; the others read, and
        drop, what lies before.
Rule 2: columns are taken by name and cast to the stream's types as ingest would (nothing is lost, and 5 is not true);
        other columns are not read. A column that is not there, or has another type, is told before the first row.
        NDJSON shows its columns in the first 4 MB; an empty file is a stream without rows, as our sink writes it.
Rule 3: values look as our sinks write them (`sinks.texts`): times in ISO 8601, bytes in base64. CSV: the first line
        names the columns; an empty field is null, "" is an empty text. NDJSON: a field that is left out is null; dates,
        times, decimals and bytes are texts. A float that is not finite cannot be read from NDJSON.
Rule 4: a file must not change while the query lives: rows are counted, not remembered. One that has become shorter than
        what was recorded of it is refused.
"""

import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from joinery.adapters.sinks.texts import is_bytes
from joinery.adapters.sources.base64_texts import bytes_of
from joinery.adapters.sources.columns import check_names, check_types, conform
from joinery.adapters.sources.pieces import MAX_BYTES, MAX_ROWS, Pause, Piece, cut
from joinery.model.errors import JoineryError, UserMustAct
from joinery.partition.format import StreamFormat

_BLOCK: Final = 4 << 20
"""Bytes of a text file that are parsed at once; a row must be shorter."""
FORMATS: Final = {".parquet": "Parquet", ".csv": "CSV", ".ndjson": "NDJSON", ".jsonl": "NDJSON"}


class FileReader:
    """Reads one file, for one stream."""

    def __init__(self, path: Path, form: StreamFormat) -> None:
        self.path, self._form = path, form
        self._columns = _COLUMNS[path.suffix.lower()](path, form)

    @property
    def title(self) -> str:
        return f"file {self.path}"

    def check(self) -> None:
        with self._telling(None):
            if self._is_empty:
                if self._kind != "NDJSON":
                    raise UserMustAct(f"found an empty file, wanted rows of {self._kind}; write it again")
                return
            self._columns.check()

    def read(self, start: int | None) -> Iterator[Piece | Pause]:
        """Every piece from this row on."""
        self.check()
        place = start or 0
        if self._is_empty:
            check_length(place, 0)
            return
        batches = self._columns.batches(place)
        while True:
            with self._telling(place):
                rows = next(batches, None)
                if rows is None:
                    return
                rows = conform(self._form, self._columns.decoded(rows))
            for batch in cut(rows):
                yield Piece(place, place + batch.num_rows, batch)
                place += batch.num_rows

    @property
    def _is_empty(self) -> bool:
        """Right for lines of which there are none; the other formats always have a header."""
        return self.path.stat().st_size == 0

    @property
    def _kind(self) -> str:
        return FORMATS[self.path.suffix.lower()]

    @contextmanager
    def _telling(self, row: int | None) -> Iterator[None]:
        """Errors of the file as ours, with where they are."""
        where = "" if row is None else f"after row {row}: "
        remedy = "check the file against spec.streams[].schema, or write it again"
        try:
            yield
        except JoineryError as error:
            raise UserMustAct(f"{where}{error}") from error
        except FileNotFoundError as error:
            message = f"found no file {self.path}, wanted one; its path is relative to the query file"
            raise UserMustAct(message) from error
        except IsADirectoryError as error:
            raise UserMustAct(f"found the folder {self.path}, wanted a file; name a file in it") from error
        except (OSError, pa.ArrowException) as error:
            reason = str(error).splitlines()[0]
            message = f"{where}found what cannot be read ({reason}), wanted {self._kind} of {self._form.name}; {remedy}"
            raise UserMustAct(message) from error


class _Columns(Protocol):
    """One format."""

    def __init__(self, path: Path, form: StreamFormat) -> None: ...

    def check(self) -> None: ...

    def batches(self, start: int) -> Iterator[pa.RecordBatch]: ...

    def decoded(self, rows: pa.RecordBatch) -> pa.RecordBatch: ...


class _Parquet:
    def __init__(self, path: Path, form: StreamFormat) -> None:
        self._path, self._form = path, form

    def _open(self) -> pa.parquet.ParquetFile:
        # column chunks are read by and by: a file may be one row group of any size
        return pa.parquet.ParquetFile(self._path, buffer_size=MAX_BYTES, pre_buffer=False)

    def check(self) -> None:
        with self._open() as file:
            check_names(self._form, file.schema_arrow.names)
            check_types(self._form, file.schema_arrow)

    def batches(self, start: int) -> Iterator[pa.RecordBatch]:
        with self._open() as file:
            check_length(start, file.metadata.num_rows)
            groups: list[int] = []
            before = 0
            for group in range(file.metadata.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                if groups or before + rows > start:
                    groups.append(group)
                else:
                    before += rows
            if groups:
                names = self._form.schema.names
                found = file.iter_batches(MAX_ROWS, row_groups=groups, columns=names, use_threads=False)
                yield from skipping(found, start - before)

    def decoded(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows


class _Csv:
    def __init__(self, path: Path, form: StreamFormat) -> None:
        self._path, self._form = path, form
        self._schema = pa.schema([(field.name, _as_text(field.type, is_bytes)) for field in form.schema])

    def _open(self, names: list[str]) -> pa.csv.CSVStreamingReader:
        return pa.csv.open_csv(
            self._path,
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types=self._schema,
                include_columns=names,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def check(self) -> None:
        with self._open([]) as file:
            check_names(self._form, file.schema.names)

    def batches(self, start: int) -> Iterator[pa.RecordBatch]:
        with self._open(self._form.schema.names) as file:
            yield from skipping(file, start)

    def decoded(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return _without_base64(self._form, rows)


class _Ndjson:
    def __init__(self, path: Path, form: StreamFormat) -> None:
        self._path, self._form = path, form
        self._schema = pa.schema([(field.name, _as_text(field.type, _is_text_in_json)) for field in form.schema])

    def check(self) -> None:
        with self._path.open("rb") as file:
            self.check_beginning(file.read(_BLOCK))

    def check_beginning(self, begin: bytes) -> None:
        """Refuse lines that do not show the columns."""
        lacking = [name for name in self._form.schema.names if not _is_named(name, begin)]
        if lacking:
            line, newline, _ = begin.partition(b"\n")
            if not newline and len(begin) >= _BLOCK:
                raise UserMustAct(
                    f"found a first line beyond {_BLOCK} bytes, wanted shorter ones; send larger rows as Parquet"
                )
            try:
                found = json.loads(line)
            except ValueError:
                found = None
            if not isinstance(found, dict):
                raise UserMustAct(f"found {line[:60]!r}, wanted a JSON object in every line; write NDJSON")
            check_names(self._form, [name for name in found if name not in lacking])

    def batches(self, start: int) -> Iterator[pa.RecordBatch]:
        options = pa.json.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="ignore")
        reading = pa.json.ReadOptions(use_threads=False, block_size=_BLOCK)
        with pa.json.open_json(self._path, read_options=reading, parse_options=options) as file:
            yield from skipping(file, start)

    def decoded(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        rows.validate(full=True)  # Arrow takes any bytes for a text here
        return _without_base64(self._form, rows)


_COLUMNS: Final[dict[str, type[_Columns]]] = {".parquet": _Parquet, ".csv": _Csv, ".ndjson": _Ndjson, ".jsonl": _Ndjson}


def text_batches(kind: str, block: bytes, form: StreamFormat, *, is_first: bool) -> Iterator[pa.RecordBatch]:
    """The rows of a block of whole rows of CSV or NDJSON; the first one must show the columns."""
    pipe: Any = io.BytesIO(block)
    if kind == "ndjson":
        lines = _Ndjson(pipe, form)
        if is_first:
            lines.check_beginning(block)
        return (conform(form, lines.decoded(rows)) for rows in lines.batches(0))
    table = _Csv(pipe, form)
    return (conform(form, table.decoded(rows)) for rows in table.batches(0))


def skipping(batches: Iterator[pa.RecordBatch], start: int) -> Iterator[pa.RecordBatch]:
    """Batches without their first rows; refused if there are not so many."""
    left = start
    for batch in batches:
        if batch.num_rows > left:
            yield batch.slice(left)
        left = max(0, left - batch.num_rows)
    check_length(start, start - left)


def check_length(start: int, rows: int) -> None:
    """Refuse a file that has become shorter than what was recorded of it (rule 4)."""
    if rows < start:
        raise UserMustAct(
            f"found {rows} rows, wanted at least {start}, which are recorded: the file has changed; "
            "put the old one back, or start a new query"
        )


def _as_text(kind: pa.DataType, is_text: Callable[[pa.DataType], bool]) -> pa.DataType:
    return pa.string() if is_text(kind) else kind


def _is_text_in_json(kind: pa.DataType) -> bool:
    """Types that Arrow's JSON reader does not read from a text itself."""
    return bool(pa.types.is_date(kind) or is_bytes(kind))


def _without_base64(form: StreamFormat, rows: pa.RecordBatch) -> pa.RecordBatch:
    names = rows.schema.names
    columns = [bytes_of(rows[name]) if is_bytes(form.schema.field(name).type) else rows[name] for name in names]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _is_named(name: str, text: bytes) -> bool:
    written = {json.dumps(name), json.dumps(name, ensure_ascii=False)}
    return any(re.search(re.escape(one.encode()) + rb"\s*:", text) for one in written)
