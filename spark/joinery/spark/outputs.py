"""The results of `engine: spark` as parts: one file for each partition of each micro-batch, in Arrow.

Rule 1: `filter`, the columns, and `where` of an inner join are done here, by the service's own code, batch by batch.
Rule 2: a part is written whole under another name first, and a micro-batch that is repeated replaces its own parts. So
        every result is there once, whatever Spark repeats.
"""

import json
import os
from collections.abc import Iterator
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
from joinery.spark.writing import BATCH


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


class PartWriter(DataSourceStreamArrowWriter):
    """Writes parts."""

    def __init__(self, spec: str, parts: str) -> None:
        self._spec, self._parts = spec, parts

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """One partition of one micro-batch, in an executor (rule 2)."""
        context = TaskContext.get()
        require(context is not None, "a part is written by a task")
        batch, partition = context.getLocalProperty(BATCH), context.partitionId()  # type: ignore[union-attr]
        plan = JoinPlan.of(JoinQuerySpec.parse(json.loads(self._spec)))
        path = Path(self._parts) / f"{batch}-{partition}.arrow"
        attempt = path.with_suffix(f".{os.getpid()}")
        with pa.OSFile(str(attempt), "wb") as file, pa.ipc.new_stream(file, plan.schema) as writer:
            for rows in iterator:
                writer.write_batch(_results(plan, rows))
        attempt.replace(path)
        return WriterCommitMessage()


def parts_of(folder: Path) -> Iterator[pa.RecordBatch]:
    """All results that were written."""
    for path in sorted(folder.glob("*.arrow")):
        with pa.memory_map(str(path)) as file:
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
