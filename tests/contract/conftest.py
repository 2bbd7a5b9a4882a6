"""The stores that must keep the contracts. A real one is added as one more name in `params` and a branch beside it.

Each fixture gives a way to *connect*: every call is another process's handle on the same store.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
import pytest

from joinery.adapters.embedded_redis import EmbeddedRedis
from joinery.adapters.redis_checkpoints import RedisCheckpoints
from joinery.adapters.redis_commits import RedisCommits
from joinery.adapters.redis_log import RedisLog
from joinery.adapters.sinks.chosen import Chosen
from joinery.adapters.sinks.file_sink import FileSink
from joinery.adapters.sinks.formats import format_of
from joinery.adapters.sinks.redis_stream import RedisStreamSink, rows_of
from joinery.adapters.sinks.retained import RedisRetained
from joinery.join.plan import JoinPlan
from joinery.machine.memory import MemoryCheckpoints, MemoryClock, MemoryCommits, MemoryLog
from joinery.machine.memory_sink import MemorySink
from joinery.machine.ports import CheckpointStore, Clock, CommitStore, Log, Receipt, Retained, Sink
from joinery.machine.retaining import MemoryRetained
from joinery.model.ids import GroupId, RecordNo, Term
from joinery.model.spec import JoinQuerySpec

SCHEMA = pa.schema([("k", pa.int64())])
_numbers = itertools.count()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[EmbeddedRedis]:
    with EmbeddedRedis() as server:
        yield server


@pytest.fixture
def query() -> str:
    """A name whose keys nobody else uses."""
    return f"contract-{next(_numbers)}"


@pytest.fixture(params=["memory", "redis"])
def connect_log(request: pytest.FixtureRequest, query: str) -> Callable[[], Log]:
    if request.param == "redis":
        server = request.getfixturevalue("redis_server")
        return lambda: RedisLog(server.connect(), query)
    store = MemoryLog()
    return lambda: store


@pytest.fixture(params=["memory", "redis"])
def connect_checkpoints(request: pytest.FixtureRequest, query: str) -> Callable[[], CheckpointStore]:
    if request.param == "redis":
        server = request.getfixturevalue("redis_server")
        return lambda: RedisCheckpoints(server.connect(), query)
    store = MemoryCheckpoints()
    return lambda: store


@dataclass(frozen=True)
class Shelf:
    """A checkpoint store, and how to do harm to what it holds."""

    store: CheckpointStore
    harm: Callable[[int, int], str]
    """Damage the increment of a group at a tag; what the store calls the place."""


@pytest.fixture(params=["memory", "redis"])
def shelf(request: pytest.FixtureRequest, query: str) -> Shelf:
    if request.param == "memory":
        store = MemoryCheckpoints()

        def damage(group: int, tag: int) -> str:
            store.damage(GroupId(group), RecordNo(tag), "found a wrong checksum")
            return f"block:{group}:"

        return Shelf(store, damage)
    client = request.getfixturevalue("redis_server").connect()

    def flip(group: int, tag: int) -> str:
        [key] = client.keys(f"joinery:{{{query}}}:block:{group}:*:{tag}:*")
        value = bytearray(client.hget(key, "0"))
        value[-20] ^= 1
        client.hset(key, "0", bytes(value))
        return str(key.decode())

    return Shelf(RedisCheckpoints(client, query), flip)


@pytest.fixture(params=["memory", "redis"])
def connect_commits(request: pytest.FixtureRequest, query: str) -> Callable[[], CommitStore]:
    if request.param == "redis":
        server = request.getfixturevalue("redis_server")
        return lambda: RedisCommits(server.connect(), query)
    store = MemoryCommits()
    return lambda: store


RETAIN = 3 * 18
"""Three rows of the samples."""


@pytest.fixture(params=["memory", "redis"])
def connect_retained(request: pytest.FixtureRequest, query: str) -> Callable[[], Retained]:
    if request.param == "redis":
        server = request.getfixturevalue("redis_server")
        streams = [{"name": name, "schema": {"k": "int64"}, "window": "10s"} for name in "ab"]
        spec = {"streams": streams, "join": {"on": ["k"]}, "select": ["a.k as k"]}
        plan = JoinPlan.of(JoinQuerySpec.parse(spec))
        return lambda: RedisRetained(server.connect(), query, plan, RETAIN)
    return MemoryRetained(RETAIN).again


@dataclass(frozen=True)
class SinkDesk:
    """A sink, and how to look into it."""

    connect: Callable[[], Sink]
    valid: Callable[[Receipt | None], list[int]]
    """The values that count by a receipt, in their order."""
    output: Callable[[], list[int] | None]
    """The finished output; None: there is none yet."""


@pytest.fixture(params=["memory", "parquet", "csv", "ndjson", "redis"])
def desk(request: pytest.FixtureRequest, query: str, tmp_path: Path) -> SinkDesk:
    if request.param == "memory":
        return memory_desk()
    if request.param == "redis":
        return redis_desk(request.getfixturevalue("redis_server"), query)
    return file_desk(tmp_path / f"out.{request.param}", query)


def memory_desk() -> SinkDesk:
    sink = MemorySink("one")

    def values(parts: list[object]) -> list[int]:
        return [value for part in parts for value in part.rows.column("k").to_pylist()]  # type: ignore[attr-defined]

    return SinkDesk(
        connect=sink.again,
        valid=lambda receipt: values(list(sink.valid_parts(receipt))),
        output=lambda: None if sink.shelf.finished is None else values(list(sink.shelf.finished)),
    )


def file_desk(path: Path, query: str) -> SinkDesk:
    form = format_of(path, SCHEMA)
    assert form is not None

    def connect() -> FileSink:
        return FileSink("one", path, form, Chosen(SCHEMA), query, durable=True)

    def read(found: Path) -> list[int]:
        if found.stat().st_size == 0:
            return []
        readers = {".parquet": pa.parquet.read_table, ".csv": pa.csv.read_csv, ".ndjson": pa.json.read_json}
        return readers[found.suffix](found)["k"].to_pylist()

    def valid(receipt: Receipt | None) -> list[int]:
        copy = path.with_name(f"copy{path.suffix}")
        connect().write_valid(receipt, copy)
        return read(copy)

    return SinkDesk(connect, valid, lambda: read(path) if path.exists() else None)


def redis_desk(server: EmbeddedRedis, query: str) -> SinkDesk:
    """Valid by a receipt is what a collector that begins with it would find in the stream: tried on a copy."""
    client = server.connect()

    def connect(name: str = query) -> RedisStreamSink:
        return RedisStreamSink("one", server.connect(), name, f"stream-of-{name}", Chosen(SCHEMA))

    def published(name: str) -> list[int]:
        entries = client.xrange(f"stream-of-{name}")
        return [value for _, fields in entries for value in rows_of(fields[b"arrow"])["k"].to_pylist()]

    def valid(receipt: Receipt | None) -> list[int]:
        name = f"copy-{next(_numbers)}"
        for key in client.keys(f"*{query}*"):
            client.copy(key, key.replace(query.encode(), name.encode()))
        connect(name).recover(Term(99), receipt)
        return published(name)

    def output() -> list[int] | None:
        return None if client.exists(f"{connect().target.prefix}parts") else published(query)

    return SinkDesk(connect, valid, output)


@pytest.fixture(params=["memory"])
def clock(request: pytest.FixtureRequest) -> Clock:
    assert request.param == "memory"
    return MemoryClock(1_700_000_000_000_000_000)
