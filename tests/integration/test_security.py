"""TLS with certificates on both sides, and tokens: who is let in, who is not, and what they are told."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from joinery.adapters.certificates import leaf
from joinery.adapters.conversations import Conversation, controlling, ingesting, subscribing
from joinery.adapters.links import OPTIONS, Dialer, Listener
from joinery.adapters.security import NAME, PLAIN, Certificates, Security, diagnosis
from joinery.adapters.shell import Shell
from joinery.client import Refused, Results, Unreachable, connect
from joinery.join.plan import JoinPlan
from joinery.machine.facts import Connected, Fact
from joinery.machine.orders import Order
from joinery.model.errors import UserMustAct
from joinery.model.ids import GATEWAY
from joinery.model.spec import JoinQuerySpec
from tests.support.pods import until
from tests.support.secured import Shelf, write

STREAM = {"schema": {"key": "int64"}, "window": "1s"}
SPEC = JoinQuerySpec.parse({"streams": [{"name": n, **STREAM} for n in ("a", "b")], "join": {"on": ["key"]}})
PLAN = JoinPlan.of(SPEC)


class Listening:
    """A machine that only remembers."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:  # noqa: ARG002
        self.facts.append(fact)
        return []


class Server:
    """A listener and its machine."""

    def __init__(self, security: Security) -> None:
        self.machine = Listening()
        self.shell = Shell(self.machine, "test")
        talks = [ingesting(), controlling(PLAN), subscribing(PLAN)]
        self.listener = Listener(self.shell, "127.0.0.1:0", talks, security=security)
        self.address = f"127.0.0.1:{self.listener.port}"
        threading.Thread(target=self.shell.run, daemon=True).start()

    def close(self) -> None:
        self.listener.close()
        self.shell.stop("over")


@pytest.fixture(scope="module", name="shelf")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def serving() -> Iterator[Callable[[Security], Server]]:
    made: list[Server] = []

    def serve(security: Security) -> Server:
        made.append(Server(security))
        return made[-1]

    yield serve
    for server in made:
        server.close()


def with_tls(folder: Path, token: str = "") -> Security:
    return Security.read(folder, token)


def call(address: str, security: Security, talk: Conversation) -> grpc.StatusCode | None:
    """How a call ends that says nothing; None: it is taken, and goes on."""
    said, ended = threading.Event(), threading.Event()

    def nothing() -> Iterator[bytes]:
        said.wait(30)
        yield from ()

    with security.channel(address, OPTIONS) as channel:
        method = channel.stream_stream(f"/{talk.service}/{talk.method}")
        talking = method(nothing(), timeout=20, metadata=security.metadata)
        try:
            talking.initial_metadata()
            # a refusal's status is told right after its metadata, not with them
            is_taken = talking.add_callback(ended.set) and not ended.wait(0.5)
        except grpc.RpcError:
            is_taken = False
        if is_taken:
            talking.cancel()
        said.set()
        return None if is_taken else talking.code()


def test_a_process_and_a_client_of_the_authority_are_let_in(shelf: Shelf, serving: Any) -> None:
    server = serving(with_tls(shelf.service))
    for folder in (shelf.service, shelf.client):
        assert None is call(server.address, with_tls(folder), ingesting())
    assert None is call(server.address, with_tls(shelf.service), controlling(PLAN))


def test_a_client_may_not_pose_as_a_process_of_the_service(shelf: Shelf, serving: Any) -> None:
    server = serving(with_tls(shelf.service))
    found = call(server.address, with_tls(shelf.client), controlling(PLAN))
    assert grpc.StatusCode.PERMISSION_DENIED == found
    posing = serving(with_tls(shelf.posing))
    assert grpc.StatusCode.UNAVAILABLE == call(posing.address, with_tls(shelf.client), ingesting())


REFUSED = {
    "plain text to TLS": ("service", None, "found a server that wants TLS, wanted plain text; connect with --tls DIR"),
    "TLS to plain text": (None, "client", "found a server that answers in plain text"),
    "another authority": ("service", "foreign", "whose certificate does not fit"),
    "a certificate of another authority": ("service", "unsigned", "the server refuses the certificate"),
    "a certificate that has expired": ("service", "expired", "the server refuses the certificate"),
    "a server whose certificate has expired": ("expired", "client", "certificate has expired"),
    "a server that is none": ("posing", "client", "whose certificate does not fit"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_who_is_not_let_in_is_told_what_was_found_and_wanted(what: str, shelf: Shelf, serving: Any) -> None:
    theirs, ours, told = REFUSED[what]
    server = serving(with_tls(getattr(shelf, theirs)) if theirs else PLAIN)
    security = with_tls(getattr(shelf, ours)) if ours else PLAIN
    assert grpc.StatusCode.UNAVAILABLE == call(server.address, security, ingesting())
    began = time.monotonic()
    with pytest.raises(Refused) as refused:
        connect(server.address, tls=security.certificates.folder if security.certificates else None, timeout=30)
    assert told in str(refused.value)
    assert server.address in str(refused.value)
    assert "wanted" in str(refused.value)
    assert ";" in str(refused.value)
    assert time.monotonic() - began < 10
    assert [] == [one for one in server.machine.facts if isinstance(one, Connected)]


def test_a_client_without_a_certificate_is_not_let_in(shelf: Shelf, serving: Any) -> None:
    server = serving(with_tls(shelf.service))
    credentials = grpc.ssl_channel_credentials((shelf.client / "ca.crt").read_bytes())
    named = [("grpc.ssl_target_name_override", NAME)]
    with (
        grpc.secure_channel(server.address, credentials, named) as channel,
        pytest.raises(grpc.RpcError) as refused,
    ):
        list(channel.stream_stream("/joinery.v1.Ingest/Push")(iter([]), timeout=5))
    assert grpc.StatusCode.UNAVAILABLE == refused.value.code()
    assert [] == [one for one in server.machine.facts if isinstance(one, Connected)]


def test_nothing_is_found_wrong_where_nothing_is(shelf: Shelf, serving: Any) -> None:
    secure, plain = serving(with_tls(shelf.service)), serving(PLAIN)
    assert None is diagnosis(secure.address, with_tls(shelf.client))
    assert None is diagnosis(plain.address, PLAIN)
    assert None is diagnosis("127.0.0.1:1", PLAIN)
    assert None is call(plain.address, PLAIN, ingesting())


def test_a_process_that_dials_in_vain_says_why_once_and_is_let_in_later(
    shelf: Shelf, serving: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server = serving(with_tls(shelf.service))
    security, machine = [PLAIN], Listening()
    shell = Shell(machine, "worker/1")
    dialer = Dialer(shell, GATEWAY, lambda: server.address, controlling(PLAN), "", security[0])
    with caplog.at_level(logging.WARNING):
        until(lambda: dialer.refused is not None)
        time.sleep(1.5)
    dialer.close()
    assert "wants TLS" in str(dialer.refused)
    assert 1 == len([one for one in caplog.records if "wants TLS" in one.getMessage()])
    again = Dialer(shell, GATEWAY, lambda: server.address, controlling(PLAN), "", with_tls(shelf.service))
    until(lambda: again.is_up)
    assert None is again.refused
    again.close()


# --- tokens


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize(
    ("shown", "told"), [("", "found no token"), ("guess", "found another token"), ("s3cret2", "found another token")]
)
def test_clients_without_the_token_are_refused(tls: bool, shown: str, told: str, shelf: Shelf, serving: Any) -> None:
    ours, theirs = (shelf.service, shelf.client) if tls else (None, None)
    server = serving(Security.read(ours, "s3cret"))
    security = Security.read(theirs, shown)
    for talk in (ingesting(), subscribing(PLAN)):
        assert grpc.StatusCode.UNAUTHENTICATED == call(server.address, security, talk)
    with pytest.raises(Refused, match=rf"{told}, wanted the query's; set JOINERY_TOKEN .* pass token=") as refused:
        connect(server.address, tls=theirs, token=shown)
    assert "s3cret" not in str(refused.value)
    with pytest.raises(Refused, match=told):
        next(iter(Results.at(server.address, security=security, patience=20)))
    assert [] == [one for one in server.machine.facts if isinstance(one, Connected)]


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_clients_with_the_token_are_let_in_and_processes_need_none(tls: bool, shelf: Shelf, serving: Any) -> None:
    ours, theirs = (shelf.service, shelf.client) if tls else (None, None)
    server = serving(Security.read(ours, "s3cret\n"))  # as a file of a Secret often ends
    assert None is call(server.address, Security.read(theirs, "s3cret"), ingesting())
    assert None is call(server.address, Security.read(ours, ""), controlling(PLAN))


def test_health_is_told_without_a_token(serving: Any) -> None:
    server = serving(Security(token="s3cret"))  # noqa: S106
    with grpc.insecure_channel(server.address) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=10)
    assert health_pb2.HealthCheckResponse.SERVING == answer.status


def test_a_server_that_answers_nothing_is_still_unreachable(serving: Any) -> None:
    server = serving(PLAIN)  # it serves, but its machine answers nobody
    with pytest.raises(Unreachable, match="nobody for 2 s"):
        connect(server.address, timeout=2)


# --- files


def test_a_secret_is_not_shown(shelf: Shelf) -> None:
    shown = repr(Security.read(shelf.service, "s3cret"))
    assert "s3cret" not in shown
    assert "PRIVATE KEY" not in shown


BAD_FILES: dict[str, Callable[[dict[str, bytes]], dict[str, bytes]]] = {
    "found no tls.key": lambda files: {name: data for name, data in files.items() if name != "tls.key"},
    "found no ca.crt, tls.crt, tls.key": lambda _: {},
    "cannot be used": lambda files: {**files, "tls.crt": b"hello"},
    "that cannot be used": lambda files: {**files, "ca.crt": b"\xff\xfe"},
    "that cannot be used ": lambda files: {**files, "ca.crt": b""},
}


@pytest.mark.parametrize("told", BAD_FILES)
def test_files_that_are_none_are_refused_by_their_folder(told: str, shelf: Shelf, tmp_path: Path) -> None:
    folder = write(tmp_path / "bad", BAD_FILES[told](leaf(shelf.authority, NAME)))
    with pytest.raises(UserMustAct, match=told) as refused:
        Certificates.read(folder)
    assert str(folder) in str(refused.value)


def test_a_key_of_another_certificate_is_refused(shelf: Shelf, tmp_path: Path) -> None:
    mixed = {**leaf(shelf.authority, NAME), "tls.key": leaf(shelf.authority, NAME)["tls.key"]}
    with pytest.raises(UserMustAct, match=r"KEY_VALUES_MISMATCH|key values mismatch"):
        Certificates.read(write(tmp_path / "mixed", mixed))


def test_a_token_beyond_ascii_is_refused() -> None:
    with pytest.raises(UserMustAct, match="beyond ASCII"):
        Security.read(None, "schlüssel")
