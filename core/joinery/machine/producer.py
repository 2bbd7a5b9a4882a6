"""Station 1 of 8, ingest, the client's end: batches in order, each recorded once (docs/design.md §3, producers).

Rule 1: on every new connection the producer opens a session. One without a name is named by its instance: if the
        first answer gets lost, the next session goes on with the same producer, and none is left that never ends.
Rule 2: the first `Opened` says where numbering begins: a named producer that was started again does not remember what
        it sent, so nothing is numbered or sent before (`next_sequence` tells the program what to offer). None: at 0.
        What was offered before may be recorded already; if anything of that name is, it is an error.
Rule 3: a later `Opened` settles what became of the batches under way: those below `expected` were recorded and only
        the acknowledgement got lost; the others are sent again.
Rule 4: at most `IN_FLIGHT` batches are sent and not acknowledged. They are kept until they are acknowledged.
Rule 5: a refused batch with a number to go on with: send again from there. What was sent behind it is refused too, each
        once; those refusals say nothing new.
Rule 6: nothing is swallowed. A refusal without a number, or a number that does not fit what is kept, is `failed`.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from joinery.flow.checksum import checksum_of
from joinery.machine import facts, messages, orders
from joinery.machine.facts import Fact
from joinery.machine.messages import Push
from joinery.machine.orders import Order, Send
from joinery.model.errors import UserMustAct, require
from joinery.model.ids import GATEWAY, ProducerId, RecordNo, unnamed

IN_FLIGHT: Final = 8
"""Batches that are sent and not acknowledged, at most."""
_QUEUED: Final = 2 * IN_FLIGHT
"""Batches that the program should have here, at most: so that there is always one to send."""
_NOTHING: Final = pa.RecordBatch.from_arrays([], names=[])
"""An end without rows, of a producer that never had any."""


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    rows: pa.RecordBatch
    end: bool
    checksum: int


class ProducerMachine:
    """One producer of one stream. The program looks at the public attributes after every step."""

    def __init__(self, stream: int, name: ProducerId | None) -> None:
        self.stream, self.name = stream, name
        self.acknowledged: list[int] = []
        """Sequences of the recorded batches, in order; the machine only appends, the program may empty it."""
        self.last_record: RecordNo | None = None
        """That of the last batch that was acknowledged with its record; None: none was."""
        self.failed: str | None = None
        self.done = False
        """The end was offered and everything is recorded."""
        self._queue: deque[_Batch] = deque()
        """Batches that are not acknowledged; the first one has the sequence `_first`."""
        self._first: int | None = None
        self._sent = 0
        """How many of the queue were sent in this session."""
        self._session: int | None = None
        self._has_ended = False
        self._no_rows = _NOTHING
        self._refused: set[int] = set()
        """Batches sent behind a refused one; their refusals are to come."""

    @property
    def room(self) -> bool:
        """Whether more should be offered now."""
        return self.failed is None and not self._has_ended and len(self._queue) < _QUEUED

    @property
    def is_idle(self) -> bool:
        """Whether all that was offered is recorded."""
        return not self._queue

    @property
    def next_sequence(self) -> int | None:
        """The sequence of the batch that is offered next; None before the first `Opened`."""
        return None if self._first is None else self._first + len(self._queue)

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:  # noqa: ARG002
        """What to do about a fact."""
        if isinstance(fact, facts.Started):
            self.name = self.name or unnamed(fact.instance)
        elif isinstance(fact, facts.Offered):
            self._offer(fact)
        elif self.done or self.failed is not None:
            return []
        elif isinstance(fact, facts.Connected) and fact.peer == GATEWAY:
            self._close_session()
            return [Send(GATEWAY, messages.Open(self.stream, self.name))]
        elif isinstance(fact, facts.Disconnected) and fact.peer == GATEWAY:
            self._close_session()
        elif isinstance(fact, facts.Received) and fact.peer == GATEWAY:
            self._received(fact.message)
        return self._go_on()

    def _offer(self, fact: facts.Offered) -> None:
        if self._has_ended:
            raise UserMustAct("found a batch after the end, wanted none; offer the end with the last batch")
        require(fact.rows is not None or fact.end, "nothing was offered")
        rows = self._no_rows if fact.rows is None else fact.rows
        self._no_rows, self._has_ended = rows.slice(0, 0), fact.end
        self._queue.append(_Batch(rows, fact.end, checksum_of(rows)))

    def _close_session(self) -> None:
        self._session, self._sent = None, 0
        self._refused.clear()

    def _received(self, message: messages.Message) -> None:
        match message:
            case messages.Opened():
                self._opened(message)
            case messages.Acknowledge():
                self._acknowledge(message.sequence + 1)
                self.last_record = self.last_record if message.record is None else message.record
            case messages.Refuse():
                self._refuse(message)

    def _opened(self, message: messages.Opened) -> None:
        self.name, self._session = message.producer, message.session
        if self._first is None:
            self._first = message.expected or 0
            if message.ended and self._queue and self._queue[0].rows.num_rows == 0 and self._queue[0].end:
                self._queue.clear()  # nothing but the end, and that is recorded
            elif message.expected and self._queue and not message.ended:
                self._fail(
                    f"found {len(self._queue)} batches offered before it was known that {message.expected} of "
                    f"{self.name} are recorded, wanted none; ask for next_sequence first, then offer what follows"
                )
        elif message.expected is not None and self._holds(message.expected):
            self._acknowledge(message.expected)
        if message.ended and self.failed is None:
            self._has_ended = True
            if self._queue:
                self._fail(f"found {len(self._queue)} batches after the end of producer {self.name}, wanted none")

    def _acknowledge(self, before: int) -> None:
        """Every batch below this sequence is recorded."""
        while self._first is not None and self._first < before and self._queue:
            self.acknowledged.append(self._first)
            self._queue.popleft()
            self._first += 1
            self._sent = max(0, self._sent - 1)

    def _refuse(self, message: messages.Refuse) -> None:
        if message.expected is None:
            self._fail(message.reason)
        elif message.sequence in self._refused:
            self._refused.discard(message.sequence)
        elif self._first is not None and self._holds(message.expected):
            last = self._first + self._sent
            self._refused = set(range(last if message.sequence is None else message.sequence + 1, last))
            self._sent = min(self._sent, message.expected - self._first)

    def _holds(self, expected: int) -> bool:
        """Whether the gateway can be served from this sequence on; else the producer has failed."""
        first, after = self._first or 0, self.next_sequence or 0
        if expected < first:
            self._fail(
                f"found the gateway at sequence {expected}, wanted {first} or more: batches that it had acknowledged "
                "are gone; see whether the query reports DataLost"
            )
        elif expected > after:
            self._fail(
                f"found the gateway at sequence {expected}, wanted at most {after}: another client sends as "
                f"{self.name}; give each client a name of its own"
            )
        return self.failed is None

    def _fail(self, reason: str) -> None:
        self.failed = reason
        self._close_session()

    def _go_on(self) -> list[Order]:
        """Send what may be sent; stop when there is nothing left to do."""
        if self.failed is not None:
            return [orders.Stop(self.failed)]
        if self._has_ended and not self._queue:
            self.done = True
            return [orders.Stop("everything is recorded")]
        made: list[Order] = []
        while self._session is not None and self._first is not None and self._sent < min(len(self._queue), IN_FLIGHT):
            batch, sequence = self._queue[self._sent], self._first + self._sent
            push = Push(self._session, sequence, sequence + 1, batch.checksum, batch.rows, batch.end)
            made.append(Send(GATEWAY, push))
            self._sent += 1
        return made

    def check_invariants(self) -> None:
        """Stop with a `Bug` if the machine's state contradicts itself."""
        require(0 <= self._sent <= min(len(self._queue), IN_FLIGHT), f"{self._sent} of {len(self._queue)} were sent")
        require(self._session is not None or self._sent == 0, "batches were sent without a session")
        require(not self.done or (self._has_ended and not self._queue), "done with batches left")
        require(not (self.done and self.failed), "done and failed")
        require(all(not batch.end for batch in list(self._queue)[:-1]), "a batch stands after the end")
        require(len(self._refused) < IN_FLIGHT, "more refusals are awaited than batches were sent")
