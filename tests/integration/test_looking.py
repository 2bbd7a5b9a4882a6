"""A run that is looked at from outside: top, where, explain while it runs; then its logs and its decisions.

One run for all of it: to start a query costs seconds.
"""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from joinery.adapters.embedded_redis import EmbeddedRedis
from joinery.adapters.security import PLAIN
from joinery.adapters.settings import free_port
from joinery.cli.main import app
from joinery.cli.query_file import name_of, read_query
from joinery.client import connect
from joinery.operator.attendance import Attendance
from tests.integration.test_http_probes import answers
from tests.integration.test_metrics import first_frame, scraped
from tests.support.pods import Pods
from tests.support.running import command, frame, write_query

SCALING = {"max": 2, "scaleDown": {"stabilization": "1h"}}


@contextmanager
def run(query: Path, port: int, record: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The real command, with logs for machines."""
    words = ("run", str(query), "--port", str(port), "--record", str(record), "--dashboard", "off", "--quiet")
    with log.open("wb") as err:
        made = subprocess.Popen(command(*words), stderr=err, env=os.environ | {"JOINERY_LOG": "json"})  # noqa: S603
        try:
            yield made
        finally:
            made.terminate()
            made.wait(60)


def told(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))  # in this process: a new one takes seconds to import
    assert 0 == done.exit_code, done.output
    return done.stdout


def as_json(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(told(*words, "--json"))
    return found


def until(look: Any, seconds: float = 60) -> Any:
    ends = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < ends, "it did not come"
        time.sleep(0.2)
    return found


def test_a_run_is_watched_followed_explained_and_its_decisions_are_made_again(tmp_path: Path) -> None:
    query, port, record, log = write_query(
        tmp_path, epochs={"reorganization": "500ms"}, scaling=SCALING
    ), free_port(), tmp_path / "record", tmp_path / "log"  # fmt: skip
    gateway = f"127.0.0.1:{port}"
    with run(query, port, record, log) as process:
        with connect(gateway, timeout=60, patience=60) as client:
            producer = client.producer("a", "p")
            producer.push(frame(3000, 1))
            producer.flush()
            assert producer.last_record is not None
            follow_a_record(query, gateway, producer.last_record)
            watch(query, gateway)
            explain(query, gateway)
            producer.end()
            client.end("b")
        assert 0 == process.wait(60)
    repeated(record)
    logged(log, query)


def follow_a_record(query: Path, gateway: str, last: int) -> None:
    """Until it is committed; and one that is not there yet."""
    lines = told("where", str(query), str(last), "--follow").splitlines()
    assert f"record {last:,} is" in lines[0]
    held = as_json("where", "--gateway", gateway, str(last))
    assert (True, True, last) == (held["recorded"], held["committed"], held["record"])
    assert {"committed"} >= {one["station"] for one in held["groups"]}
    assert "is not recorded yet" in told("where", str(query), str(last + 100_000))


def watch(query: Path, gateway: str) -> None:
    text = told("top", str(query), "--once")
    assert "│ worker-0 │" in text
    assert "stream a: 3,000 rows" in text
    until(lambda: as_json("top", "--gateway", gateway, "--once")["decision"])
    frame = as_json("top", "--gateway", gateway, "--once")
    assert (1, 3000) == (frame["degree"], frame["streams"][0]["rows"])
    assert frame["decision"].startswith("keep 1: ")


def explain(query: Path, gateway: str) -> None:
    text = told("explain", str(query), "--last", "2")
    assert "rule guarded: β 0.5" in text
    assert "1 of 1 ready, 0 suppliers, 1 consumer" in text
    held = as_json("explain", "--gateway", gateway, "--beta", "0.9")
    assert held["decisions"]
    assert None is held["other"]["differs_ns"]


def repeated(record: Path) -> None:
    """The decisions of real processes, exactly; and what a rule would have done that wants two workers at least."""
    plot = record / "out.png"
    text = told("simulate", "recorded", str(record), "--sweep", "min=1,2", "--plot", str(plot))
    count = int(text.split()[0])
    assert count > 2
    assert f"{count} decisions, {count} equal" == text.splitlines()[0]
    assert plot.read_bytes().startswith(b"\x89PNG")


def logged(log: Path, query: Path) -> None:
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"gateway", "collector", "worker"} <= {one["component"] for one in lines}
    assert {name_of(query.read_text())} == {one["query"] for one in lines}
    opened = [one for one in lines if one.get("event") == "Opened" and one["component"] == "gateway"]
    assert [1] == [one["term"] for one in opened]
    assert {"worker-0"} == {one["worker"] for one in lines if one["component"] == "worker"}
    assert {"WorkerJoined", "Connected", "Stops"} <= {one.get("event") for one in lines}
    assert len(lines) < 60  # a few for each process, none for a record


def test_the_operator_tells_the_gateway_its_decisions_and_the_dashboard_has_them_in_words(folder: Path) -> None:
    """The operator's own connection to a gateway as it runs in a pod."""
    query = write_query(folder, replicas=1, epochs={"reorganization": "400ms"})
    with EmbeddedRedis() as redis, Pods(query, redis.url) as pods:
        pods.start("gateway", "collector", "worker-0")
        until(lambda: answers(pods.http["gateway"], "/readyz")[0] == 200)
        until(lambda: first_frame(pods.http["gateway"])["state"] == "running")
        assert None is first_frame(pods.http["gateway"])["decision"]
        attended = Attendance(pods.gateway, read_query(query), 1, PLAIN, lambda: None)
        try:
            words = until(lambda: first_frame(pods.http["gateway"]).get("decision"))
            count = scraped(pods.http["gateway"])["joinery_gateway_scaling_decisions_total", "keep", "min"]
        finally:
            attended.close()
        assert attended.last_decision is not None
        assert count >= 1
        assert words.startswith("keep 1: 0 suppliers < 1 (held back by min)")
        assert "1 of 1 ready, 0 suppliers, 1 consumer" in told("explain", "--gateway", pods.gateway)
