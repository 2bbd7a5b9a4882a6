"""Station 7 of 8, collector: which of the taken rows the next commit gives out, in any order or ordered by time.

`PlainOutput` gives out all that was taken. `OrderedOutput` (`output: {order: time, disorder: k}`) holds rows back, so
that a row is preceded by at most k rows with a later time. What waits costs memory here and latency for the reader.

Frontier: the smallest watermark, over all streams and groups, at the end of the last batch taken of each group: since
watermarks belong to records and never go back, that of the last record that was taken of every group. (What any group
tells of a record holds for all: a group that was committed to its end needs no batch to say so again.) No result still
to come has a time below it. A pair is told with its member that stands later in the log; that one is not
late, so its time is at least its stream's watermark before it, and the pair's time is that of its latest member. A row
without a partner is told with time t + W by the first watermark above that, so t + W was not passed before. A stream
that ended has FOREVER; it sends nothing. Two things break this. A row that is kept without a partner in a window
without an end in time is told with its own time t, long after: such a query gets no frontier before the other streams
have ended. And a window that is shortened by a change of the spec closes rows earlier than was waited for: at that
change, and only for rows without a partner, the order is broken once. Neither makes rows be lost or told twice.

Rule 1: what is out is a function of the durable commit. With F = `before_ns`: a row of a batch (a, b] of group g is
        out iff b <= seen[g] and its time < F. A late row is out iff b <= seen[g]; late rows are not ordered. So of a
        batch that is made again, rows that are out are dropped when it is taken; it must not reach across seen[g].
Rule 2: committed[g] is the greatest batch end up to which every row of g is out; batches are made again from there.
Rule 3: F never goes back, and stands still while a group is behind seen[g]: of what that group still has to make
        again, no row at or above F is here. So exactness does not hang on the frontier.
Rule 4: after a commit at most k rows at or above the frontier are out. So F = frontier, and with k > 0 further, over
        the earliest rows beyond it, as many as k allows; rows of equal time go together or not at all.
Rule 5: if F is already above the frontier and new rows between them would be more than k allows, nothing is given out
        until the frontier has caught up. Giving out some of them would only move the disorder to the others.
Rule 6: a new collector knows F, but not how many rows above the frontier are out: it takes it to be k, until the
        frontier has reached F.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from joinery.join.plan import JoinType
from joinery.join.results import Kind, ResultPart
from joinery.machine import result_rows
from joinery.machine.ports import Commit
from joinery.model.errors import require
from joinery.model.ids import RecordNo
from joinery.model.quantities import TimeWindow
from joinery.model.spec import JoinQuerySpec
from joinery.model.time import DEAD, FOREVER
from joinery.model.tuples import I64Array
from joinery.window.sliding import Marks

_NO_TIMES: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """What the next commit gives out, and what it then says."""

    parts: tuple[ResultPart, ...]
    committed: I64Array
    seen: I64Array
    before_ns: int


class Output(Protocol):
    """What is taken and not yet given out."""

    @property
    def rows(self) -> int:
        """How many rows that is."""

    def take(self, groups: I64Array, after: I64Array, upto: RecordNo, marks: Marks, parts: list[ResultPart]) -> None:
        """The batches (after, upto] of these groups, whole; `parts` hold rows of these groups only."""

    def draft(self, taken: I64Array, committed: I64Array) -> Draft | None:
        """The next commit, which will become durable before anything is forgotten; None: there is nothing to say."""

    def forget(self, groups: NDArray[np.bool_]) -> None:
        """Drop what was taken of these groups and is in no commit: they have a new owner."""

    def check(self, taken: I64Array) -> None:
        """Stop with a `Bug` if this contradicts itself."""


def output_of(spec: JoinQuerySpec, commit: Commit) -> Output:
    """The output that a query asks for, as it goes on after a commit."""
    if spec.output.order == "none":
        return PlainOutput(spec.partitions)
    return OrderedOutput(commit, spec.output.disorder, endless_streams(spec))


def endless_streams(spec: JoinQuerySpec) -> tuple[int, ...]:
    """Streams whose rows are told without a partner, with their own time, though their window has no end in time."""

    def is_endless(stream: int) -> bool:
        window = spec.streams[stream].window
        return not isinstance(window, TimeWindow) or window.is_unbounded

    return tuple(stream for stream in JoinType(spec.join.type).kept_unmatched if is_endless(stream))


class PlainOutput:
    """No order: every commit gives out all that was taken."""

    def __init__(self, groups: int) -> None:
        self._nowhere = np.full(groups, -1, np.int64)
        self._parts: list[ResultPart] = []

    @property
    def rows(self) -> int:
        return sum(part.times.size for part in self._parts)

    def take(self, groups: I64Array, after: I64Array, upto: RecordNo, marks: Marks, parts: list[ResultPart]) -> None:  # noqa: ARG002
        self._parts += parts

    def draft(self, taken: I64Array, committed: I64Array) -> Draft | None:
        if not (taken > committed).any():
            return None
        parts, self._parts = tuple(self._parts), []
        return Draft(parts, taken.copy(), self._nowhere, DEAD)

    def forget(self, groups: NDArray[np.bool_]) -> None:
        self._parts = _without(self._parts, groups)

    def check(self, taken: I64Array) -> None:
        held = sum(part.times.size for part in self._parts)
        require(held == 0 or bool((taken >= 0).any()), f"{held} rows are here, but nothing was taken")


@dataclass(slots=True, eq=False)
class _Held:
    """What is not out of the batches that came in one message."""

    after: I64Array
    """Per group: where its batch began."""
    waiting: I64Array
    """Per group: its rows that are not out."""
    parts: list[ResultPart]
    """Each sorted by time."""

    def give_out(self, before_ns: int) -> list[ResultPart]:
        """Take away the rows before a time."""
        gone, left = [], []
        for part in self.parts:
            end = int(np.searchsorted(part.times, before_ns))
            if end:
                gone.append(result_rows.cut(part, 0, end))
                self.waiting -= np.bincount(gone[-1].groups, minlength=self.waiting.size)
            if end < part.times.size:
                left.append(result_rows.cut(part, end, part.times.size) if end else part)
        self.parts = left
        return gone


class OrderedOutput:
    """Rows by time, with at most k rows out of order before any row."""

    def __init__(self, commit: Commit, disorder: int, endless: tuple[int, ...] = ()) -> None:
        groups = commit.committed.size
        self._disorder, self._endless = disorder, endless
        self.before_ns = commit.before_ns
        self.seen = np.full(groups, -1, np.int64) if commit.seen is None else commit.seen.copy()
        self._marks: list[tuple[int, int]] = []
        """Records at which a batch ended, in order, each with the bound of all results made after it."""
        self._floor = self.before_ns if disorder == 0 else DEAD
        """No row that is not out, taken or to come, was below this at the last commit."""
        self._beyond: I64Array = _NO_TIMES
        """Times of the rows that are out and at or above the floor; at most k."""
        self._is_beyond_known = disorder == 0 or self.before_ns == DEAD
        self._held: list[_Held] = []
        self._late: list[ResultPart] = []

    @property
    def rows(self) -> int:
        late = sum(part.times.size for part in self._late)
        return late + sum(int(held.waiting.sum()) for held in self._held)

    def take(self, groups: I64Array, after: I64Array, upto: RecordNo, marks: Marks, parts: list[ResultPart]) -> None:
        across = groups[(after < self.seen[groups]) & (upto > self.seen[groups])]
        require(across.size == 0, f"batches of groups {across.tolist()} up to {upto} reach across what was seen")
        again = np.zeros(self.seen.size, np.bool_)
        again[groups[self.seen[groups] >= upto]] = True
        self._learn(int(upto), marks)
        self._late += _without([part for part in parts if part.kind is Kind.LATE], again)
        fresh = [self._not_out(part, again) for part in parts if part.kind is Kind.RESULT]
        fresh = [_sorted(part) for part in fresh if part.times.size]
        if fresh:
            began = np.full(self.seen.size, -1, np.int64)
            began[groups] = after
            rows = np.concatenate([part.groups for part in fresh])
            self._held.append(_Held(began, np.bincount(rows, minlength=self.seen.size), fresh))

    def _not_out(self, part: ResultPart, again: NDArray[np.bool_]) -> ResultPart:
        """Rule 1, for batches that are made again."""
        return result_rows.keep(part, ~again[part.groups] | (part.times >= self.before_ns))

    def _learn(self, record: int, marks: Marks) -> None:
        place = bisect_left(self._marks, (record, DEAD))
        if place == len(self._marks) or self._marks[place][0] != record:
            is_open = any(marks.frontier(stream) < FOREVER for stream in self._endless)
            self._marks.insert(place, (record, DEAD if is_open else min(marks.watermarks)))

    def _frontier(self, taken: I64Array) -> int:
        """No row that was not taken is below this; marks before it are not needed any more."""
        known = bisect_right(self._marks, (int(taken.min()), FOREVER))
        del self._marks[: max(0, known - 1)]
        return max(self._floor, self._marks[0][1] if known else DEAD)

    def draft(self, taken: I64Array, committed: I64Array) -> Draft | None:
        frontier, is_behind = self._frontier(taken), bool((taken < self.seen).any())
        if is_behind:  # rule 3
            frontier = min(frontier, self.before_ns)
        before, beyond = max(self.before_ns, frontier), self._beyond[self._beyond >= frontier]
        is_known = self._is_beyond_known or frontier >= self.before_ns
        out = beyond.size if is_known else self._disorder
        room = self._disorder - out - self._count(frontier, before)
        if room < 0:  # rule 5
            return None
        if room > 0 and not is_behind:
            before = self._reach(before, room)
        if not self._late and self._count(DEAD, before) == 0 and (self._committed(taken) == committed).all():
            return None
        parts = self._give_out(before)
        times = [part.times[part.times >= frontier] for part in parts if part.kind is Kind.RESULT]
        self._beyond = np.concatenate([beyond, *times]) if is_known else _NO_TIMES
        self._floor, self._is_beyond_known = frontier, is_known
        self.before_ns, self.seen = before, np.maximum(self.seen, taken)
        return Draft(parts, self._committed(taken), self.seen, before)

    def _give_out(self, before_ns: int) -> tuple[ResultPart, ...]:
        gone = [part for held in self._held for part in held.give_out(before_ns)]
        self._held = [held for held in self._held if held.parts]
        late, self._late = self._late, []
        return (*result_rows.by_time(gone), *late)

    def _count(self, start_ns: int, before_ns: int) -> int:
        """How many held rows have a time in [start, before)."""
        if start_ns >= before_ns:
            return 0
        parts = [part for held in self._held for part in held.parts]
        return sum(int(np.diff(np.searchsorted(part.times, (start_ns, before_ns)))[0]) for part in parts)

    def _reach(self, start_ns: int, room: int) -> int:
        """The time before which at most `room` held rows from the start on can go too (rule 4)."""
        earliest = [_NO_TIMES]
        for part in (part for held in self._held for part in held.parts):
            first = int(np.searchsorted(part.times, start_ns))
            earliest.append(part.times[first : first + room + 1])
        times = np.sort(np.concatenate(earliest))
        fit = times.size if times.size <= room else int(np.searchsorted(times, times[room]))
        return int(times[fit - 1]) + 1 if fit else start_ns

    def _committed(self, taken: I64Array) -> I64Array:
        """Rule 2."""
        found = taken.copy()
        for held in self._held:
            waits = held.waiting > 0
            found[waits] = np.minimum(found[waits], held.after[waits])
        return found

    def forget(self, groups: NDArray[np.bool_]) -> None:
        self._late = _without(self._late, groups)
        for held in self._held:
            held.parts = _without(held.parts, groups)
            held.waiting[groups] = 0
        self._held = [held for held in self._held if held.parts]

    def check(self, taken: I64Array) -> None:
        require(self._marks == sorted(set(self._marks)), "the marks of records are not in order")
        require(self._beyond.size <= self._disorder, f"{self._beyond.size} rows are out beyond the frontier")
        for held in self._held:
            require(all((np.diff(part.times) >= 0).all() for part in held.parts), "held rows are not in order")
            rows = np.concatenate([part.groups for part in held.parts])
            require((np.bincount(rows, minlength=self.seen.size) == held.waiting).all(), "held rows are miscounted")
            ends = taken > held.after
            require(bool((ends | (held.waiting == 0)).all()), "rows are held of a batch that was not taken")


def _sorted(part: ResultPart) -> ResultPart:
    if (np.diff(part.times) >= 0).all():
        return part
    return part.take(np.argsort(part.times, kind="stable"))


def _without(parts: Sequence[ResultPart], groups: NDArray[np.bool_]) -> list[ResultPart]:
    kept = [result_rows.keep(part, ~groups[part.groups]) for part in parts]
    return [part for part in kept if part.times.size]
