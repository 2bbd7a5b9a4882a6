"""Producers that misbehave: each is refused with a reason or held back, and what was acknowledged is joined once."""

import os
import queue
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import grpc
import numpy as np
import pyarrow as pa
import pytest

from joinery.adapters.conversations import ingesting
from joinery.adapters.links import OPTIONS
from joinery.cli.local import LocalRun
from joinery.client import Query, connect
from joinery.flow.checksum import checksum_of
from joinery.machine.messages import Acknowledge, Message, Open, Opened, Push, Refuse
from joinery.model.ids import ProducerId
from tests.support.faults import PATIENCE_S, resident_bytes, until
from tests.support.running import SCHEMA, running, write_query

FIELDS = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("s", pa.string()), ("ts", pa.int64())])
TIME = {"column": "ts", "unit": "ms", "lateness": "1h", "idleTimeout": "1s"}
HOUR = [{"name": name, "schema": dict(SCHEMA), "window": "1s", "time": dict(TIME)} for name in "ab"]
"""Rows may come in any order: producers come and go in these tests, and nobody waits long for one that is silent."""
SELECT = ["a.n as x", "b.n as y"]


def rows(first: int, count: int, text: str = "") -> pa.RecordBatch:
    """Rows with numbers of their own; each key is there once in ten rows."""
    numbers = np.arange(first, first + count)
    texts = pa.array([text] * count, pa.string())
    return pa.record_batch([pa.array(numbers % 10), pa.array(numbers), texts, pa.array(numbers % 1000)], schema=FIELDS)


class Raw:
    """A producer that does as it likes: it knows the wire, and none of the rules."""

    def __init__(self, address: str, stream: int, name: str) -> None:
        self._channel = grpc.insecure_channel(
            address, options=[*OPTIONS[2:], ("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        )
        self._out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._talk = ingesting()
        self.sent = 0
        """Messages that have left."""
        self.answers: list[Message] = []
        self.broken: grpc.RpcError | None = None
        self._call = self._channel.stream_stream("/joinery.v1.Ingest/Push")(self._messages())
        threading.Thread(target=self._read, daemon=True).start()
        self.send(Open(stream, ProducerId(name)))
        self.opened = self.next()
        assert isinstance(self.opened, Opened)
        self._session = self.opened.session

    def _messages(self) -> Iterator[bytes]:
        while (data := self._out.get()) is not None:
            self.sent += 1
            yield data

    def _read(self) -> None:
        try:
            for data in self._call:
                self.answers.append(self._talk.decode_down(data))
        except grpc.RpcError as broken:
            self.broken = broken

    def send(self, message: Message) -> None:
        self._out.put(self._talk.encode_up(message))

    def send_bytes(self, data: bytes) -> None:
        self._out.put(data)

    def push(self, sequence: int, batch: pa.RecordBatch, *, end: bool = False) -> None:
        self.send(Push(self._session, sequence, sequence + 1, checksum_of(batch), batch, end))

    def next(self) -> Message:
        """The next answer."""
        until(lambda: bool(self.answers) or self.broken is not None, "an answer")
        assert self.answers, self.broken
        return self.answers.pop(0)

    def close(self) -> None:
        self._out.put(None)
        self._call.cancel()
        self._channel.close()


def exact(a: list[pa.RecordBatch], b: list[pa.RecordBatch]) -> Counter[tuple[Any, ...]]:
    """All pairs of rows that were acknowledged."""
    with duckdb.connect() as connection:
        connection.register("a", pa.Table.from_batches(a, FIELDS).drop_columns("s"))
        connection.register("b", pa.Table.from_batches(b, FIELDS).drop_columns("s"))
        near = "a.ts between b.ts - 1000 and b.ts or b.ts between a.ts - 1000 and a.ts"
        return Counter(connection.execute(f"select a.n, b.n from a join b on a.k = b.k and ({near})").fetchall())


def results(client: Query) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for batch in client.results() for row in batch.to_pylist())


@pytest.fixture(name="query")
def a_running_query(tmp_path: Path) -> Iterator[LocalRun]:
    with running(write_query(tmp_path, "inner", streams=HOUR, select=SELECT)) as run:
        yield run


def test_each_of_many_bad_producers_is_answered_and_the_others_go_on(query: LocalRun) -> None:
    a, b = [rows(0, 100)], [rows(0, 100), rows(100, 100)]
    with connect(query.gateway) as client:
        client.push("b", b[0])  # stays open, so that the stream does not end with the others
        garbage = Raw(query.gateway, 0, "garbage")
        garbage.send_bytes(b"\xff\xfe nothing that anybody could read")
        refused = garbage.next()
        assert isinstance(refused, Refuse)
        assert refused.reason

        other = Raw(query.gateway, 0, "another schema")
        other.push(0, pa.record_batch({"k": [1.5], "n": [1], "s": ["x"], "ts": [1]}))
        refused = other.next()
        assert isinstance(refused, Refuse)
        assert "column k of double, wanted int64" in refused.reason

        repeats = Raw(query.gateway, 0, "repeats")
        repeats.push(7, a[0])  # the first may have any number
        first = repeats.next()
        assert isinstance(first, Acknowledge)
        assert first.record is not None
        repeats.push(7, a[0])
        assert Acknowledge(7, None) == repeats.next()
        repeats.push(7, rows(5000, 100))
        refused = repeats.next()
        assert isinstance(refused, Refuse)
        assert "taken with other rows" in refused.reason
        repeats.push(10, rows(6000, 100))
        refused = repeats.next()
        assert isinstance(refused, Refuse)
        assert (8, True) == (refused.expected, "send what lies between first" in refused.reason)
        a.append(rows(100, 100))
        repeats.push(8, a[1], end=True)
        assert isinstance(repeats.next(), Acknowledge)

        for one in (garbage, other, repeats):
            one.close()
        client.push("b", b[1], end=True)
        for name in ("garbage", "another schema"):  # they have a session, so the stream waits for them
            client.producer("a", name).end()
        assert exact(a, b) == results(client)


def test_an_older_client_of_the_same_name_is_told_even_if_its_batches_wait(query: LocalRun) -> None:
    """A batch that waits is dropped when the name is taken over; whoever sent it must not wait for ever."""
    with connect(query.gateway) as client:
        older = Raw(query.gateway, 0, "twice")
        until(lambda: "worker-0" in query.workers, "a worker")
        client.push("b", rows(0, 50))
        for sequence in range(200):
            older.push(sequence, rows(10 * sequence, 10))
        newer = Raw(query.gateway, 0, "twice")
        assert isinstance(newer.opened, Opened)
        until(lambda: any(isinstance(one, Refuse) for one in older.answers), "a refusal for the older one")
        kept = 1 + max((one.sequence for one in older.answers if isinstance(one, Acknowledge)), default=-1)
        kept = max(kept, newer.opened.expected or 0)
        refused = next(one for one in older.answers if isinstance(one, Refuse))
        assert "fenced" in refused.reason
        newer.push(kept, rows(90_000, 10), end=True)
        assert isinstance(newer.next(), Acknowledge)
        client.end("b")
        a = [*(rows(10 * sequence, 10) for sequence in range(kept)), rows(90_000, 10)]
        assert exact(a, [rows(0, 50)]) == results(client)
        older.close()
        newer.close()


def test_tiny_and_huge_batches_are_taken_and_one_beyond_the_bound_is_refused(query: LocalRun) -> None:
    tiny = [rows(number, 1) for number in range(2000)]
    huge = rows(2000, 40, "x" * (1 << 18))  # 10 MB in one batch
    with connect(query.gateway) as client:
        begun = time.monotonic()
        client.push("a", tiny)
        client.flush()
        assert time.monotonic() - begun < PATIENCE_S
        far = Raw(query.gateway, 0, "far too large")
        far.send_bytes(bytes(65 << 20))
        until(lambda: far.broken is not None, "an end of this connection")
        assert far.broken is not None
        assert grpc.StatusCode.RESOURCE_EXHAUSTED == far.broken.code()
        far.close()
        large = Raw(query.gateway, 0, "large")
        large.push(0, huge, end=True)
        assert isinstance(large.next(), Acknowledge)
        large.close()
        client.push("b", rows(0, 50), end=True)
        client.end("a")
        client.producer("a", "far too large").end()
        assert exact([*tiny, huge], [rows(0, 50)]) == results(client)


def test_a_flood_is_held_back_and_the_gateways_memory_is_bounded(tmp_path: Path) -> None:
    """The only worker stands still for a while, and a producer that ignores acknowledgements sends 400 MB."""
    path = write_query(
        tmp_path, "inner", streams=HOUR, select=SELECT, epochs={"reorganization": "60s"}, worker={"memory": "4Gi"}
    )
    with running(path) as query, connect(query.gateway) as client:
        client.push("b", rows(0, 50))
        client.flush()
        client.push("a", rows(0, 10))
        client.flush()
        next(iter(client.results()))  # the worker is at work
        gateway, worker = query.pids["gateway"], query.pids["worker-0"]
        before = resident_bytes(gateway)
        os.kill(worker, signal.SIGSTOP)
        try:
            flood, batches, text = Raw(query.gateway, 0, "flood"), 400, "x" * (1 << 20)
            for sequence in range(batches):
                flood.push(sequence, rows(100 + sequence, 1, text))
            peak = settled = 0
            sent = -1
            while settled < 20:  # until nothing more leaves
                settled, sent = (settled + 1 if sent == flood.sent else 0), flood.sent
                peak = max(peak, resident_bytes(gateway) - before)
                time.sleep(0.1)
            assert sent < batches
            assert peak < 320 << 20, f"{peak >> 20} MiB more with {sent} MiB of {batches}"
            assert isinstance(Raw(query.gateway, 1, "another").opened, Opened)  # others are answered
        finally:
            os.kill(worker, signal.SIGCONT)
        until(lambda: len(flood.answers) == batches, "all acknowledgements")
        assert all(isinstance(one, Acknowledge) for one in flood.answers)
        flood.push(batches, rows(99_000, 1), end=True)
        client.end("a")
        client.end("b")
        client.producer("b", "another").end()
        a = [rows(0, 10), *(rows(100 + sequence, 1) for sequence in range(batches)), rows(99_000, 1)]
        assert exact(a, [rows(0, 50)]) == results(client)
        flood.close()


def test_a_client_that_floods_is_held_back_in_its_own_program(query: LocalRun) -> None:
    """The client keeps a bounded number of batches, so `push` waits; nothing is refused."""
    with connect(query.gateway) as client:
        client.push("b", rows(0, 50), end=True)
        sent = [rows(1000 * number, 1000) for number in range(60)]
        client.push("a", iter(sent))
        reading = client.results()  # before the end: a query that has ended is gone
        client.end("a")
        assert exact(sent, [rows(0, 50)]) == Counter(
            tuple(row.values()) for batch in reading for row in batch.to_pylist()
        )
