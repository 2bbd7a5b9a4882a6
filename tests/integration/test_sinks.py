"""Sinks on a real disk and a real Redis: formats and types, crashes in the middle, full disks, what a spec asks for."""

import base64
import datetime
import io
import json
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.adapters.embedded_redis import EmbeddedRedis
from joinery.adapters.redis_commits import RedisCommits
from joinery.adapters.sinks.chosen import Chosen
from joinery.adapters.sinks.file_sink import FileSink
from joinery.adapters.sinks.formats import ENDINGS, format_of
from joinery.adapters.sinks.light import CountSink, StdoutSink
from joinery.adapters.sinks.opening import open_sinks, stream_targets
from joinery.adapters.sinks.redis_stream import RedisStreamSink, rows_of
from joinery.adapters.sinks.texts import base64_of, lines_of
from joinery.join.plan import JoinPlan
from joinery.join.results import Kind, ResultPart
from joinery.machine.ports import Commit, Receipt, Sink, Stale
from joinery.model.errors import BadSpec, Bug, TryAgain, UserMustAct
from joinery.model.ids import Term
from joinery.model.spec import JoinQuerySpec
from joinery.model.types import parse_type

TYPES = {
    "int8": [1, -128, None],
    "int16": [1, -(2**15), None],
    "int32": [1, -(2**31), None],
    "int64": [2**62, -(2**63), None],
    "uint8": [1, 255, None],
    "uint16": [1, 2**16 - 1, None],
    "uint32": [1, 2**32 - 1, None],
    "uint64": [1, 2**63 - 1, None],
    "float32": [0.5, -2.0, None],
    "float64": [0.1, 1e300, None],
    "string": ['a "b"\\\n\t\x01,é', "", None],
    "binary": [b"\xff\x00", b"", None],
    "binary(3)": [b"\xff\x00,", b"abc", None],
    "bool": [True, False, None],
    "date": [datetime.date(2026, 1, 31), datetime.date(1969, 12, 31), None],
    "timestamp(s)": [datetime.datetime(2026, 1, 31, 12), datetime.datetime(1969, 1, 1), None],
    "timestamp(ms)": [datetime.datetime(2026, 1, 31, 12, 0, 0, 1000), datetime.datetime(1969, 1, 1), None],
    "timestamp(us)": [datetime.datetime(2026, 1, 31, 12, 0, 0, 1), datetime.datetime(1969, 1, 1), None],
    "timestamp(ns)": [datetime.datetime(2026, 1, 31, 12, 0, 0, 1), datetime.datetime(1969, 1, 1), None],
    "timestamp(us, UTC)": [datetime.datetime(2026, 1, 31, 12, 0, 0, 1), datetime.datetime(1969, 1, 1), None],
    "timestamp(us, Europe/Berlin)": [datetime.datetime(2026, 1, 31, 12), datetime.datetime(1969, 1, 1), None],
    "decimal(18,2)": [Decimal("1.50"), Decimal("-0.01"), None],
    "decimal(38,30)": [Decimal("1E-30"), Decimal("12345678.5"), None],
}
"""Of every type that a schema can name, two values and none."""


def part(rows: pa.RecordBatch, kind: Kind = Kind.RESULT, stream: int = 0) -> ResultPart:
    numbers = np.arange(rows.num_rows, dtype=np.int64)
    return ResultPart(kind, rows, numbers.astype(np.uint16), numbers, stream, None, (numbers, None))


def numbers(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"k": pa.array(values, pa.int64())})


def column(name: str) -> pa.RecordBatch:
    """A column of this type, beside one that has no null."""
    array = pa.array(TYPES[name], parse_type(name).arrow)
    return pa.RecordBatch.from_arrays([pa.array([1, 2, 3]), array], names=["k", "x"])


def sink_at(path: Path, schema: pa.Schema | None = None, query: str = "q") -> FileSink:
    schema = numbers().schema if schema is None else schema
    form = format_of(path, schema)
    assert form is not None
    return FileSink("one", path, form, Chosen(schema), query, durable=True)


def written(path: Path, *batches: pa.RecordBatch) -> Path:
    """A finished file of these rows, a commit each."""
    sink = sink_at(path, batches[0].schema)
    sink.recover(Term(1), None)
    receipt = None
    for number, rows in enumerate(batches, 1):
        receipt = sink.stage(number, [part(rows)])
    sink.finish(receipt)
    return path


def read(path: Path) -> list[int]:
    if path.stat().st_size == 0:
        return []
    readers = {".parquet": pa.parquet.read_table, ".csv": pa.csv.read_csv}
    return readers.get(path.suffix, pa.json.read_json)(path)["k"].to_pylist()


@pytest.fixture(params=ENDINGS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of each format."""
    return tmp_path / f"out{request.param}"


# --- types


@pytest.mark.parametrize("name", TYPES)
def test_parquet_keeps_every_type_and_value(name: str, tmp_path: Path) -> None:
    rows = column(name)
    found = pa.parquet.read_table(written(tmp_path / "out.parquet", rows, rows))
    wanted = pa.Table.from_batches([rows, rows])
    assert wanted.to_pylist() == found.to_pylist()
    if name != "timestamp(s)":
        assert wanted.schema == found.schema


@pytest.mark.parametrize("name", TYPES)
def test_csv_is_read_back_as_it_was(name: str, tmp_path: Path) -> None:
    rows = column(name)
    kind = rows.schema.field("x").type
    is_binary = name.startswith("binary")
    asked = pa.string() if is_binary else pa.timestamp(kind.unit, "UTC") if name.endswith(("UTC)", "Berlin)")) else kind
    options = pa.csv.ConvertOptions(
        column_types={"x": asked}, strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    parsing = pa.csv.ParseOptions(newlines_in_values=True)
    found = pa.csv.read_csv(written(tmp_path / "out.csv", rows, rows), convert_options=options, parse_options=parsing)[
        "x"
    ].to_pylist()
    if is_binary:
        found = [None if text is None else base64.b64decode(text) for text in found]
    assert rows["x"].to_pylist() * 2 == found


@pytest.mark.parametrize("name", TYPES)
def test_ndjson_is_read_back_as_it_was(name: str, tmp_path: Path) -> None:
    rows = column(name)
    lines = written(tmp_path / "out.ndjson", rows, rows).read_text().splitlines()
    found = [json.loads(line, parse_float=Decimal if name.startswith("decimal") else float) for line in lines]
    assert [1, 2, 3] * 2 == [row["k"] for row in found]
    read_text = {
        "binary": base64.b64decode,
        "binary(3)": base64.b64decode,
        "date": datetime.date.fromisoformat,
        "decimal(18,2)": Decimal,
        "decimal(38,30)": Decimal,
    }.get(name, _time if name.startswith("timestamp") else lambda value: value)
    assert rows["x"].to_pylist() * 2 == [None if row["x"] is None else read_text(row["x"]) for row in found]


def _time(text: str) -> datetime.datetime:
    """Nanoseconds are cut off: Python has none."""
    is_instant = text.endswith("Z")
    seconds, _, digits = text.removesuffix("Z").partition(".")
    time = datetime.datetime.fromisoformat(seconds).replace(microsecond=int(digits[:6].ljust(6, "0") or 0))
    return time.replace(tzinfo=datetime.UTC) if is_instant else time


def test_texts_look_as_documented() -> None:
    names = ["float64", "decimal(18,2)", "binary", "bool", "date", "timestamp(us)", "timestamp(us, Europe/Berlin)"]
    arrays = [pa.array(TYPES[name], parse_type(name).arrow) for name in names]
    rows = pa.RecordBatch.from_arrays(arrays, names=list("abcdefg")).slice(0, 1)
    wanted = (
        '{"a":0.1,"b":"1.50","c":"/wA=","d":true,"e":"2026-01-31",'
        '"f":"2026-01-31T12:00:00.000001","g":"2026-01-31T12:00:00.000000Z"}\n'
    )
    assert wanted == lines_of(rows).decode()
    form = format_of(Path("a.csv"), rows.schema)
    assert form is not None
    wanted = '0.1,1.50,"/wA=",true,2026-01-31,2026-01-31 12:00:00.000001,2026-01-31 12:00:00.000000Z\n'
    assert wanted == b"".join(form.encode(rows)).decode()


def test_numbers_that_json_has_none_for_are_texts() -> None:
    rows = pa.RecordBatch.from_pydict({"x": pa.array([float("nan"), float("inf"), float("-inf"), 1.0, None])})
    found = [json.loads(line)["x"] for line in lines_of(rows).splitlines()]
    assert ["NaN", "Infinity", "-Infinity", 1, None] == found


@given(st.lists(st.none() | st.text(max_size=8)), st.text(min_size=1, max_size=3), st.integers(0, 3))
@settings(max_examples=100)
def test_any_text_survives_ndjson(texts: list[str | None], name: str, skipped: int) -> None:
    texts = [None if text is None else text.encode("utf8", "ignore").decode() for text in texts]
    name = name.encode("utf8", "replace").decode()
    rows = pa.RecordBatch.from_pydict({name: pa.array(texts, pa.string())}).slice(skipped)
    found = lines_of(rows).decode().split("\n")[:-1]
    assert [{name: text} for text in texts[skipped:]] == [json.loads(line) for line in found]


@given(st.lists(st.none() | st.binary(max_size=10)), st.integers(0, 3))
@settings(max_examples=100)
def test_base64_is_that_of_the_standard_library(values: list[bytes | None], skipped: int) -> None:
    found = base64_of(pa.array(values, pa.binary()).slice(skipped)).to_pylist()
    assert [None if value is None else base64.b64encode(value).decode() for value in values[skipped:]] == found


def test_a_time_that_parquet_cannot_hold_is_refused_when_it_comes(tmp_path: Path) -> None:
    rows = pa.RecordBatch.from_pydict({"x": pa.array([2**62], pa.timestamp("s"))})
    sink = sink_at(tmp_path / "out.parquet", rows.schema)
    sink.recover(Term(1), None)
    with pytest.raises(UserMustAct, match="timestamp"):
        sink.stage(1, [part(rows)])


def test_many_rows_are_written_in_few_row_groups(tmp_path: Path) -> None:
    path = written(tmp_path / "out.parquet", *(numbers(*range(start, start + 10)) for start in range(0, 1000, 10)))
    assert 1 == pa.parquet.ParquetFile(path).num_row_groups
    assert list(range(1000)) == read(path)


def test_rows_beyond_what_is_made_text_at_once_are_all_there(tmp_path: Path) -> None:
    for ending in (".csv", ".ndjson"):
        rows = numbers(*range(150_000))
        assert list(range(150_000)) == read(written(tmp_path / f"out{ending}", rows))


# --- files


def test_an_earlier_run_s_file_is_replaced_only_at_the_end(path: Path) -> None:
    written(path, numbers(1))
    sink = sink_at(path, query="second")
    sink.recover(Term(1), None)
    receipt = sink.stage(1, [part(numbers(2))])
    assert [1] == read(path)
    sink.finish(receipt)
    assert [2] == read(path)


def test_nothing_is_left_beside_a_finished_file(path: Path) -> None:
    assert [path] == list(written(path, numbers(1)).parent.iterdir())


def test_the_parts_of_a_run_that_broke_off_do_not_disturb_the_next_one(path: Path) -> None:
    for term in (1, 2, 3):
        broken = sink_at(path, query="first")
        broken.recover(Term(term), None)
        broken.stage(1, [part(numbers(9))])
    sink = sink_at(path, query="second")
    sink.recover(Term(1), None)
    sink.finish(sink.stage(1, [part(numbers(1))]))
    assert [1] == read(path)
    broken.discard()
    assert [path] == list(path.parent.iterdir())


def test_a_folder_that_is_missing_is_made(tmp_path: Path) -> None:
    assert [1] == read(written(tmp_path / "new" / "folder" / "out.csv", numbers(1)))


def test_a_collector_that_starts_after_the_end_leaves_the_file_alone(path: Path) -> None:
    sink = sink_at(path)
    sink.recover(Term(1), None)
    receipt = sink.stage(1, [part(numbers(1, 2))])
    sink.finish(receipt)
    again = sink_at(path)
    again.recover(Term(2), receipt)
    again.finish(receipt)
    assert [1, 2] == read(path)
    with pytest.raises(Bug, match="after it was finished"):
        again.stage(2, [part(numbers(3))])


@pytest.mark.parametrize("crash", ["before the rename", "after the rename", "while parts go"])
def test_a_crash_while_finishing_is_made_good_by_the_next_collector(
    path: Path, crash: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = sink_at(path)
    sink.recover(Term(1), None)
    receipt = sink.stage(1, [part(numbers(1, 2))])
    place = {"before the rename": "replace", "after the rename": "rename", "while parts go": "unlink"}[crash]
    target = "shutil.rmtree" if crash == "while parts go" else f"pathlib.Path.{place}"

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(target, die)
        with pytest.raises(KeyboardInterrupt):
            sink.finish(receipt)
    again = sink_at(path)
    again.recover(Term(2), receipt)
    again.finish(receipt)
    assert [1, 2] == read(path)
    assert [path] == list(path.parent.iterdir())


def test_what_a_crash_in_the_middle_of_a_stage_left_does_not_count(path: Path) -> None:
    old = sink_at(path)
    old.recover(Term(1), None)
    receipt = old.stage(1, [part(numbers(1))])
    [torn] = path.with_name(f"{path.name}.q.parts").iterdir()
    with torn.open("ab") as file:
        file.write(b"\x00half a row")
    new = sink_at(path)
    new.recover(Term(2), receipt)
    new.finish(new.stage(2, [part(numbers(2))]))
    assert [1, 2] == read(path)


WRITER = """
import sys
from pathlib import Path
import pyarrow as pa
from joinery.adapters.sinks.formats import format_of
from joinery.adapters.sinks.part_files import PartFiles
path, schema = Path(sys.argv[1]), pa.schema([("k", pa.int64())])
form = format_of(path, schema)
parts = PartFiles(path, "q", form.ending, durable=True)
parts.begin(1, 0)
for number in range(1, 100_000):
    rows = pa.RecordBatch.from_pydict({"k": range(number * 100, number * 100 + 100)}, schema)
    print(number, parts.stage(number, form.beginning, form.encode(rows)), flush=True)
"""


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_writer_that_is_killed_has_spoilt_nothing_that_it_told(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out{ending}"
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:  # noqa: S603
        assert writer.stdout is not None
        told = [writer.stdout.readline() for _ in range(30)]
        writer.send_signal(signal.SIGKILL)
    number, valid = map(int, told[-1].split())
    sink = sink_at(path)
    sink.recover(Term(2), Receipt("one", valid))
    sink.finish(Receipt("one", valid))
    assert list(range(100, number * 100 + 100)) == read(path)


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file can grow beyond this: to a writer it is a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_told_with_the_path_and_nothing_valid_is_lost(path: Path) -> None:
    sink = sink_at(path)
    sink.recover(Term(1), None)
    first = sink.stage(1, [part(numbers(1))])
    with room_for(4000), pytest.raises(TryAgain, match=rf"{path.name}.*no room \(\[Errno"):
        sink.stage(2, [part(numbers(*range(10_000)))])
    sink.write_valid(first, path)
    assert [1] == read(path)
    second = sink.stage(2, [part(numbers(2))])
    with room_for(2), pytest.raises(TryAgain, match=rf"{path.name}.*no room"):
        sink.finish(second)
    assert [1] == read(path)
    sink.finish(second)
    assert [1, 2] == read(path)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserMustAct, match=r"file/out\.csv"):
        sink_at(tmp_path / "file" / "out.csv").recover(Term(1), None)


def test_parts_that_are_gone_are_noticed_before_anything_is_written(path: Path) -> None:
    sink = sink_at(path)
    sink.recover(Term(1), None)
    receipt = sink.stage(1, [part(numbers(1))])
    for one in path.with_name(f"{path.name}.q.parts").iterdir():
        one.unlink()
    with pytest.raises(UserMustAct, match="were committed"):
        sink_at(path).recover(Term(2), receipt)


def test_rows_of_other_columns_are_refused(path: Path) -> None:
    sink = sink_at(path)
    sink.recover(Term(1), None)
    with pytest.raises(Bug, match="columns"):
        sink.stage(1, [part(column("string"))])


# --- count, standard output


def test_a_count_is_what_was_committed() -> None:
    sink = CountSink("n", Chosen(numbers().schema))
    sink.recover(Term(1), None)
    first = sink.stage(1, [part(numbers(1, 2)), part(numbers(3))])
    sink.stage(2, [part(numbers(4))])
    assert Receipt("n", 5) == sink.stage(2, [part(numbers(4, 5))])
    again = CountSink("n", Chosen(numbers().schema))
    again.recover(Term(2), first)
    last = again.stage(2, [part(numbers(4))])
    again.stage(3, [part(numbers(5))])
    again.finish(last)
    assert 4 == again.rows


def test_the_standard_output_shows_a_commit_once_even_if_it_is_staged_again() -> None:
    output = io.BytesIO()
    sink = StdoutSink("out", output, Chosen(numbers().schema))
    sink.recover(Term(1), None)
    for number in (1, 1, 2):
        receipt = sink.stage(number, [part(numbers(number))])
    sink.finish(receipt)
    assert b'{"k":1}\n{"k":2}\n' == output.getvalue()
    assert Receipt("out", 2) == receipt


def test_a_standard_output_without_a_reader_is_told() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.PIPE)
    process.wait()
    assert process.stdin is not None
    sink = StdoutSink("out", process.stdin, Chosen(numbers().schema))  # type: ignore[arg-type]
    sink.recover(Term(1), None)
    with pytest.raises(UserMustAct, match="standard output closed"):
        sink.stage(1, [part(numbers(1))])
    with pytest.raises(BrokenPipeError):
        process.stdin.close()


# --- Redis Streams


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedRedis]:
    with EmbeddedRedis() as running:
        running.connect()
        yield running


def entries(server: EmbeddedRedis, key: str) -> list[int]:
    found = server.connect().xrange(key)
    return [value for _, fields in found for value in rows_of(fields[b"arrow"])["k"].to_pylist()]


def stream_sink(server: EmbeddedRedis, key: str) -> RedisStreamSink:
    return RedisStreamSink("one", server.connect(), key, key, Chosen(numbers().schema))


def test_entries_are_seen_with_the_commit_that_makes_them_valid(server: EmbeddedRedis) -> None:
    sink = stream_sink(server, "live")
    commits = RedisCommits(server.connect(), "live", stream_targets([sink]))
    term, _ = commits.open("c/1")
    sink.recover(term, None)
    seen = []
    for number in (1, 2, 3):
        receipt = sink.stage(number, [part(numbers(number, number * 10))])
        before = entries(server, "live")
        for _ in range(2):
            commits.write(term, Commit(number, np.array([number]), (receipt,)))
        seen.append((before, entries(server, "live")))
    assert [([], [1, 10]), ([1, 10], [1, 10, 2, 20]), ([1, 10, 2, 20], [1, 10, 2, 20, 3, 30])] == seen


def test_a_collector_that_was_replaced_shows_nothing(server: EmbeddedRedis) -> None:
    old = stream_sink(server, "fenced")
    commits = RedisCommits(server.connect(), "fenced", stream_targets([old]))
    term, _ = commits.open("c/1")
    old.recover(term, None)
    commits.write(term, Commit(1, np.array([1]), (old.stage(1, [part(numbers(1))]),)))
    late = old.stage(2, [part(numbers(99))])
    newer, last = commits.open("c/2")
    assert last is not None
    new = stream_sink(server, "fenced")
    new.recover(newer, last.receipts[0])
    assert [] == server.connect().keys("*{fenced}*staged*")
    with pytest.raises(Stale):
        commits.write(term, Commit(2, np.array([2]), (late,)))
    receipt = new.stage(2, [part(numbers(2))])
    commits.write(newer, Commit(2, np.array([2]), (receipt,)))
    with pytest.raises(Stale):
        old.finish(late)
    new.finish(receipt)
    assert [1, 2] == entries(server, "fenced")
    assert [b"joinery:{fenced}:sink:one:published"] == server.connect().keys("joinery:{fenced}:sink:*")


def test_a_key_that_holds_something_else_is_told_before_a_commit_is_tried(server: EmbeddedRedis) -> None:
    server.connect().set("taken", "a text")
    with pytest.raises(UserMustAct, match="found a string under the key taken, wanted a Redis Stream"):
        stream_sink(server, "taken").recover(Term(1), None)


def test_large_results_are_many_entries_in_their_order(server: EmbeddedRedis) -> None:
    sink = stream_sink(server, "large")
    sink.recover(Term(1), None)
    sink.finish(sink.stage(1, [part(numbers(*range(200_000)))]))
    assert 5 < server.connect().xlen("large") < 20
    assert list(range(200_000)) == entries(server, "large")


# --- from a spec


STREAMS = [
    {"name": "orders", "schema": {"id": "int64", "ts": "int64"}, "window": "1m"},
    {"name": "bills", "schema": {"id": "int64", "who": "string"}, "window": "1m"},
]


def opened(tmp_path: Path, sinks: list[object], late: object = None, **more: object) -> list[Sink]:
    asked = {"streams": STREAMS, "join": {"on": ["id"]}, "sinks": sinks}
    spec = JoinQuerySpec.parse(asked if late is None else {**asked, "late": {"sink": late}})
    return open_sinks(spec, JoinPlan.of(spec), tmp_path, query="q", **more)  # type: ignore[arg-type]


def test_every_kind_of_sink_is_opened_with_a_name_of_its_own(tmp_path: Path, server: EmbeddedRedis) -> None:
    files = [{"file": {"path": f"sub/results{ending}"}} for ending in ENDINGS]
    others = [{"redisStream": {"key": "results"}}, {"stdout": {}}, {"count": {}}]
    sinks = opened(tmp_path, [*files, *others], {"count": {}}, redis=server.connect())
    assert [FileSink] * 4 + [RedisStreamSink, StdoutSink, CountSink, CountSink, CountSink] == [*map(type, sinks)]
    names = [sink.name for sink in sinks]
    assert [*(f"sink-{number}" for number in range(7)), "late-orders", "late-bills"] == names
    assert ["results"] == [target.stream for target in stream_targets(sinks)]


def test_a_run_that_starts_anew_is_not_disturbed_by_one_that_broke_off(tmp_path: Path, server: EmbeddedRedis) -> None:
    client, asked = server.connect(), [{"file": {"path": "all.csv"}}]
    schema = pa.schema([("orders_id", pa.int64()), ("orders_ts", pa.int64()), ("bills_id", pa.int64())])
    rows = part(pa.RecordBatch.from_arrays([*([pa.array([1])] * 3), pa.array(["x"])], [*schema.names, "bills_who"]))
    receipt = None
    for term in (1, 2):  # the same run: the second collector goes on
        [sink] = opened(tmp_path, asked, redis=client)
        sink.recover(Term(term), receipt)
        receipt = sink.stage(term, [rows])
    client.flushall()
    [sink] = opened(tmp_path, asked, redis=client)
    sink.recover(Term(1), None)
    sink.finish(sink.stage(1, [rows]))
    assert [1] == pa.csv.read_csv(tmp_path / "all.csv")["orders_id"].to_pylist()


def test_results_and_late_rows_of_each_stream_go_to_their_own_files(tmp_path: Path) -> None:
    sinks = opened(tmp_path, [{"file": {"path": "all.csv"}}], {"file": {"path": "late.csv"}})
    shared = pa.RecordBatch.from_pydict({"orders_id": [1], "orders_ts": [5], "bills_id": [1], "bills_who": ["x"]})
    parts = [
        part(shared),
        part(pa.RecordBatch.from_pydict({"id": [7], "ts": [8]}), Kind.LATE, 0),
        part(pa.RecordBatch.from_pydict({"id": [9], "who": ["y"]}), Kind.LATE, 1),
    ]
    for sink in sinks:
        sink.recover(Term(1), None)
        sink.finish(sink.stage(1, parts))
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    wanted = {
        "all.csv": '"orders_id","orders_ts","bills_id","bills_who"\n1,5,1,"x"\n',
        "late-orders.csv": '"id","ts"\n7,8\n',
        "late-bills.csv": '"id","who"\n9,"y"\n',
    }
    assert wanted == found


def test_what_cannot_be_written_is_refused_with_every_complaint(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    paths = ["results.xlsx", "twice.csv", "folder.csv/../twice.csv", "folder.csv", "link/twice.csv"]
    with pytest.raises(BadSpec) as refused:
        opened(tmp_path, [{"file": {"path": name}} for name in paths])
    told = [(complaint.field, complaint.found.split("/")[-1]) for complaint in refused.value.complaints]
    assert [
        ("spec.sinks[0].file.path", "results.xlsx"),
        ("spec.sinks[1].file.path", "twice.csv more than once"),
        ("spec.sinks[2].file.path", "twice.csv more than once"),
        ("spec.sinks[3].file.path", "folder.csv"),
        ("spec.sinks[4].file.path", "twice.csv more than once"),
    ] == told
