"""Spark's types and Arrow's: what a frame must be to fit a stream, and what frame the results are."""

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from joinery.flow import ingest
from joinery.model.errors import BadBatch, UserMustAct
from joinery.partition.format import StreamFormat

_UTC = "UTC"


def check_frame(form: StreamFormat, schema: StructType) -> None:
    """Refuse, before any row moves, a frame whose columns do not fit the stream."""
    try:
        arrow = to_arrow_schema(schema, timezone=_UTC)
    except PySparkException as error:
        raise UserMustAct(
            f"stream {form.name}: found a frame that has no Arrow form ({error}), wanted one; drop that column"
        ) from error
    try:
        ingest.conform(form, pa.RecordBatch.from_pylist([], schema=arrow))
    except BadBatch as bad:
        raise UserMustAct(f"{bad}{_hint(form, arrow)}") from bad


def _hint(form: StreamFormat, arrow: pa.Schema) -> str:
    """What Spark calls it, where that is not plain."""
    for field in form.schema:
        at = arrow.get_field_index(field.name)
        if at >= 0 and pa.types.is_timestamp(field.type) and pa.types.is_timestamp(arrow.field(at).type):
            wanted = "timestamp_ntz" if field.type.tz is None else "timestamp"
            if (arrow.field(at).type.tz is None) != (field.type.tz is None):
                return f"; in Spark: withColumn('{field.name}', col('{field.name}').cast('{wanted}'))"
    return ""


def results_schema(results: pa.Schema) -> StructType:
    """The frame that results are; a type that Spark lacks is named."""
    fields = []
    for field in results:
        try:
            fields.append(StructField(field.name, from_arrow_type(field.type)))
        except PySparkException as error:
            raise UserMustAct(
                f"found the result column {field.name} of {field.type}, wanted a type that Spark has; leave it out "
                "with select in the query, or give it another type in its stream's schema"
            ) from error
    return StructType(fields)


def as_frame(schema: StructType, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of results exactly as Spark wants them: its own units of time and the like, without loss."""
    wanted = to_arrow_schema(schema, timezone=_UTC)
    try:
        columns = [rows.column(field.name).cast(field.type) for field in wanted]
    except pa.ArrowInvalid as error:
        raise UserMustAct(
            f"found a result that Spark cannot hold ({str(error).splitlines()[0]}), wanted times in microseconds; "
            "leave the column out with select, or store it as int64"
        ) from error
    return pa.RecordBatch.from_arrays(columns, schema=wanted)
