"""Producers' sessions: who may send what next, and what waits to be recorded (docs/design.md §3, producers).

Rule 1: a producer of a stream has one session; opening another fences the older one, and what that one still has
        waiting is dropped. The answer tells the sequence to go on with, by what is durable; it comes when a record with
        a batch of this producer, if one is being written, is.
Rule 2: a batch is taken only if its sequence is the expected one (the first of a new producer is free). A lower one was
        taken before: it is acknowledged once it is durable, and refused only if its checksum is known and differs. A
        higher one is refused with the expected number.
Rule 3: a batch that does not fit its stream is refused whole, and the reason is kept.
"""

from dataclasses import dataclass

import pyarrow as pa

from joinery.flow import ingest
from joinery.join.plan import JoinPlan
from joinery.machine.log import Head
from joinery.machine.messages import Acknowledge, Open, Opened, Push, Refuse
from joinery.model.errors import BadBatch
from joinery.model.ids import Peer, ProducerId, Term, is_unnamed, unnamed
from joinery.model.tuples import TupleBatch

Key = tuple[int, ProducerId]
"""A producer is known by its stream and its name."""


@dataclass(slots=True)
class Producer:
    """A producer as this gateway knows it, beyond the log."""

    session: int
    peer: Peer | None
    expected: int | None
    """Counting batches that wait to be recorded."""
    heard_ns: int
    """When it last sent, or when we last let something of it through."""
    has_joined: bool = False
    """Whether the log, or the next record, knows of this session."""
    is_ending: bool = False
    """Whether it said that it will send no more."""
    has_hung_up: bool = False
    """Whether it has closed its connection itself; one that broke is opened again."""


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """A batch that is not yet recorded."""

    key: Key
    session: int
    push: Push
    tuples: TupleBatch


class Sessions:
    """The producers that this gateway has seen, and their batches that are not yet recorded."""

    def __init__(self, plan: JoinPlan) -> None:
        self.plan = plan
        self.producers: dict[Key, Producer] = {}
        self.waiting: list[Waiting] = []
        """In the order in which they came."""
        self.rejections = 0
        self.rejected: list[str] = []
        """Why batches were refused; the last few."""
        self._of_peer: dict[Peer, Key] = {}
        self._fresh = 0
        self._writing: dict[tuple[Key, int], int] = {}
        """Checksums of the batches in the record that is being written."""
        self._postponed: dict[Peer, Open] = {}
        """Sessions that are opened when it is written."""

    def open(self, peer: Peer, message: Open, head: Head, term: Term, now_ns: int) -> Opened | Refuse | None:
        """A producer asks for a session (rule 1); None: it is answered when the record under way is written."""
        if not 0 <= message.stream < self.plan.streams:
            return Refuse(None, f"stream {message.stream} of {self.plan.streams}; name a stream of the query")
        self._fresh += 1
        producer = message.name or unnamed(f"{term}-{self._fresh}")
        key = (message.stream, producer)
        logged, known = head.sessions.get(key), self.producers.get(key)
        if head.clocks[message.stream].ended and logged is None:
            return Refuse(None, self._ended_text(message.stream))
        if any(key == writing for writing, _ in self._writing):
            self._postponed[peer] = message
            return None
        if known is not None and known.peer is not None:
            self._of_peer.pop(known.peer, None)
        self.waiting = [one for one in self.waiting if one.key != key]
        session = 1 + max(logged.number if logged else 0, known.session if known else 0)
        expected = logged.expected if logged else None
        self.producers[key] = Producer(session, peer, expected, now_ns)
        self._of_peer[peer] = key
        return Opened(term, producer, session, expected, ended=logged is not None and logged.ended)

    def disconnected(self, peer: Peer, *, hung_up: bool = False) -> None:
        """Its session stays; it may come back and go on. Nobody comes back who hung up and has no name."""
        self._postponed.pop(peer, None)
        key = self._of_peer.pop(peer, None)
        if key is None:
            return
        producer = self.producers[key]
        producer.peer, producer.has_hung_up = None, hung_up
        if hung_up and is_unnamed(key[1]) and not producer.has_joined and not self._has_waiting(key):
            del self.producers[key]  # the log need not know of it (`forgetting` is for those that it knows)

    def _has_waiting(self, key: Key) -> bool:
        return any(one.key == key for one in self.waiting)

    def forget(self, keys: list[Key]) -> None:
        """These are no producers any more; the log says so (`forgetting`)."""
        for key in keys:
            self.producers.pop(key, None)

    def push(self, peer: Peer, push: Push, head: Head, now_ns: int) -> Acknowledge | Refuse | None:
        """A batch came; None: it is taken, and acknowledged when it is durable."""
        key = self._of_peer.get(peer)
        if key is None or self.producers[key].session != push.session:
            return Refuse(push.sequence, f"session {push.session} is fenced: another one was opened; stop")
        producer, logged = self.producers[key], head.sessions.get(key)
        producer.heard_ns = now_ns
        if producer.expected is not None and push.sequence < producer.expected:
            return self._known_already(key, push, head)
        if producer.expected is not None and push.sequence > producer.expected:
            why = f"sequence {push.sequence}, wanted {producer.expected}"
            return Refuse(push.sequence, f"{why}; send what lies between first", producer.expected)
        if producer.is_ending or (logged is not None and logged.ended):
            return Refuse(push.sequence, "this producer said that it had ended; open another under a new name")
        if head.clocks[key[0]].ended:
            return Refuse(push.sequence, self._ended_text(key[0]))
        try:
            form = self.plan.formats[key[0]]
            only_end = push.end and push.rows.num_rows == 0  # a producer that never sent may not know the columns
            rows = pa.RecordBatch.from_pylist([], schema=form.schema) if only_end else push.rows
            tuples = ingest.read(form, rows, first_place=0)
        except BadBatch as bad:
            self.rejections += 1
            self.rejected = [*self.rejected[-99:], f"{key[1]} sequence {push.sequence}: {bad}"]
            return Refuse(push.sequence, str(bad))
        producer.expected, producer.is_ending = push.next_sequence, push.end
        self.waiting.append(Waiting(key, push.session, push, tuples))
        return None

    def _known_already(self, key: Key, push: Push, head: Head) -> Acknowledge | Refuse | None:
        """A batch below the expected one: it waits, is being written, is recorded, or lies inside another batch."""
        sums = {one.push.sequence: one.push.checksum for one in self.waiting if one.key == key}
        sums |= {sequence: checksum for (writing, sequence), checksum in self._writing.items() if writing == key}
        logged = head.sessions.get(key)
        if logged is not None and logged.sequence is not None and logged.checksum is not None:
            sums[logged.sequence] = logged.checksum
        if sums.get(push.sequence, push.checksum) != push.checksum:
            return Refuse(push.sequence, f"sequence {push.sequence} was taken with other rows; number batches anew")
        if logged is not None and logged.expected is not None and push.sequence < logged.expected:
            return Acknowledge(push.sequence, None)
        if push.sequence in sums:
            return None
        expected = self.producers[key].expected
        return Refuse(push.sequence, f"sequence {push.sequence} lies inside a batch, wanted {expected}", expected)

    def refuse_ended(self, head: Head) -> list[tuple[Peer, Refuse]]:
        """Batches of producers that opened just before their stream ended: too late."""
        late = [one for one in self.waiting if head.clocks[one.key[0]].ended]
        self.waiting = [one for one in self.waiting if not head.clocks[one.key[0]].ended]
        told = [(self.peer_of(one.key), Refuse(one.push.sequence, self._ended_text(one.key[0]))) for one in late]
        return [(peer, refused) for peer, refused in told if peer is not None]

    def _ended_text(self, stream: int) -> str:
        name = self.plan.formats[stream].name
        return f"stream {name} has ended: its producers said so, or it was stopped; start a new query"

    def peer_of(self, key: Key) -> Peer | None:
        """Where a producer can be told something."""
        return self.producers[key].peer if key in self.producers else None

    def recorded(self, chosen: list[Waiting], now_ns: int) -> None:
        """These batches, and everybody who opened a session, are in the record that is being written."""
        gone = {id(one) for one in chosen}
        self.waiting = [one for one in self.waiting if id(one) not in gone]
        self._writing = {(one.key, one.push.sequence): one.push.checksum for one in chosen}
        for one in chosen:
            self.producers[one.key].heard_ns = now_ns
        for producer in self.producers.values():
            producer.has_joined = True

    def clock_is(self, now_ns: int) -> None:
        """Nobody was heard of in the future."""
        for producer in self.producers.values():
            producer.heard_ns = min(producer.heard_ns, now_ns)

    def written(self) -> list[tuple[Peer, Open]]:
        """The record is durable: who may open a session now."""
        self._writing = {}
        postponed, self._postponed = self._postponed, {}
        return list(postponed.items())
