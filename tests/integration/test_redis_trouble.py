"""A Redis that is full, read-only, without replicas or slow for some seconds: the run waits, says so, and goes on.

Everything is in that Redis: the log, the checkpoints, the commits. Nothing is lost or doubled.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from redis import Redis

from joinery.adapters.embedded_redis import connect
from joinery.adapters.settings import free_port
from tests.integration.test_faults import start_redis
from tests.support.faults import Running, truth, until, write_files, write_query, written

TROUBLE_S = 3.0


@dataclass(frozen=True)
class Trouble:
    """What is done to a server, how it is undone, and what people are told meanwhile."""

    begin: Callable[[Redis], object]
    end: Callable[[Redis], object]
    says: str


def fill(client: Redis) -> None:
    client.config_set("maxmemory", "1mb")


def read_only(client: Redis) -> None:
    """A replica of nobody: it keeps what it has, and takes nothing."""
    client.execute_command("REPLICAOF", "127.0.0.1", str(free_port()))


TROUBLES = {
    "full": Trouble(fill, lambda client: client.config_set("maxmemory", "0"), "maxmemory"),
    "read-only": Trouble(read_only, lambda client: client.execute_command("REPLICAOF", "NO", "ONE"), "read only"),
    "without replicas": Trouble(
        lambda client: client.config_set("min-replicas-to-write", "1"),
        lambda client: client.config_set("min-replicas-to-write", "0"),
        "replicas",
    ),
}


def parts_of(folder: Path) -> dict[str, int]:
    """What the sinks have staged so far."""
    return {str(part): part.stat().st_size for part in folder.glob("*.parts/*")}


@pytest.fixture(name="redis")
def a_redis_of_the_query(folder: Path) -> Iterator[Redis]:
    """The server that the query in the folder names, by a client of it."""
    write_files(folder)
    data, port = Path(tempfile.mkdtemp(prefix="jr-")), free_port()
    url = f"redis://127.0.0.1:{port}/0"
    write_query(folder, redis={"url": url}, checkpoint={"durability": "wal", "interval": "200ms"})
    server = start_redis(data, port)
    client = connect(url)
    yield client
    client.close()
    server.kill()
    server.wait()
    shutil.rmtree(data)


@pytest.mark.parametrize("name", TROUBLES)
def test_a_redis_that_takes_no_writes_for_a_while_holds_up_the_run_and_costs_nothing(
    name: str, redis: Redis, folder: Path
) -> None:
    trouble, run = TROUBLES[name], Running(folder)
    until(run.has_parts, "the first results")
    trouble.begin(redis)
    run.hears("unable to write")
    time.sleep(TROUBLE_S)
    assert run.process.poll() is None, run.said
    given_out = parts_of(folder)
    time.sleep(0.5)
    assert given_out == parts_of(folder)
    trouble.end(redis)
    run.hears("goes on after")
    assert 0 == run.ends(), run.said
    assert trouble.says in run.said
    assert "was killed" not in run.said
    assert "ended with code" not in run.said
    assert truth(folder) == written(folder)


def test_a_redis_that_is_slow_for_a_while_holds_up_the_run_and_costs_nothing(redis: Redis, folder: Path) -> None:
    run = Running(folder)
    until(run.has_parts, "the first results")
    for _ in range(3):
        redis.execute_command("CLIENT", "PAUSE", "1500", "ALL")
        time.sleep(2)
    assert 0 == run.ends(), run.said
    assert truth(folder) == written(folder)
    assert "ended with code" not in run.said
