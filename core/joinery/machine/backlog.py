"""Station 2 of 8, mini-buffer: recorded rows by group, until they are sent and until nobody can ask for them again.

What is not yet sent to a group's owner is its mini-buffer; what was sent is kept for replay until the trim point has
passed it. Both are the same rows, held once, as they were recorded; a batch (a, b] of any set of groups is put together
when it is sent (`flow.gather`). The bytes of a group between two records are the difference of two running sums.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from joinery.flow.gather import Grouped, gather
from joinery.model.errors import require
from joinery.model.ids import RecordNo
from joinery.model.tuples import I64Array, TupleBatch
from joinery.window.sliding import Marks


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """What one record gives to the workers."""

    batches: tuple[Grouped, ...]
    marks: Marks
    total: I64Array
    """Bytes of each group up to this record, since the gateway started."""


class Backlog:
    """The rows of the records after the trim point."""

    def __init__(self, partitions: int, first: RecordNo) -> None:
        self._partitions = partitions
        self._first = first
        """Number of the oldest entry."""
        self._entries: deque[_Entry] = deque()
        self._dropped = np.zeros(partitions, np.int64)
        """Running sums just before the oldest entry."""

    @property
    def first(self) -> RecordNo:
        """The oldest record whose rows are kept."""
        return self._first

    @property
    def last(self) -> RecordNo:
        """The newest record."""
        return RecordNo(self._first + len(self._entries) - 1)

    def add(self, batches: Sequence[TupleBatch], marks: Marks) -> None:
        """The rows that the next record gives to the workers, and its marks."""
        total = (self._entries[-1].total if self._entries else self._dropped).copy()
        grouped = tuple(Grouped.of(batch, self._partitions) for batch in batches)
        for one in grouped:
            total += one.counts * one.batch.rows.nbytes // max(1, len(one.batch))
        self._entries.append(_Entry(grouped, marks, total))

    def marks_at(self, record: RecordNo) -> Marks:
        """Watermarks and counts at the end of a record."""
        return self._entries[record - self._first].marks

    def bytes_after(self, after: I64Array) -> I64Array:
        """Bytes of each group after a record of its own up to the newest."""
        if not self._entries:
            return np.zeros(self._partitions, np.int64)
        return self._entries[-1].total - self._total_at(after)

    def rows_after(self, after: I64Array) -> int:
        """Rows of all groups after a record of each group's own up to the newest."""
        first = max(self._first, int(after.min(initial=self.last)) + 1)
        entries = enumerate(islice(self._entries, first - self._first, None), start=first)
        return sum(int(one.counts[after < record].sum()) for record, entry in entries for one in entry.batches)

    @property
    def total_bytes(self) -> I64Array:
        """Bytes of each group that were ever recorded, since the gateway started."""
        return self._entries[-1].total if self._entries else self._dropped

    @property
    def nbytes(self) -> int:
        """Bytes of all rows that are held."""
        return int((self._entries[-1].total - self._dropped).sum()) if self._entries else 0

    def reach(self, groups: I64Array, after: I64Array, upto: RecordNo, limit: int) -> RecordNo:
        """The last record up to `upto` so that a message stays within `limit` bytes; at least one more than before."""
        low = RecordNo(int(after.min()) + 1)
        start = int(self._total_at_groups(groups, after).sum())
        reached = low
        for record in range(low, upto + 1):
            reached = RecordNo(record)
            if int(self._entries[record - self._first].total[groups].sum()) - start >= limit:
                break
        return reached

    def batch(self, groups: I64Array, after: I64Array, upto: RecordNo) -> tuple[TupleBatch, ...]:
        """The rows of (after, upto] of these groups, one batch per stream, ordered by group and then as recorded."""
        require(int(after.min()) >= self._first - 1, f"rows after {after.min()}, but those to {self._first} are gone")
        start = np.full(self._partitions, upto, np.int64)
        start[groups] = after
        found: dict[int, list[tuple[Grouped, NDArray[np.bool_]]]] = {}
        first = int(after.min()) + 1
        entries = islice(self._entries, first - self._first, upto + 1 - self._first)
        for record, entry in enumerate(entries, start=first):
            wanted = start < record
            for one in entry.batches:
                found.setdefault(one.batch.stream, []).append((one, wanted))
        gathered = (gather(found[stream]) for stream in sorted(found))
        return tuple(batch for batch in gathered if batch is not None)

    def rows_of(self, group: int, after: RecordNo) -> int:
        """How many rows of a group were recorded after a record that is kept, or is just before those."""
        entries = islice(self._entries, after + 1 - self._first, None)
        return sum(int(one.counts[group]) for entry in entries for one in entry.batches)

    def rows_by_group(self, record: RecordNo) -> I64Array | None:
        """How many rows a record gives to each group; None: they are kept no more, or not recorded yet."""
        if not self._first <= record <= self.last:
            return None
        rows = np.zeros(self._partitions, np.int64)
        for one in self._entries[record - self._first].batches:
            rows += one.counts
        return rows

    def drop(self, upto: RecordNo) -> None:
        """Nobody will ask for rows up to this record."""
        while self._entries and self._first <= upto:
            self._dropped = self._entries.popleft().total
            self._first = RecordNo(self._first + 1)

    def _total_at(self, records: I64Array) -> I64Array:
        return self._total_at_groups(np.arange(self._partitions), records)

    def _total_at_groups(self, groups: I64Array, records: I64Array) -> I64Array:
        out = np.empty(groups.size, np.int64)
        for record in np.unique(records):
            at = int(record) - self._first
            total = self._dropped if at < 0 else self._entries[at].total
            same = records == record
            out[same] = total[groups[same]]
        return out
