"""Arrival stamps of rows on their way: when the record that holds a row was cut (docs/design.md §3).

All rows of a record have one stamp, and positions in a stream only grow. So the stamps of any rows are a short table,
one line per record: nothing travels per row, and counting results by stamp is one search in that table.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Final

import numpy as np

from joinery.model.errors import require
from joinery.model.tuples import I64Array

_FEW: Final = 16


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Rows of one stream below position `ends[i]`, and not below the end before, arrived at `stamps[i]`."""

    ends: I64Array
    stamps: I64Array

    def __post_init__(self) -> None:
        require(self.ends.shape == self.stamps.shape, f"{self.ends.size} ends of {self.stamps.size} stamps")

    def rows_at(self, places: I64Array) -> I64Array:
        """How many of the rows at these positions arrived at each stamp."""
        if self.ends.size <= _FEW:  # a pass for each line is several times quicker than a search for each row
            below = [int(np.count_nonzero(places < end)) for end in self.ends[:-1].tolist()]
            upto = np.array([0, *below, places.size], np.int64)
            return upto[1:] - upto[:-1]
        found = np.searchsorted(self.ends, places, side="right")
        return np.bincount(found, minlength=self.ends.size)[: self.ends.size]


NO_STEPS = Steps(np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Rows of results by the arrival of their later member."""

    stamps: I64Array
    rows: I64Array

    @property
    def total(self) -> int:
        """Rows of all stamps."""
        return int(self.rows.sum())

    def share(self, kept: int) -> "Arrivals":
        """If only `kept` of the rows count: the stamps in proportion, what does not divide with the oldest."""
        total = self.total
        if kept >= total:
            return self
        rows = self.rows * kept // max(1, total)
        if rows.size:
            rows[int(np.argmin(self.stamps))] += kept - int(rows.sum())
        return Arrivals(self.stamps, rows)


NO_ARRIVALS = Arrivals(np.empty(0, np.int64), np.empty(0, np.int64))


class Ledger:
    """The stamps of the records that somebody may still be sent rows of."""

    def __init__(self, streams: int) -> None:
        self._records: list[list[int]] = [[] for _ in range(streams)]
        self._ends: list[list[int]] = [[] for _ in range(streams)]
        self._stamps: list[list[int]] = [[] for _ in range(streams)]
        self._cuts: list[tuple[int, int]] = []
        """Every record and its stamp, also of those without rows."""

    def add(self, record: int, stream: int, end: int, stamp_ns: int) -> None:
        """The rows of a stream up to this position came with this record; records come in their order."""
        if not self._cuts or self._cuts[-1][0] != record:
            self._cuts.append((record, stamp_ns))
        known = self._ends[stream]
        if known and known[-1] == end:  # no rows: a producer that says goodbye
            return
        if self._records[stream] and self._records[stream][-1] == record:
            known[-1] = end
            return
        self._records[stream].append(record)
        self._ends[stream].append(end)
        self._stamps[stream].append(stamp_ns)

    def steps(self, stream: int, places: I64Array) -> Steps:
        """The table for rows at these positions."""
        if not places.size:
            return NO_STEPS
        ends = self._ends[stream]
        first = bisect_right(ends, int(places.min()))
        last = bisect_right(ends, int(places.max())) + 1
        return Steps(np.array(ends[first:last], np.int64), np.array(self._stamps[stream][first:last], np.int64))

    def stamp_at(self, record: int) -> int:
        """The newest stamp up to this record; 0: there is none."""
        at = bisect_right(self._cuts, record, key=lambda cut: cut[0])
        return self._cuts[at - 1][1] if at else 0

    def drop(self, before: int) -> None:
        """Nobody will be sent rows of records before this one."""
        for stream, records in enumerate(self._records):
            gone = bisect_left(records, before)
            for column in (self._records, self._ends, self._stamps):
                del column[stream][:gone]
        del self._cuts[: max(0, bisect_left(self._cuts, before, key=lambda cut: cut[0]) - 1)]
