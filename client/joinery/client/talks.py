"""What a client does, as generators that wait by yielding (`watched`): producers, results, and what a query wants."""

import time
from collections.abc import Callable
from itertools import islice
from typing import Final

import grpc
import pyarrow as pa

from joinery.adapters.codec import WireError
from joinery.adapters.conversations import Conversation, ingesting, subscribing
from joinery.adapters.links import OPTIONS, Line
from joinery.adapters.security import PLAIN, Security, diagnosis
from joinery.client.errors import Refused, ResultsGone, Unreachable
from joinery.client.frames import Frame, pieces_of
from joinery.client.watched import Steps, Wait, Watched
from joinery.flow.checksum import warm_up
from joinery.machine.facts import Consumed, Offered
from joinery.machine.messages import Describe, Description, Refuse, Token
from joinery.machine.producer import ProducerMachine
from joinery.machine.subscriber import SubscriberMachine, token_text
from joinery.model.errors import UserMustAct
from joinery.model.ids import COLLECTOR, GATEWAY, ProducerId
from joinery.partition.format import StreamFormat

_AHEAD: Final = 4
"""Batches that are offered before the machine has seen them."""
AGAIN_S: Final = 0.1
"""Between two questions to somebody who went away."""
_LOOK_S: Final = 0.01
"""Between two looks of somebody who does not want to wait."""
ASK_S: Final = 1.0
"""A connection that takes longer is looked at: perhaps it is refused."""


class ProducerTalk:
    """One producer of one stream."""

    def __init__(
        self, address: str, form: StreamFormat, name: str | None, patience_s: float, security: Security = PLAIN
    ) -> None:
        self.form = form
        self.rows = 0
        """Rows that were offered here."""
        self.machine = ProducerMachine(form.index, None if name is None else ProducerId(name))
        called = f"producer of {form.name}"
        self.watched = Watched(self.machine, GATEWAY, address, ingesting(), patience_s, called, security)
        self._ended = False

    def open(self) -> Steps[int]:
        """Until the gateway has opened the session; how many batches of this producer are recorded already."""
        machine = self.machine
        warm_up()  # while the gateway is being asked
        yield self._wait(lambda: machine.next_sequence is not None)
        self._check()
        return machine.next_sequence or 0

    def push(self, data: Frame, *, end: bool, skip: int = 0) -> Steps[None]:
        """All rows of the data are on their way when this ends; at most a few batches are not recorded yet."""
        if self._ended:
            raise UserMustAct(f"found rows for stream {self.form.name} after its end, wanted none; end it last")
        for batch in islice(pieces_of(self.form, data), skip, None):
            yield from self._room()
            self.rows += batch.num_rows
            self.watched.put(Offered(batch))
        if end:
            yield from self.end()

    def end(self) -> Steps[None]:
        """The producer will send no more; everything is recorded when this ends."""
        machine = self.machine
        if not self._ended:
            yield from self._room()
            self._ended = True
            self.watched.put(Offered(None, end=True))
        yield self._wait(lambda: machine.done)
        self._check()

    def flush(self) -> Steps[None]:
        """Until everything that was pushed is recorded."""
        machine, watched = self.machine, self.watched
        yield self._wait(lambda: watched.pending == 0 and machine.is_idle)
        self._check()

    def close(self) -> None:
        self.watched.close()

    def _room(self) -> Steps[None]:
        machine, watched = self.machine, self.watched
        yield self._wait(lambda: machine.room and watched.pending < _AHEAD)
        self._check()

    def _wait(self, until: Callable[[], bool]) -> Wait:
        machine = self.machine
        return Wait(self.watched, lambda: machine.failed is not None or machine.done or until())

    def _check(self) -> None:
        if self.machine.failed is not None:
            raise Refused(self.machine.failed)
        if self.machine.done and not self._ended:
            raise Refused(
                f"found that producer {self.machine.name} of stream {self.form.name} has ended, wanted one that sends; "
                "push under a new name"
            )


class ResultsTalk:
    """Committed results, delivery by delivery."""

    def __init__(
        self, address: str, token: str | None, patience_s: float, *, only_kept: bool, security: Security = PLAIN
    ) -> None:
        self.machine = SubscriberMachine(None if token is None else read_token(token), only_kept=only_kept)
        self.watched = Watched(self.machine, COLLECTOR, address, _subscribing(), patience_s, "results", security)
        self.token = token
        """After the last batch that was taken."""
        self.schema: pa.Schema | None = None
        """Known with the first batch, or at the end."""

    def next(self) -> Steps[pa.RecordBatch | None]:
        """The next rows; None: there will be no more."""
        machine = self.machine
        yield Wait(self.watched, lambda: bool(machine.deliveries or machine.ended or machine.failed))
        if machine.deliveries:
            delivery = machine.deliveries.popleft()
            self.watched.put(Consumed(1))
            self.token = token_text(delivery.token)
            batches = [part.rows for part in delivery.parts]
            rows = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
            self.schema = rows.schema
            return rows
        if machine.failed is not None:
            raise ResultsGone(machine.failed)
        if machine.ended is not None:
            self.token, self.schema = token_text(machine.ended.token), machine.ended.schema
        return None

    def is_ready(self, seconds: float) -> bool:
        """Whether `next` has something to say, or will have within this time."""
        machine, until_s = self.machine, time.monotonic() + seconds
        while not (machine.deliveries or machine.ended or machine.failed):
            self.watched.check()
            if time.monotonic() >= until_s:
                return False
            time.sleep(_LOOK_S)
        return True

    def close(self) -> None:
        self.watched.close()


def _subscribing() -> Conversation:
    """A subscriber needs no plan: deliveries say what they hold."""
    return subscribing(None)  # type: ignore[arg-type]


def read_token(text: str) -> Token:
    """A token as it was shown."""
    number, _, row = text.partition(":")
    if not (number.isdecimal() and row.isdecimal()):
        raise UserMustAct(f"found the token {text!r}, wanted one such as 12:0; take one that results gave")
    return Token(int(number), int(row))


class NoGateway(Exception):
    """Somebody is there, but no gateway."""


class BrokenOff(Exception):
    """Whoever was there went away in the middle."""


def describe(address: str, timeout_s: float, security: Security = PLAIN) -> Description:
    """What the query at this address wants and gives; a gateway that dies before it has answered may come back."""
    until_s = time.monotonic() + timeout_s
    while True:
        try:
            return _describe(address, timeout_s, until_s, security)
        except BrokenOff as error:
            if time.monotonic() + AGAIN_S > until_s:
                raise Unreachable(address, str(error)) from error
            time.sleep(AGAIN_S)


def _describe(address: str, timeout_s: float, until_s: float, security: Security) -> Description:
    talk = ingesting()
    with security.channel(address, OPTIONS) as channel:
        _connect(channel, address, until_s, security)
        method = channel.stream_stream(
            f"/{talk.service}/{talk.method}",
            request_serializer=talk.encode_up,
            response_deserializer=talk.decode_down,
        )
        asking = Line()
        asking.send(Describe())  # and nothing more, but the connection stays open until the answer is here
        try:
            left_s = max(0.0, until_s - time.monotonic())
            call = method(iter(asking), timeout=left_s, metadata=security.metadata, wait_for_ready=True)
            answer = next(call, None)
        except WireError as error:
            raise Unreachable(address, f"an answer that cannot be read ({error})") from error
        except grpc.RpcError as error:
            raise told(address, error, timeout_s) from error
        finally:
            asking.close()
    if isinstance(answer, Description):
        return answer
    why = answer.reason if isinstance(answer, Refuse) else "no description"
    raise Unreachable(address, why, "run the same version of Joinery everywhere")


def _connect(channel: grpc.Channel, address: str, until_s: float, security: Security) -> None:
    """Until the channel is up, or the time; a server that is there and does not want us is an error at once."""
    ready = grpc.channel_ready_future(channel)
    try:
        while (left_s := until_s - time.monotonic()) > 0:
            try:
                ready.result(timeout=min(left_s, ASK_S))
            except grpc.FutureTimeoutError:
                if (why := diagnosis(address, security)) is not None:
                    raise Refused(f"{address}: {why}") from None
            else:
                return
    finally:
        ready.cancel()


def told(address: str, error: grpc.RpcError, timeout_s: float) -> Exception:
    """What a failed call means; `BrokenOff`: try again."""
    code = error.code()
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return NoGateway(address)
    if code in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
        return Refused(f"{address}: {error.details()}")
    if code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return Unreachable(address, f"nobody for {timeout_s:g} s")
    why = f"{code.name.lower()} ({error.details()})"
    return BrokenOff(why) if code == grpc.StatusCode.UNAVAILABLE else Unreachable(address, why)
