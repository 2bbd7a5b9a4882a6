"""Columns of an input against those of its stream: by name, in types that ingest takes."""

import pyarrow as pa

from joinery.flow import ingest
from joinery.model.errors import BadBatch, UserMustAct
from joinery.partition.format import StreamFormat


def check_names(form: StreamFormat, found: list[str]) -> None:
    """Refuse columns that do not hold those of the stream, each once."""
    wanted = form.schema.names
    lacking = [name for name in wanted if name not in found]
    twice = sorted({name for name in wanted if found.count(name) > 1})
    if lacking or twice:
        wrong = f"no {', '.join(lacking)} among" if lacking else f"{', '.join(twice)} more than once among"
        raise UserMustAct(
            f"found {wrong} the columns {', '.join(found[:50])}, wanted {', '.join(wanted)}; "
            f"rename the columns, or correct the schema of stream {form.name}"
        )


def check_types(form: StreamFormat, found: pa.Schema) -> None:
    """Refuse columns whose types do not go into the stream's, by the rules of ingest."""
    nothing = [pa.array([], found.field(name).type) for name in form.schema.names]
    try:
        ingest.read(form, pa.RecordBatch.from_arrays(nothing, names=form.schema.names), first_place=0)
    except BadBatch as bad:
        remedy = f"write that type, or correct the schema of stream {form.name}"
        raise UserMustAct(f"found {bad.found}, wanted {bad.wanted}; {remedy}") from bad


def conform(form: StreamFormat, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Checked rows as the stream wants them: its columns, in its types."""
    columns = [rows.column(field.name).cast(field.type) for field in form.schema]
    return pa.RecordBatch.from_arrays(columns, schema=form.schema)
