"""Questions to the gateway of a running query, and its answers; asked again if the gateway dies meanwhile."""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import grpc

from joinery.adapters.codec import WireError
from joinery.adapters.conversations import Conversation, controlling
from joinery.adapters.links import OPTIONS, Line
from joinery.adapters.security import Security
from joinery.cli.running import running_of
from joinery.client import Unreachable
from joinery.machine.messages import ChangeQuery, EndStreams, Look, Looked, QueryChanged, StreamsEnded
from joinery.model.errors import Bug, UserMustAct
from joinery.model.ids import RecordNo

AGAIN_S: Final = 0.2
Question = ChangeQuery | EndStreams | Look
Answer = QueryChanged | StreamsEnded | Looked


class Asker:
    """A connection for questions, all of which may be asked twice; use it with `with`."""

    def __init__(self, address: str, tls: Path | None = None) -> None:
        self.address, self._security = address, Security.read(tls, None)
        self._held = ExitStack()
        self._channel: grpc.Channel | None = None

    def __enter__(self) -> "Asker":
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def look(self, wait_s: float, record: int | None = None) -> Looked:
        """The query as it is now."""
        answer = self.ask(Look(None if record is None else RecordNo(record)), wait_s)
        if not isinstance(answer, Looked):
            raise Bug(f"a look was answered by {type(answer).__name__}")
        return answer

    def ask(self, question: Question, wait_s: float) -> Answer:
        """What the gateway says; `Unreachable` if it has not in so many seconds."""
        until_s, why = time.monotonic() + wait_s, "nobody"
        while (left_s := until_s - time.monotonic()) > 0:
            line = Line()
            line.send(question)
            call = _method(self._dial())(iter(line), timeout=left_s, wait_for_ready=True)
            try:
                for answer in call:
                    if isinstance(answer, QueryChanged | StreamsEnded | Looked):
                        return answer
                why = "a gateway that did not answer"
            except WireError as error:
                raise Unreachable(self.address, f"an answer that cannot be read ({error})") from error
            except grpc.RpcError as error:
                why = f"{error.code().name.lower()} ({error.details()})"
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
                    raise Unreachable(self.address, why) from error
            finally:
                line.close()
                call.cancel()
            time.sleep(AGAIN_S)
        raise Unreachable(self.address, f"{why} for {wait_s:g} s")

    def _dial(self) -> grpc.Channel:
        if self._channel is None:
            self._channel = self._held.enter_context(self._security.channel(self.address, OPTIONS))
        return self._channel


def ask(address: str, question: ChangeQuery | EndStreams, wait_s: float, tls: Path | None = None) -> Answer:
    """One question, on a connection of its own."""
    with Asker(address, tls) as asker:
        return asker.ask(question, wait_s)


def place_of(query: str | None, gateway: str | None) -> tuple[str, str]:
    """Name and address of a running query: by its file, its name, or the address of its gateway."""
    if (query is None) == (gateway is None):
        found = "neither a query nor --gateway" if query is None else "a query and --gateway"
        raise UserMustAct(f"found {found}, wanted one of them; name a query file, or say --gateway HOST:PORT")
    if gateway is not None:
        return gateway, gateway
    found_one = running_of(query or "")
    return (query or "", query or "") if found_one is None else (found_one.name, found_one.gateway)


def _method(channel: grpc.Channel) -> Any:
    talk = _controlling()
    return channel.stream_stream(
        f"/{talk.service}/{talk.method}",
        request_serializer=talk.encode_up,
        response_deserializer=talk.decode_down,
    )


def _controlling() -> Conversation:
    """Neither these questions nor their answers need a plan."""
    return controlling(None)  # type: ignore[arg-type]
