"""Rows from a file or from standard input, as `joinery push` sends them: CSV, NDJSON, Parquet, Arrow IPC.

Rule 1: a file's format is its ending, a pipe's is what it begins with; either can be said instead.
Rule 2: columns are taken by name, as of any file source (`files`); others are not read.
Rule 3: CSV, NDJSON and Arrow streams are sent as they come: a pipe that pauses holds back no row of a whole line for
        long. Parquet and Arrow files end with their index, so from a pipe they are read whole first.
Rule 4: the same file gives the same batches every time: so many of them can be left out by one who goes on.
"""

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa

from joinery.adapters.sources.columns import check_names, check_types, conform
from joinery.adapters.sources.files import FORMATS, FileReader, text_batches
from joinery.adapters.sources.pieces import Piece, cut
from joinery.model.errors import JoineryError, UserMustAct
from joinery.partition.format import StreamFormat

ENDINGS: Final = {
    ".parquet": "parquet", ".csv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson",
    ".arrow": "arrow", ".arrows": "arrow", ".ipc": "arrow", ".feather": "arrow",
}  # fmt: skip
KINDS: Final = ("csv", "ndjson", "parquet", "arrow")
_PEEK: Final = 1 << 16
_CHUNK: Final = 1 << 20
_LONGEST: Final = 64 << 20
"""Bytes of a row."""


def file_batches(path: Path, kind: str | None, form: StreamFormat) -> Iterator[pa.RecordBatch]:
    """The rows of a file."""
    kind = kind or ENDINGS.get(path.suffix.lower())
    if kind is None:
        raise UserMustAct(
            f"found {path.name}, wanted a name that ends in {', '.join(ENDINGS)}; rename it, or say --format"
        )
    if path.suffix.lower() in FORMATS and ENDINGS[path.suffix.lower()] == kind:
        return (piece.rows for piece in FileReader(path, form).read(0) if isinstance(piece, Piece))
    return _opened(path, kind, form)


def _opened(path: Path, kind: str, form: StreamFormat) -> Iterator[pa.RecordBatch]:
    try:
        with path.open("rb") as file:
            yield from pipe_batches(file, kind, form)
    except OSError as error:
        raise UserMustAct(f"found {path} ({error.strerror}), wanted a file; check its name") from error


def pipe_batches(pipe: BinaryIO, kind: str | None, form: StreamFormat) -> Iterator[pa.RecordBatch]:
    """The rows of a pipe, as they come."""
    begin = pipe.read(_PEEK)
    if not begin:
        return
    kind = kind or kind_of(begin)
    whole = _Again(begin, pipe)
    with _telling(kind, form):
        if kind == "parquet":
            yield from _spooled(whole, form)
        elif kind == "arrow":
            for rows in _arrow(whole, begin):
                check_names(form, rows.schema.names)
                check_types(form, rows.schema)
                yield from cut(conform(form, rows))
        else:
            for number, block in enumerate(_blocks(whole, kind)):
                for rows in text_batches(kind, block, form, is_first=number == 0):
                    yield from cut(rows)


def kind_of(begin: bytes) -> str:
    """What a pipe holds, by its first bytes."""
    if begin.startswith(b"PAR1"):
        return "parquet"
    if begin.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    return "ndjson" if begin.lstrip().startswith(b"{") else "csv"


def _blocks(pipe: "_Again", kind: str) -> Iterator[bytes]:
    """Whole rows as they come; those of CSV each time with the header before them.

    Arrow's own reader of streams wants to see the next block before it gives away the rows of one.
    """
    rest, header = b"", b""
    while chunk := pipe.read(_CHUNK):
        data = rest + chunk
        if kind == "csv" and not header:
            header, data = data[: (end := _row_end(data, kind, first=True))], data[end:]
        end = _row_end(data, kind)
        if end and header + data[:end] != header:
            yield header + data[:end]
        rest = data[end:]
        if len(rest) > _LONGEST:
            found = f"{len(rest)} bytes without the end of a row"
            raise UserMustAct(f"found {found}, wanted at most {_LONGEST}; look for a quote that is not closed")
    if rest:
        yield header + rest


def _row_end(data: bytes, kind: str, *, first: bool = False) -> int:
    """Where the first, or the last, whole row ends; 0: there is none. In CSV a line may end within quotes."""
    at = data.find(b"\n") if first else data.rfind(b"\n")
    while at >= 0 and kind == "csv" and data.count(b'"', 0, at) % 2:
        at = data.find(b"\n", at + 1) if first else data.rfind(b"\n", 0, at)
    return at + 1


def _spooled(pipe: "_Again", form: StreamFormat) -> Iterator[pa.RecordBatch]:
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        while chunk := pipe.read(1 << 20):
            file.write(chunk)
        file.flush()
        yield from (piece.rows for piece in FileReader(Path(file.name), form).read(0) if isinstance(piece, Piece))


def _arrow(pipe: "_Again", begin: bytes) -> Iterator[pa.RecordBatch]:
    if not begin.startswith(b"ARROW1"):
        whole = io.BufferedReader(pipe)  # Arrow takes a short read for the end
        yield from pa.ipc.open_stream(pa.PythonFile(whole, mode="r"))
        return
    chunks = []
    while chunk := pipe.read(1 << 20):
        chunks.append(chunk)
    with pa.ipc.open_file(pa.py_buffer(b"".join(chunks))) as file:
        for number in range(file.num_record_batches):
            yield file.get_batch(number)


@contextmanager
def _telling(kind: str, form: StreamFormat) -> Iterator[None]:
    try:
        yield
    except JoineryError:
        raise
    except (OSError, KeyError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise UserMustAct(
            f"found what cannot be read ({reason}), wanted {kind} with the columns {', '.join(form.schema.names)}; "
            "correct the input, or say --format"
        ) from error


class _Again(io.RawIOBase):
    """A pipe whose first bytes are read once more; a read gives what is there, and waits only if there is nothing."""

    def __init__(self, begin: bytes, pipe: Any) -> None:
        super().__init__()
        self._begin, self._pipe = memoryview(begin), pipe

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def read(self, size: int = -1) -> bytes:
        if self._begin:
            size = len(self._begin) if size < 0 else size
            found, self._begin = self._begin[:size], self._begin[size:]
            return bytes(found)
        return self._pipe.read(size) or b""
