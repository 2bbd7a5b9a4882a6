"""One question to the gateway of a running query, and its answer; asked again if the gateway dies meanwhile."""

import time
from pathlib import Path
from typing import Any, Final

import grpc

from joinery.adapters.codec import WireError
from joinery.adapters.conversations import Conversation, controlling
from joinery.adapters.links import OPTIONS, Line
from joinery.adapters.security import Security
from joinery.client import Unreachable
from joinery.machine.messages import ChangeQuery, EndStreams, QueryChanged, StreamsEnded

AGAIN_S: Final = 0.2


def ask(
    address: str, question: ChangeQuery | EndStreams, wait_s: float, tls: Path | None = None
) -> QueryChanged | StreamsEnded:
    """What the gateway says; `Unreachable` if it has not in so many seconds. Both questions may be asked twice."""
    until_s, why, security = time.monotonic() + wait_s, "nobody", Security.read(tls, None)
    while (left_s := until_s - time.monotonic()) > 0:
        with security.channel(address, OPTIONS) as channel:
            line = Line()
            line.send(question)
            try:
                call = _method(channel)(iter(line), timeout=left_s, wait_for_ready=True)
                for answer in call:
                    if isinstance(answer, QueryChanged | StreamsEnded):
                        return answer
                why = "a gateway that did not answer"
            except WireError as error:
                raise Unreachable(address, f"an answer that cannot be read ({error})") from error
            except grpc.RpcError as error:
                why = f"{error.code().name.lower()} ({error.details()})"
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
                    raise Unreachable(address, why) from error
            finally:
                line.close()
        time.sleep(AGAIN_S)
    raise Unreachable(address, f"{why} for {wait_s:g} s")


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
