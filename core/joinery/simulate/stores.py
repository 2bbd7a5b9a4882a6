"""The stores as simulated processes see them: calls take time, are carried out in order, and are repeated.

Rule 1: a process has one call under way; the next one waits for its answer. So its calls reach a store in order.
Rule 2: a call that finds the store down, or whose answer is lost because the store went down, is made again, until it
        is answered. So some calls are carried out twice.
Rule 3: the call under way when its process dies reaches the store, or not. Nobody hears the answer.
Rule 4: `Stale` becomes `Fenced`, or `ClaimRefused` for a checkpoint (docs/protocol.md, stores).
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from joinery.machine import facts, orders
from joinery.machine.facts import Fact
from joinery.machine.memory import MemoryCheckpoints, MemoryCommits, MemoryLog
from joinery.machine.memory_sink import MemorySink
from joinery.machine.orders import Order
from joinery.machine.ports import Receipt, Stale
from joinery.model.ids import GroupId
from joinery.simulate.faults import Outages
from joinery.simulate.process import Process
from joinery.simulate.schedule import Timing
from joinery.simulate.timeline import Timeline


class Stores:
    """Everything durable."""

    def __init__(self, sinks: tuple[str, ...]) -> None:
        self.log, self.checkpoints, self.commits = MemoryLog(), MemoryCheckpoints(), MemoryCommits()
        self.sinks = tuple(MemorySink(name) for name in sinks)

    def carry_out(self, process: Process, order: Order) -> Fact | None:
        """Do what a store order asks for, now; the fact that answers it."""
        try:
            return _CALLS[type(order)](self, process, order)
        except Stale as stale:
            if isinstance(order, orders.ReadCheckpoint) and order.version is not None:
                return facts.ClaimRefused(order.group, order.version)
            return facts.Fenced(stale.held)

    def _open_log(self, _: Process, order: orders.OpenLog) -> Fact:
        term = self.log.open(order.first, order.instance)
        head, records = self.log.read()
        return facts.GatewayOpened(term, head, tuple(records), self.log.read_map())

    def _append(self, _: Process, order: orders.AppendRecord) -> Fact:
        self.log.append(order.term, order.number, order.record)
        return facts.Appended(order.number)

    def _trim_log(self, _: Process, order: orders.TrimLog) -> None:
        self.log.trim(order.term, order.head, order.keep_from)

    def _write_map(self, _: Process, order: orders.WriteMap) -> Fact:
        self.log.write_map(order.term, order.map)
        return facts.MapWritten(order.map["version"])  # type: ignore[arg-type]

    def _open_commits(self, _: Process, order: orders.OpenCommits) -> Fact:
        return facts.CollectorOpened(*self.commits.open(order.instance))

    def _recover_sinks(self, process: Process, order: orders.RecoverSinks) -> Fact:
        for sink in process.sinks:
            sink.recover(order.term, _receipt(sink, order.receipts))
        return facts.SinksReady()

    def _stage(self, process: Process, order: orders.StageResults) -> Fact:
        return facts.Staged(order.number, tuple(sink.stage(order.number, order.parts) for sink in process.sinks))

    def _commit(self, _: Process, order: orders.WriteCommit) -> Fact:
        self.commits.write(order.term, order.commit)
        return facts.CommitWritten(order.commit.number)

    def _finish(self, process: Process, order: orders.FinishSinks) -> Fact:
        for sink in process.sinks:
            sink.finish(_receipt(sink, order.receipts))
        return facts.SinksFinished()

    def _read(self, _: Process, order: orders.ReadCheckpoint) -> Fact:
        chain = self.checkpoints.read(order.group, order.version, order.known)
        return facts.CheckpointRead(order.group, order.version, chain)

    def _blocks(self, process: Process, order: orders.WriteBlocks) -> Fact:
        self.checkpoints.write_blocks(process.instance, order.increments)
        return facts.BlocksWritten(order.number)

    def _heads(self, process: Process, order: orders.WriteHeads) -> Fact:
        versions = {group: version for group, version, _, _ in order.heads}
        tags = {group: (since, tag) for group, _, since, tag in order.heads}
        refused: tuple[GroupId, ...] = self.checkpoints.write_heads(process.instance, versions, tags)
        return facts.HeadsWritten(order.number, refused)

    def _trim_checkpoint(self, _: Process, order: orders.TrimCheckpoint) -> None:
        self.checkpoints.trim(order.group, order.version, order.base)


_CALLS: dict[type, Callable[[Stores, Process, Any], Fact | None]] = {
    orders.OpenLog: Stores._open_log,
    orders.AppendRecord: Stores._append,
    orders.TrimLog: Stores._trim_log,
    orders.WriteMap: Stores._write_map,
    orders.OpenCommits: Stores._open_commits,
    orders.RecoverSinks: Stores._recover_sinks,
    orders.StageResults: Stores._stage,
    orders.WriteCommit: Stores._commit,
    orders.FinishSinks: Stores._finish,
    orders.ReadCheckpoint: Stores._read,
    orders.WriteBlocks: Stores._blocks,
    orders.WriteHeads: Stores._heads,
    orders.TrimCheckpoint: Stores._trim_checkpoint,
}
STORE_ORDERS = frozenset(_CALLS)


def _receipt(sink: MemorySink, receipts: tuple[Receipt, ...]) -> Receipt | None:
    return next((receipt for receipt in receipts if receipt.sink == sink.name), None)


class StoreCalls:
    """The way to the stores and back."""

    def __init__(
        self,
        timeline: Timeline,
        timing: Timing,
        outages: Outages,
        execute: Callable[[Process, Order], Fact | None],
        tell: Callable[[Process, Fact], None],
        counts: Counter[str],
    ) -> None:
        self._timeline, self._timing, self._outages, self._counts = timeline, timing, outages, counts
        self._execute_now, self._tell = execute, tell

    def call(self, process: Process, order: Order) -> None:
        """Make a call when the ones before it are answered."""
        process.calls.append(order)
        if not process.calling:
            self._begin(process)

    def _begin(self, process: Process) -> None:
        process.calling = True
        self._timeline.after(self._delay(process), self._reach, process, process.calls[0])

    def _delay(self, process: Process) -> int:
        return process.dice.between(self._timing.store_ns)

    def _reach(self, process: Process, order: Order) -> None:
        """The call is at the store."""
        if not process.is_alive and not process.last_words:
            return
        up_again = self._outages.until(self._timeline.now)
        if up_again is not None:
            self._again(process, order, up_again)
            return
        process.last_words = False
        answer = self._execute_now(process, order)
        if process.is_alive:
            self._timeline.after(self._delay(process), self._answer, process, order, answer, self._timeline.now)

    def _again(self, process: Process, order: Order, when: int) -> None:
        if process.is_alive:
            self._counts["calls repeated"] += 1
            self._timeline.at(when + self._delay(process), self._reach, process, order)

    def _answer(self, process: Process, order: Order, answer: Fact | None, executed: int) -> None:
        now = self._timeline.now
        if self._outages.began_between(executed, now):
            self._again(process, order, self._outages.until(now) or now)
        else:
            self._answered(process, answer)

    def _answered(self, process: Process, answer: Fact | None) -> None:
        if process.is_away(self._answered, process, answer):
            return
        process.calls.popleft()
        process.calling = False
        if process.calls:
            self._begin(process)
        if answer is not None:
            self._tell(process, answer)
