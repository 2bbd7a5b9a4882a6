"""Which worker owns which partition-group: an immutable, versioned map.

The papers put a level of indirection between keys and workers (seed 000, IV.C): many partitions, few workers, and a
map between them that a reorganization changes. Moving a group is changing one entry, never rehashing.

Rule 1: a map never changes; a change makes a new map whose version is one higher.
Rule 2: the term of a group is the version that gave it its owner. Giving a group to its own worker again (the worker
        came back empty) is a change too: whatever the old instance still sends carries the old term and is refused.
Rule 3: a worker leaves the map only when it owns nothing, so a group is never without an owner.
Rule 4: the order of the workers is the order of their ordinals; slots and drains rely on it.

Worked example: 6 groups over (a, b) start as a a a b b b, version 1. `move({5: a})` is version 2; group 5 has term 2,
the others keep term 1.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from joinery.model.errors import BadSpec, Complaint, require
from joinery.model.ids import GroupId, MapVersion, WorkerId
from joinery.model.tuples import I64Array

FIRST_VERSION: Final = MapVersion(1)
"""Zero is left for "no map yet", as protocol buffers would send it."""
_NOBODY: Final = -1


class StoredMap(TypedDict):
    """A map as plain lists and numbers, for storage."""

    version: int
    workers: list[str]
    owners: list[int]
    terms: list[int]


@dataclass(frozen=True, slots=True, eq=False)
class PartitionMap:
    """Group -> worker at one version; `owners` are places in `workers`, so that whole batches are looked up at once."""

    version: MapVersion
    workers: tuple[WorkerId, ...]
    owners: NDArray[np.int32]
    """For each group the place of its owner in `workers`; read-only."""
    terms: NDArray[np.int64]
    """For each group the version that gave it its owner; read-only."""

    def __post_init__(self) -> None:
        require(len(self.workers) > 0, "a map without workers; keep at least one")
        require(len(set(self.workers)) == len(self.workers), f"workers {self.workers} name one twice")
        require(len(self.owners) == len(self.terms) > 0, f"{len(self.owners)} owners, {len(self.terms)} terms")
        require(
            bool(((self.owners >= 0) & (self.owners < len(self.workers))).all()),
            f"an owner is not one of the {len(self.workers)} workers",
        )
        require(
            bool(((self.terms >= FIRST_VERSION) & (self.terms <= self.version)).all()),
            f"a term is not in {FIRST_VERSION}..{self.version}",
        )
        self.owners.flags.writeable = False
        self.terms.flags.writeable = False

    @classmethod
    def initial(cls, groups: int, workers: Sequence[WorkerId]) -> "PartitionMap":
        """The first map: neighbouring groups together, the workers' shares differing by one group at most."""
        if groups < 1:
            raise BadSpec([Complaint("spec.partitions", str(groups), "at least 1", "leave it out for 60")])
        owners = (np.arange(groups) * len(workers) // groups).astype(np.int32)
        return cls(FIRST_VERSION, tuple(workers), owners, np.full(groups, FIRST_VERSION, np.int64))

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.owners)

    def owner(self, group: GroupId) -> WorkerId:
        """The worker that owns `group`."""
        self._require_groups((group,))
        return self.workers[int(self.owners[group])]

    def term_of(self, group: GroupId) -> MapVersion:
        """The version that gave `group` its owner."""
        self._require_groups((group,))
        return MapVersion(int(self.terms[group]))

    def groups_of(self, worker: WorkerId) -> tuple[GroupId, ...]:
        """The groups of `worker`, ascending; none if it is new or unknown."""
        return tuple(GroupId(group) for group in self.group_numbers(worker).tolist())

    def group_numbers(self, worker: WorkerId) -> I64Array:
        """The groups of `worker` as a vector."""
        mine = self.workers.index(worker) if worker in self.workers else _NOBODY
        return np.flatnonzero(self.owners == mine)

    def move(self, moves: Mapping[GroupId, WorkerId]) -> "PartitionMap":
        """The next map, in which every group of `moves` has its new owner and a new term (rule 2)."""
        require(len(moves) > 0, "a move of no group is no change; keep the map")
        self._require_groups(moves)
        unknown = set(moves.values()) - set(self.workers)
        require(not unknown, f"groups were moved to {sorted(unknown)}, who are not in {self.workers}; add them first")
        version = MapVersion(self.version + 1)
        owners, terms = self.owners.copy(), self.terms.copy()
        moved = np.fromiter(moves, np.int64, len(moves))
        owners[moved] = [self.workers.index(worker) for worker in moves.values()]
        terms[moved] = version
        return replace(self, version=version, owners=owners, terms=terms)

    def with_workers(self, workers: Sequence[WorkerId]) -> "PartitionMap":
        """The next map with these workers: new ones own nothing yet, and one that still owns a group must stay."""
        if tuple(workers) == self.workers:
            return self
        left = {self.workers[place] for place in np.unique(self.owners)} - set(workers)
        require(not left, f"{sorted(left)} would leave but still own groups; move those first")
        place_now = {worker: place for place, worker in enumerate(workers)}
        moved_place = np.array([place_now.get(worker, -1) for worker in self.workers], np.int32)
        version = MapVersion(self.version + 1)
        return replace(self, version=version, workers=tuple(workers), owners=moved_place[self.owners])

    def to_dict(self) -> StoredMap:
        """The map as plain data."""
        return {
            "version": int(self.version),
            "workers": [str(worker) for worker in self.workers],
            "owners": self.owners.tolist(),
            "terms": self.terms.tolist(),
        }

    @classmethod
    def from_dict(cls, stored: StoredMap) -> "PartitionMap":
        """The map that `to_dict` wrote."""
        return cls(
            MapVersion(stored["version"]),
            tuple(WorkerId(worker) for worker in stored["workers"]),
            np.array(stored["owners"], np.int32),
            np.array(stored["terms"], np.int64),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionMap) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.version, self.workers))

    def _require_groups(self, groups: Iterable[GroupId]) -> None:
        outside = [group for group in groups if not 0 <= group < self.groups]
        require(not outside, f"groups {outside} are not in 0..{self.groups - 1}")
