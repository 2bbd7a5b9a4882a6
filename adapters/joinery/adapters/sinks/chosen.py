"""Which rows a sink takes: all results, or the late rows of one stream (each stream has columns of its own)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from joinery.join.results import Kind, ResultPart
from joinery.model.errors import require


@dataclass(frozen=True, slots=True)
class Chosen:
    """The parts that a sink takes, and their columns."""

    schema: pa.Schema
    kind: Kind = Kind.RESULT
    stream: int | None = None
    """Only what this stream's batches made; None: all of the kind."""

    def rows(self, parts: Sequence[ResultPart]) -> Iterator[pa.RecordBatch]:
        """The rows of the parts that are meant for the sink; none without a row."""
        for part in parts:
            if part.kind is self.kind and self.stream in (None, part.stream) and part.rows.num_rows:
                fits = part.rows.schema.equals(self.schema)
                require(fits, f"rows with the columns {part.rows.schema} for a sink of {self.schema}")
                yield part.rows
