"""The Spark job that cuts a stored table into segments (`cutting`): Arrow all the way, without pandas.

First the table is written to a data source of ours, whose tasks divide the rows over partition-groups: a file for each
group (`spill`). Then other tasks take some of the groups each, cut them, and write their segments.

Driver and executors may be pods that share a folder. So nobody looks into it for what others wrote, which a disk behind
a network may show late: tasks say what they wrote, and only those count that Spark counts.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from joinery.hybrid.segments import Relation
from joinery.join.plan import JoinPlan
from joinery.machine.hybrid_module import TABLE
from joinery.model.errors import UserMustAct, require
from joinery.model.spec import JoinQuerySpec
from joinery.spark.cutting import GROUP, Task, cut_group, relation_from, stored_form, task_of, with_groups
from joinery.spark.schemas import check_frame
from joinery.spark.segment_files import SegmentFiles, write_whole

FORMAT: Final = "joinery-segments"
TOLD: Final = "told.json"
Share: TypeAlias = tuple[int, tuple[str, ...]]
"""A group, and the folders of the tasks that had rows of it."""


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
    options = {"spec": task.spec, "folder": task.folder, "version": str(version), "before": str(before)}
    spill = _spill(task)
    shutil.rmtree(spill, ignore_errors=True)
    spill.mkdir(parents=True)
    frame.write.format(FORMAT).options(**options).mode("append").save()
    context = spark.sparkContext
    groups = _written(spill)
    slots = max(1, min(len(groups), context.defaultParallelism))
    shares = [tuple(groups[slot::slots]) for slot in range(slots)]
    told = context.parallelize(shares, slots).flatMap(partial(cut_groups, task)).collect()
    shutil.rmtree(spill, ignore_errors=True)
    return relation_from(told, task)


class SegmentSource(DataSource):
    """Where the rows of a table are divided over groups; options: those of a `Task`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        return GroupWriter(self._task)

    @property
    def _task(self) -> Task:
        told = self.options
        return Task(told["spec"], told["folder"], int(told["version"]), int(told["before"]))


@dataclass(frozen=True)
class Divided(WriterCommitMessage):
    """What one task wrote: its folder, and the groups of which it had rows."""

    folder: str
    groups: tuple[int, ...]


class GroupWriter(DataSourceArrowWriter):
    """Divides rows over groups."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """One partition of the table, in an executor; every attempt has a folder of its own."""
        context = TaskContext.get()
        require(context is not None, "rows are divided by a task")
        attempt = _spill(self._task) / str(context.taskAttemptId())  # type: ignore[union-attr]
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
        return Divided(attempt.name, tuple(writers))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All of them, told to the driver (`_written`)."""
        told = {one.folder: one.groups for one in messages if isinstance(one, Divided)}
        write_whole(_spill(self._task) / TOLD, json.dumps(told).encode())


def _written(spill: Path) -> list[Share]:
    """Every group with rows, and the folders that have some of them."""
    found: dict[int, list[str]] = {}
    for folder, groups in json.loads((spill / TOLD).read_text()).items():
        for group in groups:
            found.setdefault(group, []).append(folder)
    return [(group, tuple(folders)) for group, folders in sorted(found.items())]


def cut_groups(task: Task, groups: tuple[Share, ...]) -> list[dict[str, Any]]:
    """What became of some groups, in an executor."""
    told = []
    for group, folders in groups:
        parts = [_read(_spill(task) / folder / f"{group}.arrows") for folder in folders]
        told += cut_group(task, group, pa.concat_tables(parts))
    return told


def _spill(task: Task) -> Path:
    return Path(task.folder) / "spill" / str(task.version)


def _read(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_stream(file).read_all()
