"""Who was turned away, and rightly so? A gateway that refuses a well-behaved producer is found here.

Rule 1: a refusal without a number to go on with is right only if the stream has ended in the log, the producer itself
        has said that it ended, its session was fenced by another one, or its batch differs from one with its number.
Rule 2: a producer that never joined is excused only if its stream's end was in the log, or in the record that was being
        written, when the gateway that wrote the end first heard of it. (It opens a session, and its joining is in the
        next record; after that the stream cannot end without it.) Or if it was forgotten: nothing of it was recorded,
        and its connection was down for so long that it counted as silent.
"""

from joinery.machine import facts, messages, orders
from joinery.machine.log import ProducerEnded, ProducerForgotten, ProducerJoined, StreamEnded
from joinery.model.errors import require
from joinery.model.ids import Peer, ProducerId, RecordNo
from joinery.simulate.network import caller
from joinery.simulate.process import Process

Source = tuple[int, ProducerId]
"""A producer of a stream, by the name that the schedule gives it."""


class Refusals:
    """What gateways and producers say to each other about sessions."""

    def __init__(self, sources: dict[Peer, Source]) -> None:
        self._sources = sources
        self.names: dict[Source, Source] = {}
        """Whose id the gateway made up: by that id."""
        self._ended: dict[int, tuple[RecordNo, str]] = {}
        """Where each stream ended, and the gateway that wrote so."""
        self._next = 0
        """The record that is being written, or comes next."""
        self._joined: set[Source] = set()
        self._left: set[Source] = set()
        self._forgotten: set[Source] = set()
        self._heard: dict[tuple[str, Source], int] = {}
        """The next record when a gateway first heard of a producer."""
        self._opened: dict[tuple[str, Source], tuple[Peer, int]] = {}
        """The newest session that a gateway gave to a producer, and on which connection."""
        self._pushed: dict[tuple[str, Peer], messages.Push] = {}
        self._sums: dict[tuple[Source, int], set[int]] = {}

    def source(self, stream: int, producer: ProducerId) -> Source:
        """The producer that the log speaks of."""
        return self.names.get((stream, producer), (stream, producer))

    def received(self, process: Process, fact: facts.Received) -> None:
        """A message of a producer is about to reach a gateway."""
        message, peer = fact.message, fact.peer
        if isinstance(message, messages.Open):
            self._heard.setdefault((process.instance, self._sources[caller(peer)]), self._next)
        elif isinstance(message, messages.Push):
            source = self._sources[caller(peer)]
            self._pushed[process.instance, peer] = message
            self._sums.setdefault((source, message.sequence), set()).add(message.checksum)
            if message.end:
                self._left.add(source)

    def appended(self, process: Process, order: orders.AppendRecord) -> None:
        """A record is durable."""
        self._next = order.number + 1
        for entry in order.record.entries:
            if isinstance(entry, ProducerJoined):
                self._joined.add(self.source(entry.stream, entry.producer))
                self._forgotten.discard(self.source(entry.stream, entry.producer))
            elif isinstance(entry, ProducerForgotten):
                self._joined.discard(self.source(entry.stream, entry.producer))
                self._forgotten.add(self.source(entry.stream, entry.producer))
            elif isinstance(entry, ProducerEnded):
                self._left.add(self.source(entry.stream, entry.producer))
            elif isinstance(entry, StreamEnded):
                self._ended[entry.stream] = order.number, process.instance

    def sent(self, process: Process, order: orders.Send) -> None:
        """A gateway answers a producer."""
        if isinstance(order.message, messages.Opened):
            source = self._sources[caller(order.to)]
            self._opened[process.instance, source] = order.to, order.message.session
            self.names[source[0], order.message.producer] = source
        elif isinstance(order.message, messages.Refuse) and order.message.expected is None:
            why = f"{process} refuses {order.to}, who did nothing wrong: {order.message.reason}"
            require(self._is_right(process, order.to, order.message), why)

    def _is_right(self, process: Process, to: Peer, refusal: messages.Refuse) -> bool:
        """Rule 1."""
        source = self._sources[caller(to)]
        if source[0] in self._ended:
            return True
        if self._opened.get((process.instance, source), (to, 0))[0] != to:
            return True  # another session was opened
        push = self._pushed.get((process.instance, to))
        if push is None or refusal.sequence is None:
            return False
        is_fenced = self._opened.get((process.instance, source)) != (to, push.session)
        others = len(self._sums.get((source, refusal.sequence), ())) > 1
        return is_fenced or others or (source in self._left and not push.end)

    def is_excused(self, source: Source) -> bool:
        """Rule 2: whether nothing of this producer need be in the log."""
        if source in self._joined or source[0] not in self._ended:
            return False
        if source in self._forgotten:
            return True
        record, writer = self._ended[source[0]]
        return self._heard.get((writer, source), record) >= record
