"""What is checked on every run, without the oracle: the first comparison of docs/design.md §2, and invariants.

Comparison 1: what producers sent and got acknowledged is what was recorded, each batch once, nothing else; of a run
that ended, all that was sent.

Invariants, looked at when it happens, so that a story ends where things went wrong:
 1. an acknowledged batch is in the log when the acknowledgement is sent;
 2. watermarks in the log never go back, records have no gaps;
 3. a map version gives a group one owner; only one instance emits under it, and only after the map was written;
 4. a group's batches are taken without gaps, from what is committed on when its owner changes; commits only grow, and
    hold nothing that was not taken, and say how many rows there are of all of them;
 5. nobody is told to trim beyond what is committed, and after every write the stores hold what a recovery of any group
    would need: a checkpoint at a tag <= committed(group), and the records after it (`recovery`);
 6. every process holds no more than it may (`bounds`);
 7. no well-behaved producer is refused (`refusals`), and a subscriber sees each committed row once (`deliveries`).
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from joinery.machine import facts, messages, orders
from joinery.machine.facts import Fact
from joinery.machine.log import LoggedBatch, Record
from joinery.machine.messages import Acknowledge, Push, Results
from joinery.machine.orders import Order
from joinery.machine.ports import Commit
from joinery.model.errors import require
from joinery.model.ids import GroupId, Peer, RecordNo, Term
from joinery.model.spec import JoinQuerySpec
from joinery.simulate.bounds import Bounds
from joinery.simulate.deliveries import Deliveries
from joinery.simulate.network import caller
from joinery.simulate.process import Process
from joinery.simulate.recovery import Recovery
from joinery.simulate.refusals import Refusals, Source
from joinery.simulate.schedule import Role
from joinery.simulate.stores import Stores


class History:
    """Everything durable that ever was, and whether it may be so."""

    def __init__(
        self, spec: JoinQuerySpec, stores: Stores, sources: dict[Peer, Source], retain_bytes: int = 1 << 25
    ) -> None:
        self.records: dict[RecordNo, Record] = {}
        """Every record that was ever appended, also those that were trimmed."""
        self.commits: list[Commit] = []
        self.spec_version = 0
        self.moves = 0
        """Groups that got another worker."""
        self.has_ended = False
        self._spec, self._stores, self._sources = spec, stores, sources
        self.refusals = Refusals(sources)
        self._sent: dict[tuple[Source, int], dict[int, Push]] = {}
        """By checksum: a producer that was started again may have other rows."""
        self._sums: dict[tuple[str, int], int] = {}
        """Checksums by the instance that sent them, and sequence."""
        self._recorded: dict[tuple[Source, int], RecordNo] = {}
        self._acknowledged: set[tuple[Source, int]] = set()
        self._owner: dict[tuple[int, int], str] = {}
        """Worker by group and version, as the maps say."""
        self._emitter: dict[tuple[int, int], str] = {}
        """Instance by group and version."""
        self._map_version = 0
        self._owners: list[str] = []
        """Worker by group, as the last map says."""
        self._takes: dict[str, Takes] = {}
        self._collectors: dict[str, Term] = {}
        """The term of each collector, as the store gave it."""
        self.bounds = Bounds(spec, retain_bytes)
        self.deliveries = Deliveries()
        self.recovery = Recovery(spec.partitions, stores)

    # --- what is shown to it

    def saw(self, process: Process, thing: Fact | Order) -> None:
        """A fact has reached a process, or it carries out an order."""
        look = _SEEN.get(type(thing))
        if look is not None:
            look(self, process, thing)

    def stored(self, process: Process, order: Order, answer: Fact | None) -> None:
        """A call was carried out by a store."""
        if isinstance(answer, facts.CollectorOpened):
            self._collectors[process.instance] = answer.term
        if not isinstance(answer, facts.Fenced | facts.ClaimRefused):
            look = _STORED.get(type(order))
            if look is not None:
                look(self, process, order)

    # --- producers

    def _send(self, process: Process, order: orders.Send) -> None:
        message = order.message
        if isinstance(message, Push):
            key = (self._sources[process.peer], message.sequence)
            earlier = self._sums.setdefault((process.instance, message.sequence), message.checksum)
            require(earlier == message.checksum, f"{key} was sent twice with different rows")
            self._sent.setdefault(key, {}).setdefault(message.checksum, message)
            self.bounds.pushed(process, message)
        elif isinstance(message, messages.Trim):
            self.recovery.check_trim(message.groups.tolist(), message.tags.tolist())
        elif process.role is Role.GATEWAY:
            self.refusals.sent(process, order)

    def _acknowledge(self, process: Process, order: orders.SendAcknowledge) -> None:
        del process
        key = (self._sources[caller(order.to)], order.message.sequence)
        require(key in self._recorded, f"{key} is acknowledged, but not in the log")
        number = order.message.record
        require(number in (None, self._recorded[key]), f"{key} is in record {self._recorded[key]}, not in {number}")

    def _received(self, process: Process, fact: facts.Received) -> None:
        message = fact.message
        if isinstance(message, Acknowledge) and process.peer in self._sources:
            self._acknowledged.add((self._sources[process.peer], message.sequence))
        elif isinstance(message, Results) and message.last:
            self._takes_of(process).coming = message
        if process.role is Role.GATEWAY:
            self.refusals.received(process, fact)
        elif isinstance(message, messages.Delivery | messages.TokenTooOld):
            self.deliveries.received(process, message)
        self.bounds.received(process, fact)

    # --- the log and the map

    def _appended(self, process: Process, order: orders.AppendRecord) -> None:
        if order.number in self.records:
            require(self.records[order.number] is order.record, f"record {order.number} was written twice")
            return
        require(order.number == len(self.records), f"record {order.number} follows {len(self.records) - 1}")
        before = self.records[RecordNo(order.number - 1)].watermarks if order.number else order.record.watermarks
        pairs = zip(before, order.record.watermarks, strict=True)
        require(all(old <= new for old, new in pairs), f"watermarks go back in record {order.number}")
        self.records[order.number] = order.record
        for change in order.record.changes():
            self.spec_version = change.version
        for batch in order.record.batches:
            self._check_batch(order.number, batch)
        self.refusals.appended(process, order)

    def _check_batch(self, number: RecordNo, batch: LoggedBatch) -> None:
        key = (self.refusals.source(batch.stream, batch.producer), batch.sequence)
        require(key not in self._recorded, f"{key} is in record {self._recorded.get(key)} and in {number}")
        require(key in self._sent, f"{key} is in record {number}, but nobody sent it")
        sent = self._sent[key].get(batch.checksum)
        same = sent is not None and sent.next_sequence == batch.next_sequence and _same_rows(sent.rows, batch.rows)
        require(same, f"{key} is not recorded as it was sent")
        self._recorded[key] = number

    def _map_written(self, process: Process, order: orders.WriteMap) -> None:
        del process
        stored = order.map
        require(stored["version"] >= self._map_version, f"the map goes back to version {stored['version']}")
        owners = [stored["workers"][place] for place in stored["owners"]]
        for group, (worker, version) in enumerate(zip(owners, stored["terms"], strict=True)):
            owner = self._owner.setdefault((group, version), worker)
            require(owner == worker, f"group {group} has two owners under version {version}: {owner} and {worker}")
        self.moves += sum(old != new for old, new in zip(self._owners, owners, strict=False))
        self._map_version, self._owners = stored["version"], owners

    # --- results

    def _emit(self, process: Process, order: orders.Emit) -> None:
        pairs = zip(order.message.groups.tolist(), order.message.versions.tolist(), strict=True)
        for group, version in pairs:
            wanted = self._owner.get((group, version))
            emitter = self._emitter.setdefault((group, version), process.instance)
            require(wanted == process.peer, f"{process} emits for group {group} version {version}, owner is {wanted}")
            require(emitter == process.instance, f"{process} and {emitter} emit for group {group} version {version}")

    def _takes_of(self, process: Process) -> "Takes":
        found = self._takes.get(process.instance)
        if found is None:
            found = self._takes[process.instance] = Takes(self.recovery.committed)
        return found

    def _opened(self, process: Process, fact: facts.CollectorOpened) -> None:
        del fact
        self._takes.pop(process.instance, None)
        self._takes_of(process)

    def _take(self, process: Process, order: orders.Take) -> None:
        """A collector whose term was overtaken is not asked: it goes by an old vector, and can commit nothing."""
        self.bounds.taken(process, order)
        if self._collectors.get(process.instance) == max(self._collectors.values()):
            self._takes_of(process).take(order, self.recovery.committed)

    def _committed(self, process: Process, order: orders.WriteCommit) -> None:
        commit = order.commit
        if self.commits and commit is self.commits[-1]:
            return
        require(commit.number == len(self.commits) + 1, f"commit {commit.number} follows {len(self.commits)}")
        takes = self._takes_of(process)
        for group, (old, new) in enumerate(zip(self.recovery.committed, commit.committed.tolist(), strict=True)):
            require(old <= new, f"commit {commit.number} takes group {group} back from {old} to {new}")
            if old < new and self._spec.output.order == "none":
                ends = takes.ends[group]
                require(new in ends, f"commit {commit.number} has group {group} up to {new}, taken were {ends}")
            require(new <= takes.taken[group], f"commit {commit.number}: group {group} up to {new} was never taken")
        self.commits.append(commit)
        self.bounds.committed(process, order)
        self.deliveries.committed(process, commit.number)
        counted = self.deliveries.totals
        require(commit.totals == counted, f"commit {commit.number} counts {commit.totals}, there are {counted}")
        self.recovery.committed = commit.committed.tolist()

    # --- comparison 1

    def complaints(self) -> list[str]:
        """What of the first comparison does not hold."""
        lost = sorted(self._acknowledged - self._recorded.keys())
        missing = sorted(self._sent.keys() - self._recorded.keys()) if self.has_ended else []
        missing = [key for key in missing if not self.refusals.is_excused(key[0])]
        found = [f"{key} was acknowledged and is not recorded" for key in lost]
        found += [f"{key} was sent and is not recorded" for key in missing]
        for sink in self._stores.sinks:
            if self.has_ended and sink.shelf.finished is None:
                found.append(f"{sink.name} was not finished")
        return found


class Takes:
    """What one collector has taken."""

    def __init__(self, committed: list[RecordNo]) -> None:
        self.taken = list(committed)
        self.ends: list[set[int]] = [set() for _ in committed]
        self.coming: Results | None = None
        """The message whose last part came last."""
        self._versions = [0] * len(committed)

    def take(self, order: orders.Take, committed: list[RecordNo]) -> None:
        """These groups of the message that came last are taken."""
        message = self.coming
        if message is None or message.upto != order.upto:
            require(False, f"groups {order.groups} were taken up to {order.upto}, which is in no message")
            return
        columns = (message.groups.tolist(), message.after.tolist(), message.versions.tolist())
        of = {group: (after, version) for group, after, version in zip(*columns, strict=True)}
        for group in order.groups:
            self._take_group(group, *of[group], order.upto, committed)

    def _take_group(self, group: GroupId, after: int, version: int, upto: RecordNo, committed: list[RecordNo]) -> None:
        known = self._versions[group]
        require(version >= known, f"group {group} was taken under version {version} after {known}")
        wanted = self.taken[group] if version == known else committed[group]
        require(after == wanted, f"group {group} ({after}, {upto}] was taken under version {version} after {wanted}")
        self._versions[group], self.taken[group] = version, upto
        self.ends[group].add(upto)


def _same_rows(sent: pa.RecordBatch, recorded: pa.RecordBatch) -> bool:
    """Whether these are the same rows; a record has its columns ordered by name, in the types of the stream."""
    if sent.num_rows == 0 or sent.num_rows != recorded.num_rows:
        return bool(sent.num_rows == recorded.num_rows)
    return all(
        bool(sent.column(name).cast(column.type).equals(column))
        for name, column in zip(recorded.schema.names, recorded.columns, strict=True)
    )


def _at_store(name: str) -> Callable[[History, Process, Any], None]:
    def look(history: History, process: Process, order: Any) -> None:
        del process
        getattr(history.recovery, name)(order)

    return look


def _staged(history: History, process: Process, order: orders.StageResults) -> None:
    history.deliveries.staged(process, order)


def _of_bounds(name: str) -> Callable[[History, Process, Any], None]:
    def look(history: History, process: Process, thing: Any) -> None:
        getattr(history.bounds, name)(process, thing)

    return look


_SEEN: dict[type, Callable[[History, Process, Any], None]] = {
    orders.Send: History._send,
    orders.SendAcknowledge: History._acknowledge,
    orders.Emit: History._emit,
    orders.Take: History._take,
    orders.StageResults: _staged,
    facts.Received: History._received,
    facts.CollectorOpened: History._opened,
    facts.BatchJoined: _of_bounds("joined"),
    orders.AppendRecord: _of_bounds("cutting"),
    orders.TrimLog: _of_bounds("trimmed"),
}
_STORED: dict[type, Callable[[History, Process, Any], None]] = {
    orders.AppendRecord: History._appended,
    orders.WriteMap: History._map_written,
    orders.WriteCommit: History._committed,
    orders.TrimLog: _at_store("log_trimmed"),
    orders.WriteHeads: _at_store("heads_written"),
    orders.TrimCheckpoint: _at_store("checkpoint_trimmed"),
}
