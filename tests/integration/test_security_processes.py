"""A whole query with certificates and a token, as real processes: exact for who is let in, closed to all others."""

import http.client
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow.csv
import pyarrow.json
import pytest

from joinery.adapters.embedded_redis import EmbeddedRedis
from joinery.client import Refused, connect
from tests.support.pods import Pods, until
from tests.support.running import command, counted, frame, truth, write_query
from tests.support.secured import Shelf

TOKEN = "open-sesame"  # noqa: S105
A, B = frame(2_000, seed=1), frame(2_000, seed=2)


def readiness(pods: Pods, name: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", pods.http[name], timeout=10)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        return answer.status, answer.read().decode().strip()
    except OSError as error:
        return 0, str(error)
    finally:
        connection.close()


@pytest.fixture(name="shelf")
def certificates(folder: Path) -> Shelf:
    return Shelf(folder / "tls")


@pytest.fixture(name="pods")
def secured(folder: Path, shelf: Shelf) -> Iterator[Pods]:
    query = write_query(folder)
    with EmbeddedRedis() as redis, Pods(query, redis.url, "--tls", str(shelf.service), JOINERY_TOKEN=TOKEN) as pods:
        yield pods


def joinery(*words: str, token: str = TOKEN) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "JOINERY_TOKEN": token}
    return subprocess.run(command(*words), env=environment, capture_output=True, timeout=100, check=False)  # noqa: S603


@pytest.mark.timeout(240)
def test_a_query_with_certificates_and_a_token_is_exact_for_who_has_both(pods: Pods, shelf: Shelf) -> None:
    pods.start()
    for name in pods.http:
        until(lambda name=name: readiness(pods, name) == (200, "ok"))  # type: ignore[misc]
    at, mine = pods.gateway, shelf.client
    with pytest.raises(Refused, match="found no token"):
        connect(at, tls=mine)
    with pytest.raises(Refused, match="found a server that wants TLS"):
        connect(at, token=TOKEN)
    with pytest.raises(Refused, match="does not fit"):
        connect(at, tls=shelf.foreign, token=TOKEN)
    with connect(at, tls=mine, token=TOKEN, timeout=120, patience=120) as query:
        query.push("a", A, end=True)
        query.push("b", B, end=True)
        found = counted(list(query.results()))
    assert truth(A, B) == found


@pytest.mark.timeout(240)
def test_the_commands_show_certificate_and_token(pods: Pods, shelf: Shelf, folder: Path) -> None:
    pods.start()
    with_tls = ("--tls", str(shelf.client))
    for name, rows in (("a", A), ("b", B)):
        pyarrow.csv.write_csv(rows, folder / f"{name}.csv")
    refused = joinery("push", pods.gateway, "a", str(folder / "a.csv"), *with_tls, token="guess")  # noqa: S106
    assert (2, True) == (refused.returncode, b"found another token, wanted the query's" in refused.stderr)
    refused = joinery("tail", pods.gateway)
    assert (2, True) == (refused.returncode, b"found a server that wants TLS" in refused.stderr)
    refused = joinery("push", pods.gateway, "a", str(folder / "a.csv"), "--tls", str(folder))
    assert (2, True) == (refused.returncode, b"found no ca.crt, tls.crt, tls.key in" in refused.stderr)
    tail = command("tail", pods.gateway, "--follow", *with_tls)
    environment = {**os.environ, "JOINERY_TOKEN": TOKEN}
    with subprocess.Popen(tail, env=environment, stdout=subprocess.PIPE) as tailing:  # noqa: S603
        for name in "ab":
            pushed = joinery("push", pods.gateway, name, str(folder / f"{name}.csv"), "--end", *with_tls)
            assert 0 == pushed.returncode, pushed.stderr.decode()
        assert tailing.stdout is not None
        printed = tailing.stdout.read().splitlines()
        assert 0 == tailing.wait(60)
    assert truth(A, B).total() == len(printed)


@pytest.mark.timeout(240)
def test_a_worker_that_is_not_of_the_service_does_not_get_in_and_says_why(pods: Pods, shelf: Shelf) -> None:
    pods.start("gateway", "collector")
    pods.start("worker-0", flags=())
    pods.start("worker-1", flags=("--tls", str(shelf.client)))
    until(lambda: "found a server that wants TLS, wanted plain text" in readiness(pods, "worker-0")[1])
    until(lambda: "found a certificate for shop-7, wanted one for joinery" in readiness(pods, "worker-1")[1])
    assert (503, 503) == (readiness(pods, "worker-0")[0], readiness(pods, "worker-1")[0])
    assert 1 == pods.said("worker-0").count("gateway at")
    pods.there["worker-1"].terminate()
    pods.there["worker-1"].wait(20)
    pods.start("worker-1")
    until(lambda: readiness(pods, "worker-1") == (200, "ok"))


def test_a_process_without_its_files_says_so_and_is_not_started_again(pods: Pods, folder: Path) -> None:
    pods.start("worker-0", flags=("--tls", str(folder)))
    assert 2 == pods.there["worker-0"].wait(60)
    assert f"worker: --tls: found no ca.crt, tls.crt, tls.key in {folder}, wanted" in pods.said("worker-0")
