"""A worker's join module for a query with a stored table: the hybrid join of thesis chapter 6 (docs/hybrid.md).

It takes the orders that `machine.join_module` takes, and two more: segments that were read, and time that passed. What
it needs of the table it asks for (`TableWanted`); nothing here reads, and nothing looks at a clock.

Rule 1: a message without a version has no rows. Another is taken when its version of the table is known and the wait
        buffer has room; until then it stays in the worker's buffer. The rows of a taken message are joined at once or
        wait.
Rule 2: results of a message are told when none of its rows waits any more, in the order of the messages.
Rule 3: a group has no state that must survive. Its increments tell a tag and its marks: a tag counts only when it is
        committed, and then no row up to it waits (ADR 0012). What was not told is in the log, and is joined again.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joinery.hybrid.config import HybridConfig, Kind
from joinery.hybrid.hybrid import HybridJoin, Step
from joinery.hybrid.matching import Joined
from joinery.join.plan import JoinPlan
from joinery.join.results import Kind as PartKind
from joinery.join.results import ResultPart
from joinery.join.state import Increment
from joinery.machine import result_rows
from joinery.machine.arrivals import arrivals_of
from joinery.machine.facts import (
    BatchJoined,
    BatchTaken,
    Fact,
    GroupPrepared,
    GroupRestored,
    IncrementsTaken,
    StateMeasured,
    TableWanted,
)
from joinery.machine.log import BEFORE_ALL
from joinery.machine.messages import Exchange
from joinery.machine.orders import (
    DropGroups,
    JoinBatch,
    MeasureState,
    ModuleOrder,
    PrepareGroup,
    RestoreGroup,
    TakeIncrements,
)
from joinery.machine.table_orders import LookAfterWaiting, TakeTable
from joinery.model.errors import require
from joinery.model.ids import GroupId, RecordNo
from joinery.model.spec_table import BLOCK_BYTES, VERSION, TableSpec
from joinery.model.time import DEAD, FOREVER
from joinery.model.tuples import I64Array, TupleBatch
from joinery.partition.hashing import groups_of
from joinery.partition.keys import equal_keys
from joinery.window.sliding import Marks

STREAM, TABLE = 0, 1
PART_BYTES = 1 << 24
"""About how much one part of a message's results holds, if it is put together from small ones."""
SMALL_ROWS = 1 << 12
"""A part with more rows leaves as it is."""
KEPT_VERSIONS = 2
"""Versions that are known without a row that waits: the newest, and one for groups that are a little behind."""


def config_of(table: TableSpec, kind: Kind) -> HybridConfig:
    """The settings of a table as the join takes them."""
    return HybridConfig(
        memory_bytes=table.memory,
        wait_bytes=table.wait_buffer,
        block_bytes=BLOCK_BYTES,
        invoke_rows=table.invoke_rows,
        free_share=table.free_share,
        alpha=table.decay,
        epoch_rows=table.epoch_rows,
        rho=table.rho,
        high_mark_blocks=table.high_mark,
        low_mark_blocks=table.low_mark,
        max_wait_ns=table.max_wait,
        by_delay=True,
        kind=kind,
    )


def stored_schema(plan: JoinPlan) -> pa.Schema:
    """The columns that the table has itself: the version is not one of them."""
    schema = plan.formats[TABLE].schema
    return schema.remove(schema.get_field_index(VERSION))


@dataclass(slots=True)
class _Open:
    """A message that was taken, and the results that it has so far."""

    exchange: Exchange
    parts: list[ResultPart] = field(default_factory=list)


class HybridModule:
    """Joins what the worker's machine orders."""

    def __init__(self, plan: JoinPlan) -> None:
        if plan.table is None:
            raise ValueError("a query without a table has windows; it is joined by JoinModule")
        self.plan = plan
        config = config_of(plan.table, Kind(plan.type.value))
        self._join = HybridJoin(config, stored_schema(plan), _Condition.of(plan))
        self._held: JoinBatch | None = None
        """A message that cannot be taken yet (rule 1)."""
        self._left: set[GroupId] = set()
        """Groups of that message that have left since: they may be back already, at another place."""
        self._asked: set[int] = set()
        """Versions that were asked for."""
        self._open: deque[_Open] = deque()
        self._first = 0
        """The tag of the oldest open message."""
        self._joined: dict[GroupId, RecordNo] = {}
        self._marks: dict[GroupId, Marks] = {}
        self._tags: dict[GroupId, RecordNo] = {}

    def perform(self, order: ModuleOrder) -> Iterator[Fact]:
        """Do what is ordered; the answers, as they come."""
        match order:
            case JoinBatch():
                require(self._held is None, "a message was given before the last one was taken")
                self._held, self._left = order, set()
                yield from self._take_held(order.now_ns)
            case TakeTable():
                yield from self._take_table(order)
            case LookAfterWaiting():
                yield from self._stepped(self._join.on_time(order.now_ns))
                yield from self._take_held(order.now_ns)
            case TakeIncrements():
                for group in order.whole:
                    self._tags.pop(group, None)
                yield IncrementsTaken(tuple(self._increments(order.groups)))
            case PrepareGroup():
                yield GroupPrepared(order.group, order.increments[-1].tag)
            case RestoreGroup():
                yield self._restore(order)
            case DropGroups():
                for group in order.groups:
                    self._drop(group)
            case MeasureState():
                yield self._measure()

    # --- joining

    def _take_held(self, now_ns: int) -> Iterator[Fact]:
        """Take the message that waits, if it can be (rule 1)."""
        if self._held is None:
            return
        exchange = self._held.exchange
        if exchange.table and exchange.table not in self._join.versions:
            if exchange.table not in self._asked:
                self._asked.add(exchange.table)
                yield TableWanted(version=exchange.table)
            return
        if self._join.is_overfull:
            return
        held, self._held = self._held, None
        step, rows = self._take(held, now_ns), sum(len(batch) for batch in exchange.batches)
        yield BatchTaken(comparisons=rows)
        yield from self._stepped(step)

    def _take(self, order: JoinBatch, now_ns: int) -> Step:
        exchange = order.exchange
        for number, after in zip(exchange.groups.tolist(), exchange.after.tolist(), strict=True):
            if (group := GroupId(number)) not in self._left:
                require(self._joined[group] == after, f"a batch after {after}, but joined is {self._joined[group]}")
                self._joined[group], self._marks[group] = exchange.upto, exchange.marks
        tag = self._first + len(self._open)
        self._open.append(_Open(exchange))
        steps = []
        for batch in exchange.batches:
            require(batch.stream == STREAM, "a stored table has sent rows")
            if batch.late is not None:
                self._open[-1].parts += self._late(batch.take(batch.late))
                batch = replace(batch.take(~batch.late), late=None)
            steps.append(
                self._join.on_batch(
                    batch, version=exchange.table, tag=tag, now_ns=now_ns, behind_bytes=order.behind_bytes
                )
            )
        if exchange.marks.watermarks[STREAM] == FOREVER:
            steps.append(self._join.on_end())
        self._retire(exchange.table)
        return _together(steps)

    def _retire(self, newest: int) -> None:
        """Forget versions for which nobody waits; one that is named again is asked for again."""
        if len(self._join.versions) <= KEPT_VERSIONS:
            return
        older = [version for version in self._join.idle_versions if version < newest]
        for version in older[: -(KEPT_VERSIONS - 1)]:
            self._join.retire(version)

    def _take_table(self, order: TakeTable) -> Iterator[Fact]:
        relation = order.read.relation
        if relation is not None:
            self._asked.discard(relation.version)
            self._join.on_version(relation)
        yield from self._stepped(self._join.on_segments(order.read.segments))
        yield from self._take_held(order.now_ns)

    def _stepped(self, step: Step) -> Iterator[Fact]:
        """Results to their messages, probes to the worker, and whatever is complete is told."""
        for joined in step.results:
            self._keep(joined)
        if step.probes:
            yield TableWanted(probes=step.probes)
        oldest = self._join.oldest_tag
        while self._open and (oldest is None or self._first < oldest):
            done = self._open.popleft()
            self._first += 1
            parts = _few(done.parts)
            yield BatchJoined(done.exchange, parts, last=True, arrivals=arrivals_of(parts, done.exchange))

    # --- results

    def _keep(self, joined: Joined) -> None:
        """Result rows as they leave, each with the message in which its stream row came."""
        mask = self._filtered(joined)
        if mask is not None and not mask.all():
            joined = _chosen(joined, np.flatnonzero(mask))
        if not len(joined):
            return
        if (np.diff(joined.tags) < 0).any():
            joined = _chosen(joined, np.argsort(joined.tags, kind="stable"))
        part, tags = self._shown(joined), joined.tags
        edges = np.flatnonzero(np.diff(tags, prepend=-1))
        for start, stop in zip(edges.tolist(), [*edges[1:].tolist(), tags.size], strict=True):
            own = part if edges.size == 1 else result_rows.cut(part, start, stop)
            self._open[int(tags[start]) - self._first].parts.append(own)

    def _shown(self, joined: Joined) -> ResultPart:
        """With the columns of the output."""
        columns = [self._column(joined, column.stream, column.number) for column in self.plan.output]
        rows = pa.RecordBatch.from_arrays(columns, schema=self.plan.schema)
        groups, stream = groups_of(joined.stream.hashes, self.plan.partitions), joined.stream
        origin = np.zeros(len(joined), np.int32)
        return ResultPart(PartKind.RESULT, rows, groups, stream.times, STREAM, origin, (stream.places, None))

    def _column(self, joined: Joined, stream: int, number: int) -> pa.Array:
        if stream == STREAM:
            return joined.stream.rows.column(number)
        name = self.plan.formats[TABLE].schema.names[number]
        return pa.array(joined.versions) if name == VERSION else joined.relation.column(name)

    def _filtered(self, joined: Joined) -> NDArray[np.bool_] | None:
        condition = self.plan.filter
        if condition is None:
            return None
        columns = {}
        for stream, name in condition.columns:
            form = next(form for form in self.plan.formats if form.name == stream)
            columns[stream, name] = self._column(joined, form.index, form.schema.get_field_index(name))
        return condition.mask(columns, len(joined))

    def _late(self, batch: TupleBatch) -> list[ResultPart]:
        if not len(batch):
            return []
        groups = groups_of(batch.hashes, self.plan.partitions)
        return [ResultPart(PartKind.LATE, batch.rows, groups, batch.times, STREAM, None, (batch.places, None))]

    # --- state

    def _restore(self, order: RestoreGroup) -> GroupRestored:
        self._drop(order.group)
        tag = order.increments[-1].tag if order.increments else BEFORE_ALL
        if order.increments:
            self._tags[order.group], self._marks[order.group] = tag, order.increments[-1].marks
        self._joined[order.group] = tag
        return GroupRestored(order.group, order.version, tag)

    def _drop(self, group: GroupId) -> None:
        """The group is no longer here. Its rows that wait go on waiting; what they find is refused by the collector."""
        self._left.add(group)
        for held in (self._joined, self._marks, self._tags):
            held.pop(group, None)

    def _increments(self, groups: Iterable[GroupId]) -> Iterator[Increment]:
        nothing = tuple(_no_rows(form.index, form.schema) for form in self.plan.formats)
        flags, places = (np.empty(0, np.uint8),) * 2, (np.empty(0, np.int64),) * 2
        for group in groups:
            tag, since = self._joined.get(group, BEFORE_ALL), self._tags.get(group)
            if tag not in (BEFORE_ALL, since):
                self._tags[group] = tag
                yield Increment(group, tag, since, nothing, flags, places, self._marks[group], (DEAD, DEAD), (), ())

    def _measure(self) -> StateMeasured:
        held, groups = self._join.bytes_held, sorted(self._joined)
        each = tuple((group, held // len(groups)) for group in groups)
        return StateMeasured(held, each, waiting_rows=self._join.waiting_rows)


@dataclass(frozen=True, slots=True)
class _Condition:
    """What a pair must satisfy besides an equal word: the real key, `where`."""

    plan: JoinPlan

    @staticmethod
    def of(plan: JoinPlan) -> "_Condition | None":
        """None: the word is the key, and there is no `where`."""
        return None if plan.formats[STREAM].key.is_word and plan.where is None else _Condition(plan)

    def __call__(self, stream: pa.RecordBatch, relation: pa.RecordBatch) -> NDArray[np.bool_]:
        """One answer per pair."""
        ours, theirs = (form.key for form in self.plan.formats)
        holds = np.ones(stream.num_rows, np.bool_)
        if not ours.is_word:
            holds &= equal_keys(ours.canonical(stream), theirs.canonical(relation))
        if self.plan.where is not None:
            sides = {self.plan.formats[STREAM].name: stream, self.plan.formats[TABLE].name: relation}
            columns = {(side, name): sides[side].column(name) for side, name in self.plan.where.columns}
            holds &= self.plan.where.mask(columns, stream.num_rows)
        return holds


def _chosen(joined: Joined, index: I64Array) -> Joined:
    rows = joined.relation.take(pa.array(index))
    return Joined(joined.stream.take(index), rows, joined.versions[index], joined.tags[index])


def _few(parts: list[ResultPart]) -> tuple[ResultPart, ...]:
    """The results of a message in a few parts: what came with segments is small, and is put together."""
    made, small, nbytes = list[ResultPart](), list[ResultPart](), 0
    for part in parts:
        if part.kind is PartKind.LATE or part.times.size > SMALL_ROWS:
            made.append(part)
            continue
        small.append(part)
        nbytes += result_rows.size(part)
        if nbytes > PART_BYTES:
            made.append(_one(small))
            small, nbytes = [], 0
    return (*made, _one(small)) if small else tuple(made)


def _one(parts: list[ResultPart]) -> ResultPart:
    if len(parts) == 1:
        return parts[0]
    groups, times = (np.concatenate([getattr(part, name) for part in parts]) for name in ("groups", "times"))
    places = np.concatenate([part.members[STREAM] for part in parts if part.members[STREAM] is not None])
    rows = pa.concat_batches([part.rows for part in parts])
    return replace(parts[0], rows=rows, groups=groups, times=times, origin=np.zeros(times.size, np.int32),
                   members=(places, None))  # fmt: skip


def _together(steps: list[Step]) -> Step:
    return Step(
        tuple(one for step in steps for one in step.results), tuple(one for step in steps for one in step.probes)
    )


def _no_rows(stream: int, schema: pa.Schema) -> TupleBatch:
    none = np.empty(0, np.int64)
    return TupleBatch(stream, none, none.astype(np.uint64), none, None, none, pa.RecordBatch.from_pylist([], schema))
