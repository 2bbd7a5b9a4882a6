"""The Spark job that cuts a stored table into segments (`cutting`), as a data source: Arrow on both sides, no pandas.

Written to, it divides the table's rows over partition-groups: a task writes a file for each group (`spill`). Read from,
it cuts every group and writes its segments: a task has some of the groups, and tells a row for each.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from joinery.hybrid.segments import Relation
from joinery.join.plan import JoinPlan
from joinery.machine.hybrid_module import TABLE
from joinery.model.errors import UserMustAct, require
from joinery.model.spec import JoinQuerySpec
from joinery.spark.cutting import GROUP, MADE, Task, cut_group, relation_from, stored_form, task_of, with_groups
from joinery.spark.schemas import check_frame
from joinery.spark.segment_files import SegmentFiles

FORMAT: Final = "joinery-segments"


def read_table(spark: SparkSession, spec: JoinQuerySpec, path: str) -> DataFrame:
    """The stored table with the columns that the query declares; refused if they do not fit."""
    plan = JoinPlan.of(spec)
    form = stored_form(plan)
    frame = spark.read.format("parquet" if plan.table is None else plan.table.format).load(path)
    missing = [name for name in form.schema.names if name not in frame.columns]
    if missing:
        raise UserMustAct(
            f"spec.streams[{TABLE}].schema: found no column {', '.join(missing)} in {path} "
            f"(it has {', '.join(frame.columns)}), wanted those of the schema; correct the schema"
        )
    chosen = frame.select([f"`{name}`" for name in form.schema.names])
    check_frame(form, chosen.schema)
    return chosen


def cut_version(frame: DataFrame, spec: JoinQuerySpec, files: SegmentFiles, version: int, before: int) -> Relation:
    """Cut the table as it is now: its segments are written, and this is how it is cut."""
    spark, task = frame.sparkSession, task_of(spec, files, version, before)
    spark.dataSource.register(SegmentSource)
    slots = max(1, min(spec.partitions, spark.sparkContext.defaultParallelism))
    options = {
        "spec": task.spec, "folder": task.folder, "version": str(version), "before": str(before), "slots": str(slots),
    }  # fmt: skip
    spill = _spill(task)
    shutil.rmtree(spill, ignore_errors=True)
    spill.mkdir(parents=True)
    frame.write.format(FORMAT).options(**options).mode("append").save()
    told = spark.read.format(FORMAT).options(**options).load().collect()
    shutil.rmtree(spill, ignore_errors=True)
    return relation_from((row.asDict() for row in told), task)


class SegmentSource(DataSource):
    """Options: those of a `Task`, and how many tasks cut (slots)."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return MADE

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        return GroupWriter(self._task)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        return GroupCutter(self._task, int(self.options["slots"]))

    @property
    def _task(self) -> Task:
        told = self.options
        return Task(told["spec"], told["folder"], int(told["version"]), int(told["before"]))


class GroupWriter(DataSourceArrowWriter):
    """Divides rows over groups."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """One partition of the table, in an executor; repeated, it replaces what it wrote."""
        context = TaskContext.get()
        require(context is not None, "rows are divided by a task")
        own = _spill(self._task) / str(context.partitionId())  # type: ignore[union-attr]
        attempt = own.with_name(f".{own.name}.{os.getpid()}")
        attempt.mkdir()
        writers: dict[int, pa.RecordBatchWriter] = {}
        for rows in with_groups(self._task, iterator):
            groups = rows.column(GROUP).to_numpy()
            order = np.argsort(groups, kind="stable")
            rows, groups = rows.take(pa.array(order)), groups[order]
            edges = np.flatnonzero(np.diff(groups, prepend=-1))
            for start, stop in zip(edges.tolist(), [*edges[1:].tolist(), groups.size], strict=True):
                group = int(groups[start])
                if group not in writers:
                    writers[group] = pa.ipc.new_stream(str(attempt / f"{group}.arrows"), rows.schema)
                writers[group].write_batch(rows.slice(start, stop - start))
        for writer in writers.values():
            writer.close()
        shutil.rmtree(own, ignore_errors=True)
        attempt.replace(own)
        return WriterCommitMessage()


@dataclass
class Share(InputPartition):
    """The groups of one task."""

    groups: tuple[int, ...]


class GroupCutter(DataSourceReader):
    """Cuts groups."""

    def __init__(self, task: Task, slots: int) -> None:
        self._task, self._slots = task, slots

    def partitions(self) -> list[InputPartition]:
        """The groups that have rows, divided over the slots."""
        groups = sorted({int(path.stem) for path in _spill(self._task).glob("[!.]*/*.arrows")})
        return [Share(tuple(groups[slot :: self._slots])) for slot in range(self._slots)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What became of each group, in an executor."""
        require(isinstance(partition, Share), "groups are cut by shares")
        for group in partition.groups:  # type: ignore[attr-defined]
            parts = [_read(path) for path in sorted(_spill(self._task).glob(f"[!.]*/{group}.arrows"))]
            yield from cut_group(self._task, (pa.scalar(group),), pa.concat_tables(parts)).to_batches()


def _spill(task: Task) -> Path:
    return Path(task.folder) / "spill" / str(task.version)


def _read(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_stream(file).read_all()
