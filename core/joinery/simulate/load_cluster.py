"""The simulated cluster: workers, partition map, slots and moves, under a virtual clock.

Time goes from slot to slot of the real `SlotSchedule`. What happens between two slots (a worker becomes Ready, a move
ends) takes effect at the next one.

Rule 1: the gateway sends one message at a time. A slot that takes too long delays the next, and is counted.
Rule 2: the worker is held while it receives. Where turns are not known it is also held from the start of its slot.
Rule 3: a worker has one link for state: its moves follow one another. Without pre-copy both ends wait and the group
        pauses for all of it; with pre-copy only the switch pauses it (two messages and the rows still buffered).
Rule 4: with the move the buffered rows of the group go to the new owner; the map's version rises, and the new schedule
        starts where an epoch of the old one ends.
"""

import heapq
from dataclasses import dataclass, field

import numpy as np

from joinery.elastic.plan import Move, Plan
from joinery.flow.slot import Slot, SlotSchedule
from joinery.generate.draws import IntArray
from joinery.model.ids import GroupId, WorkerId
from joinery.partition.map import PartitionMap
from joinery.simulate.costs import CostModel
from joinery.simulate.load_gateway import SimGateway
from joinery.simulate.load_result import MoveRow
from joinery.simulate.load_settings import LoadSettings
from joinery.simulate.load_worker import Output, SimWorker


@dataclass(slots=True)
class Flight:
    """A move under way."""

    move: Move
    started_ns: float
    switch_ns: float
    """From here on the group pauses."""
    ended_ns: float
    state_bytes: float
    why: str


@dataclass(slots=True)
class Cluster:
    """Everything that changes in a run, except the memory of the rules."""

    settings: LoadSettings
    costs: CostModel
    gateway: SimGateway
    pmap: PartitionMap
    schedule: SlotSchedule
    workers: dict[WorkerId, SimWorker]
    starting: list[tuple[float, int, WorkerId]] = field(default_factory=list)
    """(Ready at, ordinal, worker): a heap."""
    flights: list[Flight] = field(default_factory=list)
    waiting: list[tuple[Move, str]] = field(default_factory=list)
    """Planned moves that are not started yet."""
    leaving: tuple[WorkerId, ...] = ()
    moves: list[MoveRow] = field(default_factory=list)
    retired: list[Output] = field(default_factory=list)
    """Outputs of workers that have left."""
    overruns: int = 0
    _free_ns: float = 0.0
    _next: SlotSchedule | None = None

    @classmethod
    def begin(cls, settings: LoadSettings, costs: CostModel, gateway: SimGateway) -> "Cluster":
        """All groups spread evenly over the first workers, everything empty."""
        names = [worker_id(ordinal) for ordinal in range(settings.degree)]
        pmap = PartitionMap.initial(settings.partitions, names)
        if settings.owners is not None:
            pmap = pmap.move({GroupId(group): names[owner] for group, owner in enumerate(settings.owners)})
        schedule = SlotSchedule.of(pmap, subgroups=settings.subgroups, epoch_ns=settings.epoch_ns, start_ns=0)
        workers = {name: SimWorker(name, place, 0.0, settings.speeds) for place, name in enumerate(names)}
        return cls(settings, costs, gateway, pmap, schedule, workers)

    @property
    def in_flight(self) -> tuple[Move, ...]:
        """Moves that have started."""
        return tuple(flight.move for flight in self.flights)

    @property
    def moving(self) -> tuple[Move, ...]:
        """Moves that have started or will."""
        return self.in_flight + tuple(move for move, _ in self.waiting)

    def groups_of(self, worker: WorkerId) -> IntArray:
        """The groups of a worker."""
        return np.flatnonzero(self.pmap.owners == self.pmap.workers.index(worker)).astype(np.int64)

    # --- slots

    def next_slot(self, slot: Slot | None) -> Slot:
        """The slot after this one; a new schedule takes over where an epoch ends."""
        if slot is None:
            return self.schedule.slot(0, 0)
        if slot.index + 1 < self.schedule.n_g:
            return self.schedule.slot(slot.epoch, slot.index + 1)
        if self._next is not None and slot.end_ns >= self._next.start_ns:
            self.schedule, self._next = self._next, None
            return self.schedule.slot((slot.end_ns - self.schedule.start_ns) // self.schedule.epoch_ns, 0)
        return self.schedule.slot(slot.epoch + 1, 0)

    def serve(self, slot: Slot) -> None:
        """Send every worker of the slot its message."""
        for position, name in enumerate(slot.workers):
            worker = self.workers.get(name)
            if worker is None or name not in self.pmap.workers:
                continue
            due = slot.start_ns + (
                position * (slot.end_ns - slot.start_ns) // len(slot.workers) if self.settings.turns_known else 0
            )
            self._send(worker, float(due))
        self.overruns += self._free_ns > slot.end_ns

    def _send(self, worker: SimWorker, due_ns: float) -> None:
        start_ns = max(due_ns, self._free_ns)
        if self.settings.turns_known:
            worker.advance(start_ns)
        else:
            worker.advance(due_ns)
            worker.hold(start_ns)
            worker.advance(start_ns)
            worker.communication_ns += start_ns - due_ns
            worker.waiting_ns += start_ns - due_ns
        held = worker.bytes_waiting
        worker.samples.append(int(held))
        room = self.settings.buffer_bytes - held
        piece, short = self.gateway.cut_message(self.groups_of(worker.worker), start_ns, room)
        worker.held_back |= short
        end_ns = start_ns + self.costs.transfer_ns(float(piece.size.sum()))
        worker.hold(end_ns)
        worker.advance(end_ns)
        worker.communication_ns += end_ns - start_ns
        worker.take(piece)
        self._free_ns = end_ns

    # --- workers

    def start_workers(self, count: int, now_ns: int) -> None:
        """Ask for more workers; they are Ready after the start delay."""
        known = len(self.pmap.workers) + len(self.starting)
        for ordinal in range(known, known + count):
            heapq.heappush(self.starting, (now_ns + self.settings.ready_ns, ordinal, worker_id(ordinal)))

    def settle(self, now_ns: int) -> None:
        """What is over by now: starts, moves, drains."""
        while self.starting and self.starting[0][0] <= now_ns:
            _, ordinal, name = heapq.heappop(self.starting)
            self.workers[name] = SimWorker(name, ordinal, float(now_ns), self.settings.speeds)
            self._change(self.pmap.with_workers((*self.pmap.workers, name)), now_ns)
        for flight in sorted(self.flights, key=lambda one: one.ended_ns):
            if flight.switch_ns <= now_ns:
                self.gateway.paused[flight.move.group] = 1
            if flight.ended_ns <= now_ns:
                self._land(flight, now_ns)
        self._start_waiting(now_ns)
        if self.leaving and not self.moving and not any(len(self.groups_of(name)) for name in self.leaving):
            self._dismiss(now_ns)

    def _dismiss(self, now_ns: int) -> None:
        rest = [name for name in self.pmap.workers if name not in self.leaving]
        self._change(self.pmap.with_workers(rest), now_ns)
        for name in self.leaving:
            gone = self.workers.pop(name)
            gone.advance(float(now_ns))
            self.retired += gone.outputs
        self.leaving = ()

    def _change(self, pmap: PartitionMap, now_ns: int) -> None:
        self.pmap = pmap
        if pmap.workers != tuple(name for part in self.schedule.subgroups for name in part):
            start_ns = self.schedule.boundary_after(now_ns)
            self._next = SlotSchedule.of(
                pmap, subgroups=self.settings.subgroups, epoch_ns=self.settings.epoch_ns, start_ns=start_ns
            )
        else:
            self._next = None

    # --- moves

    def start_plan(self, plan: Plan, now_ns: int, why: str) -> None:
        """Start what may start of a plan; the rest follows as moves end."""
        self.waiting += [(move, why) for move in plan.moves]
        self._start_waiting(now_ns)

    def _start_waiting(self, now_ns: int) -> None:
        unlimited = not self.settings.precopy
        while self.waiting and (unlimited or len(self.flights) < self.settings.limits.max_parallel):
            move, why = self.waiting.pop(0)
            self._take_off(move, why, now_ns)

    def _take_off(self, move: Move, why: str, now_ns: int) -> None:
        source, target = self.workers[move.source], self.workers[move.target]
        size = float(self.gateway.window_bytes()[move.group])
        begin_ns = max(float(now_ns), source.link_free_ns, target.link_free_ns)
        copied_ns = begin_ns + self.costs.transfer_ns(size)
        source.link_free_ns = target.link_free_ns = copied_ns
        if self.settings.precopy:
            switch_ns, end_ns = copied_ns, copied_ns + 2 * self.costs.message_ns
        else:
            switch_ns, end_ns = float(now_ns), copied_ns
            for worker in (source, target):
                worker.advance(float(now_ns))
                worker.hold(copied_ns)
                worker.moving_ns += copied_ns - begin_ns
            self.gateway.paused[move.group] = 1
        self.flights.append(Flight(move, float(now_ns), switch_ns, end_ns, size, why))

    def _land(self, flight: Flight, now_ns: int) -> None:
        self.flights.remove(flight)
        move = flight.move
        source, target = self.workers[move.source], self.workers[move.target]
        source.advance(float(now_ns))
        target.advance(float(now_ns))
        for piece in source.yield_group(move.group):
            target.take(piece)
        self.gateway.paused[move.group] = 0
        self._change(self.pmap.move({move.group: move.target}), now_ns)
        self.moves.append(
            MoveRow(
                int(flight.started_ns),
                int(flight.ended_ns),
                move.group,
                move.source,
                move.target,
                int(flight.state_bytes),
                int(flight.ended_ns - flight.switch_ns),
                flight.why,
            )
        )


def worker_id(ordinal: int) -> WorkerId:
    """The name of the worker with this ordinal."""
    return WorkerId(f"worker-{ordinal}")
