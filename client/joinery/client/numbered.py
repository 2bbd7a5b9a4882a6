"""One numbered message of a named producer, recorded once whoever repeats it: for programs that number their input.

A Spark job repeats a micro-batch after a crash, perhaps in another process. It names the producer and numbers the
message, so that the gateway knows what it has (docs/design.md §3, producers):

Rule 1: what is recorded up to a later number is not sent again, whatever it holds now.
Rule 2: numbers that were left out are filled with one message without rows, so that there is no hole.
Rule 3: a connection that breaks is opened again for `patience_s`; the answer to `Open` says whether the message is in.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

import grpc
import pyarrow as pa

from joinery.adapters.codec import WireError
from joinery.adapters.conversations import ingesting
from joinery.adapters.links import OPTIONS, Line
from joinery.adapters.security import PLAIN, Security, diagnosis
from joinery.client.errors import Refused, Unreachable
from joinery.client.talks import AGAIN_S, BrokenOff, told
from joinery.flow.checksum import checksum_of
from joinery.machine.messages import Acknowledge, Message, Open, Opened, Push, Refuse
from joinery.model.ids import ProducerId
from joinery.partition.format import StreamFormat

T = TypeVar("T")
_LONG_S: Final = 2.0
"""A call that failed later than this had a connection."""
MAX_BYTES: Final = 32 << 20
"""Of one message; half of what a connection carries."""


@dataclass(frozen=True, slots=True)
class Place:
    """A gateway, and how to be let in."""

    address: str
    security: Security = PLAIN
    patience_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of a message."""

    rows: int
    """That were recorded by this call."""
    is_known: bool = False
    """Whether it was recorded before."""


def join(place: Place, form: StreamFormat, name: str) -> Opened:
    """The producer is there, and holds its stream's watermark from now on; older sessions of the name are fenced."""
    return _again(place, lambda: _join(place, form, name))


def record(place: Place, form: StreamFormat, name: str, sequence: int, rows: pa.RecordBatch) -> Recorded:
    """This message, of rows as the stream wants them, is recorded when this returns."""
    return _again(place, lambda: _record(place, form, name, sequence, rows))


def end(place: Place, form: StreamFormat, name: str) -> None:
    """The producer sends no more; that is recorded when this returns."""
    _again(place, lambda: _end(place, form, name))


class _Session:
    """One connection, opened under the producer's name."""

    def __init__(self, line: Line, answers: Iterator[Message], opened: Opened) -> None:
        self._line, self._answers, self.opened = line, answers, opened

    def push(self, sequence: int, next_sequence: int, rows: pa.RecordBatch, *, end: bool = False) -> None:
        """Wait until it is recorded."""
        self._line.send(Push(self.opened.session, sequence, next_sequence, checksum_of(rows), rows, end))
        answer = next(self._answers, None)
        if isinstance(answer, Refuse):
            raise Refused(f"producer {self.opened.producer}: {answer.reason}")
        if not isinstance(answer, Acknowledge):
            raise BrokenOff(f"{type(answer).__name__} in place of an acknowledgement")


def _join(place: Place, form: StreamFormat, name: str) -> Opened:
    with _session(place, form, name) as session:
        return session.opened


def _record(place: Place, form: StreamFormat, name: str, sequence: int, rows: pa.RecordBatch) -> Recorded:
    with _session(place, form, name) as session:
        expected = session.opened.expected
        if expected is not None and expected > sequence + 1:
            raise Refused(
                f"found {expected} messages of producer {name} recorded, wanted at most {sequence + 1}: whoever "
                "numbers them has begun anew; choose a new producer name"
            )
        if session.opened.ended or (expected is not None and expected > sequence):
            return Recorded(0, is_known=True)
        if expected is not None and expected < sequence:
            session.push(expected, sequence, rows.slice(0, 0))
        session.push(sequence, sequence + 1, rows)
        return Recorded(rows.num_rows)


def _end(place: Place, form: StreamFormat, name: str) -> None:
    with _session(place, form, name) as session:
        if not session.opened.ended:
            at = session.opened.expected or 0
            session.push(at, at + 1, pa.RecordBatch.from_pylist([], schema=form.schema), end=True)


@contextmanager
def _session(place: Place, form: StreamFormat, name: str) -> Iterator[_Session]:
    talk, line = ingesting(), Line()
    with place.security.channel(place.address, OPTIONS) as channel:
        method = channel.stream_stream(
            f"/{talk.service}/{talk.method}", request_serializer=talk.encode_up, response_deserializer=talk.decode_down
        )
        try:
            line.send(Open(form.index, ProducerId(name)))
            answers = method(iter(line), metadata=place.security.metadata)
            opened = next(answers, None)
            if isinstance(opened, Refuse):
                raise Refused(f"producer {name}: {opened.reason}")
            if not isinstance(opened, Opened):
                raise BrokenOff("no session")
            yield _Session(line, answers, opened)
        except WireError as error:
            raise Unreachable(place.address, f"an answer that cannot be read ({error})") from error
        except grpc.RpcError as error:
            raise told(place.address, error, place.patience_s) from error
        finally:
            line.close()


def _again(place: Place, once: Callable[[], T]) -> T:
    """Until it was done, or the connection was down for too long (rule 3)."""
    down_since_s: float | None = None
    while True:
        began_s = time.monotonic()
        try:
            return once()
        except BrokenOff as error:
            now_s = time.monotonic()
            if down_since_s is None or now_s - began_s > _LONG_S:  # it was up in between
                down_since_s = now_s
            if now_s - down_since_s > place.patience_s:
                if (why := diagnosis(place.address, place.security)) is not None:
                    raise Refused(f"{place.address}: {why}") from error
                raise Unreachable(place.address, str(error)) from error
            time.sleep(AGAIN_S)
