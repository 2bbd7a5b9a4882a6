"""The Spark job that cuts a stored table into segments: one task per partition-group, where its rows are (`cutting`)."""

from functools import partial

from pyspark.sql import DataFrame, SparkSession

from joinery.hybrid.segments import Relation
from joinery.join.plan import JoinPlan
from joinery.machine.hybrid_module import TABLE
from joinery.model.errors import UserMustAct
from joinery.model.spec import JoinQuerySpec
from joinery.spark.cutting import GROUP, MADE, cut_group, relation_from, stored_form, task_of, with_groups
from joinery.spark.schemas import check_frame
from joinery.spark.segment_files import SegmentFiles


def read_table(spark: SparkSession, spec: JoinQuerySpec, path: str) -> DataFrame:
    """The stored table with the columns that the query declares; refused if they do not fit."""
    form = stored_form(JoinPlan.of(spec))
    table = JoinPlan.of(spec).table
    frame = spark.read.format("parquet" if table is None else table.format).load(path)
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
    task = task_of(spec, files, version, before)
    columns = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in frame.schema.fields)
    grouped = frame.mapInArrow(partial(with_groups, task), f"{columns}, `{GROUP}` int")
    made = grouped.groupBy(GROUP).applyInArrow(partial(cut_group, task), MADE)
    return relation_from((row.asDict() for row in made.collect()), task)
