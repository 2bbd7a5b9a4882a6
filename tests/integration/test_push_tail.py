"""`joinery push` and `joinery tail` as pipes: real processes, exact by DuckDB."""

import io
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest

from joinery.adapters.sinks.texts import lines_of
from joinery.cli.local import LocalRun
from joinery.client import connect
from tests.support.running import command, counted, frame, joinery, running, truth, write_query

A, B = frame(12_000, 1), frame(9_000, 2)


@pytest.fixture(name="query")
def a_running_query(tmp_path: Path) -> Iterator[LocalRun]:
    with running(write_query(tmp_path)) as run:
        yield run


def as_bytes(table: pa.Table, kind: str) -> bytes:
    out = io.BytesIO()
    match kind:
        case "csv":
            pa.csv.write_csv(table, out)
        case "ndjson":
            out.write(lines_of(table.combine_chunks().to_batches()[0]))
        case "parquet":
            pq.write_table(table, out)
        case "arrow":
            with pa.ipc.new_stream(out, table.schema) as writer:
                writer.write_table(table, max_chunksize=5000)
        case "feather":
            with pa.ipc.new_file(out, table.schema) as writer:
                writer.write_table(table, max_chunksize=5000)
    return out.getvalue()


@pytest.mark.parametrize(("first", "second"), [("csv", "parquet"), ("ndjson", "arrow"), ("feather", "csv")])
def test_rows_go_in_by_file_and_pipe_and_results_come_out(first: str, second: str, query: LocalRun) -> None:
    path = query.query.parent / f"a.{first}"
    path.write_bytes(as_bytes(A, first))
    tail = subprocess.Popen(  # noqa: S603
        command("tail", query.gateway, "--follow", "--format", "arrow"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    pushed = joinery("push", str(query.query), "a", str(path), "--end")
    assert (0, True) == (pushed.returncode, b"12,000 rows recorded in stream a" in pushed.stderr), pushed.stderr
    piped = joinery("push", query.gateway, "b", "--end", data=as_bytes(B, second))
    assert 0 == piped.returncode, piped.stderr
    out, err = tail.communicate(timeout=60)
    assert (0, True) == (tail.returncode, err.decode().strip().startswith("token ")), err
    assert truth(A, B) == counted(pa.ipc.open_stream(out).read_all().to_batches())
    assert query.wait(lambda _: None), query.failed


def test_tail_goes_on_after_its_token_and_prints_csv_and_ndjson(query: LocalRun) -> None:
    with connect(query.gateway) as client:
        client.push("a", A)
        client.push("b", B.slice(0, 6000))
        client.flush()
        deadline = time.monotonic() + 30
        while not list(client.results(follow=False)) and time.monotonic() < deadline:
            time.sleep(0.1)
        now = joinery("tail", query.gateway, "--format", "csv")
        assert 0 == now.returncode, now.stderr
        token = now.stderr.decode().split()[-1]
        words = command("tail", query.gateway, "--token", token, "--follow")
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as tail:  # noqa: S603
            assert tail.stdout is not None
            client.push("b", B.slice(6000, 2000))
            begin = tail.stdout.read(1)
            client.push("b", B.slice(8000), end=True)
            client.end("a")
            rest = begin + tail.stdout.read()
    assert 0 == tail.returncode
    options = pa.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
    first = pa.csv.read_csv(io.BytesIO(now.stdout), convert_options=options)
    second = pa.json.read_json(io.BytesIO(rest))
    assert first.num_rows > 0
    assert truth(A, B) == counted(first.to_batches() + second.to_batches())


def test_a_push_that_was_killed_goes_on_under_its_name(query: LocalRun) -> None:
    many, path = frame(200_000, 5), query.query.parent / "a.parquet"
    pq.write_table(many, path)
    words = ("push", query.gateway, "a", str(path), "--producer", "me", "--end")
    with connect(query.gateway) as client:  # b is live and behind, so that a must wait for it
        slow = client.producer("b")
        slow.push(B.slice(0, 1))
        slow.flush()
        first = subprocess.Popen(command(*words), stderr=subprocess.DEVNULL)  # noqa: S603
        with pytest.raises(subprocess.TimeoutExpired):
            first.wait(8)
        first.send_signal(signal.SIGKILL)
        first.wait()
        slow.push(B.slice(1))
        slow.end()
        again = joinery(*words, "--resume")
        assert 0 == again.returncode, again.stderr
        assert truth(many, B) == counted(list(client.results()))


def test_rows_of_a_pipe_that_pauses_are_not_held_back(query: LocalRun) -> None:
    pushing = subprocess.Popen(command("push", query.gateway, "a"), stdin=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603
    assert pushing.stdin is not None
    with connect(query.gateway) as client:
        client.push("b", {"k": [1], "n": [1], "s": ["x"], "ts": [5]}, end=True)
        pushing.stdin.write(b"k,n,s,ts\n1,2,hello,5\n")
        pushing.stdin.flush()
        row = next(iter(client.results())).to_pylist()[0]
        assert ("hello", "x") == (row["a_s"], row["b_s"])
    pushing.stdin.close()
    assert 0 == pushing.wait(30)
    pushing.stderr.close()  # type: ignore[union-attr]


def test_a_reader_that_goes_away_ends_tail_without_a_word(query: LocalRun) -> None:
    with connect(query.gateway) as client:
        client.push("a", A, end=True)
        client.push("b", B.slice(0, 8000))
        client.flush()
        read, write = os.pipe()
        tail = subprocess.Popen(command("tail", query.gateway, "-f"), stdout=write, stderr=subprocess.PIPE)  # noqa: S603
        os.close(write)
        assert os.read(read, 10)
        os.close(read)
        client.push("b", B.slice(8000), end=True)
        _, err = tail.communicate(timeout=60)
    assert 0 == tail.returncode, err
    assert not err or err.startswith(b"token "), err  # of what is out; nothing, if the reader left in the first batch


REFUSED: dict[str, tuple[list[str], bytes, int, str]] = {
    "no such stream": (["c"], b"", 2, "found no stream 'c' in this query, wanted one of a, b"),
    "no such file": (["a", "nowhere.csv"], b"", 2, "found no file nowhere.csv"),
    "an unknown ending": (["a", __file__], b"", 2, "rename it, or say --format"),
    "a column is missing": (["a"], b"k,n,ts\n1,2,3\n", 2, "s"),
    "a word among numbers": (
        ["a"],
        b'k,n,s,ts\n1,2,"x",3\n1,two,"x",3\n',
        2,
        "wanted csv with the columns k, n, s, ts",
    ),
    "NDJSON without a column": (["a"], b'{"k": 1, "n": 2, "ts": 3}\n', 2, "found no s among the columns"),
    "a time beyond the calendar": (["a"], b"k,n,s,ts\n1,2,x,9999999999999999\n", 2, "check spec.streams[].time.unit"),
    "resume of a pipe": (["a", "-", "--producer", "p", "--resume"], b"", 2, "--resume: found standard input"),
    "resume of a named pipe": (["a", "/dev/null", "--producer", "p", "--resume"], b"", 2, "/dev/null, a pipe"),
    "resume without a name": (["a", "x.csv", "--resume"], b"", 2, "--resume: found no --producer"),
    "an unknown format": (["a", "--format", "xls"], b"", 2, "--format: found xls, wanted one of csv"),
}


def test_what_cannot_be_pushed_is_said_and_the_exit_code_tells(query: LocalRun) -> None:
    for words, data, code, why in REFUSED.values():
        done = joinery("push", query.gateway, *words, data=data)
        assert (code, True) == (done.returncode, why in done.stderr.decode()), done.stderr.decode()
    joinery("push", query.gateway, "a", "--producer", "me", data=as_bytes(A.slice(0, 10), "csv"))
    again = joinery("push", query.gateway, "a", "--producer", "me", data=as_bytes(A.slice(0, 10), "csv"))
    assert (2, True) == (again.returncode, b"say --resume" in again.stderr), again.stderr
    tail = joinery("tail", query.gateway, "--token", "99:0")
    assert (2, True) == (tail.returncode, b"subscribe from 1:0" in tail.stderr), tail.stderr


@pytest.mark.parametrize("words", [["push", "127.0.0.1:1", "a"], ["tail", "127.0.0.1:1"]])
def test_an_address_where_nobody_is_is_said(words: list[str]) -> None:
    done = joinery(*words, "--wait", "0.5", data=b"")
    assert (1, True) == (done.returncode, b"at 127.0.0.1:1, wanted a running query" in done.stderr), done.stderr


@pytest.mark.parametrize("words", [["push", "nothing.yaml", "a"], ["tail", "no-such-query"]])
def test_a_query_that_does_not_run_is_said(words: list[str]) -> None:
    done = joinery(*words, data=b"")
    assert (2, True) == (done.returncode, b"start it with joinery run, or give HOST:PORT" in done.stderr), done.stderr


def test_run_waits_for_producers_and_says_where(tmp_path: Path) -> None:
    query = write_query(tmp_path, sinks=[{"file": {"path": "out.parquet"}}])
    words: Any = command("run", str(query), "--verify")
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603
    for stream, table in (("a", A), ("b", B)):
        deadline = time.monotonic() + 90
        while (done := joinery("push", str(query), stream, "--end", data=as_bytes(table, "csv"))).returncode == 2:
            assert time.monotonic() < deadline, done.stderr
            time.sleep(0.2)
        assert 0 == done.returncode, done.stderr
    out, err = run.communicate(timeout=60)
    assert (0, "missing 0, extra 0, duplicate 0") == (run.returncode, out.splitlines()[-1]), err
    assert "joinery push 127.0.0.1:" in err
    assert truth(A, B) == counted(pq.read_table(tmp_path / "out.parquet").to_batches())


def test_a_port_that_is_taken_is_said(query: LocalRun) -> None:
    port = query.gateway.split(":")[1]
    with connect(query.gateway) as client:
        client.push("a", A)  # the gateway is up
    done = joinery("run", str(query.query), "--port", port)
    assert (2, True) == (done.returncode, b"wanted a free one" in done.stderr), done.stderr
