"""A worker's results until they are committed: a bounded cache, so that a new collector need not wait for recovery.

Rule 1: an entry is dropped when all its groups are committed up to its end, or have been given another version.
Rule 2: above the limit the oldest entries are dropped: what a new collector then asks for in vain is lost here, and is
        made again by a recovery of that group.
Rule 3: nothing is dropped while no collector is there: the worker waits instead (`is_full`).
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from joinery.machine.messages import Results
from joinery.model.ids import GroupId, MapVersion, RecordNo
from joinery.model.tuples import I64Array


@dataclass(slots=True, eq=False)
class _Kept:
    """The messages of one batch's results."""

    groups: I64Array
    after: I64Array
    versions: I64Array
    upto: RecordNo
    results: list[Results] = field(default_factory=list)
    nbytes: int = 0

    @property
    def is_whole(self) -> bool:
        return self.results[-1].last


class Retention:
    """What was emitted and is not yet committed."""

    def __init__(self, partitions: int, limit: int) -> None:
        self.limit, self.nbytes = limit, 0
        self._kept: deque[_Kept] = deque()
        self._versions = np.zeros(partitions, np.int64)
        self._produced = np.full(partitions, -1, np.int64)
        """Up to where each group's results were made under its version."""
        self._committed = np.full(partitions, -1, np.int64)

    @property
    def is_full(self) -> bool:
        return self.nbytes >= self.limit

    def begin(self, group: GroupId, version: MapVersion, silent: RecordNo) -> None:
        """The group is here under a version; its results start after `silent`."""
        self._versions[group], self._produced[group] = version, silent
        self._committed[group] = silent

    def keep(self, results: Results, *, may_drop: bool) -> None:
        """One more message; the first of a batch opens an entry."""
        if results.part == 0:
            self._kept.append(_Kept(results.groups, results.after, results.versions, results.upto))
        entry = self._kept[-1]
        entry.results.append(results)
        size = results.nbytes
        entry.nbytes += size
        self.nbytes += size
        if results.last:
            current = self._versions[results.groups] == results.versions
            self._produced[results.groups[current]] = results.upto
        while may_drop and self._kept and self.nbytes > self.limit and self._kept[0].is_whole:
            self.nbytes -= self._kept.popleft().nbytes

    def committed(self, groups: I64Array, upto: I64Array) -> None:
        """These groups are committed up to these records."""
        self._committed[groups] = np.maximum(self._committed[groups], upto)
        while self._kept and self._kept[0].is_whole and self._is_done(self._kept[0]):
            self.nbytes -= self._kept.popleft().nbytes

    def _is_done(self, entry: _Kept) -> bool:
        gone = self._versions[entry.groups] != entry.versions
        return bool((gone | (self._committed[entry.groups] >= entry.upto)).all())

    def after(self, taken: I64Array, versions: I64Array, here: NDArray[np.bool_]) -> tuple[list[Results], set[GroupId]]:
        """What to send again to a collector that has taken so much of each group, and which groups are lost for it."""
        again: list[Results] = []
        reachable = self._produced == taken
        for entry in self._kept:
            current = versions[entry.groups] == entry.versions
            reachable[entry.groups[current & (entry.after == taken[entry.groups])]] = True
            if (current & (entry.upto > taken[entry.groups])).any():
                again += entry.results
        lost = np.flatnonzero(here & ~reachable & (self._produced > taken))
        return again, {GroupId(int(group)) for group in lost}
