"""The results of `engine: spark` as parts: one file for each partition of each micro-batch, in Arrow.

Rule 1: `filter`, the columns, and `where` of an inner join are done here, by the service's own code, batch by batch.
Rule 2: every attempt of a task writes a part of its own. Only those count that Spark counts: when all tasks of a
        micro-batch are through, the driver notes their parts, and one that is repeated replaces its note. So every
        result is there once, whatever Spark repeats, and nobody looks for files of others, which a disk behind a
        network may show late.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from joinery.join.plan import JoinPlan, JoinType
from joinery.model.errors import require
from joinery.model.spec import JoinQuerySpec
from joinery.spark.inputs import IS_ROW


def column_name(stream: int, column: str) -> str:
    """A column of a stream in the joined frame."""
    return f"s{stream}_{column}"


class JoinQueryOutput(DataSource):
    """Where joined rows become results; options: the spec as JSON, the folder of parts."""

    @classmethod
    def name(cls) -> str:
        return "joinery-output"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802, ARG002
        return PartWriter(self.options["spec"], self.options["parts"])


@dataclass(frozen=True)
class Part(WriterCommitMessage):
    """What one task wrote: the name of its file."""

    name: str


class PartWriter(DataSourceStreamArrowWriter):
    """Writes parts."""

    def __init__(self, spec: str, parts: str) -> None:
        self._spec, self._parts = spec, parts

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """One partition of one micro-batch, in an executor (rule 2)."""
        context = TaskContext.get()
        require(context is not None, "a part is written by a task")
        plan = JoinPlan.of(JoinQuerySpec.parse(json.loads(self._spec)))
        name = f"{context.taskAttemptId()}.arrow"  # type: ignore[union-attr]
        with pa.OSFile(str(Path(self._parts) / name), "wb") as file, pa.ipc.new_stream(file, plan.schema) as writer:
            for rows in iterator:
                writer.write_batch(_results(plan, rows))
        return Part(name)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Note the parts of a micro-batch, in the driver (rule 2)."""
        names = [one.name for one in messages if isinstance(one, Part)]
        note = Path(self._parts) / f"{batchId}.json"
        half = note.with_suffix(".half")
        half.write_text(json.dumps(names))
        half.replace(note)


def parts_of(folder: Path) -> Iterator[pa.RecordBatch]:
    """All results that were written."""
    for note in sorted(folder.glob("*.json")):
        for name in json.loads(note.read_text()):
            with pa.memory_map(str(folder / name)) as file:
                yield from pa.ipc.open_stream(file)


def _results(plan: JoinPlan, batch: pa.RecordBatch) -> pa.RecordBatch:
    shown = plan.formats if plan.type.tells_pairs else plan.formats[:1]
    keep = np.zeros(batch.num_rows, np.bool_)
    for form in shown:
        keep |= batch.column(column_name(form.index, IS_ROW)).fill_null(0).to_numpy() == 1
    batch = batch.filter(pa.array(keep))
    columns = {
        (form.name, field.name): batch.column(column_name(form.index, field.name)).cast(field.type)
        for form in shown
        for field in form.schema
    }
    mask = np.ones(batch.num_rows, np.bool_)
    for wanted in (plan.where if plan.type is JoinType.INNER else None, plan.filter):
        if wanted is not None:
            mask &= wanted.mask(columns, batch.num_rows)
    forms = [plan.formats[one.stream] for one in plan.output]
    chosen = [
        columns[form.name, form.schema.field(one.number).name] for form, one in zip(forms, plan.output, strict=True)
    ]
    return pa.RecordBatch.from_arrays(chosen, schema=plan.schema).filter(pa.array(mask))
