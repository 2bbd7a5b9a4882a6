"""`/livez` and `/readyz`: of a loop that is stuck, of real processes without their peers, with clients that do harm."""

import http.client
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from joinery.adapters.embedded_redis import EmbeddedRedis
from joinery.adapters.http_probes import MOST_AT_ONCE, Answer, Probes, place_of
from joinery.adapters.settings import read_flags
from joinery.adapters.shell import Shell
from joinery.machine.facts import Fact, Tick
from joinery.machine.orders import Order
from joinery.model.errors import UserMustAct
from tests.support.pods import Pods, until
from tests.support.running import write_query


class Sticking:
    """A machine that a tick holds up until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:  # noqa: ARG002
        if isinstance(fact, Tick):
            self.go.wait(30)
        return []


def ask(port: int, page: str, *, wait_s: float = 10.0) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=wait_s)
    try:
        connection.request("GET", page)
        answer = connection.getresponse()
        return answer.status, answer.read().decode().strip()
    finally:
        connection.close()


def answers(port: int, page: str) -> tuple[int, str]:
    try:
        return ask(port, page)
    except OSError as error:
        return 0, str(error)


@pytest.fixture
def probes() -> Iterator[Probes]:
    made = Probes("127.0.0.1:0", stuck_s=0.3)
    yield made
    made.close()


def test_a_process_that_starts_lives_and_is_not_ready(probes: Probes) -> None:
    assert (200, "starting") == ask(probes.port, "/livez")
    assert (503, "the process is starting") == ask(probes.port, "/readyz")


def test_a_loop_that_is_stuck_is_told_until_it_goes_on_and_an_idle_one_is_well(probes: Probes) -> None:
    machine = Sticking()
    shell = Shell(machine, "one/1")
    probes.watch(shell)
    loop = threading.Thread(target=shell.run)
    loop.start()
    time.sleep(0.5)
    assert (200, "ok") == ask(probes.port, "/livez")
    shell.tell(Tick())
    until(lambda: ask(probes.port, "/livez")[0] == 503)
    assert "the loop is at one fact for" in ask(probes.port, "/livez")[1]
    assert "wanted at most 0.3 s" in ask(probes.port, "/livez")[1]
    machine.go.set()
    until(lambda: ask(probes.port, "/livez")[0] == 200)
    shell.stop("over")
    loop.join(10)
    assert (503, "the process ends: over") == ask(probes.port, "/readyz")
    until(lambda: ask(probes.port, "/livez")[0] == 503)
    assert "the loop is at its end for" in ask(probes.port, "/livez")[1]


def test_all_that_is_missing_is_said(probes: Probes) -> None:
    probes.watch(Shell(Sticking(), "one/1"), lambda: "no log", lambda: None, lambda: "no gateway")
    assert (503, "no log\nno gateway") == ask(probes.port, "/readyz")
    probes.watch(Shell(Sticking(), "one/1"), lambda: None)
    assert (200, "ok") == ask(probes.port, "/readyz")


def test_other_pages_can_be_added_and_one_that_fails_says_so(probes: Probes) -> None:
    assert 404 == ask(probes.port, "/")[0]
    probes.pages["/metrics"] = lambda: Answer(200, "joinery_up 1")
    assert (200, "joinery_up 1") == ask(probes.port, "/metrics?name=all")
    probes.pages["/metrics"] = lambda: Answer(200, str(1 // 0))
    assert 500 == ask(probes.port, "/metrics")[0]


def test_connections_beyond_the_bound_are_hung_up_and_its_end_frees_a_place(probes: Probes) -> None:
    silent = [socket.create_connection(("127.0.0.1", probes.port)) for _ in range(MOST_AT_ONCE)]
    until(lambda: answers(probes.port, "/livez")[0] == 0)
    silent.pop().close()
    until(lambda: answers(probes.port, "/livez")[0] == 200)
    for one in silent:
        one.close()


def test_a_port_that_is_taken_is_refused(probes: Probes) -> None:
    with pytest.raises(UserMustAct, match=rf"--http: found 127.0.0.1:{probes.port} that cannot be listened on"):
        Probes(f"127.0.0.1:{probes.port}")


@pytest.mark.parametrize("address", ["8080", "host:", "host:http", "host:70000", "::1:80"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(UserMustAct, match=r"wanted HOST:PORT"):
        place_of(address)


def test_addresses_of_every_kind_are_read() -> None:
    assert [("0.0.0.0", 80), ("", 80), ("::1", 80)] == [place_of(one) for one in ("0.0.0.0:80", ":80", "[::1]:80")]  # noqa: S104


def test_a_flag_of_redis_wins_over_the_environment() -> None:
    environment = {"JOINERY_REDIS_URL": "redis://inside"}
    words = ["--query", "q.yaml"]
    assert "redis://inside" == read_flags("worker", words, environment).redis
    assert "redis://flag" == read_flags("worker", [*words, "--redis", "redis://flag"], environment).redis
    assert "" == read_flags("worker", words, {}).redis


# --- real processes


@pytest.mark.timeout(180)
def test_real_processes_say_what_they_lack_and_one_that_is_stopped_does_not_answer(folder: Path) -> None:
    lack = (503, "no connection to the gateway")
    with EmbeddedRedis() as redis, Pods(write_query(folder), redis.url) as pods:
        at = pods.http
        pods.start("worker-0", "collector")
        for name in ("worker-0", "collector"):
            until(lambda name=name: answers(at[name], "/readyz") == lack)  # type: ignore[misc]
            assert (200, "ok") == ask(at[name], "/livez")
        pods.start("gateway")
        for name in ("worker-0", "collector", "gateway"):
            until(lambda name=name: answers(at[name], "/readyz") == (200, "ok"))  # type: ignore[misc]
        gateway = pods.there["gateway"]
        os.kill(gateway.pid, signal.SIGSTOP)
        with pytest.raises(TimeoutError):
            ask(at["gateway"], "/livez", wait_s=1.0)
        os.kill(gateway.pid, signal.SIGCONT)
        assert (200, "ok") == ask(at["gateway"], "/livez")
        gateway.kill()
        until(lambda: answers(at["worker-0"], "/readyz") == lack)
        assert (200, "ok") == ask(at["worker-0"], "/livez")
