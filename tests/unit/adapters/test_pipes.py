"""Rows from pipes: formats by their first bytes, rows as they come, quotes over lines; no processes."""

import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinery.adapters.sources.pipes import file_batches, kind_of, pipe_batches
from joinery.model.errors import UserMustAct
from tests.support.queries import plan_of

FORM = plan_of({"k": "int64", "s": "string"}).formats[0]
ROWS = [{"k": 1, "s": "a", "ts": 5}, {"k": 2, "s": 'b\n"x"', "ts": 6}, {"k": None, "s": "", "ts": 7}]
CSV = b'ts,k,s,other\n5,1,"a",x\n6,2,"b\n""x""",y\n7,,"",z\n'
NDJSON = b'{"k":1,"s":"a","ts":5}\n{"k":2,"s":"b\\n\\"x\\"","ts":6,"other":3}\n{"k":null,"s":"","ts":7}\n'


class Dripping(io.RawIOBase):
    """A pipe that gives a few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self.pieces = [data[at : at + size] for at in range(0, len(data), size)]

    def read(self, size: int = -1) -> bytes:  # noqa: ARG002
        return self.pieces.pop(0) if self.pieces else b""


def table() -> pa.Table:
    return pa.Table.from_pylist(ROWS, FORM.schema)


def binary(kind: str) -> bytes:
    out = io.BytesIO()
    if kind == "parquet":
        pq.write_table(table(), out)
    else:
        with (pa.ipc.new_file if kind == "file" else pa.ipc.new_stream)(out, FORM.schema) as writer:
            writer.write_table(table())
    return out.getvalue()


DATA = {"csv": CSV, "ndjson": NDJSON, "parquet": binary("parquet"), "arrow": binary("stream"), "file": binary("file")}


@pytest.mark.parametrize("size", [7, 64, 1 << 20])
@pytest.mark.parametrize("kind", DATA)
def test_rows_come_whole_however_the_pipe_drips(kind: str, size: int) -> None:
    if kind in ("parquet", "arrow", "file") and size < 8:
        size = 8  # a beginning that tells the format
    found = [row for batch in pipe_batches(Dripping(DATA[kind], size), None, FORM) for row in batch.to_pylist()]  # type: ignore[arg-type]
    assert ROWS == found


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_a_row_is_given_away_before_the_next_one_comes(kind: str) -> None:
    pipe = Dripping(DATA[kind], 1 << 20)
    whole = pipe.pieces.pop()
    cut = whole.index(b"\n", 20) + 1
    read = 0

    def pieces() -> Iterator[bytes]:
        nonlocal read
        for piece in (whole[:cut], whole[cut:]):
            read += 1
            yield piece

    coming = pieces()
    pipe.read = lambda size=-1: next(coming, b"")  # type: ignore[method-assign]  # noqa: ARG005
    rows = pipe_batches(pipe, None, FORM)  # type: ignore[arg-type]
    assert (1, 1) == (next(rows).num_rows, read)


def test_nothing_is_no_rows_and_a_header_alone_is_none_either() -> None:
    assert [] == list(pipe_batches(io.BytesIO(b""), None, FORM))
    assert 0 == sum(batch.num_rows for batch in pipe_batches(io.BytesIO(b"ts,k,s\n"), None, FORM))


@pytest.mark.parametrize(
    ("data", "why"), [(b"ts,k\n1,2\n", "s"), (b'{"k":1,"ts":2}\n', "found no s"), (b"ts,k,s\nx,1,a\n", "ts")]
)
def test_what_does_not_fit_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(UserMustAct, match=why):
        list(pipe_batches(io.BytesIO(data), None, FORM))


@pytest.mark.parametrize(
    ("kind", "suffix"), [("csv", ".csv"), ("ndjson", ".jsonl"), ("file", ".feather"), ("csv", ".txt")]
)
def test_a_file_is_read_by_its_ending_or_by_what_is_said(kind: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows{suffix}"
    path.write_bytes(DATA[kind])
    if suffix == ".txt":
        with pytest.raises(UserMustAct, match="say --format"):
            file_batches(path, None, FORM)
    found = list(file_batches(path, "csv" if suffix == ".txt" else None, FORM))
    assert ROWS == [row for batch in found for row in batch.to_pylist()]


def test_a_format_is_known_by_its_first_bytes() -> None:
    assert ["csv", "ndjson", "parquet", "arrow", "arrow"] == [kind_of(data[:16]) for data in DATA.values()]
