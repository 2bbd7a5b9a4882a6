"""What sources read: files of every format, and made-up rows; from any place, in bounded pieces."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.adapters.sinks.texts import base64_of, lines_of
from joinery.adapters.sources.base64_texts import bytes_of
from joinery.adapters.sources.files import FileReader
from joinery.adapters.sources.opening import reader_of
from joinery.adapters.sources.pieces import MAX_BYTES, MAX_ROWS, Piece, Reader, cut
from joinery.join.plan import JoinPlan
from joinery.model.errors import BadSpec, UserMustAct
from joinery.model.spec import JoinQuerySpec

ROWS = 50_000
EVERY_TYPE = {
    "k": "int64", "a": "int8", "b": "uint64", "c": "float32", "d": "string", "e": "binary", "f": "binary(3)",
    "g": "bool", "h": "date", "i": "timestamp(us)", "j": "timestamp(ms, UTC)", "l": "decimal(9,2)", "number": "int64",
    "ts": "int64",
}  # fmt: skip


def reader(schema: dict[str, str], source: dict[str, Any], folder: Path = Path(), *, timed: bool = True) -> Reader:
    stream: dict[str, Any] = {"name": "a", "schema": schema, "window": "1s", "source": source}
    if timed:
        stream["time"] = {"column": "ts", "unit": "us"}
    other = {"name": "b", "schema": {"k": schema["k"]}, "window": "1s"}
    spec = JoinQuerySpec.parse({"streams": [stream, other], "join": {"on": ["k"]}})
    form = JoinPlan.of(spec).formats[0]
    return reader_of("spec.streams[0]", spec.streams[0], form, folder, "")


def pieces(found: Reader, start: int | None = None) -> list[Piece]:
    return [piece for piece in found.read(start) if isinstance(piece, Piece)]


def whole(found: Reader, start: int | None = None) -> pa.Table:
    return pa.Table.from_batches([piece.rows for piece in pieces(found, start)])


def table(rows: int = ROWS) -> pa.Table:
    numbers = np.arange(rows)
    return pa.table({"ts": numbers, "k": numbers % 7, "name": pa.array(numbers).cast(pa.string()), "extra": numbers})


def write_csv(rows: pa.Table, path: Path) -> None:
    pa.csv.write_csv(rows, path)


def write_ndjson(rows: pa.Table, path: Path) -> None:
    path.write_bytes(b"".join(lines_of(batch) for batch in rows.to_batches()))


def write_parquet(rows: pa.Table, path: Path) -> None:
    pa.parquet.write_table(rows, path, row_group_size=20_000)


Write = Callable[[pa.Table, Path], None]
FORMATS = [("x.parquet", write_parquet), ("x.csv", write_csv), ("x.ndjson", write_ndjson), ("x.jsonl", write_ndjson)]
WANTED = {"k": "int64", "name": "string", "ts": "int64"}


def file_of(path: Path, schema: dict[str, str] | None = None) -> Reader:
    return reader(schema or WANTED, {"file": {"path": path.name}}, path.parent)


# --- files


@pytest.mark.parametrize(("name", "write"), FORMATS)
def test_a_file_is_read_in_pieces_that_follow_each_other_and_extra_columns_are_left(
    name: str, write: Write, tmp_path: Path
) -> None:
    write(table(), tmp_path / name)
    found = pieces(file_of(tmp_path / name))
    assert [0, *(piece.next_sequence for piece in found[:-1])] == [piece.sequence for piece in found]
    assert [piece.next_sequence - piece.sequence for piece in found] == [piece.rows.num_rows for piece in found]
    assert max(piece.rows.num_rows for piece in found) <= MAX_ROWS
    assert table().select(["k", "name", "ts"]) == pa.Table.from_batches([piece.rows for piece in found])


@pytest.mark.parametrize(("name", "write"), FORMATS[:3])
@pytest.mark.parametrize("start", [1, 20_000, 33_333, ROWS])
def test_a_file_can_be_gone_on_with_at_any_row(name: str, write: Write, start: int, tmp_path: Path) -> None:
    write(table(), tmp_path / name)
    found = pieces(file_of(tmp_path / name), start)
    expected = table().select(["k", "name", "ts"]).slice(start)
    assert ([start] if start < ROWS else []) == [piece.sequence for piece in found[:1]]
    assert expected == pa.Table.from_batches([piece.rows for piece in found], expected.schema)


@pytest.mark.parametrize(("name", "write"), FORMATS[:3])
def test_a_file_that_became_shorter_than_what_is_recorded_is_refused(name: str, write: Write, tmp_path: Path) -> None:
    write(table(100), tmp_path / name)
    with pytest.raises(UserMustAct, match=r"found 100 rows, wanted at least 101.*the file has changed"):
        pieces(file_of(tmp_path / name), 101)


@pytest.mark.parametrize(("name", "write"), FORMATS[:3])
def test_every_type_is_read_as_the_sinks_write_it(name: str, write: Write, tmp_path: Path) -> None:
    wanted = whole(reader(EVERY_TYPE, {"generator": {"rows": 100}}))
    wanted = pa.Table.from_batches([wanted.to_batches()[0], _nulls_but_time(wanted.schema)])
    written = wanted
    if name == "x.csv":
        for bytes_column in ("e", "f"):
            at = wanted.schema.get_field_index(bytes_column)
            text = base64_of(wanted.column(bytes_column).combine_chunks())
            written = written.set_column(at, bytes_column, text)
    write(written, tmp_path / name)
    assert wanted.to_pylist() == whole(file_of(tmp_path / name, EVERY_TYPE)).to_pylist()


def _nulls_but_time(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"ts": 5}], schema)


def test_an_empty_text_is_not_null_in_csv(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('ts,k,name\n1,1,""\n2,,\n3,3,"two\nlines"\n4,4,NA\n')
    found = whole(file_of(tmp_path / "x.csv"))
    assert ["", None, "two\nlines", "NA"] == found["name"].to_pylist()
    assert [1, None, 3, 4] == found["k"].to_pylist()


def test_a_parquet_column_of_a_smaller_type_is_cast(tmp_path: Path) -> None:
    small = pa.table({"k": pa.array([1], pa.int16()), "ts": pa.array([5], pa.uint32()), "name": ["x"]})
    write_parquet(small.set_column(2, "name", small["name"].dictionary_encode()), tmp_path / "x.parquet")
    assert [{"k": 1, "name": "x", "ts": 5}] == whole(file_of(tmp_path / "x.parquet")).to_pylist()


def test_a_large_row_group_is_not_held_in_memory(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = 2_000_000
    big = pa.table({"ts": np.arange(rows), "k": rng.integers(0, 2**60, rows), "name": pa.array(["x"] * rows)})
    pa.parquet.write_table(big, tmp_path / "x.parquet", row_group_size=rows, use_dictionary=False)
    del big
    before, most = pa.total_allocated_bytes(), 0
    for _ in file_of(tmp_path / "x.parquet").read(None):
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 12 * MAX_BYTES


def test_wide_rows_make_pieces_of_about_a_megabyte() -> None:
    wide = pa.RecordBatch.from_pydict({"x": pa.array(["x" * 1000] * 10_000)})
    found = list(cut(wide))
    assert 10_000 == sum(batch.num_rows for batch in found)
    assert max(batch.nbytes for batch in found) <= MAX_BYTES


# --- files that cannot be read


def bad_file(name: str, content: bytes, folder: Path) -> str:
    (folder / name).write_bytes(content)
    with pytest.raises(UserMustAct) as refused:
        pieces(file_of(folder / name))
    return str(refused.value)


def parquet_bytes(rows: pa.Table, folder: Path) -> bytes:
    write_parquet(rows, folder / "made.parquet")
    return (folder / "made.parquet").read_bytes()


def test_a_missing_file_is_told_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(UserMustAct, match=r"found no file .*orders\.csv.*relative to the query file"):
        file_of(tmp_path / "orders.csv").check()
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UserMustAct, match="folder"):
        file_of(tmp_path / "folder.csv").check()


@pytest.mark.parametrize("name", ["x.parquet", "x.csv"])
def test_an_empty_file_is_told(name: str, tmp_path: Path) -> None:
    assert "found an empty file" in bad_file(name, b"", tmp_path)


def test_a_table_without_rows_is_an_empty_stream(tmp_path: Path) -> None:
    write_parquet(table(0), tmp_path / "x.parquet")
    write_csv(table(0), tmp_path / "x.csv")
    (tmp_path / "x.ndjson").write_bytes(b"")  # as our sink writes no rows
    assert [[], [], []] == [pieces(file_of(tmp_path / name)) for name in ("x.parquet", "x.csv", "x.ndjson")]


def test_a_file_of_lines_that_lost_its_rows_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.ndjson").write_bytes(b"")
    with pytest.raises(UserMustAct, match="found 0 rows, wanted at least 3"):
        list(file_of(tmp_path / "x.ndjson").read(3))


def test_texts_that_are_no_utf_8_are_told_as_that(tmp_path: Path) -> None:
    for name, content in (
        ("x.csv", b'ts,k,name\n1,2,"\xff"\n'),
        ("x.ndjson", b'{"ts": 1, "k": 2, "name": "\xff"}\n'),
    ):
        assert "found what cannot be read" in (told := bad_file(name, content, tmp_path))
        assert "UTF8" in told


def test_a_line_that_is_too_long_is_told_as_that(tmp_path: Path) -> None:
    line = b'{"ts": 1, "k": 2, "name": "' + b"x" * (5 << 20) + b'"}\n'
    assert "found a first line beyond 4194304 bytes" in bad_file(
        "x.ndjson", line.replace(b'"ts": 1, "k": 2, ', b""), tmp_path
    )


def test_a_missing_column_is_told_with_what_there_is(tmp_path: Path) -> None:
    without = table(3).drop_columns(["name"])
    for name, content in (
        ("x.parquet", parquet_bytes(without, tmp_path)),
        ("x.csv", b"ts,k,extra\n1,2,3\n"),
        ("x.ndjson", b'{"ts": 1, "k": 2, "extra": "name"}\n'),
    ):
        told = bad_file(name, content, tmp_path)
        assert "found no name among the columns ts, k, extra, wanted k, name, ts" in told
        assert "rename the columns, or correct the schema of stream a" in told


def test_a_column_twice_is_told(tmp_path: Path) -> None:
    assert "k more than once" in bad_file("x.csv", b"ts,k,k,name\n1,2,3,x\n", tmp_path)


def test_a_wrong_type_is_told(tmp_path: Path) -> None:
    rows = table(3)
    wrong = rows.set_column(1, "k", rows["name"])
    told = bad_file("x.parquet", parquet_bytes(wrong, tmp_path), tmp_path)
    assert "found column k of string, wanted int64" in told
    assert "invalid value 'x'" in bad_file("x.csv", b"ts,k,name\n1,x,y\n", tmp_path)
    assert "changed from number to string" in bad_file("x.ndjson", b'{"ts": 1, "k": "x", "name": "y"}\n', tmp_path)


def test_a_truncated_file_is_told(tmp_path: Path) -> None:
    content = parquet_bytes(table(1000), tmp_path)
    assert "magic bytes" in bad_file("x.parquet", content[: len(content) // 2], tmp_path)
    assert "Expected 3 columns, got 2" in bad_file("x.csv", b"ts,k,name\n1,2,x\n3,4", tmp_path)
    assert "after row 0: " in bad_file("x.ndjson", b'{"ts": 1, "k": 2, "name": "x"}\n{"ts": 3, "k"', tmp_path)


def test_a_file_that_is_no_ndjson_is_told(tmp_path: Path) -> None:
    assert "wanted a JSON object in every line" in bad_file("x.ndjson", b"hello\n", tmp_path)


def test_damage_in_the_middle_is_told_with_the_row(tmp_path: Path) -> None:
    lines = "".join(f"{number},{number},name {number}\n" for number in range(400_000))
    told = bad_file("x.csv", f"ts,k,name\n{lines}x,2,y\n".encode(), tmp_path)
    assert "after row 0" not in told
    assert "after row " in told


def test_an_unknown_ending_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(BadSpec, match=r"spec.streams\[0\].source.file.path: found x.xlsx"):
        file_of(tmp_path / "x.xlsx")


# --- base64


@given(st.lists(st.one_of(st.none(), st.binary(max_size=10)), max_size=20), st.integers(0, 3))
def test_base64_gives_the_bytes_back(values: list[bytes | None], skipped: int) -> None:
    texts = pa.array([None if one is None else base64.b64encode(one).decode() for one in values], pa.string())
    assert values[skipped:] == bytes_of(texts.slice(skipped)).to_pylist()


@pytest.mark.parametrize("text", ["abc", "ab=c", "====", "a===", "ab*=", "abcd=", "=abc"])
def test_what_is_not_base64_is_refused(text: str) -> None:
    with pytest.raises(UserMustAct, match="not base64"):
        bytes_of(pa.array(["QUJD", text]))


# --- generators


def test_every_type_can_be_made_and_a_seed_gives_the_same_rows() -> None:
    made = whole(reader(EVERY_TYPE, {"generator": {"rows": 20_000, "seed": 3}}))
    assert 20_000 == made.num_rows
    assert made == whole(reader(EVERY_TYPE, {"generator": {"rows": 20_000, "seed": 3}}))
    assert made != whole(reader(EVERY_TYPE, {"generator": {"rows": 20_000, "seed": 4}}))
    assert list(range(20_000)) == made["number"].to_pylist()
    assert all(made[name].null_count == 0 for name in EVERY_TYPE)
    assert all(len(made[name].unique()) > 1 for name in EVERY_TYPE)
    made.validate(full=True)


@pytest.mark.parametrize("start", [1, 16_384, 16_385, 40_000])
def test_a_generator_can_be_gone_on_with_at_any_row(start: int) -> None:
    generator = {"generator": {"rows": 40_000, "profile": {"sine": {"mean": 1e5, "amplitude": 1e5, "period": "1s"}}}}
    expected = whole(reader(EVERY_TYPE, generator)).slice(start)
    found = pieces(reader(EVERY_TYPE, generator), start)
    assert expected == pa.Table.from_batches([piece.rows for piece in found], expected.schema)


@pytest.mark.parametrize(("kind", "first"), [("int16", 8), ("decimal(9,2)", 8), ("string", "8"), ("uint8", 8)])
def test_keys_come_in_the_type_of_their_column(kind: str, first: object) -> None:
    generator = {"generator": {"rows": 1000, "keys": {"distribution": "uniform", "range": 10}}}
    numbers = whole(reader({"k": "int64", "ts": "int64"}, generator))["k"].to_pylist()
    made = whole(reader({"k": kind, "ts": "int64"}, generator))["k"].to_pylist()
    assert set(range(10)) == set(numbers)
    assert [type(made[0])(number) for number in numbers] == made
    assert first in made


def test_other_keys_are_few() -> None:
    stream = {"schema": {"k": "int64", "part": "string"}, "window": "1s", "source": {"generator": {"rows": 1000}}}
    streams = [{**stream, "name": name} for name in "ab"]
    spec = JoinQuerySpec.parse({"streams": streams, "join": {"on": ["k", "part"]}})
    made = whole(reader_of("x", spec.streams[0], JoinPlan.of(spec).formats[0], Path(), ""))
    assert {"0", "1", "2", "3"} == set(made["part"].to_pylist())


def test_without_a_time_column_the_rows_still_know_when_they_are_due() -> None:
    generator = {"generator": {"rows": 1000, "rate": 100, "arrivals": "constant"}}
    (piece,) = pieces(reader({"k": "int64", "time": "int64"}, generator, timed=False))
    assert ["k", "time"] == piece.rows.schema.names
    assert piece.times is not None
    assert [5_000_000, 15_000_000] == piece.times[:2].tolist()


@pytest.mark.parametrize(
    ("schema", "generator", "told"),
    [
        ({"k": "bool", "ts": "int64"}, {}, "schema.k: found bool"),
        ({"k": "int8", "ts": "int64"}, {}, "keys.range: found 10000000, wanted at most 128"),
        ({"k": "decimal(5,2)", "ts": "int64"}, {}, "wanted at most 1000"),
        ({"k": "int64", "ts": "int64", "x": "binary(5000)"}, {}, "schema.x: found binary"),
    ],
)
def test_what_a_generator_cannot_make_is_refused(schema: dict[str, str], generator: dict[str, Any], told: str) -> None:
    with pytest.raises(BadSpec) as refused:
        reader(schema, {"generator": generator})
    assert told in str(refused.value)


def test_a_time_column_that_is_a_key_is_refused() -> None:
    stream = {"schema": {"ts": "int64"}, "window": "1s", "time": {"column": "ts", "unit": "s"}}
    streams = [{**stream, "name": name, "source": {"generator": {}}} for name in "ab"]
    spec = JoinQuerySpec.parse({"streams": streams, "join": {"on": ["ts"]}})
    with pytest.raises(BadSpec, match="the time column ts of a"):
        reader_of("x", spec.streams[0], JoinPlan.of(spec).formats[0], Path(), "")


def test_names_in_ndjson_may_be_escaped(tmp_path: Path) -> None:
    schema = {"k": "int64", "ts": "int64", "größe": "int64"}
    for ensure in (True, False):
        row = json.dumps({"k": 1, "ts": 2, "größe": 3}, ensure_ascii=ensure)
        (tmp_path / "x.ndjson").write_text(f"{row}\n", encoding="utf-8")
        assert [{"größe": 3, "k": 1, "ts": 2}] == whole(file_of(tmp_path / "x.ndjson", schema)).to_pylist()


def test_a_reader_is_called_by_what_it_reads(tmp_path: Path) -> None:
    assert f"file {tmp_path / 'x.csv'}" == file_of(tmp_path / "x.csv").title
    assert isinstance(file_of(tmp_path / "x.csv"), FileReader)
