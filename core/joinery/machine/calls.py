"""Store orders carried out on ports: the one place where an order becomes a call, and its answer a fact.

The servers and the simulator share it; what differs is behind the ports, and how long a call takes. `Stale` becomes
`Fenced`, or `ClaimRefused` for a checkpoint. Errors that may pass (`TryAgain`) are the caller's: it calls again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from joinery.machine import facts, orders
from joinery.machine.facts import Fact
from joinery.machine.orders import Order
from joinery.machine.ports import CheckpointStore, CommitStore, Log, Receipt, Retained, Sink, Stale
from joinery.model.errors import Bug
from joinery.model.ids import MapVersion

Port = TypeVar("Port")


@dataclass(slots=True, kw_only=True)
class Calls:
    """The ports that one process has."""

    instance: str
    log: Log | None = None
    checkpoints: CheckpointStore | None = None
    commits: CommitStore | None = None
    sinks: Sequence[Sink] = ()
    retained: Retained | None = None
    """None: results are kept for subscribers in the collector's memory alone."""

    @property
    def _all_sinks(self) -> Sequence[Sink]:
        return self.sinks if self.retained is None else (*self.sinks, self.retained)

    def carry_out(self, order: Order) -> Fact | None:
        """Do what a store order asks for; the fact that answers it, if it has an answer."""
        try:
            return _CALLS[type(order)](self, order)
        except Stale as stale:
            if isinstance(order, orders.ReadCheckpoint) and order.version is not None:
                return facts.ClaimRefused(order.group, order.version)
            return facts.Fenced(stale.held)

    def _open_log(self, order: orders.OpenLog) -> Fact:
        log = _there(self.log)
        term = log.open(order.first, order.instance, order.spec)
        head, records = log.read()
        return facts.GatewayOpened(term, head, tuple(records), log.read_map(), log.read_spec())

    def _append(self, order: orders.AppendRecord) -> Fact:
        _there(self.log).append(order.term, order.number, order.record)
        return facts.Appended(order.number)

    def _trim_log(self, order: orders.TrimLog) -> Fact | None:
        log = _there(self.log)
        log.trim(order.term, order.head, order.keep_from)
        nbytes = log.tidy() if order.is_quiet else None
        return None if nbytes is None else facts.StoreMeasured(nbytes)

    def _write_map(self, order: orders.WriteMap) -> Fact:
        _there(self.log).write_map(order.term, order.map)
        return facts.MapWritten(MapVersion(order.map["version"]))

    def _write_spec(self, order: orders.WriteSpec) -> Fact:
        _there(self.log).write_spec(order.term, order.kept)
        return facts.SpecWritten(order.kept)

    def _open_commits(self, order: orders.OpenCommits) -> Fact:
        return facts.CollectorOpened(*_there(self.commits).open(order.instance))

    def _recover_sinks(self, order: orders.RecoverSinks) -> Fact:
        for sink in self._all_sinks:
            sink.recover(order.term, _receipt(sink, order.receipts))
        return facts.SinksReady(None if self.retained is None else self.retained.read())

    def _keep(self, order: orders.KeepResults) -> Fact:
        if self.retained is not None:
            self.retained.keep(order.first)
        return facts.ResultsKept()

    def _stage(self, order: orders.StageResults) -> Fact:
        return facts.Staged(order.number, tuple(sink.stage(order.number, order.parts) for sink in self._all_sinks))

    def _commit(self, order: orders.WriteCommit) -> Fact:
        _there(self.commits).write(order.term, order.commit)
        return facts.CommitWritten(order.commit.number)

    def _finish(self, order: orders.FinishSinks) -> Fact:
        for sink in self._all_sinks:
            sink.finish(_receipt(sink, order.receipts))
        return facts.SinksFinished()

    def _read(self, order: orders.ReadCheckpoint) -> Fact:
        chain = _there(self.checkpoints).read(order.group, order.version, order.known)
        return facts.CheckpointRead(order.group, order.version, chain)

    def _blocks(self, order: orders.WriteBlocks) -> Fact:
        _there(self.checkpoints).write_blocks(self.instance, order.increments)
        return facts.BlocksWritten(order.number)

    def _heads(self, order: orders.WriteHeads) -> Fact:
        versions = {group: version for group, version, _, _ in order.heads}
        tags = {group: (since, tag) for group, _, since, tag in order.heads}
        return facts.HeadsWritten(order.number, _there(self.checkpoints).write_heads(self.instance, versions, tags))

    def _trim_checkpoint(self, order: orders.TrimCheckpoint) -> None:
        _there(self.checkpoints).trim(order.group, order.version, order.base)


_CALLS: Final[dict[type, Callable[[Calls, Any], Fact | None]]] = {
    orders.OpenLog: Calls._open_log,
    orders.AppendRecord: Calls._append,
    orders.TrimLog: Calls._trim_log,
    orders.WriteMap: Calls._write_map,
    orders.WriteSpec: Calls._write_spec,
    orders.OpenCommits: Calls._open_commits,
    orders.RecoverSinks: Calls._recover_sinks,
    orders.KeepResults: Calls._keep,
    orders.StageResults: Calls._stage,
    orders.WriteCommit: Calls._commit,
    orders.FinishSinks: Calls._finish,
    orders.ReadCheckpoint: Calls._read,
    orders.WriteBlocks: Calls._blocks,
    orders.WriteHeads: Calls._heads,
    orders.TrimCheckpoint: Calls._trim_checkpoint,
}
STORE_ORDERS: Final = frozenset(_CALLS)
"""Orders that a store carries out."""


def _there(port: Port | None) -> Port:
    if port is None:
        raise Bug("a store was asked for that this process does not have")
    return port


def _receipt(sink: Sink, receipts: tuple[Receipt, ...]) -> Receipt | None:
    return next((receipt for receipt in receipts if receipt.sink == sink.name), None)
