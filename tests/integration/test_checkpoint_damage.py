"""Blocks of real checkpoints, damaged while real processes run: a living owner mends them, a lost one's group stops.

Windows are longer than the run, so that a group's first increment is needed to the end.
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import yaml
from redis import Redis

from joinery.adapters.embedded_redis import connect
from joinery.adapters.settings import free_port
from joinery.adapters.sinks.redis_stream import rows_of
from joinery.cli.local import LocalRun
from joinery.cli.run import read_query
from joinery.machine.messages import Drain, Message
from joinery.model.ids import GATEWAY, WorkerId
from joinery.partition.hashing import groups_of, hash_words
from tests.integration.test_faults import start_redis
from tests.support.faults import Running, until, write_files, write_query

WINDOW_MS = 60_000
GROUPS = 12
Rows = Counter[tuple[Any, ...]]


@pytest.fixture(name="redis")
def somebody_s_redis() -> Iterator[tuple[str, Redis]]:
    data, port = Path(tempfile.mkdtemp(prefix="jr-")), free_port()
    server = start_redis(data, port)
    url = f"redis://127.0.0.1:{port}/0"
    with connect(url) as client:
        yield url, client
    server.kill()
    server.wait()
    shutil.rmtree(data)


def written_query(folder: Path, url: str, span_ms: int) -> Path:
    """A join of two files whose results go into a Redis Stream, as they are committed."""
    write_files(folder, rows=1200, span_ms=span_ms)
    kept = {"durability": "wal", "interval": "200ms"}
    sinks = [{"redisStream": {"key": "results"}}]
    path = write_query(folder, partitions=GROUPS, redis={"url": url}, sinks=sinks, checkpoint=kept)
    query = yaml.safe_load(path.read_text())
    for stream in query["spec"]["streams"]:
        stream["window"] = f"{WINDOW_MS}ms"
    path.write_text(yaml.safe_dump(query))
    return path


def truth(folder: Path) -> Rows:
    with duckdb.connect() as connection:
        for name in "ab":
            connection.execute(f"create view {name} as select * from '{folder}/{name}.parquet'")
        return Counter(
            connection.execute("select a.k, a.n, a.ts, b.k, b.n, b.ts from a join b on a.k = b.k").fetchall()
        )


def results(client: Redis) -> Rows:
    found: Rows = Counter()
    for _, fields in client.xrange("results"):
        table = rows_of(fields[b"arrow"])
        found.update(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return found


def of_group(rows: Rows, group: int) -> Rows:
    """Those whose key is in a group."""
    keys = np.array(sorted({row[0] for row in rows}), np.int64)
    own = set(keys[groups_of(hash_words(keys), GROUPS) == group].tolist())
    return Counter({row: count for row, count in rows.items() if row[0] in own})


def chains(client: Redis) -> dict[int, list[str]]:
    """The chain of each group, as its keys say."""
    keys = [key.decode() for key in client.keys("*:chain:*")]
    return {int(key.rpartition(":")[2]): [link.decode() for link in client.lrange(key, 0, -1)] for key in keys}


def damage_first(client: Redis, group: int) -> str:
    """Flip a bit in the oldest increment of a group; its key."""
    since, tag, _, instance = chains(client)[group][0].split(":", 3)
    [key] = client.keys(f"*:block:{group}:{since}:{tag}:{instance}")
    value = bytearray(client.hget(key, "0") or b"")
    value[-20] ^= 1
    client.hset(key, "0", bytes(value))
    return str(key.decode())


def owners(client: Redis) -> dict[int, str]:
    """Who wrote the newest increment of each group."""
    return {group: links[-1].split(":", 3)[3].partition("/")[0] for group, links in chains(client).items()}


def is_well_on(client: Redis) -> bool:
    """Every group has a chain of some increments, and the log begins after them."""
    found = chains(client)
    return len(found) == GROUPS and min(map(len, found.values())) > 4


def tell_gateway(run: LocalRun, message: Message) -> None:
    assert run._process is not None
    run._process._dialers[GATEWAY].send(message)


def test_a_living_owner_writes_a_damaged_group_anew_and_a_drain_ends_exactly(
    folder: Path, redis: tuple[str, Redis]
) -> None:
    url, client = redis
    query = written_query(folder, url, span_ms=10_000)
    harmed: list[str] = []
    drained: list[str] = []

    def look(run: LocalRun) -> None:
        view = run.progress.last
        both = view is not None and len([worker for worker in view.workers if worker.is_up]) == 2
        if not harmed and both and is_well_on(client):
            drained.append(owners(client)[0])
            harmed.extend(damage_first(client, group) for group in range(GROUPS))
            tell_gateway(run, Drain((WorkerId(drained[0]),)))

    with LocalRun(query.resolve(), read_query(query)) as run:
        assert run.wait(look), run.failed
        notes, view = "\n".join(run.progress.notes), run.progress.last
    assert view is not None
    assert drained[0] not in [worker.worker for worker in view.workers]
    assert harmed[0] in notes, notes  # group 0 had to move
    assert "found a wrong checksum, wanted an increment of format 2" in notes
    assert notes.count("writes it anew") >= len([key for key in harmed if key in notes])
    assert truth(folder) == results(client)


def waits(run: Running, is_so: Callable[[], bool], what: str) -> None:
    until(lambda: is_so() or run.process.poll() is not None, what, seen=run.said)
    assert run.process.poll() is None, run.said


@pytest.mark.parametrize("and_the_gateway", [False, True], ids=["", "and the gateway dies"])
def test_a_lost_owner_s_damaged_group_stops_by_name_and_the_others_are_exact(
    and_the_gateway: bool, folder: Path, redis: tuple[str, Redis]
) -> None:
    url, client = redis
    written_query(folder, url, span_ms=12_000 if and_the_gateway else 8_000)
    run = Running(folder)
    waits(run, lambda: is_well_on(client), "checkpoints")
    group = 0
    owner, key = owners(client)[group], damage_first(client, group)
    run.kill(owner)
    told = f"StateLost: group {group} has stopped: {key}: found a wrong checksum"
    run.hears(told)
    if and_the_gateway:  # the next one knows nothing of it, and finds it again
        run.kill("gateway")
        run.hears(told, 2)
    assert 1 == run.ends(), run.said
    assert f"gateway: StateLost: group {group} has stopped: {key}" in run.said  # at the end, with all rows counted
    assert "rows of its window are lost" in run.said
    assert "Traceback" not in run.said
    wanted, found = truth(folder), results(client)
    lost, rest = of_group(wanted, group), of_group(found, group)
    assert wanted - lost == found - rest
    assert Counter() == rest - lost  # nothing of it is wrong or doubled
    assert rest.total() < lost.total()
