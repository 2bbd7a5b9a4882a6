"""Station 4 of 8, worker: the bounded buffer, who owns what, results until they are committed, checkpoints.

Rule 1: a group is here under a map version. What was begun for it under an older version (a load, a batch in the
        buffer, an increment under way) is dropped when the version rises.
Rule 2: an assigned group is loaded at its newest tag <= committed(group), joins up to committed(group) in silence,
        then emits; its first results start exactly where the collector's committed ones end.
Rule 3: results are kept until they are committed, as a bounded cache (`machine.retention`). A full cache never stops
        a worker whose collector is there; without a collector the worker waits, because all of it would be made again.
Rule 4: a checkpoint is increments, then heads under the owner's map version; one at a time. A refused head means that
        the group has another owner.
Rule 5: a damaged checkpoint is told to the gateway, again whenever it is there anew (`machine.loading`).
Rule 6: messages of a lower gateway or collector term are ignored.
"""

from collections import deque
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from joinery.join.plan import JoinPlan
from joinery.machine import facts, messages, orders
from joinery.machine.buffering import Waiting
from joinery.machine.checkpointing import Checkpointing
from joinery.machine.choosing import loud_results, only_groups
from joinery.machine.deferring import Deferred
from joinery.machine.facts import Fact
from joinery.machine.loading import Loading
from joinery.machine.log import BEFORE_ALL, SpecChange
from joinery.machine.messages import Exchange, Holdings
from joinery.machine.orders import Order, Send
from joinery.machine.reporting import Meter
from joinery.machine.retention import Retention
from joinery.model.errors import Bug, require
from joinery.model.ids import COLLECTOR, GATEWAY, GroupId, MapVersion, RecordNo, Term, WorkerId
from joinery.model.spec import JoinQuerySpec

RETAINED_BYTES: Final = 32 << 20
"""How many bytes of results are kept for a new collector."""
NOBODY: Final = 0
"""The map version of a group that is not here."""
_Instruction: TypeAlias = (
    messages.Assign | messages.Release | Exchange | messages.Trim | messages.CheckpointNow | messages.Preload
)


class WorkerMachine:
    """Decides what a worker does; its join module (`machine.join_module`) does it."""

    def __init__(self, spec: JoinQuerySpec, worker: WorkerId, retain_bytes: int = RETAINED_BYTES) -> None:
        self.spec, self.worker, self.instance = spec, worker, ""
        self.gateway_term, self.collector_term = Term(0), Term(0)
        self.gateway_up = self.collector_ready = self.collector_up = False
        self.versions = np.full(spec.partitions, NOBODY, np.int64)
        """Under which map version each group is here, or is being loaded."""
        self.here = np.zeros(spec.partitions, np.bool_)
        """Loaded: batches may come."""
        self.received = np.full(spec.partitions, BEFORE_ALL, np.int64)
        self.silent = np.full(spec.partitions, BEFORE_ALL, np.int64)
        self.seen = np.full(spec.partitions, BEFORE_ALL, np.int64)
        self.changes: tuple[SpecChange, ...] = ()
        self.retention = Retention(spec.partitions, retain_bytes)
        self.loading = Loading()
        self.checkpointing = Checkpointing(spec)
        self.meter = Meter(spec, worker)
        self.clock_ahead_ns = 0
        """How far this worker's clock is ahead of the gateway's, as the gateway found."""
        self.lost: set[GroupId] = set()
        """Groups whose results a collector asked for in vain; told to the gateway until it gives them a new version."""
        self.deferred = Deferred(spec)
        self._buffer: deque[Waiting] = deque()
        self._joining: Waiting | None = None
        self._heartbeat_ns = spec.epochs.reorganization // 4
        self._checkpoint_at = self._report_at = self._now_ns = 0

    @property
    def buffered_bytes(self) -> int:
        """Bytes of messages that are not joined yet."""
        return sum(waiting.nbytes for waiting in self._pending())

    @property
    def retained_bytes(self) -> int:
        """Bytes of results that are kept until they are committed."""
        return self.retention.nbytes

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:
        """What to do about a fact."""
        self._now_ns = now_ns
        match fact:
            case facts.Started():
                return self._start(fact.instance, now_ns)
            case facts.Tick():
                return self._tick(now_ns)
            case facts.Connected():
                return self._connected(fact.peer)
            case facts.Disconnected():
                return self._disconnected(fact.peer)
            case facts.Received():
                return self._received(fact.message, now_ns)
            case facts.CheckpointRead():
                return self._checkpoint_read(fact)
            case facts.ClaimRefused():
                return self._leave([fact.group]) if self.versions[fact.group] == fact.version else []
            case facts.GroupPrepared():
                return self.loading.next_piece(fact) or self._prepared(fact.group, fact.tag)
            case facts.GroupRestored():
                return self._restored(fact)
            case facts.BatchJoined():
                return self._joined(fact, now_ns)
            case facts.BatchTaken():
                return self._taken(fact, now_ns)
            case facts.TableWanted() | facts.TableRead():
                return self.deferred.handle(fact, now_ns)
            case facts.IncrementsTaken():
                return self.checkpointing.taken(fact.increments, self.versions, now_ns)
            case facts.BlocksWritten():
                return self.checkpointing.blocks_written(fact.number, self.versions, now_ns)
            case facts.HeadsWritten():
                return self._heads_written(fact, now_ns)
            case facts.StateMeasured():
                self.deferred.waiting_rows = fact.waiting_rows
                return self._to_gateway(messages.Load(self.meter.report(fact, now_ns)))
            case _:
                raise Bug(f"a worker cannot use {type(fact).__name__}")

    # --- clock and connections

    def _start(self, instance: str, now_ns: int) -> list[Order]:
        self.instance = instance
        self._checkpoint_at = now_ns + self.spec.checkpoint.interval
        self._report_at = now_ns + self.spec.epochs.reorganization
        self.meter.begin(now_ns)
        return [orders.WakeAt(now_ns + self._heartbeat_ns)]

    def _retune(self, message: messages.SpecNow, now_ns: int) -> list[Order]:
        """Other settings; windows come with the batches. Who waited for a long epoch's end looks now."""
        if message.term < self.gateway_term:
            return []
        self.spec = self.meter.spec = message.spec
        self._heartbeat_ns = self.spec.epochs.reorganization // 4
        return [orders.TuneJoin(JoinPlan.theta_of(self.spec)), *self._tick(now_ns)]

    def _tick(self, now_ns: int) -> list[Order]:
        made: list[Order] = self._to_gateway(messages.Alive())
        self._report_at = min(self._report_at, now_ns + self.spec.epochs.reorganization)  # the clock may be set back
        self._checkpoint_at = min(self._checkpoint_at, now_ns + self.spec.checkpoint.interval)
        if now_ns >= self._report_at:
            self._report_at = now_ns + self.spec.epochs.reorganization
            made += self.meter.measure()
        if now_ns >= self._checkpoint_at:
            self._checkpoint_at = now_ns + self.spec.checkpoint.interval
            made += self.checkpointing.begin(self._groups_here(), self.versions, now_ns)
        made += self.deferred.look(now_ns)
        wishes = (now_ns + self._heartbeat_ns, self._checkpoint_at, self._report_at, self.deferred.next_ns)
        return [*made, orders.WakeAt(min(wishes))]

    def _connected(self, peer: str) -> list[Order]:
        hello = messages.WorkerHello(
            self.worker, self.instance, self._holdings(np.flatnonzero(self.here)), self.buffered_bytes,
            len(self._pending()),
        )  # fmt: skip
        if peer == GATEWAY:
            self.gateway_up = True
            damages = self.loading.damages(self._groups_here())
            return [Send(GATEWAY, hello), *self._tell_lost(), *(Send(GATEWAY, damage) for damage in damages)]
        self.collector_up, self.collector_ready = True, False
        return [Send(COLLECTOR, hello)]

    def _disconnected(self, peer: str) -> list[Order]:
        self.gateway_up &= peer != GATEWAY
        if peer != GATEWAY:
            self.collector_up = self.collector_ready = False
        return []

    def _holdings(self, groups: NDArray[np.intp]) -> Holdings:
        tags = np.array([self.checkpointing.tag_of(GroupId(int(group))) for group in groups], np.int64)
        return Holdings(
            groups.astype(np.int64), self.versions[groups], tags, self.received[groups], self.silent[groups],
            self.seen[groups],
        )  # fmt: skip

    def _to_gateway(self, message: messages.Message) -> list[Order]:
        return [Send(GATEWAY, message)] if self.gateway_up else []

    def _groups_here(self) -> list[GroupId]:
        return [GroupId(int(group)) for group in np.flatnonzero(self.here)]

    # --- messages

    def _received(self, message: messages.Message, now_ns: int) -> list[Order]:
        match message:
            case messages.Ping():
                self.clock_ahead_ns = message.ahead_ns
                return self._to_gateway(messages.Pong(message.sent_ns, now_ns))
            case messages.Committed() | messages.Resume():
                if message.term < self.collector_term:
                    return []
                self.collector_term = message.term
                return self._resume(message) if isinstance(message, messages.Resume) else self._committed(message)
            case messages.Finished():
                return [orders.Stop("the query has ended")]
            case messages.SpecNow():
                return self._retune(message, now_ns)
            case _ if isinstance(message, _Instruction):
                if message.term < self.gateway_term:
                    return []
                self.gateway_term = message.term
                return self._from_gateway(message, now_ns)
            case _:
                raise Bug(f"a worker cannot use {type(message).__name__}")

    def _from_gateway(self, message: _Instruction, now_ns: int) -> list[Order]:
        groups = [GroupId(int(group)) for group in message.groups]
        match message:
            case messages.Assign():
                return self._assign(message)
            case messages.Release():
                return self._leave(groups)
            case messages.Exchange():
                return self._exchange(message, now_ns)
            case messages.Trim():
                return self._trim(message)
            case messages.CheckpointNow():
                here = [group for group in groups if self.here[group]]
                return self.checkpointing.now(here, self.versions, now_ns, whole=message.whole)
            case messages.Preload():
                return self.loading.preload([group for group in groups if not self.versions[group]])

    # --- groups come and go

    def _assign(self, message: messages.Assign) -> list[Order]:
        self.changes = max(self.changes, message.changes, key=len)
        made: list[Order] = []
        columns = (message.groups, message.versions, message.silent, message.seen)
        for number, version, silent, seen in zip(*(column.tolist() for column in columns), strict=True):
            group = GroupId(number)
            if version <= self.versions[group]:
                continue
            made += self._leave([group], keep_preload=True)
            self.versions[group], self.silent[group], self.seen[group] = version, silent, seen
            made += self.loading.claim(group, MapVersion(version))
        return made

    def _leave(self, groups: list[GroupId], *, keep_preload: bool = False) -> list[Order]:
        """Forget these groups, with all that is under way for them."""
        held = [group for group in groups if self.here[group]]
        if not keep_preload:
            held += [group for group in groups if group in self.loading.prepared and not self.here[group]]
        for group in groups:
            self.versions[group], self.here[group], self.received[group] = NOBODY, False, BEFORE_ALL
            self.lost.discard(group)
            self.checkpointing.leave(group)
            if not keep_preload:
                self.loading.forget(group)
        return [orders.DropGroups(tuple(held))] if held else []

    def _checkpoint_read(self, fact: facts.CheckpointRead) -> list[Order]:
        if fact.version is None:
            has_more = self.loading.has_more(fact.group)
            if self.versions[fact.group]:
                return []
            made = self._preloaded(fact)
            return made + (self.loading.preload([fact.group]) if has_more else [])
        if self.versions[fact.group] != fact.version or self.here[fact.group]:
            return []
        return [self.loading.restore(fact, RecordNo(int(self.silent[fact.group])), self.changes)]

    def _preloaded(self, fact: facts.CheckpointRead) -> list[Order]:
        tag = self.loading.preloaded(fact.group, fact.chain)
        if tag is None:
            return self.loading.preload([fact.group])
        if isinstance(tag, messages.CheckpointDamaged):
            return self._leave([fact.group]) + self._to_gateway(tag)
        prepare = self.loading.prepare(fact.group, self.changes)
        return [prepare] if prepare is not None else self._prepared(fact.group, tag)

    def _prepared(self, group: GroupId, tag: RecordNo) -> list[Order]:
        """What the gateway waits for before it hands the group over; unless it has done so, or has changed its mind."""
        if self.versions[group] or not self.loading.knows(group) or group in self.loading.preparing:
            return []
        return self._to_gateway(messages.Preloaded(np.array([group], np.int64), np.array([tag], np.int64)))

    def _restored(self, fact: facts.GroupRestored) -> list[Order]:
        group = fact.group
        if self.versions[group] != fact.version:
            return [] if self.versions[group] else [orders.DropGroups((group,))]
        self.here[group], self.received[group] = True, fact.tag
        self.checkpointing.loaded(group, fact.tag, self.loading.ages(group))
        self.retention.begin(group, fact.version, RecordNo(int(self.silent[group])))
        made = [order for damage in self.loading.damages([group]) for order in self._to_gateway(damage)]
        return made + self._to_gateway(messages.Holding(self._holdings(np.array([group]))))

    # --- batches

    def _exchange(self, exchange: Exchange, now_ns: int) -> list[Order]:
        self.changes = max(self.changes, exchange.changes, key=len)
        self.meter.arrived(self.buffered_bytes, exchange.slot_ns, now_ns - self.clock_ahead_ns)
        self.meter.has_work(True, now_ns)
        groups = exchange.groups
        known = self.here[groups]
        fits = (self.received[groups] == exchange.after) | ~known
        require(bool(fits.all()), f"batch after {exchange.after[~fits]}, received {self.received[groups][~fits]}")
        self.received[groups[known]] = exchange.upto
        self._buffer.append(Waiting(exchange, np.where(known, self.versions[groups], NOBODY), exchange.nbytes))
        return self._next()

    def _pending(self) -> list[Waiting]:
        return [*([self._joining] if self._joining else []), *self._buffer]

    def _may_join(self) -> bool:
        return self._joining is None and bool(self._buffer) and (self.collector_ready or not self.retention.is_full)

    def _next(self) -> list[Order]:
        """Join the next message, without the groups that have left since it came."""
        made: list[Order] = []
        while self._may_join():
            waiting = self._buffer.popleft()
            exchange, versions = waiting.exchange, waiting.versions
            keep = self.here[exchange.groups] & (versions == self.versions[exchange.groups]) & (versions != NOBODY)
            if not keep.any():
                made += self._to_gateway(messages.Credit(waiting.nbytes))
                continue
            chosen = exchange if keep.all() else only_groups(exchange, keep, self.spec.partitions)
            loud = chosen.upto > self.silent[chosen.groups]
            self._joining = Waiting(chosen, versions[keep], waiting.nbytes, loud)
            made.append(orders.JoinBatch(chosen, self._now_ns, sum(one.nbytes for one in self._buffer)))
        return made

    def _joined(self, fact: facts.BatchJoined, now_ns: int) -> list[Order]:
        waiting = self.deferred.first_of(self._joining)
        made = self._emit(waiting, fact, now_ns)
        waiting.part += 1
        if fact.last and waiting is self.deferred.oldest:
            self.deferred.told(waiting)
        elif fact.last:
            made += self._go_on(waiting, fact, now_ns)
        return made

    def _taken(self, fact: facts.BatchTaken, now_ns: int) -> list[Order]:
        """Some rows of the message wait for segments: the next one need not."""
        return self._go_on(self.deferred.add(self._joining), fact, now_ns)

    def _go_on(self, waiting: Waiting, fact: facts.BatchJoined | facts.BatchTaken, now_ns: int) -> list[Order]:
        """A message has left the buffer."""
        self._joining = None
        self.meter.joined(waiting.exchange, fact, waiting.nbytes)
        made = self._to_gateway(messages.Credit(waiting.nbytes)) + self._next()
        self.meter.has_work(self._joining is not None or bool(self._buffer), now_ns)
        return made + (self.meter.measure() if self.meter.is_urgent else [])

    def _emit(self, waiting: Waiting, fact: facts.BatchJoined, now_ns: int) -> list[Order]:
        """Results of the groups that are past their silence; the collector refuses those of a group that left since."""
        results = loud_results(waiting, fact, self.spec.partitions, now_ns - self.clock_ahead_ns)
        if results is None:
            return []
        self.retention.keep(results, may_drop=self.collector_ready)
        return [orders.Emit(COLLECTOR, results)] if self.collector_ready else []

    # --- collector

    def _resume(self, message: messages.Resume) -> list[Order]:
        """A collector, perhaps a new one, says what it has: send the rest, or say that it is lost."""
        self.collector_ready = True
        again, lost = self.retention.after(message.taken, self.versions, self.here)
        self.lost |= lost
        made: list[Order] = [orders.Emit(COLLECTOR, results) for results in again]
        return [*made, *self._tell_lost(), *self._next()]

    def _tell_lost(self) -> list[Order]:
        if not self.lost:
            return []
        groups = np.array(sorted(self.lost), np.int64)
        return self._to_gateway(messages.ResultsLost(groups, self.versions[groups]))

    def _committed(self, message: messages.Committed) -> list[Order]:
        self.retention.committed(message.groups, message.upto)
        return self._next()

    # --- checkpoints

    def _heads_written(self, fact: facts.HeadsWritten, now_ns: int) -> list[Order]:
        stale, made = self.checkpointing.heads_written(fact, self.versions, now_ns)
        return self._leave(stale) + made

    def _trim(self, message: messages.Trim) -> list[Order]:
        made: list[Order] = []
        for group, tag in zip(message.groups.tolist(), message.tags.tolist(), strict=True):
            if self.here[group]:
                version = MapVersion(int(self.versions[group]))
                made += self.checkpointing.trim(GroupId(group), version, RecordNo(tag), self.changes)
        return made

    def check_invariants(self) -> None:
        """Stop with a `Bug` if the machine's state contradicts itself."""
        require(not (self.here & (self.versions == NOBODY)).any(), "a group is here without a version")
        require(self.retention.nbytes >= 0, "fewer than no bytes are kept")
