"""Kernels before they are needed: each is called once with a row, so that none is loaded, or at a first start compiled,
while rows wait. A gateway or a worker does this before it says that it is there.
"""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa

from joinery.flow import ingest
from joinery.flow.checksum import checksum_of
from joinery.hybrid.grouped import EMPTY, GROUP_SHIFT, group_cut, together
from joinery.hybrid.segments import Cut, Relation, Segment, row_bytes
from joinery.join.plan import JoinPlan
from joinery.join.state import Increment
from joinery.machine.backlog import Backlog
from joinery.machine.facts import IncrementsTaken, TableRead
from joinery.machine.hybrid_module import STREAM, TABLE, HybridModule, stored_schema
from joinery.machine.join_module import JoinModule
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
from joinery.machine.table_orders import TakeTable
from joinery.model.ids import GroupId, MapVersion, ProducerId, RecordNo, Term
from joinery.model.tuples import TupleBatch
from joinery.partition.hashing import groups_of
from joinery.window.sliding import Marks
from joinery.window.watermark import StreamClock


def warm_gateway(plan: JoinPlan) -> None:
    """What a gateway calls for every batch."""
    for batch in _samples(plan):
        checksum_of(batch.rows)
        StreamClock(0).late(ProducerId("nobody"), batch.times)
    _exchange(plan)


def warm_worker(plan: JoinPlan) -> None:
    """What a worker calls for every batch and for a move; a query that runs in order does it in its first."""
    if plan.table is not None:
        _warm_table(plan)
    elif not plan.runs_in_order:
        module, groups = JoinModule(plan), _all_groups(plan)
        for group in groups:
            _do(module, RestoreGroup(group, MapVersion(1), (), None, ()))
        exchange = _exchange(plan)
        _do(module, JoinBatch(exchange))
        before = _taken(module, groups)
        _do(module, JoinBatch(replace(exchange, after=np.zeros(plan.partitions, np.int64), upto=RecordNo(1))))
        _warm_move(plan, before, _taken(module, groups))
        _do(module, MeasureState())
        _do(module, DropGroups(groups))


def _warm_move(plan: JoinPlan, before: tuple[Increment, ...], after: tuple[Increment, ...]) -> None:
    """The group that has rows comes: a worker's first move should not be its slowest."""
    module = JoinModule(plan)
    for first, last in zip(before, after, strict=True):
        if any(len(batch) for batch in first.rows):
            _do(module, PrepareGroup(first.group, (first,), None, ()))
            _do(module, RestoreGroup(first.group, MapVersion(2), (first, last), None, ()))


def _taken(module: JoinModule, groups: tuple[GroupId, ...]) -> tuple[Increment, ...]:
    (fact,) = module.perform(TakeIncrements(groups))
    return fact.increments if isinstance(fact, IncrementsTaken) else ()


def _warm_table(plan: JoinPlan) -> None:
    """A row waits, its segment comes, and another row finds it in memory."""
    module = HybridModule(plan)
    for group in _all_groups(plan):
        _do(module, RestoreGroup(group, MapVersion(1), (), None, ()))
    relation, segment = _one_row_table(plan)
    first = replace(_exchange(plan), table=1)
    batches = tuple(batch for batch in first.batches if batch.stream == STREAM)
    again = replace(first, after=np.zeros(plan.partitions, np.int64), upto=RecordNo(1), batches=batches)
    _do(module, JoinBatch(replace(first, batches=batches)))
    for read in (TableRead(relation, ()), TableRead(None, (segment,))):
        _do(module, TakeTable(read, 0))
    _do(module, JoinBatch(again))


def _one_row_table(plan: JoinPlan) -> tuple[Relation, Segment]:
    schema, key = stored_schema(plan), plan.formats[TABLE].key
    rows = pa.RecordBatch.from_arrays([_value(field.type) for field in schema], schema=schema)
    hashes, words, _ = key.digest(rows)
    kind, size, own = "range" if key.is_word else "hash", row_bytes(rows), int(groups_of(hashes, plan.partitions)[0])
    cuts: list[Cut] = [EMPTY] * plan.partitions
    cuts[own] = group_cut(kind, words, hashes, size, int(size.sum()), None)
    relation = Relation(1, together(kind, cuts), size, np.ones(1, np.int64))
    return relation, Segment(own << GROUP_SHIFT, 1, words.copy(), rows, int(size.sum()))


def _all_groups(plan: JoinPlan) -> tuple[GroupId, ...]:
    return tuple(GroupId(group) for group in range(plan.partitions))


def _do(module: JoinModule | HybridModule, order: ModuleOrder) -> None:
    for _ in module.perform(order):
        pass


def _exchange(plan: JoinPlan) -> Exchange:
    """A message with one row of each stream, all with the same key."""
    groups, after, marks = np.arange(plan.partitions), np.full(plan.partitions, BEFORE_ALL), Marks((0,) * plan.streams)
    backlog = Backlog(plan.partitions, RecordNo(0))
    backlog.add(_samples(plan), marks)
    batches = backlog.batch(groups, after, RecordNo(0))
    return Exchange(Term(1), MapVersion(1), groups, after, RecordNo(0), marks, batches, ())


def _samples(plan: JoinPlan) -> list[TupleBatch]:
    rows = (
        pa.RecordBatch.from_arrays([_value(f.type) for f in form.schema], schema=form.schema) for form in plan.formats
    )
    return [ingest.read(form, batch, first_place=0) for form, batch in zip(plan.formats, rows, strict=True)]


def _value(kind: pa.DataType) -> pa.Array:
    """A column of one row."""
    if pa.types.is_string(kind):
        return pa.array(["a text"], kind)
    if pa.types.is_fixed_size_binary(kind):
        return pa.array([bytes(kind.byte_width)], kind)
    if pa.types.is_binary(kind):
        return pa.array([b"bytes"], kind)
    if pa.types.is_boolean(kind):
        return pa.array([True], kind)
    return pa.array([Decimal(0) if pa.types.is_decimal(kind) else 0], kind)
