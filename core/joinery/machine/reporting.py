"""What a worker reports about a reorganization epoch: occupancy f, busy share u, memory, and each group's part.

Beside what decides: the CPU time of its process, how long it had nothing to join, how long messages took from the start
of its slot until they were here, and how many comparisons the join made (the measures of seed 000, VI).

A report is due once per epoch, and earlier if the windows may have grown by much: an epoch can be long, and the gateway
holds producers back by what it was told last.
"""

from typing import Final

import numpy as np

from joinery.elastic.load import GroupLoad, LoadReport, occupancy
from joinery.machine.facts import BatchJoined, BatchTaken, StateMeasured
from joinery.machine.messages import Exchange
from joinery.machine.orders import MeasureState, Order
from joinery.model.ids import WorkerId
from joinery.model.spec import JoinQuerySpec
from joinery.partition.hashing import groups_of

URGENT: Final = 8
"""A worker that joined this part of its memory does not wait for the end of the epoch to report."""


class Meter:
    """Counts since the last report."""

    def __init__(self, spec: JoinQuerySpec, worker: WorkerId) -> None:
        self.spec, self._worker = spec, worker
        self._since_ns = 0
        self._samples: list[int] = []
        """Bytes still unprocessed, just before each message was added."""
        self._busy_ns = self._comm_ns = self._idle_ns = self._comparisons = 0
        self._joined_bytes = 0
        self._is_measuring = False
        self._work = np.zeros(spec.partitions)
        self._idle_since: int | None = None
        """Since when, in this epoch, there is nothing to join; None: there is something."""
        self._here_ns = 0
        """When the last message was here, by the gateway's clock."""
        self._cpu_ns = 0
        """CPU time up to the last report."""
        self.rows = self.comparisons = self.busy_ns = 0
        """Since the worker began, for whoever looks; rows that are joined again after a loss count again."""
        self.last: LoadReport | None = None
        """The last report."""
        self.oldest_ns: int | None = None
        """And the smallest time of a row in the windows then; None: there was none, or it is not known."""

    def begin(self, now_ns: int) -> None:
        """A worker starts, with nothing to join."""
        self._since_ns, self._idle_since = now_ns, now_ns
        self._reset()

    def _reset(self) -> None:
        self._samples = []
        self._busy_ns = self._comm_ns = self._idle_ns = self._comparisons = self._joined_bytes = 0
        self._work[:] = 0

    def arrived(self, buffered_bytes: int, slot_ns: int = 0, here_ns: int = 0) -> None:
        """A message is about to be added to the buffer; its slot began then, and it is here now (gateway's clock)."""
        self._samples.append(buffered_bytes)
        if slot_ns:
            self._comm_ns += max(0, here_ns - max(slot_ns, self._here_ns))  # slots that overlap count once
            self._here_ns = max(self._here_ns, here_ns)

    def has_work(self, has: bool, now_ns: int) -> None:
        """Whether there is something to join from now on."""
        if has and self._idle_since is not None:
            self._idle_ns += max(0, now_ns - self._idle_since)
            self._idle_since = None
        elif not has and self._idle_since is None:
            self._idle_since = now_ns

    def measure(self) -> list[Order]:
        """How much is held, for a report; a second one behind a long join would report an epoch of no length."""
        was_measuring, self._is_measuring = self._is_measuring, True
        return [] if was_measuring else [MeasureState()]

    @property
    def is_urgent(self) -> bool:
        """Whether so much was joined since the last report that memory may run out before the next one is due."""
        return self._joined_bytes > self.spec.worker.memory // URGENT

    def joined(self, exchange: Exchange, fact: BatchJoined | BatchTaken, nbytes: int = 0) -> None:
        """A message is joined; its work is divided over the groups by their rows."""
        self._joined_bytes += nbytes
        self._busy_ns += fact.busy_ns
        self._comparisons += fact.comparisons
        rows = np.zeros(self._work.size)
        for batch in exchange.batches:
            rows += np.bincount(groups_of(batch.hashes, self._work.size), minlength=self._work.size)
        if rows.sum():
            self._work += rows * (fact.comparisons / rows.sum())
        self.rows += int(rows.sum())
        self.comparisons += fact.comparisons
        self.busy_ns += fact.busy_ns

    def report(self, state: StateMeasured, now_ns: int) -> LoadReport:
        """The report of the epoch that ends now."""
        self._is_measuring = False
        elapsed = max(1, now_ns - self._since_ns)
        if self._idle_since is not None:
            self._idle_ns += max(0, now_ns - self._idle_since)
            self._idle_since = now_ns
        made = LoadReport(
            worker=self._worker,
            occupancy=occupancy(self._samples, self.spec.worker.buffer),
            busy=self._busy_ns / elapsed,
            memory_bytes=state.bytes_held,
            memory_limit=self.spec.worker.memory,
            groups=tuple(
                GroupLoad(group=group, weight=float(self._work[group]), memory_bytes=nbytes)
                for group, nbytes in state.bytes_by_group
            ),
            elapsed_s=elapsed / 1e9,
            cpu_s=max(0, state.cpu_ns - self._cpu_ns) / 1e9,
            idle_s=self._idle_ns / 1e9,
            comm_s=self._comm_ns / 1e9,
            comparisons=self._comparisons,
        )
        self._since_ns, self._cpu_ns, self.last, self.oldest_ns = now_ns, state.cpu_ns, made, state.oldest_ns
        self._reset()
        return made
