"""Servers and connections over real gRPC: health, reflection, a peer that comes again, one that sends garbage."""

import threading
import time
from collections.abc import Callable, Iterator

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from joinery.adapters.conversations import controlling, ingesting
from joinery.adapters.links import HEALTH, Dialer, Listener
from joinery.adapters.shell import Shell
from joinery.join.plan import JoinPlan
from joinery.machine.facts import Connected, Disconnected, Fact, Received
from joinery.machine.messages import Open
from joinery.machine.orders import Order
from joinery.model.errors import UserMustAct
from joinery.model.ids import GATEWAY, OPERATOR
from joinery.model.spec import JoinQuerySpec

STREAM = {"schema": {"key": "int64"}, "window": "1s"}
SPEC = JoinQuerySpec.parse({"streams": [{"name": n, **STREAM} for n in ("a", "b")], "join": {"on": ["key"]}})
SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


class Listening:
    """A machine that only remembers."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:  # noqa: ARG002
        self.facts.append(fact)
        return []

    def of(self, kind: type[Fact]) -> list[Fact]:
        return [fact for fact in self.facts if isinstance(fact, kind)]


class Server:
    """A listener and its machine."""

    def __init__(self, *, reflects: bool = False) -> None:
        self.machine = Listening()
        self.shell = Shell(self.machine, "test")
        talks = [ingesting(), controlling(JoinPlan.of(SPEC))]
        self.listener = Listener(self.shell, "127.0.0.1:0", talks, reflects=reflects)
        self.address = f"127.0.0.1:{self.listener.port}"
        threading.Thread(target=self.shell.run, daemon=True).start()

    def close(self) -> None:
        self.listener.close()
        self.shell.stop("over")


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


@pytest.mark.parametrize("name", HEALTH)
def test_a_server_says_that_it_is_well(server: Server, name: str) -> None:
    with grpc.insecure_channel(server.address) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=name), timeout=10)
    assert SERVING == answer.status


def test_who_watches_is_told_that_it_stops() -> None:
    server = Server()
    with grpc.insecure_channel(server.address) as channel:
        request = health_pb2.HealthCheckRequest(service="readiness")
        told = health_pb2_grpc.HealthStub(channel).Watch(request, timeout=20)
        seen = [next(told).status]
        closing = threading.Thread(target=server.close)
        closing.start()
        seen.append(next(told).status)
        closing.join()
    assert [SERVING, NOT_SERVING] == seen


def test_services_are_listed_only_where_that_is_asked_for(server: Server) -> None:
    open_one = Server(reflects=True)
    try:
        listed = services(open_one.address)
    finally:
        open_one.close()
    assert {"joinery.v1.Ingest", "joinery.v1.Control", "grpc.health.v1.Health"} <= listed
    with pytest.raises(grpc.RpcError) as refused:
        services(server.address)
    assert grpc.StatusCode.UNIMPLEMENTED == refused.value.code()


def services(address: str) -> set[str]:
    with grpc.insecure_channel(address) as channel:
        asked = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
        (answer,) = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(asked, timeout=10)
        return {one.name for one in answer.list_services_response.service}


def test_an_operator_that_dials_again_is_not_taken_for_gone(server: Server) -> None:
    plan = JoinPlan.of(SPEC)
    shells = [Shell(Listening(), f"operator-{n}") for n in range(2)]
    first = Dialer(shells[0], GATEWAY, lambda: server.address, controlling(plan), OPERATOR)
    until(lambda: len(server.machine.of(Connected)) == 1)
    second = Dialer(shells[1], GATEWAY, lambda: server.address, controlling(plan), OPERATOR)
    until(lambda: len(server.machine.of(Connected)) == 2)
    first.close()
    time.sleep(0.3)
    assert [] == server.machine.of(Disconnected)
    second.close()
    until(lambda: len(server.machine.of(Disconnected)) == 1)


def test_garbage_is_refused_and_others_are_served(server: Server) -> None:
    with grpc.insecure_channel(server.address) as channel:
        push = channel.stream_stream("/joinery.v1.Ingest/Push")
        answers = list(push(iter([b"\xff\xff garbage"]), timeout=10))
        assert 1 == len(answers)
        kept = ingesting()
        talk = push(iter([kept.encode_up(Open(0, None))]), timeout=10)
        until(lambda: bool(server.machine.of(Received)))
        talk.cancel()


def test_a_message_beyond_the_bound_ends_its_connection_only(server: Server) -> None:
    with grpc.insecure_channel(server.address, options=[("grpc.max_send_message_length", -1)]) as channel:
        call = channel.stream_stream("/joinery.v1.Ingest/Push")(iter([bytes(65 << 20)]), timeout=20)
        with pytest.raises(grpc.RpcError) as refused:
            list(call)
    assert grpc.StatusCode.RESOURCE_EXHAUSTED == refused.value.code()
    with grpc.insecure_channel(server.address) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=10)
    assert SERVING == answer.status


def test_a_port_is_not_shared(server: Server) -> None:
    with pytest.raises(UserMustAct, match=f"{server.address} that cannot be listened on"):
        Listener(server.shell, server.address, [ingesting()])
