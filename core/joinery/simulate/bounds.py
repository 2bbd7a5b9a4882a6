"""Memory within its bounds: what each process may hold at most, looked at whenever it may have grown.

Rule 1: a worker holds messages up to its buffer and one more, or two of any size (`machine.workforce`, credits); kept
        results up to their limit, and those of one more batch.
Rule 2: a producer has at most `IN_FLIGHT` batches under way: sent in this session, neither acknowledged nor refused.
        Counted here by what it sends and hears, not by what it says.
Rule 3: so a gateway has at most `IN_FLIGHT` batches of a producer that are not recorded. It cuts no record while more
        than `MAX_UNSENT_BYTES` wait for workers, none with more than `MAX_RECORD_BYTES` and one batch, and keeps no
        record for replay that it has trimmed.
Rule 4: a collector holds rows that it took and has not committed, besides at most one unfinished message of each
        connection; and for subscribers at most `results.retain` bytes. What was taken is counted here by what came.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from joinery.machine import facts, gateway, intake, messages, orders
from joinery.machine.collector import CollectorMachine
from joinery.machine.facts import Fact
from joinery.machine.gateway import GatewayMachine
from joinery.machine.messages import Exchange, Results
from joinery.machine.producer import IN_FLIGHT
from joinery.machine.sessions import Key
from joinery.model.errors import require
from joinery.model.ids import Peer, RecordNo
from joinery.model.spec import JoinQuerySpec
from joinery.simulate.process import Process


@dataclass(slots=True)
class _Given:
    """What a worker was given at most at once."""

    message: int = 0
    results: int = 0
    batch: int = 0
    """Bytes of results of the batch that is being joined."""


@dataclass(slots=True)
class _Tally:
    """Rows that a collector took, by group and end of the batch, until they are committed."""

    rows: list[dict[RecordNo, int]]
    versions: list[int]
    coming: dict[Peer, list[Results]] = field(default_factory=dict)
    """The parts of each connection's newest message."""
    last: list[Results] = field(default_factory=list)
    """The message whose last part came last."""
    durable: list[RecordNo] = field(default_factory=list)
    """What the newest durable commit says."""


class Bounds:
    """Who holds how much."""

    def __init__(self, spec: JoinQuerySpec, retain_bytes: int) -> None:
        self._spec, self._retain_bytes = spec, retain_bytes
        self._given: dict[str, _Given] = {}
        self._under_way: dict[str, set[int]] = {}
        self._tallies: dict[str, _Tally] = {}

    # --- what comes and goes

    def received(self, process: Process, fact: facts.Received) -> None:
        """A message is about to be handed over."""
        message = fact.message
        if isinstance(message, Exchange):
            given = self._given.setdefault(process.instance, _Given())
            given.message = max(given.message, message.nbytes)
        elif isinstance(message, Results):
            tally = self._tally(process)
            parts = tally.coming.setdefault(fact.peer, [])
            if message.part == 0:
                parts.clear()
            parts.append(message)
            if message.last:
                tally.last = tally.coming.pop(fact.peer)
        elif isinstance(message, messages.Opened):
            self._under_way[process.instance] = set()
        elif isinstance(message, messages.Acknowledge):
            waiting = self._under_way.get(process.instance, set())
            waiting -= {sequence for sequence in waiting if sequence <= message.sequence}
        elif isinstance(message, messages.Refuse):
            self._under_way.get(process.instance, set()).discard(message.sequence or 0)

    def pushed(self, process: Process, push: messages.Push) -> None:
        """A producer sends a batch."""
        waiting = self._under_way.setdefault(process.instance, set())
        waiting.add(push.sequence)
        require(
            len(waiting) <= IN_FLIGHT,
            f"{process} has {len(waiting)} batches under way, at most {IN_FLIGHT} are allowed",
        )

    def joined(self, process: Process, fact: facts.BatchJoined) -> None:
        """A worker's module has made results."""
        given = self._given.setdefault(process.instance, _Given())
        given.batch += sum(part.rows.nbytes for part in fact.parts)
        given.results = max(given.results, given.batch)
        if fact.last:
            given.batch = 0

    def taken(self, process: Process, order: orders.Take) -> None:
        """A collector takes these groups of the message that came last."""
        tally = self._tally(process)
        if not tally.last:
            return
        rows: Counter[int] = Counter()
        for message in tally.last:
            for part in message.parts:
                rows.update(dict(enumerate(np.bincount(part.groups, minlength=self._spec.partitions).tolist())))
        last = tally.last[-1]
        versions = dict(zip(last.groups.tolist(), last.versions.tolist(), strict=True))
        for group in order.groups:
            if versions[group] > tally.versions[group]:
                tally.rows[group].clear()
                tally.versions[group] = versions[group]
            tally.rows[group][order.upto] = rows[group]
        self._collector(process)

    def committed(self, process: Process, commit: orders.WriteCommit) -> None:
        """A commit is durable; the collector lets go of its rows when it hears of it."""
        self._tally(process).durable = commit.commit.committed.tolist()

    def _heard(self, process: Process) -> None:
        tally = self._tally(process)
        for rows, upto in zip(tally.rows, tally.durable, strict=False):
            for end in [end for end in rows if end <= upto]:
                del rows[end]

    def _tally(self, process: Process) -> _Tally:
        groups = self._spec.partitions
        return self._tallies.setdefault(process.instance, _Tally([{} for _ in range(groups)], [0] * groups))

    # --- how much that is

    def after(self, process: Process, fact: Fact) -> None:
        """A machine has dealt with a fact: is it within its bounds?"""
        message = getattr(fact, "message", None)
        if isinstance(fact, facts.BatchJoined) or isinstance(message, Exchange):
            self._worker(process)
        elif isinstance(message, messages.Push):
            self._gateway(process)
        elif isinstance(fact, facts.CommitWritten):
            self._heard(process)
            self._collector(process)

    def _worker(self, process: Process) -> None:
        given, machine = self._given[process.instance], process.machine
        buffered, retained = getattr(machine, "buffered_bytes", 0), getattr(machine, "retained_bytes", 0)
        most = max(self._spec.worker.buffer, given.message) + given.message
        require(buffered <= most, f"{process} holds {buffered} bytes of messages, at most {most} are allowed")
        most = self._retain_bytes + given.results
        require(retained <= most, f"{process} keeps {retained} bytes of results, at most {most} are allowed")

    def _gateway(self, process: Process) -> None:
        for key, count in unrecorded(process.machine).items():
            require(
                count <= IN_FLIGHT,
                f"{process} has {count} unrecorded batches of {key}, at most {IN_FLIGHT} are allowed",
            )

    def cutting(self, process: Process, order: orders.AppendRecord) -> None:
        """A gateway is about to write a record."""
        most = gateway.MAX_UNSENT_BYTES
        unsent = unsent_bytes(process.machine)
        require(unsent <= most, f"{process} cuts record {order.number} while {unsent} bytes wait, more than {most}")
        most = intake.MAX_RECORD_BYTES + max((batch.rows.nbytes for batch in order.record.batches), default=0)
        found = order.record.nbytes
        require(found <= most, f"record {order.number} has {found} bytes, at most {most} are allowed")

    def trimmed(self, process: Process, order: orders.TrimLog) -> None:
        """A gateway has dropped records from its log: from its memory too?"""
        backlog, wanted = getattr(process.machine, "backlog", None), order.head.next_record
        first = wanted if backlog is None else backlog.first
        require(first >= wanted, f"{process} keeps rows from record {first} on, although those to {wanted} are trimmed")

    def _collector(self, process: Process) -> None:
        machine = process.machine
        held, most = held_rows(machine), sum(sum(rows.values()) for rows in self._tally(process).rows)
        require(held <= most, f"{process} holds {held} rows, but took and did not commit {most}")
        kept, most = kept_bytes(machine), self._spec.results.retain
        require(kept <= most, f"{process} keeps {kept} bytes for subscribers, at most {most} are allowed")


# --- looking into machines; tests of the world put others in their place, which hold nothing


def unrecorded(machine: Any) -> Counter[Key]:
    """How many batches of each producer a gateway has and are not durable."""
    if not isinstance(machine, GatewayMachine):
        return Counter()
    cut = machine._appending
    return Counter(one.key for one in machine.intake.sessions.waiting) + Counter(
        key for key, _ in (cut.acknowledge if cut is not None else ())
    )


def unsent_bytes(machine: Any) -> int:
    """Bytes that wait for workers."""
    return machine.serving.unsent_bytes(machine.backlog) if isinstance(machine, GatewayMachine) else 0


def held_rows(machine: Any) -> int:
    """Rows that a collector took and has not committed."""
    if not isinstance(machine, CollectorMachine):
        return 0
    drafted = machine._under_way.draft.parts if machine._under_way is not None else ()
    return machine._output.rows + sum(part.times.size for part in drafted)


def kept_bytes(machine: Any) -> int:
    """Bytes that a collector keeps for subscribers."""
    if not isinstance(machine, CollectorMachine) or machine._subscriptions is None:
        return 0
    return machine._subscriptions._nbytes
