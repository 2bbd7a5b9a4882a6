"""Which cell of the policy's arrays belongs to which segment of which version.

A unit is a segment as one version wrote it: (stamp, number). A version names a unit per segment; a refresh that left
a segment as it was names the same unit again. A unit whose segment was written anew under the same cut hands its
arrival frequency on: keys that were asked for still are, and the old rows are the next to leave memory.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from joinery.hybrid import policy
from joinery.hybrid.segments import Relation
from joinery.model.errors import require
from joinery.model.tuples import TupleBatch

if TYPE_CHECKING:
    from joinery.hybrid.hybrid import HybridState
    from joinery.hybrid.waiting import Rows

I32Array = NDArray[np.int32]


@dataclass(slots=True)
class _Version:
    relation: Relation
    units: I32Array
    """Unit of each segment."""


@dataclass(slots=True)
class UnitTable:
    """Units of the living versions."""

    memory_bytes: int
    units: policy.Units = field(init=False)
    names: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Stamp and segment of each unit."""
    _by_name: dict[tuple[int, int], int] = field(default_factory=dict)
    _versions: dict[int, _Version] = field(default_factory=dict)
    _free: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.units, self._free = policy.no_units(1, self.memory_bytes), [0]

    @property
    def versions(self) -> tuple[int, ...]:
        """The versions that are known."""
        return tuple(sorted(self._versions))

    def install(self, relation: Relation) -> None:
        """Units for the segments of a version; installing it again changes nothing."""
        if relation.version in self._versions:
            return
        older = [version for version in self._versions if version < relation.version]
        before = self._versions[max(older)] if older else None
        alike = relation.cut.alike(before.relation.cut) if before is not None else np.ones(relation.cut.segments, bool)
        require(
            before is None or bool((relation.stamps[~alike] > before.relation.version).all()),
            f"version {relation.version} is cut anew but says that it holds segments of older versions",
        )
        numbers = relation.cut.numbers.tolist()
        names = list(zip(relation.stamps.tolist(), numbers, strict=True))
        fresh = [segment for segment, name in enumerate(names) if name not in self._by_name]
        self._reserve([names[segment] for segment in fresh])
        units = np.array([self._by_name[name] for name in names], np.int32)
        self.units.size[units[fresh]] = relation.sizes[fresh]
        if before is not None:
            known = dict(zip(before.relation.cut.numbers.tolist(), before.units.tolist(), strict=True))
            heirs = [segment for segment in fresh if alike[segment]]
            old = np.array([known[numbers[segment]] for segment in heirs], np.int32)
            self.units.frequency[units[heirs]] = self.units.frequency[old]
            self.units.frequency[old] = 0.0
        self._versions[relation.version] = _Version(relation, units)

    def retire(self, version: int) -> list[int]:
        """Forget a version; the units that nobody names any more."""
        gone = self._versions.pop(version, None)
        if gone is None:
            return []
        used = {unit for one in self._versions.values() for unit in one.units.tolist()}
        dead = [unit for unit in gone.units.tolist() if unit not in used]
        for unit in dead:
            policy.release(self.units, unit)
            self.units.frequency[unit], self.units.asked[unit] = 0.0, False
            del self._by_name[self.names.pop(unit)]
        self._free += dead
        return dead

    def units_of(self, version: int, batch: TupleBatch) -> I32Array:
        """The unit of each row under a version, -1 where the relation cannot have its key."""
        require(version in self._versions, f"a batch names version {version}; known are {sorted(self._versions)}")
        one = self._versions[version]
        segments = one.relation.cut.segments_of(batch.words, batch.hashes)
        return np.append(one.units, np.int32(-1))[segments].astype(np.int32)

    def unit_of(self, stamp: int, segment: int) -> int | None:
        """The unit of that name; None: nobody needs it any more."""
        return self._by_name.get((stamp, segment))

    def snapshot(self, waiting: "Rows | None", make: "type[HybridState]") -> "HybridState":
        """The living units, numbered from 0, with the rows that wait for them."""
        numbers = sorted(self.names)
        place = np.full(self.units.rows.size + 1, -1, np.int32)
        place[numbers] = np.arange(len(numbers))
        if waiting is not None:
            waiting = waiting.renumbered(place[waiting.units])
        index = np.array(numbers, np.int64)
        return make(
            relations=tuple(self._versions[version].relation for version in sorted(self._versions)),
            waiting=waiting,
            units=np.array([self.names[unit] for unit in numbers], np.int64).reshape(-1, 2),
            frequencies=self.units.frequency[index],
            asked=self.units.asked[index],
            epoch=int(self.units.totals[policy.EPOCH]),
            mode=int(self.units.totals[policy.MODE]),
        )

    def resume(self, state: "HybridState", rules: policy.Rules) -> I32Array:
        """Counts and frequencies of a snapshot, once its versions are installed; the unit of each of its units."""
        units = np.array([self._by_name[stamp, segment] for stamp, segment in state.units.tolist()], np.int32)
        self.units.frequency[units] = state.frequencies
        self.units.totals[policy.EPOCH], self.units.totals[policy.MODE] = state.epoch, state.mode
        if state.waiting is not None:
            of = units[state.waiting.units]
            policy.put_all(self.units, rules, of, state.waiting.sizes, state.waiting.since)
        for unit in units[state.asked].tolist():
            policy.ask(self.units, rules, unit)
        return units

    def _reserve(self, names: list[tuple[int, int]]) -> None:
        missing = len(names) - len(self._free)
        if missing > 0:
            size = self.units.rows.size
            capacity = max(size + missing, size * 3 // 2)
            self.units = policy.grown(self.units, capacity)
            self._free += range(size, capacity)
        self._free.sort(reverse=True)  # the least first: of equals `policy` takes the first, a replay must do the same
        for name in names:
            unit = self._free.pop()
            self.names[unit], self._by_name[name] = name, unit
