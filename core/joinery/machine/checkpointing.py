"""A worker's checkpoints: increments of its groups, blocks first, heads last, one at a time (docs/design.md §3).

    idle -> taking (the join module) -> blocks (the store) -> heads (the store) -> idle

Rule 1: increments are taken since the last tag, so the cost follows the input and not the window.
Rule 2: a group whose version changed on the way is left out: its increment belongs to an owner that is no more.
Rule 3: a group whose checkpoint was found damaged is written whole, with the next checkpoint: nothing that was written
        before is needed from then on.
Rule 4: when the gateway says trim(group) = T, increments in which nothing is alive at T are dropped, oldest first.
"""

import numpy as np

from joinery.flow.delays import Delays
from joinery.join.state import Age, Increment, dead_before
from joinery.machine.facts import HeadsWritten
from joinery.machine.log import BEFORE_ALL, SpecChange
from joinery.machine.messages import Checkpointed
from joinery.machine.orders import Order, Send, TakeIncrements, TrimCheckpoint, WriteBlocks, WriteHeads
from joinery.model.errors import require
from joinery.model.ids import GATEWAY, GroupId, MapVersion, RecordNo
from joinery.model.quantities import Window
from joinery.model.spec import JoinQuerySpec
from joinery.model.tuples import I64Array, as_vector


class Checkpointing:
    """Which tags exist of each group, and the checkpoint under way."""

    def __init__(self, spec: JoinQuerySpec) -> None:
        self._windows: tuple[Window, ...] = tuple(stream.window for stream in spec.streams)
        self._ages: dict[GroupId, list[Age]] = {}
        self._tags: dict[GroupId, RecordNo] = {}
        self._under_way: dict[GroupId, MapVersion] | None = None
        """The groups of the checkpoint under way, with their versions when it began."""
        self._increments: tuple[Increment, ...] = ()
        self._number = 0
        self._asked: set[GroupId] = set()
        """Groups that the gateway asked for; it hears of them even if nothing was new."""
        self._next: set[GroupId] = set()
        self._whole: set[GroupId] = set()
        """Groups to be written whole next (rule 3)."""
        self._begun_ns = 0
        self.durations = Delays()
        """Of every checkpoint that was written, for whoever looks: from its begin until its heads were valid."""

    def tag_of(self, group: GroupId) -> RecordNo:
        """The newest tag of a group; -1: none."""
        return self._tags.get(group, BEFORE_ALL)

    def begin(self, groups: list[GroupId], versions: I64Array, now_ns: int) -> list[Order]:
        """A checkpoint of these groups, unless one is under way."""
        if self._under_way is not None or not groups:
            return []
        self._under_way, self._begun_ns = {group: MapVersion(int(versions[group])) for group in groups}, now_ns
        whole = tuple(sorted(self._whole.intersection(groups)))
        self._whole.difference_update(whole)
        return [TakeIncrements(tuple(groups), whole)]

    def now(self, groups: list[GroupId], versions: I64Array, now_ns: int, *, whole: bool = False) -> list[Order]:
        """The gateway wants a checkpoint of these groups, after the one under way if there is one."""
        self._whole.update(groups if whole else ())
        if self._under_way is not None:
            self._next.update(groups)
            return []
        self._asked = set(groups)
        return self.begin(groups, versions, now_ns)

    def taken(self, increments: tuple[Increment, ...], versions: I64Array, now_ns: int) -> list[Order]:
        """The join module has handed out the increments."""
        self._increments = tuple(one for one in increments if self._is_mine(one.group, versions))
        if not self._increments:
            return self._end({}, versions, now_ns)
        self._number += 1
        return [WriteBlocks(self._number, self._increments)]

    def blocks_written(self, number: int, versions: I64Array, now_ns: int) -> list[Order]:
        """The increments are in the store: now their heads."""
        require(number == self._number, f"blocks {number} were written, {self._number} are under way")
        self._increments = tuple(one for one in self._increments if self._is_mine(one.group, versions))
        heads = tuple(
            (one.group, MapVersion(int(versions[one.group])), BEFORE_ALL if one.since is None else one.since, one.tag)
            for one in self._increments
        )
        return [WriteHeads(number, heads)] if heads else self._end({}, versions, now_ns)

    def heads_written(self, fact: HeadsWritten, versions: I64Array, now_ns: int) -> tuple[list[GroupId], list[Order]]:
        """The checkpoint is valid: the groups that turned out to be another's, and what to do next."""
        mine = [one for one in self._increments if self._is_mine(one.group, versions)]
        stale = [one.group for one in mine if one.group in fact.refused]
        done = {one.group: one.tag for one in mine if one.group not in fact.refused}
        for one in mine:
            if one.group in done:
                self._tags[one.group] = one.tag
                self._ages.setdefault(one.group, []).append(Age.of(one))
        if done:
            self.durations += Delays.of(np.array([now_ns - self._begun_ns]), np.ones(1, np.int64))
        return stale, self._end(done, versions, now_ns)

    def _end(self, done: dict[GroupId, RecordNo], versions: I64Array, now_ns: int) -> list[Order]:
        """Tell the gateway, and begin what was asked for meanwhile."""
        asked = {group: self.tag_of(group) for group in self._asked if self._is_mine(group, versions)}
        tags = sorted((asked | done).items())
        self._under_way, self._increments, self._asked = None, (), set()
        made: list[Order] = []
        if tags:
            groups = as_vector(group for group, _ in tags)
            made.append(Send(GATEWAY, Checkpointed(groups, versions[groups], as_vector(tag for _, tag in tags))))
        waiting = sorted(group for group in self._next if versions[group])
        self._next.clear()
        return made + (self.now(waiting, versions, now_ns) if waiting else [])

    def _is_mine(self, group: GroupId, versions: I64Array) -> bool:
        return self._under_way is not None and self._under_way.get(group) == versions[group]

    # --- groups come and go

    def loaded(self, group: GroupId, tag: RecordNo, ages: tuple[Age, ...]) -> None:
        """The group was restored from increments of these ages."""
        self._tags[group], self._ages[group] = tag, list(ages)

    def leave(self, group: GroupId) -> None:
        """The group is no longer here."""
        self._tags.pop(group, None)
        self._ages.pop(group, None)
        self._next.discard(group)
        self._whole.discard(group)

    def trim(self, group: GroupId, version: MapVersion, tag: RecordNo, changes: tuple[SpecChange, ...]) -> list[Order]:
        """Nobody will load the group below `tag` any more."""
        ages = self._ages.get(group, [])
        if not any(age.tag == tag for age in ages):
            return []
        in_force = [change.windows for change in changes if change.record < tag]
        base = dead_before(ages, tag, in_force[-1] if in_force else self._windows)
        if base is None:
            return []
        self._ages[group] = [age for age in ages if age.tag > base]
        return [TrimCheckpoint(group, version, base)]
