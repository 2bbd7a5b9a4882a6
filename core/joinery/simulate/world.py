"""The whole service in one process: all machines under a virtual clock, with the faults of a schedule.

The world is the shell of every process: it hands facts to machines and carries out their orders, one after the other;
before each effect it asks whether a fault strikes here. Everything takes virtual time, drawn from the seed, so a run is
repeated exactly by its schedule.

Who is there is kept up as Kubernetes does it: a process that crashed, or was fenced although nobody replaced it, is
started again as a new instance. The run is over when the gateway has stopped because the query has ended; who is left
a while later (a worker that missed the news) is stopped.
"""

from collections import Counter
from functools import partial
from traceback import format_exception
from typing import Final

from joinery.join.plan import JoinPlan
from joinery.machine import facts, messages
from joinery.machine.operator import OperatorMachine
from joinery.model.ids import COLLECTOR, GATEWAY, OPERATOR, GroupId, Peer, WorkerId
from joinery.model.spec import JoinQuerySpec
from joinery.partition.map import PartitionMap
from joinery.simulate.hand import Hand, Wish, whole
from joinery.simulate.history import History
from joinery.simulate.machines import Machines
from joinery.simulate.outcome import Outcome
from joinery.simulate.patience import LOOK_NS, Patience
from joinery.simulate.process import Process, State
from joinery.simulate.reader import readers
from joinery.simulate.schedule import (
    MS,
    AddWorker,
    BreakConnection,
    Change,
    Crash,
    DrainLast,
    MoveGroup,
    Pause,
    Role,
    Schedule,
    Step,
    StoreDown,
    producer_peers,
)
from joinery.simulate.shell import Shell
from joinery.simulate.stores import Stores
from joinery.simulate.story import FAULT

GRACE_NS: Final = 300 * MS
"""How long processes may outlive the gateway of a query that has ended."""
MAX_EVENTS: Final = 300_000
"""A run with more is going round in circles."""
LAST_EVENTS: Final = 12
"""Events that are told with a failure."""
REAL: Final = Machines()

Slot = tuple[Role, int]
"""A role and its ordinal: what is kept up."""
_GATEWAY: Final[Slot] = (Role.GATEWAY, 0)
_COLLECTOR: Final[Slot] = (Role.COLLECTOR, 0)


def run(schedule: Schedule, machines: Machines = REAL) -> Outcome:
    """Let a schedule happen."""
    return World(schedule, machines).run()


class World:
    """All processes of one query."""

    max_events = MAX_EVENTS

    def __init__(self, schedule: Schedule, machines: Machines = REAL) -> None:
        self.schedule, self._machines = schedule, machines
        self.spec = JoinQuerySpec.parse(schedule.query)
        self._plan = JoinPlan.of(self.spec)
        sinks = tuple(f"sink-{number}" for number in range(max(1, len(self.spec.sinks))))
        self.stores = Stores(sinks, self.spec.results.retain)
        self._peers = producer_peers(schedule)
        sources = {
            peer: (script.stream, script.name) for peer, script in zip(self._peers, schedule.scripts, strict=True)
        }
        self.history = History(self.spec, self.stores, sources, schedule.retain_bytes)
        self.counts: Counter[str] = Counter()
        self.shell = Shell(
            schedule, self.stores, self.history, self.counts,
            on_fault=self._struck, on_stop=self._stopped, on_handled=self._handled,
        )  # fmt: skip
        self.timeline, self.network = self.shell.timeline, self.shell.network
        self._slots: dict[Slot, Process | None] = {}
        """Who is kept up; None: down, or not started yet."""
        self._instances: Counter[Slot] = Counter()
        self._done: dict[Slot, None] = {}
        """Workers and the collector that stopped because the query has ended."""
        self._draining: dict[WorkerId, Slot] = {}
        self._fed: Process | None = None
        self._spec_version = 0
        self._patience = Patience()
        operator = OperatorMachine(self.spec) if schedule.is_operated else None
        self._hand = Hand(self._is_moved, lambda: self.history.spec_version, self._emptied, operator, self._scale)
        if machines.gateway is REAL.gateway and schedule.seed % 2:
            self._hand.whole_of = partial(whole, self.spec)
        self._operator = Process(None, 0, "operator/1", OPERATOR, self._hand, schedule.seed, 0)
        self._readers = readers(schedule)
        self._plan_all()

    def _plan_all(self) -> None:
        at = self.timeline.at
        workers: list[Slot] = [(Role.WORKER, ordinal) for ordinal in range(self.schedule.workers)]
        for slot in [_GATEWAY, _COLLECTOR, *workers]:
            self._slots[slot] = None
            at(0, self._start, slot)
        for ordinal, script in enumerate(self.schedule.scripts):
            slot = (Role.PRODUCER, ordinal)
            self._slots[slot] = None
            at(script.batches[0].at_ns if script.batches else 0, self._start, slot)
            for batch in script.batches:
                at(batch.at_ns, self._due, slot)
        self.network.dial(self._operator, GATEWAY)
        for reader in self._readers:
            self.network.dial(reader, COLLECTOR)
        at(LOOK_NS, self._look)
        for step in self.schedule.steps:
            at(step.at_ns, self._step, step)
        for fault in self.schedule.faults:
            if isinstance(fault, BreakConnection | StoreDown):
                at(fault.at_ns, self._happen, fault)

    # --- the run

    def run(self) -> Outcome:
        """Until everybody has stopped, the deadline, or a failure."""
        stuck = failed = None
        try:
            deadline_ns = self.schedule.deadline_ns
            while self._slots and self.timeline.count < self.max_events and self.timeline.step(deadline_ns):
                pass
            if self._slots:
                stuck = self._who_is_left()
        except Exception as error:  # whatever a machine stumbles over is a finding
            failed = self._told(error)
        self.history.has_ended = failed is None and stuck is None
        commits = self.history.commits
        receipts = {receipt.sink: receipt for receipt in commits[-1].receipts} if commits else {}
        self.counts.update(
            delivered=self.history.deliveries.rows, records=len(self.history.records), commits=len(commits),
            moves=self.history.moves, events=self.timeline.count,
        )  # fmt: skip
        return Outcome(
            history=self.history,
            sinks={sink.name: sink.valid_parts(receipts.get(sink.name)) for sink in self.stores.sinks},
            story=self.shell.story,
            effects=self.shell.points.effects,
            counts=self.counts,
            virtual_ns=self.timeline.now,
            failed=failed,
            stuck=stuck,
        )

    def _look(self) -> None:
        gateway = self._slots.get(_GATEWAY)
        if gateway is not None:
            self._patience.look(gateway.machine, [*self._draining, *self._hand.leaving], self.timeline.now)
        self.timeline.after(LOOK_NS, self._look)

    def _who_is_left(self) -> str:
        left = [
            f"{role} {ordinal} down" if process is None else f"{process} {process.state.value}"
            for (role, ordinal), process in self._slots.items()
        ]
        return f"after {self.timeline.now / MS:.0f} ms and {self.timeline.count} events there are {', '.join(left)}"

    def _told(self, error: Exception) -> str:
        last = "\n".join(self.shell.story.tail(LAST_EVENTS))
        where = "".join(format_exception(error, limit=-4)).strip()
        return f"{self.shell.acting}: {type(error).__name__}: {error}\n{last}\n{where}"

    # --- processes come

    def _start(self, slot: Slot) -> None:
        if slot not in self._slots or (self._slots[slot] is not None and not self._is_replaced(slot)):
            return
        self._instances[slot] += 1
        process = self._make(slot, self._instances[slot])
        self._slots[slot] = process
        role = slot[0]
        if role in (Role.GATEWAY, Role.COLLECTOR):
            self.network.serve(process)
        if role is not Role.GATEWAY:
            self.network.dial(process, GATEWAY)
        if role is Role.WORKER:
            self.network.dial(process, COLLECTOR)
        self.shell.tell(process, facts.Started(process.instance))

    def _is_replaced(self, slot: Slot) -> bool:
        process = self._slots[slot]
        return process is not None and process.is_zombie

    def _make(self, slot: Slot, number: int) -> Process:
        (role, ordinal), peer = slot, self._peer_of(slot)
        machine = self._machines.of(role, ordinal, peer, self.spec, self.schedule)
        seed, jump_ns = self.schedule.seed, self.schedule.jump_ns
        process = Process(role, ordinal, f"{peer}/{number}", peer, machine, seed, self.timeline.now, jump_ns)
        if role is Role.WORKER:
            process.module = self._machines.module(self._plan)
        elif role is Role.COLLECTOR:
            process.sinks = tuple(sink.again() for sink in self.stores.sinks)
            process.retained = self.stores.retained.again()
        elif role is Role.PRODUCER and number == 1:
            process.offered = 0
        return process

    def _peer_of(self, slot: Slot) -> Peer:
        role, ordinal = slot
        if role is Role.PRODUCER:
            return self._peers[ordinal]
        return Peer(f"worker-{ordinal}") if role is Role.WORKER else GATEWAY if role is Role.GATEWAY else COLLECTOR

    def _is_current(self, process: Process) -> bool:
        return process.role is not None and self._slots.get((process.role, process.ordinal)) is process

    # --- processes go

    def _struck(self, process: Process, fault: Crash | Pause) -> None:
        """A fault of the schedule; `process.rest` are the orders that it interrupts."""
        effect = process.rest[0].effect.value
        slot = process.slot
        self._patience.disturbed(self.timeline.now + (fault.down_ns if isinstance(fault, Crash) else fault.for_ns))
        if isinstance(fault, Crash):
            self._note(process, f"CRASH before {effect}", "crashes")
            is_current = self._is_current(process)
            self._end(process, State.DEAD)
            if is_current:
                self._slots[slot] = None
                self.timeline.after(fault.down_ns, self._start, slot)
                if slot == _GATEWAY:
                    self.timeline.after(fault.down_ns, self._bring_back)
            return
        self._note(process, f"PAUSE before {effect}", "pauses")
        process.state = State.PAUSED
        self.timeline.after(fault.for_ns, self._resume, process)
        if fault.replaced_after_ns is not None:
            self.timeline.after(fault.replaced_after_ns, self._replace, process)

    def _end(self, process: Process, state: State) -> None:
        process.last_words = process.calling and state is State.DEAD and process.dice.draw() < 0.5
        process.state = state
        process.calls.clear()
        process.jobs.clear()
        process.answers.clear()
        process.held.clear()
        process.rest = ()
        self.network.leave(process, in_peace=state is State.STOPPED)

    def _resume(self, process: Process) -> None:
        if process.state is State.PAUSED:
            self._note(process, "GOES ON as a zombie" if process.is_zombie else "GOES ON", None)
            self.shell.resume(process)
            self._handled(process)

    def _replace(self, process: Process) -> None:
        if process.state is State.PAUSED and self._is_current(process):
            self._note(process, "IS REPLACED", "zombies")
            process.is_zombie = True
            self.network.abandon(process)
            self._start(process.slot)

    def _stopped(self, process: Process, because: str) -> None:
        """A machine is done."""
        is_current = self._is_current(process)
        fenced = isinstance(process.heard, facts.Fenced) or "is fenced" in because
        self._end(process, State.STOPPED)
        if process is self._operator or not is_current:
            return
        slot = process.slot
        if fenced:
            self._note(process, f"STOPS: {because}", "fenced")
            self._slots[slot] = None
            self.timeline.after(process.dice.between(self.schedule.timing.reconnect_ns), self._start, slot)
            return
        del self._slots[slot]
        if slot[0] in (Role.WORKER, Role.COLLECTOR):
            self._done[slot] = None
        elif slot == _GATEWAY:
            self.timeline.after(GRACE_NS, self._clear)

    def _bring_back(self) -> None:
        """The gateway is back before the query was over: whoever had stopped is needed again."""
        for slot in self._done:
            self._slots[slot] = None
            self.timeline.after(MS, self._start, slot)
        self._done.clear()

    def _clear(self) -> None:
        """The query is over; whoever is left is stopped."""
        for process in self._slots.values():
            if process is not None and process.is_alive:
                self._note(process, "IS STOPPED after the end", "left over")
                self._end(process, State.STOPPED)
        self._slots.clear()

    def _note(self, process: Process | None, text: str, count: str | None) -> None:
        self.shell.story.add(self.timeline.now, "world" if process is None else process.instance, FAULT, text)
        if count is not None:
            self.counts[count] += 1
            self._patience.disturbed(self.timeline.now)

    # --- what comes from outside

    def _handled(self, process: Process) -> None:
        """A machine has dealt with a fact: a producer may have room, the operator may have waited for a record."""
        if process.role is Role.PRODUCER:
            self._feed(process)
        if self.history.spec_version != self._spec_version:
            self._spec_version = self.history.spec_version
            self.shell.carry_out(self._operator, self._hand.go_on())

    def _due(self, slot: Slot) -> None:
        process = self._slots.get(slot)
        if process is not None:
            self._feed(process)

    def _feed(self, process: Process) -> None:
        """Offer what is due, as far as the producer has room; a new instance goes on where the log ends."""
        if self._fed is process:
            return
        machine, script = process.machine, self.schedule.scripts[process.ordinal]
        batches = script.again if script.again and process.number > 1 else script.batches
        if process.offered is None:
            process.offered = getattr(machine, "next_sequence", 0)
        self._fed = process
        while process.offered is not None and process.offered < len(batches) and process.state is State.RUNNING:
            batch = batches[process.offered]
            if batch.at_ns > self.timeline.now or not getattr(machine, "room", True):
                break
            process.offered += 1
            self.shell.tell(process, facts.Offered(batch.rows, batch.end))
        self._fed = None

    def _happen(self, fault: BreakConnection | StoreDown) -> None:
        if isinstance(fault, StoreDown):
            self._note(None, f"STORES DOWN for {fault.for_ns / MS:.0f} ms", "outages")
            self._patience.disturbed(self.timeline.now + fault.for_ns)
        elif self.network.cut_between(fault.one, fault.other):
            self._note(None, f"CONNECTION of {fault.one} and {fault.other} BREAKS", "breaks")

    def _step(self, step: Step) -> None:
        """What an operator does."""
        self._note(None, f"STEP {step}", None)
        workers = sorted(ordinal for role, ordinal in self._slots if role is Role.WORKER)
        match step:
            case AddWorker():
                free = next(ordinal for ordinal in range(len(workers) + 1) if ordinal not in workers)
                self._slots[Role.WORKER, free] = None
                self._done.pop((Role.WORKER, free), None)
                self._start((Role.WORKER, free))
            case DrainLast():
                staying = [ordinal for ordinal in workers if _worker(ordinal) not in self._draining]
                if len(staying) > 1:
                    self._draining[_worker(staying[-1])] = (Role.WORKER, staying[-1])
                    self._wish(messages.Drain((_worker(staying[-1]),)))
            case MoveGroup():
                if step.ordinal in workers:
                    self._wish(messages.MoveGroup(GroupId(step.group), _worker(step.ordinal)))
            case Change():
                self._wish(step.spec)

    def _wish(self, wish: Wish) -> None:
        self.shell.carry_out(self._operator, self._hand.wish(wish))

    def _is_moved(self, move: messages.MoveGroup) -> bool:
        stored = self.stores.log.read_map()
        return stored is not None and PartitionMap.from_dict(stored).owner(move.group) == move.to

    def _scale(self, replicas: int) -> None:
        """The operator's machine wants so many workers: the lowest ordinals."""
        self._note(None, f"SCALE to {replicas} workers", "scalings")
        for ordinal in [ordinal for role, ordinal in self._slots if role is Role.WORKER and ordinal >= replicas]:
            self.timeline.after(0, self._take_away, (Role.WORKER, ordinal))
        for ordinal in range(replicas):
            if (Role.WORKER, ordinal) not in self._slots and (Role.WORKER, ordinal) not in self._done:
                self._slots[Role.WORKER, ordinal] = None
                self.timeline.after(0, self._start, (Role.WORKER, ordinal))

    def _take_away(self, slot: Slot) -> None:
        process = self._slots.pop(slot, None)
        if process is not None:
            self._note(process, "IS TAKEN AWAY: it is empty", "drains")
            self._end(process, State.STOPPED)

    def _emptied(self, workers: tuple[WorkerId, ...]) -> None:
        """Drained workers are taken away."""
        for worker in workers:
            slot = self._draining.pop(worker, None)
            if slot is not None:
                self._take_away(slot)


def _worker(ordinal: int) -> WorkerId:
    return WorkerId(f"worker-{ordinal}")
