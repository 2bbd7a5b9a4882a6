"""What nobody can ask for again: trim(group) = newest tag <= committed(group) (docs/design.md §3, trim).

Rule 1: a tag counts only if the present owner reported it under its own term; a former owner's newer tags are not in
        the chain any more.
Rule 2: increments and expired rows go up to trim(group), the log up to the smallest of them.
Rule 3: a group whose state is lost is not waited for.
Rule 4: of a query in order the log also keeps what is not released at that point.
"""

from bisect import bisect_right
from collections import deque

import numpy as np

from joinery.machine.backlog import Backlog
from joinery.machine.intake import Cut
from joinery.machine.log import BEFORE_ALL, Head
from joinery.machine.messages import Trim
from joinery.machine.orders import Order, Send, TrimLog
from joinery.machine.placement import Placement
from joinery.machine.serving import Serving
from joinery.model.ids import GroupId, RecordNo
from joinery.model.time import DEAD
from joinery.model.tuples import I64Array


class Trimming:
    """Tags by group, and the heads that the log may be trimmed to."""

    def __init__(self, partitions: int) -> None:
        self.trim = np.full(partitions, BEFORE_ALL, np.int64)
        self._tags: list[list[int]] = [[] for _ in range(partitions)]
        self._heads: deque[tuple[RecordNo, Head]] = deque()
        """The head after each record that is not trimmed."""
        self._latest: deque[tuple[RecordNo, int]] = deque()
        """The greatest timely time of each record that the log keeps."""
        self._stopped = np.zeros(partitions, np.bool_)
        self._judged: bytes | None = None
        """What was committed when trim(group) was last computed; None: there are new tags since."""

    def stop(self, group: GroupId) -> None:
        """The group's state is lost: nobody will load it again, so it holds up nothing."""
        self._stopped[group] = True

    def back_to(self, group: GroupId, tag: RecordNo) -> None:
        """The group had to be loaded at an older tag: the log is kept from there, and newer tags are no more."""
        self.owned(np.array([group]), np.array([tag]))
        self.trim[group] = min(int(self.trim[group]), tag)

    def recorded(self, cut: Cut) -> None:
        """A record is durable."""
        self._heads.append((cut.number, cut.head))
        self._latest.append((cut.number, cut.latest_ns))

    def kept(self, number: RecordNo, latest_ns: int) -> None:
        """A record from before the head, kept because of rows that were not released."""
        self._latest.append((number, latest_ns))

    def owned(self, groups: I64Array, tags: I64Array) -> None:
        """An owner says at which tag it holds groups: it is the only one that counts (rule 1)."""
        self._judged = None
        for group, tag in zip(groups.tolist(), tags.tolist(), strict=True):
            self._tags[group] = [] if tag == BEFORE_ALL else [tag]

    def tagged(self, groups: I64Array, tags: I64Array) -> None:
        """The owner has written checkpoints."""
        self._judged = None
        for group, tag in zip(groups.tolist(), tags.tolist(), strict=True):
            if tag > (self._tags[group] or [BEFORE_ALL])[-1]:
                self._tags[group].append(tag)

    def advance(self, committed: I64Array) -> I64Array:
        """Recompute trim(group); the groups where it rose."""
        risen: list[int] = []
        if self._judged == (now := committed.tobytes()):
            return np.array(risen, np.int64)  # asked after every fact, so the common answer is quick
        self._judged = now
        for group, tags in enumerate(self._tags):
            at = bisect_right(tags, int(committed[group]))
            if at and tags[at - 1] > self.trim[group]:
                self.trim[group] = tags[at - 1]
                risen.append(group)
            del tags[: max(0, at - 1)]
        return np.array(risen, np.int64)

    def trim_all(self, placement: Placement, backlog: Backlog, serving: Serving, *, is_quiet: bool) -> list[Order]:
        """Whatever nobody can ask for again goes: with the owners, in the log, and here."""
        made: list[Order] = []
        risen = self.advance(placement.committed)
        if not risen.size or placement.map is None:
            return made
        for worker in placement.map.workers:
            groups = np.intersect1d(risen, placement.served_by(worker))
            if groups.size and placement.workforce.is_up(worker):
                made.append(Send(placement.workforce.peer(worker), Trim(placement.term, groups, self.trim[groups])))
        if (trimmed := self.trim_log()) is not None:
            head, keep_from = trimmed
            backlog.drop(RecordNo(head.next_record - 1))
            serving.ledger.drop(keep_from)
            made.append(TrimLog(placement.term, head, keep_from, is_quiet=is_quiet))
        return made

    def trim_log(self) -> tuple[Head, RecordNo] | None:
        """The new head of the log and the first record to keep, if that moves on."""
        if self._stopped.all():
            return None
        upto = int(self.trim[~self._stopped].min())
        head = None
        while self._heads and self._heads[0][0] <= upto:
            _, head = self._heads.popleft()
        if head is None:
            return None
        keep = RecordNo(upto + 1)
        if head.counts:
            frontier = min(head.watermarks)
            keep = next((n for n, latest in self._latest if n <= upto and latest >= frontier and latest > DEAD), keep)
        while self._latest and self._latest[0][0] < keep:
            self._latest.popleft()
        return head, keep
