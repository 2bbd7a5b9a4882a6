"""What a worker reports about a reorganization epoch: occupancy f, busy share u, memory, and each group's part."""

import numpy as np

from joinery.elastic.load import GroupLoad, LoadReport, occupancy
from joinery.machine.facts import BatchJoined, StateMeasured
from joinery.machine.messages import Exchange
from joinery.model.ids import WorkerId
from joinery.model.spec import JoinQuerySpec
from joinery.partition.hashing import groups_of


class Meter:
    """Counts since the last report."""

    def __init__(self, spec: JoinQuerySpec, worker: WorkerId) -> None:
        self._spec, self._worker = spec, worker
        self._since_ns = 0
        self._samples: list[int] = []
        """Bytes still unprocessed, just before each message was added."""
        self._busy_ns = 0
        self._work = np.zeros(spec.partitions)

    def begin(self, now_ns: int) -> None:
        """A new epoch."""
        self._since_ns, self._samples, self._busy_ns = now_ns, [], 0
        self._work[:] = 0

    def arrived(self, buffered_bytes: int) -> None:
        """A message is about to be added to the buffer."""
        self._samples.append(buffered_bytes)

    def joined(self, exchange: Exchange, fact: BatchJoined) -> None:
        """A message is joined; its work is divided over the groups by their rows."""
        self._busy_ns += fact.busy_ns
        rows = np.zeros(self._work.size)
        for batch in exchange.batches:
            rows += np.bincount(groups_of(batch.hashes, self._work.size), minlength=self._work.size)
        if rows.sum():
            self._work += rows * (fact.comparisons / rows.sum())

    def report(self, state: StateMeasured, now_ns: int) -> LoadReport:
        """The report of the epoch that ends now."""
        elapsed = max(1, now_ns - self._since_ns)
        made = LoadReport(
            worker=self._worker,
            occupancy=occupancy(self._samples, self._spec.worker.buffer),
            busy=self._busy_ns / elapsed,
            memory_bytes=state.bytes_held,
            memory_limit=self._spec.worker.memory,
            groups=tuple(
                GroupLoad(group=group, weight=float(self._work[group]), memory_bytes=nbytes)
                for group, nbytes in state.bytes_by_group
            ),
        )
        self.begin(now_ns)
        return made
