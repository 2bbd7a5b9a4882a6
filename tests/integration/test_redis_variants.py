"""Other Redis servers than the one that comes with us: ages and kinds, TLS, a user with few rights, Sentinel."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from joinery.adapters.certificates import leaf, new_authority
from joinery.adapters.embedded_redis import SERVER, EmbeddedRedis, connect, find_server
from joinery.adapters.redis_urls import client_of
from joinery.adapters.settings import free_port
from joinery.client import connect as connect_query
from joinery.model.errors import JoineryError, TryAgain, UserMustAct
from tests.support.pods import Pods, until
from tests.support.redis_servers import KINDS, RedisServer, found_servers
from tests.support.running import counted, frame, running, truth, write_query
from tests.support.secured import write

ROOT = Path(__file__).parents[2]
SERVERS = found_servers()
A, B = frame(4_000, seed=1), frame(4_000, seed=2)
WAL = {"checkpoint": {"durability": "wal", "interval": "200ms"}}
SYNCED = ("appendonly yes", "appendfsync always")


def program_of(kind: str) -> Path:
    """A server of this kind; without one the test says how to get it."""
    for name, path in SERVERS.items():
        if name.startswith(kind):
            return path
    pytest.skip(
        f"no {kind} here: name one in JOINERY_REDIS_SERVERS, or fetch it: python -m tests.support.redis_servers"
    )


def exact(address: str, **options: Any) -> None:
    """Push everything, read everything, compare."""
    with connect_query(address, timeout=120, patience=120, **options) as query:
        query.push("a", A, end=True)
        query.push("b", B, end=True)
        assert truth(A, B) == counted(list(query.results()))


@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", KINDS[1:])
def test_another_server_keeps_the_contracts_of_the_stores(kind: str) -> None:
    """The suite that every store must pass, with this server in place of the wheel's."""
    program = program_of(kind)
    words = [sys.executable, "-m", "pytest", "tests/contract", "tests/integration/test_redis_stores.py"]
    environment = {**os.environ, SERVER: str(program)}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, timeout=380, check=False)  # noqa: S603
    assert 0 == done.returncode, done.stdout.decode()[-3000:]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_a_query_on_this_server_is_exact_and_survives_its_death(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SERVER, str(program_of(kind)))
    with running(write_query(folder, **WAL)) as run, connect_query(run.gateway, timeout=120, patience=120) as query:
        said = client_of(run.redis_url).info()
        assert kind.partition(" ")[0].lower() == str(said.get("server_name", "redis"))
        query.push("a", A.slice(0, 2_000))
        query.push("b", B.slice(0, 2_000))
        query.flush()
        killed = run.pids["redis"]
        os.kill(killed, signal.SIGKILL)
        until(lambda: run.attend(lambda _: None) or run.pids.get("redis", killed) != killed)
        query.push("a", A.slice(2_000))
        query.push("b", B.slice(2_000))
        query.end("a")
        query.end("b")
        found = _read(query, run)
    assert truth(A, B) == found


def _read(query: Any, run: Any) -> Counter[tuple[Any, ...]]:
    """All results; the run is looked after meanwhile by nobody else, so processes that fell are brought back here."""
    batches: list[Any] = []
    for batch in query.results():
        run.attend(lambda _: None)
        batches.append(batch)
    return counted(batches)


def torn_transaction(kept: int) -> bytes:
    """What is on disk when a server dies while it writes a transaction down: the first bytes of it."""
    words = [("MULTI",), ("SADD", "loose", "1"), ("HSET", "block", "0", "x" * 500), ("EXEC",)]
    text = "".join(f"*{len(one)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in one) for one in words)
    return text.encode()[:kept]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kept", [20, 300, -20], ids=["its beginning", "some of it", "all but its end"])
def test_what_is_answered_after_a_torn_transaction_outlives_the_next_death(kind: str, kept: int, folder: Path) -> None:
    server = EmbeddedRedis(folder / "data", durability="wal", binary=program_of(kind))
    with server:
        for life in range(3):
            server.connect().set(f"life {life}", life)
            os.kill(server.pids["redis"], signal.SIGKILL)
            until(lambda: not server.is_running)
            with newest_file(folder / "data").open("ab") as file:
                file.write(torn_transaction(kept))
            server.revive()
        found = {key: int(server.connect().get(key) or -1) for key in server.connect().keys("*")}  # type: ignore[union-attr, arg-type]
    assert found == {b"life %d" % life: life for life in range(3)}


def newest_file(folder: Path) -> Path:
    """To which the server appends."""
    parts = sorted((folder / "appendonlydir").glob("*.incr.aof"), key=lambda one: int(one.name.split(".")[2]))
    return parts[-1] if parts else folder / "appendonly.aof"


def test_a_file_that_is_damaged_in_its_middle_is_left_as_it_is(folder: Path) -> None:
    with EmbeddedRedis(folder / "data", durability="wal") as server:
        for number in range(3):
            server.connect().set(f"key {number}", "x" * 100)
    file = newest_file(folder / "data")
    held = file.read_bytes()
    file.write_bytes(damaged := held.replace(b"$5\r\nkey 1", b"#5\r\nkey 1"))
    with pytest.raises(UserMustAct, match="Bad file format"):
        EmbeddedRedis(folder / "data", durability="wal").start()
    assert file.read_bytes() == damaged != held


def test_a_program_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SERVER, "/nowhere/redis-server")
    with pytest.raises(UserMustAct, match="JOINERY_REDIS_SERVER: found /nowhere/redis-server, wanted a program"):
        find_server()


# --- a user with few rights


def documented_rules() -> list[str]:
    """The rules that docs/durability.md gives for a user of Redis."""
    text = (ROOT / "docs/durability.md").read_text()
    return text.partition("```text\nuser joinery")[2].partition("```")[0].replace("\\\n", " ").split()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_a_user_with_the_rights_that_the_docs_name_is_enough(kind: str, folder: Path) -> None:
    rules = " ".join(documented_rules()).replace("PASSWORD", "s3cret").replace("QUERY", "test.query")
    lines = (f"user joinery {rules}", "user admin on >root ~* &* +@all", "user default off", *SYNCED)
    admin = "redis://admin:root@127.0.0.1"
    with RedisServer(program_of(kind), folder / "redis", *lines, probe=None) as server:
        until(lambda: _pings(f"{admin}:{server.port}"), 20)
        url = f"redis://joinery:s3cret@127.0.0.1:{server.port}/0"
        sinks = [{"redisStream": {"key": "joinery:{test.query}:out"}}]
        with Pods(write_query(folder, sinks=sinks, **WAL), url) as pods:
            pods.start()
            exact(pods.gateway)
            refused = client_of(f"{admin}:{server.port}").acl_log()
            said = [pods.said(name) for name in pods.there]
        told = ("client", "client|setinfo")  # redis-py wants to tell its name, and lives without it
        assert [] == [one for one in refused if one["object"] not in told]
        assert "s3cret" not in "".join(said)
        with pytest.raises(JoineryError, match="refusing us"):
            connect(f"redis://joinery:wrong@127.0.0.1:{server.port}/0")
        foreign = client_of(url)
        for forbidden in ("get other", "set other 1", "flushall", "config get *", "keys *"):
            with pytest.raises(Exception, match=r"NOPERM|permission|access"):
                foreign.execute_command(*forbidden.split())


def _pings(url: str) -> bool:
    try:
        with client_of(url) as client:
            return bool(client.ping())
    except Exception:
        return False


# --- TLS


@pytest.fixture(name="tls_server", params=KINDS[1:3])  # the others are built without TLS
def a_server_with_tls(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[str, Path]]:
    """Its address, and the authority that it has its certificate of; plain text is not served."""
    program, port = program_of(request.param), free_port()
    files = write(folder / "tls", leaf(new_authority("redis"), "localhost"))
    words = [f"tls-port {port}", "port 0", "tls-auth-clients no", f"tls-cert-file {files}/tls.crt"]
    words += [f"tls-key-file {files}/tls.key", f"tls-ca-cert-file {files}/ca.crt", *SYNCED]
    with RedisServer(program, folder / "redis", *words, probe=None):
        at = f"localhost:{port}/0"
        until(lambda: _pings(f"rediss://{at}?ssl_ca_certs={files}/ca.crt"), 20)
        yield at, files / "ca.crt"


@pytest.mark.timeout(300)
def test_a_query_talks_tls_with_a_redis_whose_authority_the_url_names(
    tls_server: tuple[str, Path], folder: Path
) -> None:
    at, authority = tls_server
    with Pods(write_query(folder, **WAL), f"rediss://{at}?ssl_ca_certs={authority}") as pods:
        pods.start()
        exact(pods.gateway)
    with pytest.raises(TryAgain, match="CERTIFICATE_VERIFY_FAILED"):
        connect(f"rediss://{at}")
    with pytest.raises(JoineryError, match="found no answer"):
        connect(f"redis://{at}")


# --- Sentinel


def _is_master(url: str) -> bool:
    """A replica that is just being promoted breaks the connections that it has: not yet, then."""
    try:
        with Redis.from_url(url) as client:
            return bool(client.info("replication")["role"] == "master")
    except RedisConnectionError:
        return False


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_a_query_goes_on_with_the_replica_that_sentinels_make_master(kind: str, folder: Path) -> None:
    program = program_of(kind)
    with ExitStack() as stack:
        master = stack.enter_context(RedisServer(program, folder / "master", *SYNCED))
        follows = f"replicaof 127.0.0.1 {master.port}"
        replica = stack.enter_context(RedisServer(program, folder / "replica", *SYNCED, follows))
        until(lambda: Redis.from_url(master.url).info("replication")["connected_slaves"] == 1)
        watching = (
            f"sentinel monitor mymaster 127.0.0.1 {master.port} 2",
            "sentinel down-after-milliseconds mymaster 1000",
            "sentinel failover-timeout mymaster 5000",
        )
        sentinels = [
            stack.enter_context(RedisServer(program, folder / f"sentinel-{n}", *watching, sentinel=True))
            for n in range(3)
        ]
        known = Redis.from_url(sentinels[0].url)
        until(lambda: known.sentinel_master("mymaster")["num-other-sentinels"] == 2)
        until(lambda: known.sentinel_master("mymaster")["num-slaves"] == 1)
        places = ",".join(f"127.0.0.1:{one.port}" for one in sentinels)
        pods = stack.enter_context(Pods(write_query(folder, **WAL), f"redis+sentinel://{places}/mymaster/0"))
        pods.start()
        with connect_query(pods.gateway, timeout=120, patience=120) as query:
            query.push("a", A.slice(0, 2_000))
            query.push("b", B.slice(0, 2_000))
            query.flush()
            time.sleep(1.0)  # nothing is written now that the replica has not got
            began = time.monotonic()
            master.stop()
            until(lambda: _is_master(replica.url), 60)
            query.push("a", A.slice(2_000))
            query.push("b", B.slice(2_000))
            query.end("a")
            query.end("b")
            found = counted(list(query.results()))
        assert truth(A, B) == found
        assert time.monotonic() - began < 100
