"""What a worker knows of a stored table's join: messages whose rows wait, and what is being read for them.

Rule 1: a message leaves the buffer when its rows are joined or wait; its results are told when none of them waits any
        more, in the order in which the messages came. So a batch's label is never ahead of its rows.
Rule 2: one question at a time is under way; what is wanted meanwhile is the next question, all at once.
Rule 3: an answer that does not come is asked for again by whoever carries the order out; nothing here gets lost with
        it, and nothing here is needed after a crash: what was not told is in the log.
"""

from collections import deque
from typing import Final

from joinery.hybrid.hybrid import Probe
from joinery.machine.buffering import Waiting
from joinery.machine.facts import TableRead, TableWanted
from joinery.machine.orders import Order
from joinery.machine.table_orders import LookAfterWaiting, ReadTable, TakeTable
from joinery.model.errors import Bug, require
from joinery.model.spec import JoinQuerySpec
from joinery.model.time import UNBOUNDED

MOST_PROBES: Final = 16
"""Segments of one question: more would keep the first of them waiting."""
LOOKS_PER_WAIT: Final = 4
"""How often rows that wait are looked at while the longest wait passes."""
SHORTEST_LOOK_NS: Final = 10_000_000


class Deferred:
    """Messages that wait for segments; of a query without a table there are none."""

    def __init__(self, spec: JoinQuerySpec) -> None:
        self._look_ns = 0 if spec.table is None else max(SHORTEST_LOOK_NS, spec.table.max_wait // LOOKS_PER_WAIT)
        self._messages: deque[Waiting] = deque()
        self._versions: list[int] = []
        self._probes: list[Probe] = []
        self._is_asking = False
        self._next_look_ns = 0
        self.waiting_rows = self.segments_read = self.bytes_read = 0
        """For whoever looks: rows that waited at the last report, and what was read since the worker began."""

    @property
    def waiting_messages(self) -> int:
        """Messages of which some rows wait, or that stand behind one."""
        return len(self._messages)

    @property
    def oldest(self) -> Waiting | None:
        """The message whose results are told next."""
        return self._messages[0] if self._messages else None

    def first_of(self, joining: Waiting | None) -> Waiting:
        """Whose results are told now: the oldest that waits, else the message that is being joined."""
        message = self.oldest or joining
        if message is None:
            raise Bug("a batch was joined that nobody asked for")
        return message

    def add(self, message: Waiting | None) -> Waiting:
        """Its results come later."""
        if message is None:
            raise Bug("a batch was taken that nobody gave")
        self._messages.append(message)
        return message

    def told(self, message: Waiting) -> None:
        """All its results are told."""
        require(self._messages.popleft() is message, "results came in another order than their messages")

    # --- questions

    def handle(self, fact: TableWanted | TableRead, now_ns: int) -> list[Order]:
        """The join module needs something of the table, or it is here."""
        if isinstance(fact, TableRead):
            self._is_asking = False
            self.segments_read += len(fact.segments)
            self.bytes_read += sum(segment.size for segment in fact.segments)
            return [TakeTable(fact, now_ns), *self._ask()]
        self._versions += [] if fact.version is None else [fact.version]
        self._probes += fact.probes
        return self._ask()

    def _ask(self) -> list[Order]:
        if self._is_asking or not (self._versions or self._probes):
            return []
        self._is_asking = True
        version = self._versions.pop(0) if self._versions else None
        probes, self._probes = tuple(self._probes[:MOST_PROBES]), self._probes[MOST_PROBES:]
        return [ReadTable(version, probes)]

    # --- the clock

    def look(self, now_ns: int) -> list[Order]:
        """Rows may have waited for long enough."""
        if not self._look_ns:
            return []
        self._next_look_ns = min(self._next_look_ns, now_ns + self._look_ns)  # the clock may be set back
        if now_ns < self._next_look_ns:
            return []
        self._next_look_ns = now_ns + self._look_ns
        return [LookAfterWaiting(now_ns)]

    @property
    def next_ns(self) -> int:
        """When to look again."""
        return self._next_look_ns if self._look_ns else UNBOUNDED
