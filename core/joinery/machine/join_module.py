"""A worker's join module: the windows of its groups, and the orders that change them, one after the other.

The worker's machine (`machine.worker`) decides, this module works: in a process it has a thread of its own, in the
simulator it takes virtual time. What it is told comes through one queue, so a group's state is taken, joined and
dropped in the order in which that was decided.

Groups that follow different versions of the spec live in different lanes, a `WindowJoin` for each version: a group
that is loaded from before a change of the windows catches up in the old lane. Rule: a group changes lanes exactly
between two batches, when it has joined the record of the change. If a whole lane does, its windows are changed in
place; one group alone is taken out as a whole state and put into the other lane.

A group that is on its way here is prepared: its rows are put in place while its owner goes on, piece by piece, so that
the groups that are here need not wait either. When it is assigned only what came since is added, so the hand-over does
not grow with the window. A preparation that does not fit what is assigned (another chain, a change of the windows,
other mini-groups) is thrown away.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from joinery.join.logic import WindowJoin
from joinery.join.plan import JoinPlan
from joinery.join.results import ResultPart
from joinery.join.state import Checkpoints, Increment
from joinery.machine.arrivals import arrivals_of
from joinery.machine.facts import BatchJoined, Fact, GroupPrepared, GroupRestored, IncrementsTaken, StateMeasured
from joinery.machine.log import BEFORE_ALL, SpecChange
from joinery.machine.messages import Exchange, mask_of
from joinery.machine.orders import (
    DropGroups,
    JoinBatch,
    MeasureState,
    ModuleOrder,
    PrepareGroup,
    PrepareMore,
    RestoreGroup,
    TakeIncrements,
    TuneJoin,
)
from joinery.model.errors import require
from joinery.model.ids import GroupId, RecordNo
from joinery.model.time import FOREVER


@dataclass(slots=True)
class _Lane:
    """The groups that follow one version of the spec."""

    join: WindowJoin
    checkpoints: Checkpoints

    @property
    def groups(self) -> list[GroupId]:
        return [GroupId(int(group)) for group in np.flatnonzero(self.join.held)]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A group that is in place before it is ours."""

    lane: int
    links: tuple[tuple[RecordNo | None, RecordNo], ...]
    """The chain that it was made of: since and tag of each increment."""
    directory: tuple[int, ...]

    @property
    def tag(self) -> RecordNo:
        return self.links[-1][1]

    def fits(self, increments: tuple[Increment, ...]) -> bool:
        """Whether it only lacks the last of these increments."""
        links = tuple((one.since, one.tag) for one in increments)
        shapes = {(len(one.floors), one.directory) for one in increments[len(self.links) - 1 :]}
        return links[: len(self.links)] == self.links and shapes == {(self.lane, self.directory)}


class JoinModule:
    """Joins what the worker's machine orders."""

    def __init__(self, plan: JoinPlan) -> None:
        self.plan = plan
        self._lanes: dict[int, _Lane] = {}
        self._lane_of: dict[GroupId, int] = {}
        self._prepared: dict[GroupId, _Prepared] = {}
        self._pieces: dict[GroupId, Iterator[None]] = {}
        """Of prepared groups that are not in place yet: what puts the next piece there."""
        self._joined: dict[GroupId, RecordNo] = {}
        self._tags: dict[GroupId, RecordNo] = {}
        """The newest tag of each group that its lane can take an increment since."""

    def perform(self, order: ModuleOrder) -> Iterator[Fact]:
        """Do what is ordered; the answers, as they come."""
        match order:
            case JoinBatch():
                yield from self._join(order.exchange)
            case TakeIncrements():
                for group in order.whole:
                    self._tags.pop(group, None)
                yield IncrementsTaken(tuple(self._take(order.groups)))
            case PrepareGroup():
                yield self._prepare(order)
            case PrepareMore() if order.group in self._pieces:
                yield self._prepare_more(order.group)
            case RestoreGroup():
                yield self._restore(order)
            case DropGroups():
                for group in order.groups:
                    self._drop(group)
            case MeasureState():
                yield self._measure()
            case TuneJoin():
                self._retune(order.theta_bytes)

    def _retune(self, theta_bytes: int | None) -> None:
        """Groups are split and merged by another θ, each when it next gets or loses rows."""
        self.plan = replace(self.plan, theta_bytes=theta_bytes)
        for lane in self._lanes.values():
            lane.join.method.retune(theta_bytes)

    # --- joining

    def _join(self, exchange: Exchange) -> Iterator[Fact]:
        groups = [GroupId(int(group)) for group in exchange.groups]
        after = [self._joined[group] for group in groups]
        require(after == exchange.after.tolist(), f"a batch after {exchange.after}, but joined is {after}")
        lane = self._lift(groups, exchange.changes)
        comparisons = _work(lane.join)
        mask = mask_of(exchange.groups, self.plan.partitions)
        previous: ResultPart | None = None
        for part in lane.join.on_batch(exchange.batches, exchange.marks, mask):
            if previous is not None:
                yield BatchJoined(exchange, (previous,), last=False, arrivals=arrivals_of((previous,), exchange))
            previous = part
        for group in groups:
            self._joined[group] = exchange.upto
        rows = sum(len(batch) for batch in exchange.batches)
        done = max(rows, _work(lane.join) - comparisons)  # a row that finds an empty chain has looked there
        parts = () if previous is None else (previous,)
        yield BatchJoined(exchange, parts, last=True, comparisons=done, arrivals=arrivals_of(parts, exchange))

    def _lift(self, groups: list[GroupId], changes: tuple[SpecChange, ...]) -> _Lane:
        """Bring the groups of a batch into the lane of its spec version."""
        wanted = len(changes)
        for version in sorted({self._lane_of[group] for group in groups}):
            going = [group for group in groups if self._lane_of[group] == version]
            require(version <= wanted, f"groups {going} follow spec version {version}, their batch {wanted}")
            for step in range(version, wanted):
                self._step(going, step, changes)
        return self._lanes[wanted]

    def _step(self, groups: list[GroupId], version: int, changes: tuple[SpecChange, ...]) -> None:
        """One version up: the whole lane in place, or group by group."""
        for group in [group for group, prepared in self._prepared.items() if prepared.lane == version]:
            self._drop(group)
        lane, change = self._lanes[version], changes[version]
        if version + 1 not in self._lanes and set(lane.groups) == set(groups):
            lane.join.change_windows(change.windows, change.floors, change.upto)
            self._lanes[version + 1] = self._lanes.pop(version)
        else:
            target = self._lane(version + 1, changes)
            for group in groups:
                alone = self._fresh(changes[:version])
                alone.checkpoints.restore(lane.checkpoints.take([group], self._joined[group]))
                alone.join.change_windows(change.windows, change.floors, change.upto)
                target.checkpoints.restore(alone.checkpoints.take([group], self._joined[group]))
                lane.checkpoints.release(group)
                self._tags.pop(group, None)
        for group in groups:
            self._lane_of[group] = version + 1
        self._close_empty_lanes()

    def _lane(self, version: int, changes: tuple[SpecChange, ...]) -> _Lane:
        if version not in self._lanes:
            self._lanes[version] = self._fresh(changes[:version])
        return self._lanes[version]

    def _fresh(self, changes: Iterable[SpecChange]) -> _Lane:
        join = WindowJoin(self.plan, groups=())
        for change in changes:
            join.change_windows(change.windows, change.floors, change.upto)
        return _Lane(join, Checkpoints(join))

    def _close_empty_lanes(self) -> None:
        used = {*self._lane_of.values(), *(prepared.lane for prepared in self._prepared.values())}
        self._lanes = {version: lane for version, lane in self._lanes.items() if version in used}

    # --- state

    def _take(self, groups: tuple[GroupId, ...]) -> Iterator[Increment]:
        """Increments of the groups that joined something since their tags; equal ones are taken together."""
        together: dict[tuple[int, RecordNo, RecordNo | None], list[GroupId]] = {}
        for group in groups:
            tag, since = self._joined.get(group, BEFORE_ALL), self._tags.get(group)
            if tag != BEFORE_ALL and tag != since:
                together.setdefault((self._lane_of[group], tag, since), []).append(group)
        for (version, tag, since), members in together.items():
            checkpoints = self._lanes[version].checkpoints
            yield from checkpoints.take(members, tag, since)
            for group in members:
                self._tags[group] = tag
                checkpoints.forget(group, tag)

    def _prepare(self, order: PrepareGroup) -> GroupPrepared:
        group, last = order.group, order.increments[-1]
        self._drop(group)
        version = len(last.floors)
        if version <= len(order.changes):  # else of a change that we have not heard of: it waits for its assignment
            checkpoints = self._lane(version, order.changes).checkpoints
            self._pieces[group] = checkpoints.restoring(order.increments, order.base)
            links = tuple((one.since, one.tag) for one in order.increments)
            self._prepared[group] = _Prepared(version, links, last.directory)
            return self._prepare_more(group)
        return GroupPrepared(group, last.tag)

    def _prepare_more(self, group: GroupId) -> GroupPrepared:
        for _ in self._pieces[group]:
            return GroupPrepared(group, self._prepared[group].tag, is_whole=False)
        del self._pieces[group]
        return GroupPrepared(group, self._prepared[group].tag)

    def _restore(self, order: RestoreGroup) -> GroupRestored:
        group, increments = order.group, order.increments
        prepared = self._prepared.get(group)
        is_there = prepared is not None and prepared.fits(increments)
        if not is_there:
            self._drop(group)
        version = len(increments[-1].floors) if increments else 0
        lane = self._lane(version, order.changes)
        if prepared is not None and is_there:
            del self._prepared[group]
            deque(self._pieces.pop(group, ()), maxlen=0)
            if missing := increments[len(prepared.links) :]:
                lane.checkpoints.extend(missing)
        elif increments:
            lane.checkpoints.restore(increments, order.base)
        if increments:
            self._tags[group] = increments[-1].tag
        else:
            lane.join.assign_empty(group)
        tag = increments[-1].tag if increments else BEFORE_ALL
        self._lane_of[group], self._joined[group] = version, tag
        return GroupRestored(group, order.version, tag)

    def _drop(self, group: GroupId) -> None:
        if (prepared := self._prepared.pop(group, None)) is not None:
            self._pieces.pop(group, None)
            self._lanes[prepared.lane].checkpoints.release(group)
            self._close_empty_lanes()
        if group in self._lane_of:
            self._lanes[self._lane_of.pop(group)].checkpoints.release(group)
            del self._joined[group]
            self._tags.pop(group, None)
            self._close_empty_lanes()

    def _measure(self) -> StateMeasured:
        rows = np.zeros(self.plan.partitions, np.int64)
        oldest = FOREVER
        for lane in self._lanes.values():
            more, time = lane.join.census()
            rows, oldest = rows + more, min(oldest, time)
        held = sum(lane.join.bytes_held() for lane in self._lanes.values())
        each = held / max(1, int(rows.sum()))
        groups = tuple((group, int(rows[group] * each)) for group in sorted(self._lane_of))
        return StateMeasured(held, groups, oldest_ns=None if oldest == FOREVER else oldest)


def _work(join: WindowJoin) -> int:
    """Comparisons so far, of a method that counts them."""
    return int(getattr(join.method, "comparisons", 0))
