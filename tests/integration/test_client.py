"""The Python client against real processes: exact by DuckDB, whatever becomes of connections and of the client."""

import asyncio
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from joinery.cli.local import LocalRun
from joinery.client import BadBatch, Query, Refused, ResultsGone, Unreachable, connect, connect_async
from joinery.client.asynchronous import AsyncResults
from joinery.client.watched import Steps, Wait
from joinery.model.errors import UserMustAct
from tests.support.running import counted, frame, running, truth, write_query

A, B = frame(12_000, 1), frame(9_000, 2)
DOCS = Path(__file__).parents[2] / "docs" / "client.md"


@pytest.fixture(name="query")
def a_running_query(tmp_path: Path) -> Iterator[LocalRun]:
    with running(write_query(tmp_path)) as run:
        yield run


@pytest.fixture(name="shared", scope="module")
def a_query_of_several_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRun]:
    """For those that leave its streams open, and look at nothing that another one pushed."""
    with running(write_query(tmp_path_factory.mktemp("shared"))) as run:
        yield run


class Tired:
    """A talk whose first answer takes longer than anybody waits."""

    token, schema = None, None

    def __init__(self) -> None:
        self._waits = 0

    async def await_(self, until: object) -> None:
        del until
        self._waits += 1
        await asyncio.sleep(3600 if self._waits == 1 else 0)

    def next(self) -> Steps[pa.RecordBatch | None]:
        yield Wait(self, lambda: True)  # type: ignore[arg-type]
        return pa.RecordBatch.from_pydict({"k": [1]}) if self._waits == 2 else None


def test_who_waited_in_vain_for_a_result_may_ask_again() -> None:
    async def ask() -> tuple[bool, list[int]]:
        results = AsyncResults(Tired())  # type: ignore[arg-type]
        each = aiter(results)
        try:
            await asyncio.wait_for(anext(each), 0.01)
        except TimeoutError:
            return True, [batch.num_rows async for batch in each]
        return False, []

    assert (True, [1]) == asyncio.run(ask())


class Foreign:
    """A frame of a library that we do not know: all it has is Arrow's stream interface."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_frames_of_any_kind_are_pushed_and_results_read(query: LocalRun) -> None:
    third = A.num_rows // 3
    with connect(query.gateway) as client:
        client.push("a", Foreign(A.slice(0, third)))
        client.push("a", (batch for batch in A.slice(third, third).to_batches(max_chunksize=1000)))
        client.push("a", A.slice(2 * third).to_pydict(), end=True)
        with duckdb.connect() as database:
            database.register("b", B)
            client.push("b", database.sql("select ts, k, s, n::int as n from b order by ts").to_arrow_table())
        client.end("b")
        results = client.results()
        found = list(results)
        assert client.schema == results.schema
    assert truth(A, B) == counted(found)
    assert query.wait(lambda _: None), query.failed


def test_the_async_twin_does_the_same(query: LocalRun) -> None:
    async def main() -> list[pa.RecordBatch]:
        async with await connect_async(query.gateway) as client:
            results = client.results()

            async def read() -> list[pa.RecordBatch]:
                return [batch async for batch in results]

            reading = asyncio.create_task(read())
            await asyncio.gather(client.push("a", A, end=True), client.push("b", B, end=True))
            return await reading

    assert truth(A, B) == counted(asyncio.run(main()))


def test_results_go_on_after_a_token(query: LocalRun) -> None:
    with connect(query.gateway) as client:
        client.push("a", A)
        client.push("b", B)
        client.flush()
        first = client.results()
        taken = [next(iter(first))]
        token = first.token
        first.close()
        client.end("a")
        client.end("b")
        rest = list(client.results(token))
    assert truth(A, B) == counted(taken + rest)


def test_what_is_there_can_be_read_without_waiting_for_more(query: LocalRun) -> None:
    with connect(query.gateway) as client:
        assert [] == list(client.results(follow=False))
        client.push("a", A, end=True)
        client.push("b", B.slice(0, 6000))
        client.flush()
        deadline = time.monotonic() + 30
        while not (found := list(client.results(follow=False))) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert 0 < sum(batch.num_rows for batch in found) < truth(A, B).total()


# --- connections that break


class Cut:
    """A way to an address that can be cut: all connections through it break, new ones work again."""

    def __init__(self, to: str) -> None:
        host, port = to.split(":")
        self._to = (host, int(port))
        self._open: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
                far = socket.create_connection(self._to)
            except OSError:
                return
            self._open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with one, suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
            other.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        self.cuts += 1
        broken, self._open = self._open, []
        for one in broken:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listening.close()
        self.cut()


def test_nothing_is_lost_or_doubled_when_connections_break(query: LocalRun) -> None:
    ingest = Cut(query.gateway)
    with connect(query.gateway) as reader, connect(ingest.address) as client:
        collector = Cut(str(reader._talk.description.results_address))
        object.__setattr__(reader._talk.description, "results_address", collector.address)
        found: list[pa.RecordBatch] = []
        results = reader.results()
        reading = threading.Thread(target=lambda: found.extend(results))
        reading.start()
        for start in range(0, A.num_rows, 1000):
            client.push("a", A.slice(start, 1000))
            client.push("b", B.slice(start, 1000))
            (ingest if start % 2000 else collector).cut()
        client.end("a")
        client.end("b")
        reading.join(60)
        assert not reading.is_alive()
    ingest.close()
    collector.close()
    assert ingest.cuts + collector.cuts > 10
    assert truth(A, B) == counted(found)


PRODUCER = """
import sys, time
from joinery.client import connect
from tests.support.running import frame
with connect(sys.argv[1]) as client:
    producer = client.producer("a", name="survivor")
    known, pieces = producer.recorded, frame(12_000, 1).to_batches(max_chunksize=100)
    producer.push(pieces[:20], skip=known)
    producer.flush()
    print(known, flush=True)
    slowly = (piece for piece in pieces[20:] if time.sleep(float(sys.argv[2])) is None)
    producer.push(slowly, skip=max(0, known - 20))
    producer.end()
"""


def test_a_killed_client_is_gone_on_with_by_another_under_its_name(query: LocalRun) -> None:
    def start(pause: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", PRODUCER, query.gateway, pause]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=DOCS.parents[1])  # noqa: S603

    first = start("0.1")
    assert first.stdout is not None
    assert "0" == first.stdout.readline().strip()
    time.sleep(0.5)
    first.send_signal(signal.SIGKILL)
    first.wait()
    first.stdout.close()
    second = start("0")
    recorded = int(second.communicate(timeout=60)[0])
    assert 0 == second.returncode
    assert 20 <= recorded < 120
    with connect(query.gateway) as client:
        client.push("b", B, end=True)
        assert truth(A, B) == counted(list(client.results()))


def test_a_subscriber_that_does_not_read_stalls_nobody(tmp_path: Path) -> None:
    many, few = frame(40_000, 3, span_ms=10_000), frame(40_000, 4, span_ms=10_000)
    with running(write_query(tmp_path, "inner", results={"retain": "2Mi"})) as query, connect(query.gateway) as client:
        slow, results = client.results(), client.results()
        quick: list[pa.RecordBatch] = []
        reading = threading.Thread(target=lambda: quick.extend(results))
        reading.start()
        for start in range(0, 40_000, 4000):
            client.push("a", many.slice(start, 4000))
            client.push("b", few.slice(start, 4000))
            client.flush()
            while results.token is None or _has_more(client, results.token):
                time.sleep(0.05)  # until the quick one has all that is there
        client.end("a")
        client.end("b")
        reading.join(60)
        assert not reading.is_alive()
        assert query.wait(lambda _: None), query.failed
        with pytest.raises(ResultsGone, match=r"no longer kept.*wanted \d+:0 or later"):
            list(slow)
    assert {row: times for row, times in truth(many, few).items() if row[4] is not None} == dict(counted(quick))


# --- what is refused


BAD: dict[str, tuple[Any, str]] = {
    "a column too many": (
        A.append_column("more", A["n"]),
        r"has unknown \['more'\].*send exactly",
    ),
    "a column too few": (A.drop_columns(["s"]), r"lacks \['s'\]"),
    "another type": (A.set_column(0, "k", A["k"].cast(pa.float64())), "found column k of double, wanted int64"),
    "no time": (A.set_column(3, "ts", pa.nulls(A.num_rows, pa.int64())), "nulls in the time column ts"),
    "an absurd time": ({"k": [1], "n": [1], "s": ["x"], "ts": [10**15]}, "check spec.streams"),
    "no frame": (7, "found a int, wanted a pandas, polars or Arrow frame"),
    "columns of different lengths": ({"k": [1], "n": [1, 2], "s": ["x"], "ts": [1]}, "does not become columns"),
}


def test_bad_frames_are_refused_before_anything_is_sent(query: LocalRun) -> None:
    with connect(query.gateway) as client:
        for data, why in BAD.values():
            with pytest.raises(BadBatch, match=f"(?s)^stream a: .*{why}"):
                client.push("a", data)
        with pytest.raises(UserMustAct, match="found no stream 'c' in this query, wanted one of a, b"):
            client.push("c", A)
        client.push("a", A, end=True)
        with pytest.raises(UserMustAct, match="rows for stream a after its end"):
            client.push("a", A)
        client.push("b", B, end=True)
        assert truth(A, B) == counted(list(client.results()))


def test_no_stream_waits_for_a_client_whose_push_was_refused(query: LocalRun) -> None:
    with connect(query.gateway) as client, pytest.raises(BadBatch):
        client.producer("a").push({"k": [1]})
    with connect(query.gateway) as client:
        client.push("a", A, end=True)
        client.push("b", B, end=True)
        assert truth(A, B) == counted(list(client.results()))
    assert query.wait(lambda _: None), query.failed


def test_a_name_that_another_takes_over_is_refused_with_the_reason(shared: LocalRun) -> None:
    with connect(shared.gateway) as client:
        older, newer = client.producer("a", "twice"), client.producer("a", "twice")
        newer.push(A.slice(0, 10))
        newer.flush()
        with pytest.raises(Refused, match="fenced: another one was opened"):  # noqa: PT012 - told as soon as it is known
            older.push(A.slice(0, 10))
            older.flush()


def test_nobody_there_is_said_with_the_address() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(Unreachable, match=rf"at {address}, wanted a running query; start it with joinery run"):
        connect(address, timeout=0.5)


def test_a_query_that_is_gone_is_said_after_some_patience(tmp_path: Path) -> None:
    with running(write_query(tmp_path)) as query:
        client = connect(query.gateway, patience=1.0)
        client.push("a", A)
        client.flush()
    with pytest.raises(Unreachable, match="nobody for 1 s"):
        client.push("a", [A] * 100)
    client.close()


def test_the_collectors_address_is_no_gateway(shared: LocalRun) -> None:
    with connect(shared.gateway) as client, pytest.raises(Unreachable, match="name the gateway's address"):
        connect(str(client._talk.description.results_address))


def test_a_token_of_another_query_is_refused(shared: LocalRun) -> None:
    with connect(shared.gateway) as client:
        with pytest.raises(ResultsGone, match="subscribe from"):
            list(client.results("77:0"))
        with pytest.raises(UserMustAct, match="found the token 'x', wanted one such as 12:0"):
            client.results("x")


# --- the documentation


def examples() -> list[str]:
    return [textwrap.dedent(text) for text in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)]


@pytest.mark.parametrize("number", range(len(examples())))
def test_the_examples_of_the_docs_run(number: int, query: LocalRun, capsys: pytest.CaptureFixture[str]) -> None:
    code = examples()[number].replace("127.0.0.1:7400", query.gateway)
    code = code.replace('"orders"', '"a"').replace('"fulfilments"', '"b"')
    exec(code, {"orders": A, "fulfilments": B})  # noqa: S102 - our own documentation
    assert str(truth(A, B).total()) == capsys.readouterr().out.split()[-1]


def test_the_first_example_has_five_lines() -> None:
    lines = [line for line in examples()[0].splitlines() if line.strip() and "import" not in line]
    assert len(lines) <= 6
    assert isinstance(Query, type)


def _has_more(client: Query, token: str) -> bool:
    """Whether there are results after a token; those that are no longer kept were there, too."""
    try:
        return bool(list(client.results(token, follow=False)))
    except ResultsGone:
        return True
