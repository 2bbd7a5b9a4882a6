"""`/metrics` of real processes, held to what was pushed and to what DuckDB finds; and its text format."""

import http.client
import json
import re
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from joinery.adapters.embedded_redis import EmbeddedRedis
from joinery.adapters.http_probes import Probes
from joinery.adapters.metrics import METRICS, Sample, text_of
from joinery.adapters.shell import Shell
from joinery.client import connect
from joinery.flow.delays import Delays
from joinery.machine.facts import Fact
from joinery.machine.orders import Order
from joinery.model.errors import Bug, TryAgain
from tests.integration.test_http_probes import answers, ask
from tests.support.pods import Pods, until
from tests.support.running import PAIR, frame, write_query

A, B = frame(12_000, 1), frame(9_000, 2)
LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? ([0-9.e+-]+|NaN)')
Found = dict[tuple[str, ...], float]


def scraped(port: int) -> Found:
    """Name and label values (but the query's) -> value; every line is in the format and in the list."""
    status, text = ask(port, "/metrics")
    assert 200 == status, text
    found: Found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        assert match is not None, line
        assert re.sub(r"_(bucket|sum|count)$", "", match[1]) in METRICS or match[1] in METRICS, line
        labels = dict(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
        labels.pop("joinquery", None)
        found[match[1], *labels.values()] = float(match[3])
    return found


def first_frame(port: int) -> dict[str, Any]:
    """What the gateway's dashboard is told first."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/events")
        answer = connection.getresponse()
        while not (line := answer.readline()).startswith(b"data: "):
            pass
        return dict(json.loads(line.removeprefix(b"data: "))["frame"])
    finally:
        connection.close()


def test_every_process_shows_exactly_what_was_pushed_and_joined(folder: Path) -> None:
    with duckdb.connect() as database:
        database.register("a", A)
        database.register("b", B)
        (pairs,) = database.execute(f"select count(*) from a join b on {PAIR}").fetchone() or (0,)
    assert pairs > 1000
    query = write_query(folder, kind="inner", replicas=2, epochs={"reorganization": "400ms"})
    with EmbeddedRedis() as redis, Pods(query, redis.url) as pods:
        pods.start()
        until(lambda: answers(pods.http["gateway"], "/readyz")[0] == 200)
        with connect(pods.gateway) as client:
            client.push("a", A)
            client.push("b", B)
            client.push("a", A.slice(0, 7))  # their time has passed
            until(lambda: scraped(pods.http["gateway"])["joinery_gateway_results_total",] >= pairs)
            until(lambda: scraped(pods.http["gateway"])["joinery_gateway_tuples_late_total", "a"] == 7)
            until(lambda: scraped(pods.http["gateway"])["joinery_gateway_uncommitted_records",] == 0)
            until(lambda: ("joinery_gateway_checkpoint_age_seconds",) in scraped(pods.http["gateway"]))
            for worker in ("worker-0", "worker-1"):
                role = ("joinery_gateway_worker_role", worker, "neutral")
                until(lambda role=role: role in scraped(pods.http["gateway"]))  # type: ignore[misc]
            gateway, collector = scraped(pods.http["gateway"]), scraped(pods.http["collector"])
            began = time.monotonic()
            for _ in range(20):
                scraped(pods.http["gateway"])
            assert time.monotonic() - began < 10, "a read is no longer cheap"
            until(lambda: first_frame(pods.http["gateway"]).get("results") == pairs, 30)  # made once a second
            frame = first_frame(pods.http["gateway"])
            assert (200, True) == (
                ask(pods.http["gateway"], "/")[0],
                "dashboard.js" in ask(pods.http["gateway"], "/")[1],
            )
            now = time.time()
            workers = [scraped(pods.http[name]) for name in ("worker-0", "worker-1")]
    assert ("gateway", "running", pairs, 2) == (*(frame[key] for key in ("place", "state", "results", "degree")),)
    name = "joinery_gateway"
    rows = {stream: gateway[f"{name}_tuples_received_total", stream] for stream in "ab"}
    assert {"a": A.num_rows + 7, "b": B.num_rows} == rows
    assert (7, 0) == tuple(gateway[f"{name}_tuples_late_total", stream] for stream in "ab")
    assert pairs == gateway[f"{name}_results_total",] == collector["joinery_collector_results_total",]
    assert 7 == collector["joinery_collector_tuples_late_total", "a"]
    assert A.num_rows + B.num_rows <= sum(one["joinery_worker_tuples_joined_total",] for one in workers)
    assert 2 == gateway[f"{name}_degree_workers",]
    assert 60 == sum(one["joinery_worker_groups",] for one in workers)
    assert 60 == sum(gateway[f"{name}_worker_groups", worker] for worker in ("worker-0", "worker-1"))
    assert A["ts"][-1].as_py() / 1e3 == gateway[f"{name}_watermark_seconds", "a"]
    assert pairs == gateway[f"{name}_result_delay_seconds_count", "delivered"]
    assert pairs == gateway[f"{name}_result_delay_seconds_bucket", "delivered", "+Inf"]
    assert 1 == workers[0]["joinery_worker_gateway_up",] == collector["joinery_collector_ready",]
    assert gateway["process_resident_memory_bytes",] > 10 << 20
    assert 2 == gateway[f"{name}_events_total", "WorkerJoined"]
    assert (0, 0) == (gateway[f"{name}_tuples_dropped_total",], gateway[f"{name}_backlog_tuples",])
    assert (0, 0) == tuple(gateway[f"{name}_migrations_total", result] for result in ("recovered", "state_lost"))
    assert all(0 <= gateway[f"{name}_slot_utilization_ratio", slot] < 100 for slot in ("0", "1"))
    for one in workers:
        count, took = (one[f"joinery_worker_checkpoint_duration_seconds_{what}",] for what in ("count", "sum"))
        assert (True, True) == (count >= 1, 0 < took < 60 * count)
        oldest = now - one["joinery_worker_state_oldest_event_age_seconds",]
        assert 0 < oldest <= A["ts"][-1].as_py() / 1e3 + 1  # rows of the first 20 s of 1970


def test_labels_are_escaped_and_whole_numbers_stay_whole() -> None:
    name = "joinery_gateway_tuples_received_total"
    text = text_of([Sample(name, 2**53, {"stream": 'a"\\\n'})], {"joinquery": "q"})
    assert f'{name}{{joinquery="q",stream="a\\"\\\\\\n"}} 9007199254740992' == text.splitlines()[-1]
    assert f"# TYPE {name} counter" in text


def test_a_histogram_counts_what_is_below_each_bound() -> None:
    name = "joinery_gateway_migration_pause_seconds"
    pauses = Delays.of(np.array([1_000_000, 1_100_000, 90_000_000_000]), np.ones(3, np.int64))
    lines = text_of([Sample(name, pauses, {"kind": "planned"})], {"joinquery": "q"}).splitlines()
    value = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}
    labels = 'joinquery="q",kind="planned"'
    below = [
        value[f'{name}_bucket{{{labels},le="{bound}"}}'] for bound in ("0.000524288", "0.001048576", "0.002097152")
    ]
    assert [0, 1, 2] == below
    assert [2, 3] == [value[f'{name}_bucket{{{labels},le="{bound}"}}'] for bound in ("68.719476736", "+Inf")]
    assert (3, 90.0021) == (value[f"{name}_count{{{labels}}}"], value[f"{name}_sum{{{labels}}}"])


@pytest.mark.parametrize(
    "sample", [Sample("joinery_unknown", 1), Sample("joinery_gateway_records_total", 1, {"x": "y"})]
)
def test_what_is_not_in_the_list_is_a_bug(sample: Sample) -> None:
    with pytest.raises(Bug):
        text_of([sample], {"joinquery": "q"})


class Idle:
    """A machine that has nothing to do."""

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:  # noqa: ARG002
        return []


def test_what_a_look_raises_is_the_lookers_and_the_loop_goes_on() -> None:
    shell = Shell(Idle(), "one/1")
    loop = threading.Thread(target=shell.run)
    loop.start()
    with pytest.raises(ZeroDivisionError):
        shell.look(lambda now_ns: now_ns // 0)
    assert abs(time.time_ns() - shell.look(lambda now_ns: now_ns)) < 10**10
    shell.stop("over")
    loop.join(10)
    assert None is shell.failed


def test_a_loop_that_does_not_turn_cannot_be_looked_at() -> None:
    shell = Shell(Idle(), "one/1")
    begun = time.monotonic()
    with pytest.raises(TryAgain, match=r"cannot be looked at \(it has not come to it within 0.2 s\)"):
        shell.look(lambda now_ns: now_ns, wait_s=0.2)
    assert 0.2 <= time.monotonic() - begun < 2
    shell.stop("over")
    with pytest.raises(TryAgain, match=r"\(over\)"):
        shell.look(lambda now_ns: now_ns)


def test_another_name_for_loopback_is_refused() -> None:
    probes = Probes("127.0.0.1:0")
    try:
        for host, status in (("localhost:1", 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("evil.example:80", 421)):
            connection = http.client.HTTPConnection("127.0.0.1", probes.port, timeout=10)
            connection.request("GET", "/livez", headers={"Host": host})
            answer = connection.getresponse()
            assert (host, status) == (host, answer.status)
            assert "default-src 'none'" in (answer.getheader("Content-Security-Policy") or "")
            assert None is answer.getheader("Access-Control-Allow-Origin")
            connection.close()
    finally:
        probes.close()
