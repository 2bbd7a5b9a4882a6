"""What the rows of a stream look like, and where their times and keys are; settled once per query."""

from dataclasses import dataclass

import pyarrow as pa

from joinery.model.time import NS_PER_UNIT
from joinery.partition.keys import KeyForm


@dataclass(frozen=True, slots=True)
class StreamFormat:
    """The columns of one stream."""

    index: int
    name: str
    schema: pa.Schema
    """Ordered by name."""
    key: KeyForm
    time_column: str | None = None
    """None: arrival time."""
    time_unit_ns: int = 1


def unit_ns(kind: pa.DataType, unit: str) -> int:
    """Nanoseconds per unit of a time column: a timestamp says it itself, an integer is told by the spec."""
    return NS_PER_UNIT[kind.unit if pa.types.is_timestamp(kind) else unit]
