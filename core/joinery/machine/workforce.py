"""The gateway's book of workers: who is connected, when it was last heard of, and how much it may still be sent.

Credits: a worker may have at most `buffer` bytes and `MAX_MESSAGES` messages that are not joined yet. A message is
sent while it has credit, even one that is larger than what is left, so that a large record cannot block for ever. And
`ALWAYS` messages may be there, however large: while one is joined the next is on its way. With one record as large as
the buffer a worker had nothing to do for half of its time (docs/performance.md).
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from joinery.elastic.load import LoadReport
from joinery.machine.log import BEFORE_ALL
from joinery.machine.messages import WorkerHello
from joinery.model.ids import Peer, RecordNo, WorkerId
from joinery.model.tuples import I64Array

MAX_MESSAGES: Final = 16
ALWAYS: Final = 2
NO_GROUPS: Final = np.empty(0, np.int64)


@dataclass(slots=True)
class Hand:
    """One worker."""

    peer: Peer
    """Its present connection."""
    instance: str
    heard_ns: int
    is_up: bool = True
    outstanding_bytes: int = 0
    outstanding: int = 0
    """Messages that were sent and not joined."""
    older: int = 0
    """Those of them that came by an earlier connection, perhaps of another gateway: nobody knows what they hold."""
    under_way: deque[tuple[I64Array, RecordNo]] = field(default_factory=deque)
    """Groups and last record of the others, the oldest first."""
    was_held_back: bool = False
    """Whether it had no credit when it should have been served, since the last report."""
    report: LoadReport | None = None
    before: LoadReport | None = None
    """The last one of the connection before."""
    joined_bytes: int = 0
    """Of messages that were joined since its last report."""
    reported_bytes: int = 0
    """The same, in the epoch of its last report."""
    former: set[str] = field(default_factory=set)
    """Older instances of this worker: they are not listened to while this one is there."""


class Workforce:
    """All workers that were ever seen by this gateway."""

    def __init__(self, buffer_bytes: int, lost_after_ns: int) -> None:
        self._buffer, self._lost_after = buffer_bytes, lost_after_ns
        self.hands: dict[WorkerId, Hand] = {}
        self.retired: dict[WorkerId, str] = {}
        """Workers that were drained, and the instance that was: it does not come back."""

    def retune(self, buffer_bytes: int, lost_after_ns: int, now_ns: int) -> None:
        """Other bounds; who was silent by the old one is not lost by the new one."""
        self._buffer, self._lost_after = buffer_bytes, lost_after_ns
        for hand in self.hands.values():
            hand.heard_ns = max(hand.heard_ns, now_ns)

    def expect(self, workers: tuple[WorkerId, ...], now_ns: int) -> None:
        """These should be there; who has not been seen is given some time."""
        for worker in workers:
            self.hands.setdefault(worker, Hand(Peer(worker), "", now_ns, is_up=False))

    def hello(self, peer: Peer, message: WorkerHello, now_ns: int) -> bool:
        """A worker is here; False: an older instance while the newer one is there, or one that was drained."""
        known = self.hands.get(message.worker)
        former = known.former if known else set()
        is_replaced = known is not None and known.is_up and message.instance in former
        if is_replaced or self.retired.get(message.worker) == message.instance:
            return False
        if known and known.instance and known.instance != message.instance:
            former = (former | {known.instance}) - {message.instance}
        self.retired.pop(message.worker, None)
        self.hands[message.worker] = Hand(
            peer, message.instance, now_ns, True, message.buffered_bytes, message.buffered_messages, former=former,
            older=message.buffered_messages, before=(known.report or known.before) if known else None,
        )  # fmt: skip
        return True

    def heard(self, worker: WorkerId, peer: Peer, now_ns: int) -> bool:
        """Something came from a worker; False: this connection does not count any more."""
        hand = self.hands.get(worker)
        if hand is None or hand.peer != peer or not hand.is_up:
            return False
        hand.heard_ns = now_ns
        return True

    def disconnected(self, worker: WorkerId, peer: Peer | None = None) -> bool:
        """A connection (None: the present one) is gone; False: the worker has a newer one, and is still there."""
        hand = self.hands.get(worker)
        if hand is None or peer not in (None, hand.peer):
            return False
        hand.is_up = False
        return True

    def peer(self, worker: WorkerId) -> Peer:
        """Where to send what is for a worker."""
        return self.hands[worker].peer

    def is_up(self, worker: WorkerId) -> bool:
        return worker in self.hands and self.hands[worker].is_up

    def up(self) -> list[WorkerId]:
        """Connected workers in the order of their ordinals."""
        return sorted((worker for worker, hand in self.hands.items() if hand.is_up), key=ordinal)

    def lost(self, now_ns: int) -> list[WorkerId]:
        """Workers that nothing was heard of for too long."""
        return [worker for worker, hand in self.hands.items() if now_ns - hand.heard_ns > self._lost_after]

    def clock_is(self, now_ns: int) -> None:
        """Nobody was heard of in the future."""
        for hand in self.hands.values():
            hand.heard_ns = min(hand.heard_ns, now_ns)

    def retire(self, worker: WorkerId) -> None:
        """The worker is drained; this instance of it does not come back."""
        hand = self.hands.pop(worker, None)
        if hand is not None:
            self.retired[worker] = hand.instance

    def has_credit(self, worker: WorkerId) -> bool:
        hand = self.hands[worker]
        has_room = hand.outstanding_bytes < self._buffer and hand.outstanding < MAX_MESSAGES
        free = has_room or hand.outstanding < ALWAYS
        hand.was_held_back |= not free
        return free

    def piles_up(self, worker: WorkerId, small_bytes: int) -> bool:
        """Whether messages of more than one turn are not joined yet, though they are small."""
        hand = self.hands.get(worker)
        return hand is not None and hand.outstanding > 1 and hand.outstanding_bytes < hand.outstanding * small_bytes

    def sent(self, worker: WorkerId, nbytes: int, groups: I64Array = NO_GROUPS, upto: RecordNo = BEFORE_ALL) -> None:
        hand = self.hands[worker]
        hand.outstanding_bytes += nbytes
        hand.outstanding += 1
        hand.under_way.append((groups, upto))

    def credit(self, worker: WorkerId, nbytes: int) -> None:
        """A message was joined."""
        hand = self.hands[worker]
        hand.joined_bytes += nbytes
        hand.outstanding_bytes = max(0, hand.outstanding_bytes - nbytes)
        hand.outstanding = max(0, hand.outstanding - 1)
        if hand.older:
            hand.older -= 1
        elif hand.under_way:
            hand.under_way.popleft()

    def is_joining(self, worker: WorkerId, group: int, record: RecordNo) -> bool:
        """Whether a record that was sent for this group may not be joined yet."""
        hand = self.hands[worker]
        return hand.older > 0 or any(upto >= record and group in groups for groups, upto in hand.under_way)


def ordinal(worker: WorkerId) -> tuple[str, int]:
    """worker-2 comes before worker-10."""
    name, _, number = worker.rpartition("-")
    return (name, int(number)) if number.isdigit() else (worker, 0)
