"""Station 3 of 8, slot: which workers are served in which part of a distribution epoch, and in which order.

Source: seed 000, V.B and the remark on figure 12 (thesis 7.5.2). If all workers were served at the start of an epoch,
the last would wait for all the others. So they are divided into n_g sub-groups, the epoch t_d into n_g slots, and a
worker that knows its place in the fixed order of its slot joins until its turn comes.

Rule 1: a worker is served only in its sub-group's slot, once in every epoch.
Rule 2: slots never overlap and fill the epoch, to the nanosecond: slot k is [k*t_d/n_g, (k+1)*t_d/n_g), rounded down.
Rule 3: there are never more sub-groups than active workers, so no slot is empty; their sizes differ by one at most.
Rule 4: membership follows from the partition map alone (the order of its workers), and is made anew with each
        version. A new schedule starts where an epoch of the old one ends (`boundary_after`), so rule 1 also holds
        across the change.

Worked example, workers a b c, n_g = 2, t_d = 10: slot 0 is [0, 5) for a; slot 1 is [5, 10) for b, then c with its
turn at 7.
"""

from dataclasses import dataclass
from itertools import pairwise

from joinery.model.errors import BadSpec, Complaint, require
from joinery.model.ids import MapVersion, WorkerId
from joinery.partition.map import PartitionMap


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot of one epoch: [start_ns, end_ns), and who is served in it, in order."""

    epoch: int
    index: int
    start_ns: int
    end_ns: int
    workers: tuple[WorkerId, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """When a worker may expect to be served: at its even share of the slot."""

    slot: Slot
    position: int
    """How many workers of the slot are served before it."""
    start_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSchedule:
    """The slots of every epoch from `start_ns` on, for one version of the map."""

    version: MapVersion
    subgroups: tuple[tuple[WorkerId, ...], ...]
    epoch_ns: int
    start_ns: int

    def __post_init__(self) -> None:
        require(len(self.subgroups) > 0 and all(self.subgroups), f"sub-groups {self.subgroups} have an empty one")
        members = [worker for subgroup in self.subgroups for worker in subgroup]
        require(len(set(members)) == len(members), f"sub-groups {self.subgroups} name a worker twice")
        if self.epoch_ns < len(members):
            found, wanted = f"{self.epoch_ns} ns", f"at least a nanosecond for each of {len(members)} workers"
            raise BadSpec([Complaint("spec.epochs.distribution", found, wanted, "use auto or, say, 2s")])

    @classmethod
    def of(cls, pmap: PartitionMap, *, subgroups: int, epoch_ns: int, start_ns: int) -> "SlotSchedule":
        """The schedule of a map: its workers in order, cut into at most `subgroups` sub-groups (rules 3 and 4)."""
        if subgroups < 1:
            raise BadSpec([Complaint("spec.epochs.subgroups", str(subgroups), "at least 1", "leave it out for 2")])
        workers = pmap.workers
        n_g = min(subgroups, len(workers))
        cuts = [k * len(workers) // n_g for k in range(n_g + 1)]
        parts = tuple(workers[low:high] for low, high in pairwise(cuts))
        return cls(version=pmap.version, subgroups=parts, epoch_ns=epoch_ns, start_ns=start_ns)

    @property
    def n_g(self) -> int:
        """The number of sub-groups, and of slots in an epoch."""
        return len(self.subgroups)

    def slot(self, epoch: int, index: int) -> Slot:
        """Slot `index` of `epoch`."""
        require(epoch >= 0 and 0 <= index < self.n_g, f"epoch {epoch} has no slot {index}; it has {self.n_g}")
        begin = self.start_ns + epoch * self.epoch_ns
        start_ns, end_ns = (begin + k * self.epoch_ns // self.n_g for k in (index, index + 1))
        return Slot(epoch, index, start_ns, end_ns, self.subgroups[index])

    def slot_at(self, now_ns: int) -> Slot:
        """The slot that `now_ns` lies in."""
        require(now_ns >= self.start_ns, f"{now_ns} is before the schedule's start {self.start_ns}")
        epoch, offset = divmod(now_ns - self.start_ns, self.epoch_ns)
        # The greatest k with k*t_d // n_g <= offset: exact in whole numbers where a quotient of floats would not be.
        return self.slot(epoch, ((offset + 1) * self.n_g - 1) // self.epoch_ns)

    def turn(self, worker: WorkerId, epoch: int) -> Turn:
        """When `worker` is served in `epoch`."""
        homes = [k for k, members in enumerate(self.subgroups) if worker in members]
        require(len(homes) == 1, f"worker {worker} is in no sub-group of map version {self.version}")
        slot = self.slot(epoch, homes[0])
        position = slot.workers.index(worker)
        delay_ns = position * (slot.end_ns - slot.start_ns) // len(slot.workers)
        return Turn(slot, position, slot.start_ns + delay_ns)

    def next_turn(self, worker: WorkerId, now_ns: int) -> Turn:
        """The first turn of `worker` that does not start before `now_ns`."""
        turn = self.turn(worker, max(0, (now_ns - self.start_ns) // self.epoch_ns))
        return turn if turn.start_ns >= now_ns else self.turn(worker, turn.slot.epoch + 1)

    def boundary_after(self, now_ns: int) -> int:
        """Where the first epoch starts that does not start before `now_ns`: the place to change to another schedule."""
        epochs = max(0, -((self.start_ns - now_ns) // self.epoch_ns))
        return self.start_ns + epochs * self.epoch_ns
