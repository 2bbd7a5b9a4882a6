"""Who owns which group, and how far its owner is on the way to being served.

A group goes through phases; every change of its owner, planned or not, takes the same way (docs/design.md §3,
"recovery and moves are one mechanism"):

    (map written) -> ASKED (the collector is told, and asked up to where the group is committed)
                  -> ASSIGNED (the owner loads it, and says how far it is)
                  -> SERVED (batches flow), or STOPPED for good if its state is lost (`machine.losing`)

Rule 1: the map is durable before anybody is told of it, and the collector hears of a new owner before the owner does.
Rule 2: an owner that does not hold a group under its term (it is a new instance, or never got the assignment) gets it
        again under a new term. What the old one still sends is refused.
Rule 3: after a restart of the gateway nothing is known but the map; the workers' hellos say the rest.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from joinery.machine.handovers import Handovers
from joinery.machine.log import BEFORE_ALL, SpecChange
from joinery.machine.messages import Assign, Holdings, Owners, Release, Vector
from joinery.machine.orders import Order, Send, WriteMap
from joinery.machine.workforce import Workforce, ordinal
from joinery.model.ids import GroupId, MapVersion, Peer, Term, WorkerId
from joinery.model.tuples import I64Array
from joinery.partition.map import PartitionMap, StoredMap


class Phase(IntEnum):
    """How far the present owner of a group is."""

    UNKNOWN = 0
    ASKED = 1
    ASSIGNED = 2
    SERVED = 3
    STOPPED = 4
    """Its state is lost (`machine.losing`): its owner is so in name only."""


class Placement:
    """The partition map and each group's way to its owner."""

    def __init__(self, partitions: int, workforce: Workforce) -> None:
        self.workforce = workforce
        self.map: PartitionMap | None = None
        self.term = Term(0)
        self.collector: Peer | None = None
        """Where the collector is; None: it is not connected, and asks by itself when it is."""
        self.phase = np.full(partitions, Phase.UNKNOWN, np.int64)
        self.sent = np.full(partitions, BEFORE_ALL, np.int64)
        """The last record that each group's owner was sent."""
        self.silent = np.full(partitions, BEFORE_ALL, np.int64)
        self.seen = np.full(partitions, BEFORE_ALL, np.int64)
        self.committed = np.full(partitions, BEFORE_ALL, np.int64)
        self.since_ns = np.zeros(partitions, np.int64)
        """When each group stopped being served."""
        self.pauses_ns: list[tuple[GroupId, int]] = []
        """How long groups stood still for a change of owner; the last few."""
        self.handovers = Handovers(workforce)
        self._writing: PartitionMap | None = None
        self._moves: dict[GroupId, WorkerId] = {}
        self._join: set[WorkerId] = set()
        self._part: set[WorkerId] = set()

    @property
    def partitions(self) -> int:
        return int(self.phase.size)

    @property
    def is_settled(self) -> bool:
        """Whether no change of the map is wanted or under way."""
        return self._writing is None and not (self._moves or self._join or self._part)

    @property
    def workers(self) -> set[WorkerId]:
        """Those in the map, or in the one that is being written."""
        return {worker for one in (self.map, self._writing) if one is not None for worker in one.workers}

    def restore(self, stored: StoredMap | None, term: Term) -> None:
        """Go on with the map of the gateway before."""
        self.term = term
        self.map = PartitionMap.from_dict(stored) if stored else None

    def owner(self, group: int) -> WorkerId | None:
        return None if self.map is None else self.map.owner(GroupId(group))

    def may_own(self, group: int, worker: WorkerId) -> bool:
        """Whether a worker owns a group, or will by a change that is wanted or being written."""
        maps = (one for one in (self.map, self._writing) if one is not None)
        return self._moves.get(GroupId(group)) == worker or worker in {one.owner(GroupId(group)) for one in maps}

    def groups_of(self, worker: WorkerId) -> I64Array:
        return np.empty(0, np.int64) if self.map is None else self.map.group_numbers(worker)

    def served_by(self, worker: WorkerId) -> I64Array:
        """The groups that a worker gets batches of."""
        groups = self.groups_of(worker)
        served: I64Array = groups[self.phase[groups] == Phase.SERVED]
        return served

    @property
    def stopped(self) -> NDArray[np.bool_]:
        """Which groups have stopped."""
        found: NDArray[np.bool_] = self.phase == Phase.STOPPED
        return found

    def stop(self, group: GroupId) -> None:
        """The group's state is lost: it is never served again."""
        self.phase[group] = Phase.STOPPED
        self.handovers.changing.pop(group, None)

    def terms_of(self, groups: I64Array) -> I64Array:
        """The map versions that gave these groups their owners; 0: there is no map."""
        return np.zeros(groups.size, np.int64) if self.map is None else self.map.terms[groups]

    # --- changes of the map

    def found(self, workers: list[WorkerId]) -> list[Order]:
        """The first map: the groups are spread over these workers."""
        return self._write(PartitionMap.initial(self.partitions, workers))

    def propose(
        self, moves: Mapping[GroupId, WorkerId], join: Iterable[WorkerId] = (), part: Iterable[WorkerId] = ()
    ) -> list[Order]:
        """Groups change owners, workers join, empty ones leave; one write at a time, what comes meanwhile is next."""
        self._moves.update(moves)
        self._join.update(join)
        self._part = (self._part | set(part)) - self._join
        return self._advance()

    def _advance(self) -> list[Order]:
        if self._writing is not None or self.map is None:
            return []
        new = self.map
        if joining := self._join - set(new.workers):
            new = new.with_workers(sorted({*new.workers, *joining}, key=ordinal))
        moves = {group: to for group, to in self._moves.items() if to in new.workers and self.workforce.is_up(to)}
        if moves:
            new = new.move(moves)
        left = [w for w in new.workers if w not in self._part or new.groups_of(w)]
        if left:
            new = new.with_workers(left)
        self._moves, self._join, self._part = {}, set(), set()
        return self._write(new) if new.version != self.map.version else []

    def _write(self, new: PartitionMap) -> list[Order]:
        self._writing = new
        return [WriteMap(self.term, new.to_dict())]

    def written(self, version: MapVersion, now_ns: int) -> list[Order]:
        """The map is durable: old owners let go, the collector is told and asked (rule 1)."""
        new = self._writing
        if new is None or new.version != version:
            return []
        old, self.map, self._writing = self.map, new, None
        changed = np.flatnonzero(new.terms != old.terms) if old else np.arange(self.partitions)
        asked = changed[self.phase[changed] != Phase.STOPPED]
        self.phase[asked] = Phase.ASKED
        self.since_ns[asked] = now_ns
        self.handovers.began(old, new, asked.tolist(), now_ns)
        made: list[Order] = []
        for worker in old.workers if old else ():
            lost = [int(group) for group in changed if old and old.owner(GroupId(int(group))) == worker]
            gone = np.array([group for group in lost if new.owner(GroupId(group)) != worker], np.int64)
            if gone.size and self.workforce.is_up(worker):
                made.append(Send(self.workforce.peer(worker), Release(self.term, gone)))
        return [*made, *self.tell_collector(), *self._advance()]

    def tell_collector(self) -> list[Order]:
        """The owners' terms; the answer is where each group is committed."""
        if self.map is None or self.collector is None:
            return []
        return [Send(self.collector, Owners(self.term, self.map.terms.astype(np.int64)))]

    # --- the way to the owner

    def vector(self, message: Vector, changes: tuple[SpecChange, ...]) -> list[Order]:
        """The collector's answer: who waited for it is assigned."""
        if self.map is None:
            return []
        self.committed = np.maximum(self.committed, message.committed)
        ready = (self.phase == Phase.ASKED) & (message.versions == self.map.terms)
        self.silent[ready], self.seen[ready] = message.committed[ready], message.seen[ready]
        self.phase[ready] = Phase.ASSIGNED
        made: list[Order] = []
        for worker in self.map.workers:
            groups = self.groups_of(worker)
            groups = groups[ready[groups]]
            if groups.size and self.workforce.is_up(worker):
                terms = self.map.terms[groups].astype(np.int64)
                assign = Assign(self.term, groups, terms, self.silent[groups], self.seen[groups], changes)
                made.append(Send(self.workforce.peer(worker), assign))
        return made

    def holding(self, worker: WorkerId, holdings: Holdings, now_ns: int) -> I64Array:
        """A worker holds these groups; those of them that are rightly its own, and are served from now on."""
        if self.map is None:
            return np.empty(0, np.int64)
        mine = np.isin(holdings.groups, self.groups_of(worker))
        mine &= self.map.terms[holdings.groups] == holdings.versions
        mine &= self.phase[holdings.groups] != Phase.STOPPED
        groups: I64Array = holdings.groups[mine]
        for group in groups[self.phase[groups] == Phase.ASSIGNED]:
            pause = int(now_ns - self.since_ns[group])
            self.pauses_ns = [*self.pauses_ns[-999:], (GroupId(int(group)), pause)]
        self.handovers.ended(groups.tolist(), now_ns)
        self.phase[groups] = Phase.SERVED
        self.sent[groups] = holdings.received[mine]
        self.silent[groups], self.seen[groups] = holdings.silent[mine], holdings.seen[mine]
        return groups

    def hello(self, worker: WorkerId, holdings: Holdings, now_ns: int) -> tuple[I64Array, list[Order]]:
        """A worker introduces itself: what it rightly holds is served; what else it should have is assigned anew."""
        if self.map is None:
            return np.empty(0, np.int64), []
        mine = self.holding(worker, holdings, now_ns)
        foreign = np.setdiff1d(holdings.groups, mine)
        made: list[Order] = [Send(self.workforce.peer(worker), Release(self.term, foreign))] if foreign.size else []
        missing = np.setdiff1d(self.groups_of(worker), mine)
        again = missing[~np.isin(self.phase[missing], (Phase.ASKED, Phase.STOPPED))]
        self.handovers.taken_back(again[self.phase[again] == Phase.SERVED].tolist())
        self.phase[again] = Phase.UNKNOWN
        moves = {GroupId(int(group)): worker for group in again}
        join = [] if worker in self.map.workers else [worker]
        return mine, made + self.propose(moves, join=join)
