"""What the tasks of the segmenting job do (`segmenting`): one partition-group of a stored table each; without Spark.

    rows -> their groups (as the gateway routes) -> per group: cut, sort, compare with the version before, write

A segment whose rows are those of the version before is not written again and keeps its stamp, so that workers keep it
in memory. Rows of equal segments lie in equal order: they are sorted by every column.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinery.adapters.lookups import read_rows, write_rows
from joinery.flow import ingest
from joinery.hybrid.grouped import (
    EMPTY,
    GROUP_SHIFT,
    GroupedCut,
    group_cut,
    kept_segments,
    segments_within,
    together,
)
from joinery.hybrid.segments import Cut, HashCut, I32Array, RangeCut, Relation, row_bytes
from joinery.join.plan import JoinPlan
from joinery.machine.hybrid_module import TABLE, stored_schema
from joinery.model.errors import Bug
from joinery.model.spec import JoinQuerySpec
from joinery.model.tuples import I64Array
from joinery.partition.format import StreamFormat
from joinery.partition.hashing import groups_of
from joinery.spark.segment_files import SegmentFiles, write_whole

GROUP: Final = "__joinery_group"


@dataclass(frozen=True, slots=True)
class Task:
    """What every task of one version must know; it travels with the job."""

    spec: str
    folder: str
    version: int
    before: int
    """The version before; 0: there is none."""


def task_of(spec: JoinQuerySpec, files: SegmentFiles, version: int, before: int) -> Task:
    """The tasks of one version of a query's table."""
    return Task(json.dumps(spec.to_dict()), str(files.folder), version, before)


def relation_from(told: Iterable[Mapping[str, Any]], task: Task) -> Relation:
    """The version that all groups together are; a group that nobody told of has no rows."""
    plan = _plan(task.spec)
    cuts: list[Cut] = [EMPTY] * plan.partitions
    sizes = [np.empty(0, np.int64)] * plan.partitions
    stamps = list(sizes)
    for row in told:
        group = row["group"]
        cuts[group] = _cut_of(row)
        sizes[group], stamps[group] = (np.frombuffer(row[name], np.int64) for name in ("sizes", "stamps"))
    return Relation(task.version, together(kind_of(plan), cuts), np.concatenate(sizes), np.concatenate(stamps))


def is_same(relation: Relation, before: Relation) -> bool:
    """Whether a version holds the rows of the one before."""
    same = relation.cut.segments == before.cut.segments and np.array_equal(relation.stamps, before.stamps)
    return same and bool(relation.cut.alike(before.cut).all())


def kind_of(plan: JoinPlan) -> str:
    """By what segments are cut: ranges of a key that is one integer, if nobody says otherwise."""
    cut = "auto" if plan.table is None else plan.table.cut
    return "range" if cut != "hash" and plan.formats[TABLE].key.is_word else "hash"


def stored_form(plan: JoinPlan) -> StreamFormat:
    """The table's own columns and its key."""
    return replace(plan.formats[TABLE], schema=stored_schema(plan))


@lru_cache(maxsize=4)
def _plan(spec: str) -> JoinPlan:
    return JoinPlan.of(JoinQuerySpec.parse(json.loads(spec)))


@lru_cache(maxsize=2)
def _before(folder: str, version: int) -> Relation:
    return SegmentFiles(Path(folder)).relation(version)


def with_groups(task: Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows with the groups that they belong to; a row without a key matches nothing, and stays behind."""
    plan = _plan(task.spec)
    form = stored_form(plan)
    for batch in batches:
        hashes, _, keyed = form.key.digest(ingest.conform(form, batch))
        groups = pa.array(groups_of(hashes, plan.partitions).astype(np.int32))
        made = pa.RecordBatch.from_arrays([*batch.columns, groups], [*batch.schema.names, GROUP])
        yield made if keyed is None else made.filter(pa.array(keyed))


def cut_group(task: Task, group: int, table: pa.Table) -> list[dict[str, Any]]:
    """One group: cut, sorted, compared with the version before, and written where it differs."""
    plan = _plan(task.spec)
    form, kind, theta = stored_form(plan), kind_of(plan), 1 if plan.table is None else plan.table.theta
    rows = _one_batch(form, table.drop_columns([GROUP]))
    hashes, words, _ = form.key.digest(rows)
    before = _cut_before(task, group) if task.before else None
    cut = group_cut(kind, words, hashes, row_bytes(rows), theta, before)
    rows, of = _in_order(rows, words, segments_within(cut, words, hashes))
    edges = np.searchsorted(of, np.arange(cut.segments + 1))
    kept = np.zeros(cut.segments, np.bool_) if before is None else kept_segments(cut, before)
    sizes, stamps = np.zeros(cut.segments, np.int64), np.full(cut.segments, task.version, np.int64)
    old = _old_stamps(task, group) if kept.any() else {}
    for segment in range(cut.segments):
        own = rows.slice(edges[segment], edges[segment + 1] - edges[segment])
        sizes[segment] = row_bytes(own).sum()
        number = (group << GROUP_SHIFT) | segment
        stamps[segment] = _written(task, number, own, old.get(number) if kept[segment] else None)
    return _told(group, cut, sizes, stamps)


def _cut_before(task: Task, group: int) -> Cut:
    cut = _before(task.folder, task.before).cut
    if not isinstance(cut, GroupedCut):
        raise Bug("a stored relation is cut by groups")
    return cut.of(group)


def _one_batch(form: StreamFormat, table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    rows = batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
    return ingest.conform(form, rows)


def _in_order(rows: pa.RecordBatch, words: I64Array, of: I32Array) -> tuple[pa.RecordBatch, I32Array]:
    """By segment, then by word, then by everything: equal rows always lie alike."""
    names = [f"c{place}" for place in range(rows.num_columns)]
    sortable = pa.table([pa.array(of), pa.array(words), *rows.columns], ["segment", "word", *names])
    order = pc.sort_indices(sortable, [(name, "ascending") for name in sortable.schema.names])
    return rows.take(order), of[order.to_numpy()]


def _old_stamps(task: Task, group: int) -> dict[int, int]:
    relation = _before(task.folder, task.before)
    numbers = relation.cut.numbers
    mine = (numbers >> GROUP_SHIFT) == group
    return dict(zip(numbers[mine].tolist(), relation.stamps[mine].tolist(), strict=True))


def _written(task: Task, number: int, rows: pa.RecordBatch, old_stamp: int | None) -> int:
    """The version that wrote these rows: an older one if it wrote the same, else this one, now."""
    files = SegmentFiles(Path(task.folder))
    if old_stamp is not None:
        old = read_rows(files.path(old_stamp, number).read_bytes(), rows.schema)
        if old.equals(rows):
            return old_stamp
    write_whole(files.path(task.version, number), write_rows(rows))
    return task.version


def _told(group: int, cut: Cut, sizes: I64Array, stamps: I64Array) -> list[dict[str, Any]]:
    bounds = cut if isinstance(cut, RangeCut) else EMPTY
    blobs = {"slots": bounds.slots.astype(np.int32).tobytes(), "sizes": sizes.tobytes(), "stamps": stamps.tobytes()}
    whole = {"group": group, "low": bounds.low, "high": bounds.high, "shift": bounds.shift, "segments": cut.segments}
    return [{**whole, **blobs}]


def _cut_of(row: Mapping[str, Any]) -> Cut:
    slots = np.frombuffer(row["slots"], np.int32)
    if not slots.size:
        return HashCut(row["segments"])
    return RangeCut(row["low"], row["high"], row["shift"], slots, row["segments"])
