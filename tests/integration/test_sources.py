"""Sources in a gateway: a real machine in a real process (without gRPC), whose memory log says what was recorded."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from joinery.adapters.embedded_redis import EmbeddedRedis
from joinery.adapters.process import Process
from joinery.adapters.sinks.redis_stream import entries_of
from joinery.adapters.sources import Source, open_sources
from joinery.adapters.sources.flight import IN_FLIGHT
from joinery.adapters.sources.pieces import Pause, Piece
from joinery.join.plan import JoinPlan
from joinery.machine.calls import Calls
from joinery.machine.facts import Connected, Received
from joinery.machine.gateway import GatewayMachine
from joinery.machine.log import LoggedBatch, ProducerEnded, Record
from joinery.machine.memory import MemoryLog
from joinery.machine.messages import Open
from joinery.model.errors import TryAgain, UserMustAct
from joinery.model.ids import Peer, ProducerId, RecordNo, Term
from joinery.model.spec import JoinQuerySpec

SCHEMA = {"k": "int64", "ts": "int64"}
TIME = {"column": "ts", "unit": "us"}


def query(source: dict[str, Any] | None, schema: dict[str, str] | None = None, **more: Any) -> JoinQuerySpec:
    """Stream a has the source; b is pushed by nobody."""
    first = {"name": "a", "schema": schema or SCHEMA, "window": "1s", "time": TIME, "source": source}
    second = {"name": "b", "schema": SCHEMA, "window": "1s", "time": TIME}
    return JoinQuerySpec.parse({"streams": [first, second], "join": {"on": ["k"]}, **more})


class StuckLog(MemoryLog):
    """A log that takes so many records and then none."""

    def __init__(self) -> None:
        super().__init__()
        self.takes = 1 << 30

    def append(self, term: Term, number: RecordNo, record: Record) -> None:
        if number >= self.takes:
            raise TryAgain("the disk is slow")
        super().append(term, number, record)


class Gateway:
    """A gateway's process and its sources, from `with` to its end."""

    def __init__(
        self, spec: JoinQuerySpec, log: MemoryLog, folder: Path = Path(), redis_url: str = "", name: str = "one"
    ) -> None:
        self.log, self.machine = log, GatewayMachine(spec)
        self.process = Process(self.machine, Calls(instance=name, log=log))
        self.sources = open_sources(spec, JoinPlan.of(spec), folder, self.process, redis_url)
        self.because = ""
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self.because = self.process.run()

    def __enter__(self) -> "Gateway":
        self._thread.start()
        for source in self.sources:
            source.start()
        until(lambda: self.machine.is_open)
        return self

    def __exit__(self, *_: object) -> None:
        for source in self.sources:
            source.close()
        self.process.shell.stop("the test has seen enough")
        self._thread.join(10)
        assert not self._thread.is_alive()

    @property
    def source(self) -> Source:
        return self.sources[0]

    def finish(self, seconds: float = 10) -> None:
        """Until the first source has ended."""
        assert self.source.wait(seconds)

    def ended_because(self) -> str:
        """Until the query has ended; why."""
        self._thread.join(10)
        assert not self._thread.is_alive()
        return self.because


def until(holds: Callable[[], bool], seconds: float = 10) -> None:
    give_up = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < give_up, "waited in vain"
        time.sleep(0.005)


def batches(log: MemoryLog, stream: int = 0) -> list[LoggedBatch]:
    return [batch for _, record in log.read()[1] for batch in record.batches if batch.stream == stream]


def recorded(log: MemoryLog, stream: int = 0) -> pa.Table:
    """Every row of a stream, in the order of the log; and the offsets say the same as the rows."""
    found = batches(log, stream)
    assert [one.next_sequence for one in found[:-1]] == [one.sequence for one in found[1:]]
    return pa.Table.from_batches([one.rows for one in found])


def ends(log: MemoryLog) -> int:
    return sum(isinstance(entry, ProducerEnded) for _, record in log.read()[1] for entry in record.entries)


def table(rows: int) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table({"k": rng.integers(0, 100, rows), "ts": np.arange(rows)})


@pytest.fixture
def orders(tmp_path: Path) -> pa.Table:
    """A file of 37 pieces: at least 5 records."""
    made = table(600_000)
    pa.parquet.write_table(made, tmp_path / "orders.parquet", row_group_size=70_000)
    return made


FILE = {"file": {"path": "orders.parquet"}}


# --- every row, once


def test_every_row_of_a_file_is_recorded_once_and_then_the_stream_ends(orders: pa.Table, tmp_path: Path) -> None:
    log = MemoryLog()
    with Gateway(query(FILE), log, tmp_path) as gateway:
        gateway.finish()
        assert (True, None) == (gateway.source.finished, gateway.source.error)
    assert orders == recorded(log)
    assert 1 == ends(log)


@pytest.mark.parametrize("takes", [1, 2, 4])
def test_a_source_goes_on_where_the_log_ended(takes: int, orders: pa.Table, tmp_path: Path) -> None:
    log = StuckLog()
    log.takes = takes
    with Gateway(query(FILE), log, tmp_path) as gateway:
        until(lambda: takes == len(log.read()[1]))
        assert not gateway.source.finished
    log.takes = 1 << 30
    assert sum(one.rows.num_rows for one in batches(log)) < 600_000
    with Gateway(query(FILE), log, tmp_path, name="two") as gateway:
        gateway.finish()
    assert orders == recorded(log)
    assert 1 == ends(log)


def test_a_source_whose_end_is_recorded_does_nothing_more(orders: pa.Table, tmp_path: Path) -> None:
    log = MemoryLog()
    with Gateway(query(FILE), log, tmp_path) as gateway:
        gateway.finish()
    (tmp_path / "orders.parquet").unlink()  # nobody needs it any more
    with Gateway(query(FILE), log, tmp_path, name="two") as gateway:
        gateway.finish()
        assert (True, None) == (gateway.source.finished, gateway.source.error)
    assert orders == recorded(log)


class Unfinished:
    """A reader that has read the last row of the file and not yet seen its end."""

    title = "unfinished"

    def check(self) -> None: ...

    def read(self, start: int | None) -> Iterator[Piece | Pause]:
        yield Piece(start or 0, 10, table(10).to_batches()[0])
        yield Pause(60)


def test_a_source_that_stopped_between_its_last_row_and_its_end_ends_later(tmp_path: Path) -> None:
    pa.parquet.write_table(table(10), tmp_path / "orders.parquet")
    log = MemoryLog()
    with Gateway(query(None), log) as gateway:
        source = Source(0, "a", Unfinished(), gateway.process)
        source.start()
        until(lambda: bool(batches(log)))
        source.close()
    assert 0 == ends(log)
    with Gateway(query(FILE), log, tmp_path, name="two") as gateway:
        gateway.finish()
    assert table(10) == recorded(log)
    assert 1 == ends(log)


def _free(log: StuckLog) -> StuckLog:
    log.takes = 1 << 30
    return log


def test_a_generator_is_recorded_as_it_is_made_also_across_a_restart() -> None:
    spec = query({"generator": {"rows": 400_000, "profile": {"step": {"before": 1e4, "after": 1e5, "at": "1s"}}}})
    whole, log = MemoryLog(), StuckLog()
    with Gateway(spec, whole) as gateway:
        gateway.finish()
    log.takes = 2  # of at least 4
    with Gateway(spec, log):
        until(lambda: 2 == len(log.read()[1]))
    with Gateway(spec, _free(log), name="two") as gateway:
        gateway.finish()
    assert 400_000 == recorded(whole).num_rows
    assert recorded(whole) == recorded(log)
    times = recorded(whole)["ts"].to_numpy()
    assert abs(int((times < 1_000_000).sum()) - 10_000) < 500


# --- bounds


class Counting:
    """A reader that says how far it was read, of an input without an end."""

    title = "counting"

    def __init__(self) -> None:
        self.read_to = 0

    def check(self) -> None: ...

    def read(self, start: int | None) -> Iterator[Piece | Pause]:
        for at in range(start or 0, 1 << 40, 100):
            numbers = np.arange(at, at + 100)
            self.read_to = at + 100
            yield Piece(at, at + 100, pa.RecordBatch.from_pydict({"k": numbers, "ts": numbers}))


def test_a_source_reads_no_further_than_the_log_takes() -> None:
    log = StuckLog()
    log.takes = 0
    with Gateway(query(None), log) as gateway:
        reader = Counting()
        source = Source(0, "a", reader, gateway.process)
        source.start()
        until(lambda: source.flight.under_way == IN_FLIGHT)
        time.sleep(0.1)
        assert reader.read_to <= 100 * (IN_FLIGHT + 1)
        log.takes = 5
        until(lambda: len(log.read()[1]) == 5)
        until(lambda: source.flight.under_way == IN_FLIGHT)
        time.sleep(0.1)
        assert reader.read_to <= recorded(log).num_rows + 100 * (IN_FLIGHT + 1)
        source.close()


def test_a_source_waits_for_a_stream_that_is_behind(tmp_path: Path) -> None:
    pa.parquet.write_table(table(300_000), tmp_path / "orders.parquet")
    log = MemoryLog()
    with Gateway(query(FILE, alignment="10ms"), log, tmp_path) as gateway:
        gateway.process.shell.tell(Connected(Peer("b")))
        gateway.process.shell.tell(Received(Peer("b"), Open(1, ProducerId("b"))))
        until(lambda: gateway.source.flight.under_way == IN_FLIGHT)
        time.sleep(0.1)
        assert not gateway.source.finished
        assert gateway.machine.intake.waiting_bytes <= IN_FLIGHT << 20


# --- time


@pytest.mark.parametrize("kind", ["file", "generator"])
def test_a_paced_source_takes_the_time_of_its_rows(kind: str, tmp_path: Path) -> None:
    rows = pa.table({"k": np.arange(1000), "ts": 10**15 + np.arange(1000) * 400})
    pa.parquet.write_table(rows, tmp_path / "orders.parquet")
    generator = {"generator": {"rate": 2500, "arrivals": "constant", "rows": 1000}}
    log = MemoryLog()
    began = time.monotonic()
    with Gateway(query({**(FILE if kind == "file" else generator), "pace": "time"}), log, tmp_path) as gateway:
        until(lambda: bool(batches(log)))
        assert recorded(log).num_rows < 500
        gateway.finish()
    took = time.monotonic() - began
    assert 0.4 <= took < 2.0
    assert 1000 == recorded(log).num_rows
    assert 5 <= len(batches(log)) <= 60


def test_a_paced_source_that_goes_on_does_not_wait_for_what_is_past(tmp_path: Path) -> None:
    rows = pa.table({"k": np.arange(3), "ts": [0, 100_000, 3_600_000_000]})
    pa.parquet.write_table(rows, tmp_path / "orders.parquet")
    spec, log = query({**FILE, "pace": "time"}), MemoryLog()
    with Gateway(spec, log, tmp_path):
        until(lambda: recorded(log).num_rows == 2 if batches(log) else False)
    began = time.monotonic()
    with Gateway(spec, log, tmp_path, name="two") as gateway:
        gateway.finish()
    assert time.monotonic() - began < 5
    assert rows == recorded(log)


def test_a_source_that_waits_can_be_closed(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"k": [1, 2], "ts": [0, 10**12]}), tmp_path / "orders.parquet")
    began = time.monotonic()
    with Gateway(query({**FILE, "pace": "time"}), MemoryLog(), tmp_path) as gateway:
        until(lambda: bool(batches(gateway.log)))
    assert time.monotonic() - began < 2
    assert gateway.source.error is None


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ({"redisStream": {"key": "x"}, "pace": "time"}, "none for a Redis Stream"),
        ({"file": {"path": "x.csv"}, "pace": "time"}, "none without event time"),
    ],
)
def test_a_pace_that_means_nothing_is_refused_before_anything_starts(source: dict[str, Any], told: str) -> None:
    stream = {"name": "a", "schema": {"k": "int64"}, "window": "1s", "source": source}
    spec = JoinQuerySpec.parse({"streams": [stream, {**stream, "name": "b"}], "join": {"on": ["k"]}})
    with pytest.raises(UserMustAct) as refused:
        Gateway(spec, MemoryLog())
    assert 2 == str(refused.value).count(told)


# --- errors


def test_a_missing_file_ends_the_query_with_that_error(tmp_path: Path) -> None:
    with Gateway(query(FILE), MemoryLog(), tmp_path) as gateway:
        because = gateway.ended_because()
    assert "source of stream a (file " in because
    assert "found no file" in because
    assert because == str(gateway.source.error)
    with pytest.raises(UserMustAct, match="found no file"):
        gateway.source.check()


def test_rows_that_the_gateway_refuses_end_the_query_with_its_reason(tmp_path: Path) -> None:
    rows = pa.table({"k": [1, 2], "ts": pa.array([5, None], pa.int64())})
    pa.parquet.write_table(rows, tmp_path / "orders.parquet")
    with Gateway(query(FILE), MemoryLog(), tmp_path) as gateway:
        because = gateway.ended_because()
    assert "1 nulls in the time column ts" in because


def test_who_asks_for_it_is_told_of_an_error_instead(tmp_path: Path) -> None:
    spec, told = query(FILE), threading.Event()
    with Gateway(query(None), MemoryLog()) as gateway:
        plan = JoinPlan.of(spec)
        (source,) = open_sources(spec, plan, tmp_path, gateway.process, "", failed=lambda _: told.set())
        source.start()
        assert told.wait(10)
        assert gateway.process.shell.stopped_because is None
        assert isinstance(source.error, UserMustAct)


def test_a_producer_from_outside_with_the_name_of_a_source_stops_it() -> None:
    spec = query({"generator": {"rate": 100, "arrivals": "constant"}, "pace": "time"})
    with Gateway(spec, MemoryLog()) as gateway:
        until(lambda: bool(batches(gateway.log)))
        gateway.process.shell.tell(Connected(Peer("x")))
        gateway.process.shell.tell(Received(Peer("x"), Open(0, ProducerId("source"))))
        assert "fenced" in gateway.ended_because()


# --- Redis Streams


@pytest.fixture(scope="module")
def redis() -> Iterator[EmbeddedRedis]:
    with EmbeddedRedis() as server:
        yield server


def redis_query(key: str, start: str = "earliest") -> JoinQuerySpec:
    schema = {"k": "int64", "ts": "int64", "name": "string", "cost": "decimal(9,2)"}
    return query({"redisStream": {"key": key, "start": start}}, schema)


def add(server: EmbeddedRedis, key: str, first: int, count: int) -> None:
    client = server.connect()
    pipe = client.pipeline(transaction=False)
    for number in range(first, first + count):
        odd = {"name": f"name {number}"} if number % 2 else {"other": "x"}
        fields: dict[Any, Any] = {**odd, "ts": number, "k": number % 5, "cost": f"{number}.25"}
        pipe.xadd(key, fields)
    pipe.execute()
    client.close()


def numbers(log: MemoryLog) -> list[int]:
    found = batches(log)
    return recorded(log)["ts"].to_pylist() if found else []


def test_entries_with_a_field_per_column_are_recorded_as_they_come_and_across_a_restart(redis: EmbeddedRedis) -> None:
    spec, log = redis_query("fields"), MemoryLog()
    add(redis, "fields", 0, 3000)
    with Gateway(spec, log, redis_url=redis.url):
        until(lambda: len(numbers(log)) == 3000)
        add(redis, "fields", 3000, 10)
        until(lambda: len(numbers(log)) == 3010)
    add(redis, "fields", 3010, 10)
    with Gateway(spec, log, redis_url=redis.url, name="two"):
        until(lambda: len(numbers(log)) == 3020)
        time.sleep(0.15)
    assert list(range(3020)) == numbers(log)
    rows = recorded(log)
    assert [None, "name 1", None, "name 3"] == rows["name"].to_pylist()[:4]
    assert "3.25" == str(rows["cost"][3].as_py())


def test_entries_of_arrow_are_recorded_and_may_stand_beside_the_others(redis: EmbeddedRedis) -> None:
    spec, log, client = redis_query("arrow"), MemoryLog(), redis.connect()
    add(redis, "arrow", 0, 2)
    rows = pa.RecordBatch.from_pydict(
        {
            "ts": np.arange(2, 10_000), "k": np.arange(2, 10_000, dtype=np.int32), "extra": np.arange(2, 10_000),
            "name": pa.array(["x"] * 9998), "cost": pa.array([None] * 9998, pa.decimal128(9, 2)),
        }
    )  # fmt: skip
    for entry in entries_of(rows):
        client.xadd("arrow", {"arrow": entry})
    add(redis, "arrow", 10_000, 2)
    client.close()
    with Gateway(spec, log, redis_url=redis.url):
        until(lambda: len(numbers(log)) == 10_002)
    assert list(range(10_002)) == numbers(log)


def test_from_now_on_means_from_the_first_start_on(redis: EmbeddedRedis) -> None:
    spec, log = redis_query("now", "now"), MemoryLog()
    add(redis, "now", 0, 5)
    with Gateway(spec, log, redis_url=redis.url):
        until(lambda: bool(batches(log)))
    add(redis, "now", 5, 5)
    with Gateway(spec, log, redis_url=redis.url, name="two"):
        until(lambda: len(numbers(log)) == 5)
    assert [5, 6, 7, 8, 9] == numbers(log)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"ts": "1", "kk": "2"}, "found the fields ts, kk, wanted k in every entry"),
        ({"ts": "1", "k": "x"}, "found k as Failed to parse string: 'x'"),
        ({"arrow": "hello"}, "wanted an Arrow IPC stream"),
        ({"arrow": ""}, "wanted an Arrow IPC stream"),
        ({"ts": "1", "k": "2", "cost": "1.234"}, "found cost"),
    ],
)
def test_entries_that_do_not_fit_end_the_query(fields: dict[Any, Any], told: str, redis: EmbeddedRedis) -> None:
    client = redis.connect()
    client.delete("bad")
    client.xadd("bad", fields)
    client.close()
    with Gateway(redis_query("bad"), MemoryLog(), redis_url=redis.url) as gateway:
        because = gateway.ended_because()
    assert "source of stream a (Redis Stream bad)" in because
    assert told in because


def test_a_key_that_is_no_stream_ends_the_query(redis: EmbeddedRedis) -> None:
    client = redis.connect()
    client.set("text", "x")
    client.close()
    with Gateway(redis_query("text"), MemoryLog(), redis_url=redis.url) as gateway:
        assert "found a string under the key text, wanted a Redis Stream" in gateway.ended_because()


def test_a_redis_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    url = f"unix://{tmp_path}/nobody.sock"
    with Gateway(redis_query("x"), MemoryLog(), redis_url=url) as gateway:
        time.sleep(0.3)
        assert gateway.source.error is None
