"""Connections between processes: a bidirectional gRPC stream each, messages in their order, told as facts.

The side that listens names each connection anew; the side that dials knows the other by its role and dials again by
itself. Encoding happens on the thread that sends, decoding on the thread that reads: never on the machine's thread.
"""

import itertools
import logging
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from joinery.adapters.codec import BadMessage, WireError
from joinery.adapters.conversations import Conversation
from joinery.adapters.pressure import Gate, Unanswered
from joinery.adapters.security import PLAIN, Security, diagnosis
from joinery.adapters.shell import Shell
from joinery.machine.facts import Connected, Disconnected, Received
from joinery.machine.messages import Acknowledge, Message, Push, Refuse, Results
from joinery.model.errors import UserMustAct
from joinery.model.ids import OPERATOR, Peer

log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES: Final = 64 << 20
"""Far above what is sent (about 1 MB); a message beyond it is a mistake or an attack."""
OPTIONS: Final = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.max_ping_strikes", 0),  # a quiet connection is pinged, too; that is no abuse
    # Connections of one process to one address would share their failures, and wait up to two minutes after many.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)
SERVER_OPTIONS: Final = (*OPTIONS, ("grpc.so_reuseport", 0))
"""Two servers must not share a port: each would get some of the connections."""
RETRY_S: Final = 0.2
LOOK_EVERY: Final = 5
"""After so many calls that failed it is looked why."""
ROLE: Final = "joinery-role"
"""Metadata of a call: the operator says who it is, so that it keeps its name."""


class Line:
    """What is to be sent on one connection."""

    def __init__(self) -> None:
        self._out: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._put = self._taken = 0
        self.unanswered = Unanswered()

    @property
    def nbytes(self) -> int:
        """Of results that wait here."""
        return self._put - self._taken

    def send(self, message: Message) -> None:
        if isinstance(message, Results):
            self._put += message.nbytes
        elif isinstance(message, Acknowledge | Refuse):
            self.unanswered.answered(message.sequence)
        self._out.put(message)

    def close(self) -> None:
        self.unanswered.close()
        self._out.put(None)

    def __iter__(self) -> Iterator[Message]:
        while (message := self._out.get()) is not None:
            if isinstance(message, Results):
                self._taken += message.nbytes
            yield message


HEALTH: Final = ("", "liveness", "readiness")
"""What can be asked for its health: the server as such, and what probes of Kubernetes ask."""


class Listener:
    """Serves conversations; every connection becomes a peer of the machine. Says whether it serves (grpc.health.v1)."""

    def __init__(
        self,
        shell: Shell,
        address: str,
        conversations: Sequence[Conversation],
        *,
        max_peers: int = 256,
        reflects: bool = False,
        gate: Gate | None = None,
        security: Security = PLAIN,
    ) -> None:
        self._shell, self._gate, self._security = shell, gate, security
        self._lines: dict[Peer, Line] = {}
        self._numbers = itertools.count(1)
        self._server = grpc.server(ThreadPoolExecutor(max_peers, "link"), options=SERVER_OPTIONS)
        services: dict[str, dict[str, Any]] = {}
        for one in conversations:
            services.setdefault(one.service, {})[one.method] = grpc.stream_stream_rpc_method_handler(
                partial(self._serve, one), response_serializer=one.encode_down
            )
        handlers = [grpc.method_handlers_generic_handler(service, methods) for service, methods in services.items()]
        self._server.add_generic_rpc_handlers(tuple(handlers))
        self._health = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        if reflects:
            names = [*services, health.SERVICE_NAME, reflection.SERVICE_NAME]
            reflection.enable_server_reflection(names, self._server)
        for name in HEALTH:
            self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        try:
            self.port = security.add_port(self._server, address)
        except RuntimeError as error:
            message = f"found {address} that cannot be listened on, wanted a free port of this machine; choose another"
            raise UserMustAct(message) from error
        self._server.start()

    def _serve(self, talk: Conversation, requests: Iterator[bytes], context: Any) -> Iterator[Message]:
        self._security.admit(context, is_for_clients=talk.is_for_clients)
        role = dict(context.invocation_metadata()).get(ROLE)
        peer = OPERATOR if role == OPERATOR else Peer(f"{context.peer()}#{next(self._numbers)}")
        line = Line()
        self._lines[peer] = line
        context.add_callback(line.close)
        context.send_initial_metadata(())
        self._shell.tell(Connected(peer))
        reading = (peer, line, talk, requests, context.is_active)
        threading.Thread(target=self._read, args=reading, name=f"read {peer}", daemon=True).start()
        yield from line
        self._forget(peer, line)

    def _read(
        self, peer: Peer, line: Line, talk: Conversation, requests: Iterator[bytes], is_active: Callable[[], bool]
    ) -> None:
        """Until the connection ends; a peer that cannot be understood is told why, and the connection closed."""
        hung_up = False
        try:
            for data in requests:
                message = talk.decode_up(data)
                self._shell.tell(Received(peer, message))
                self._hold_back(line, message, len(data))
            hung_up = is_active() and self._lines.get(peer) is line  # neither broken nor closed by us
        except BadMessage as bad:
            line.send(Refuse(bad.sequence, str(bad)))
        except WireError as error:
            log.warning("%s sent what cannot be read: %s", peer, error)
        except grpc.RpcError as broken:
            log.debug("%s is gone: %s", peer, broken)
        finally:
            self._forget(peer, line)
            line.close()
            if peer not in self._lines:
                self._shell.tell(Disconnected(peer, hung_up))

    def _hold_back(self, line: Line, message: Message, nbytes: int) -> None:
        """Back-pressure (`pressure`): the next message is read when there is room for it."""
        if isinstance(message, Push):
            self._shell.wait_for_room()
            line.unanswered.read(message.sequence, nbytes)
        elif isinstance(message, Results) and self._gate is not None:
            self._gate.take(nbytes)

    def _forget(self, peer: Peer, line: Line) -> None:
        """The operator keeps its name: when its old connection ends, the new one stays."""
        if self._lines.get(peer) is line:
            del self._lines[peer]

    def send(self, peer: Peer, message: Message) -> bool:
        """False: there is no such connection (any more)."""
        line = self._lines.get(peer)
        if line is not None:
            line.send(message)
        return line is not None

    def disconnect(self, peer: Peer) -> None:
        line = self._lines.pop(peer, None)
        if line is not None:
            line.close()

    def close(self) -> None:
        """No more connections, which probes are told at once; those that are open are ended."""
        self._health.enter_graceful_shutdown()
        for line in list(self._lines.values()):
            line.close()
        self._server.stop(grace=1).wait(timeout=3)


class Dialer(threading.Thread):
    """Keeps one connection to a peer up, as long as it is wanted."""

    def __init__(
        self,
        shell: Shell,
        peer: Peer,
        address: Callable[[], str | None],
        talk: Conversation,
        role: str = "",
        security: Security = PLAIN,
    ) -> None:
        super().__init__(name=f"dial {peer}", daemon=True)
        self._role, self._security = role, security
        self._failures = 0
        """Since it was up last."""
        self.refused: str | None = None
        """Why the other side, which is there, does not talk with us; None: it does, or nobody is there."""
        self._shell, self._peer, self._address, self._talk = shell, peer, address, talk
        self._line: Line | None = None
        self._call: Any = None
        self._closed = threading.Event()
        self.start()

    def send(self, message: Message) -> bool:
        """False: the connection is down."""
        line = self._line
        if line is not None:
            line.send(message)
        return line is not None

    @property
    def is_up(self) -> bool:
        return self._line is not None

    @property
    def nbytes(self) -> int:
        """Of results that the other side has not read."""
        line = self._line
        return 0 if line is None else line.nbytes

    def disconnect(self) -> None:
        if self._call is not None:
            self._call.cancel()

    def close(self) -> None:
        """Hang up for good, after what was sent has left."""
        self._closed.set()
        if self._line is not None:
            self._line.close()
        self.join(timeout=2)
        self.disconnect()

    def run(self) -> None:
        while not self._closed.is_set():
            address = self._address()
            if address is not None:
                with self._security.channel(address, OPTIONS) as channel:
                    self._talk_on(channel, address)
            self._closed.wait(RETRY_S)

    def _talk_on(self, channel: grpc.Channel, address: str) -> None:
        line = Line()
        call = channel.stream_stream(
            f"/{self._talk.service}/{self._talk.method}",
            request_serializer=self._talk.encode_up,
            response_deserializer=self._talk.decode_down,
        )(iter(line), metadata=((ROLE, self._role), *self._security.metadata))
        self._call = call
        try:
            call.initial_metadata()  # comes when the other side has accepted
            if call.is_active():
                self._line, self.refused, self._failures = line, None, 0
                self._shell.tell(Connected(self._peer))
                for message in call:
                    self._shell.tell(Received(self._peer, message))
        except grpc.RpcError as broken:
            log.debug("%s is down: %s", self._peer, broken)  # dialled again
        finally:
            line.close()
            was_up, self._line = self._line is not None, None
            if was_up:
                self._shell.tell(Disconnected(self._peer))
            else:
                self._note(call, address)

    def _note(self, call: Any, address: str) -> None:
        """Whether the other side is there and does not want us; said once."""
        if self._closed.is_set():
            return
        self._failures += 1
        if call.code() in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
            why = call.details()
        elif self._failures % LOOK_EVERY == 0:
            why = diagnosis(address, self._security)
        else:
            return
        if why is not None and why != self.refused:
            log.warning("%s at %s: %s", self._peer, address, why)
        self.refused = why
