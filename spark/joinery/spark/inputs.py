"""The sources of a JoinQuery as streaming frames, for `engine: spark`: rows in their order, late ones left out.

Rule 1: what is late depends on the order of a source's rows (docs/design.md §2). So the driver reads each source in
        order with the service's own reader, and knows the greatest time before every row. Late rows are counted; Spark
        gets none, and never finds one late by itself.
Rule 2: an offset says all that is needed to go on: the place in the source, the greatest time, the rows and late rows
        so far. The same offsets give the same rows.
Rule 3: after its last row a source gives one row of the year 3000, whose `__is_row` is 0: Spark's watermark passes all
        that was, and unmatched rows come out. The join lets it match nothing. Its columns hold zeros, not nulls: Spark
        would drop a null key before it has seen the time.

Columns: those of the stream, then `__is_row`, `__time_ns` (exact), `__event_time` (for Spark: microseconds, moved).
"""

import json
from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StructField, StructType, TimestampType

from joinery.adapters.sources.opening import reader_of
from joinery.adapters.sources.pieces import Piece
from joinery.flow import ingest
from joinery.join.plan import JoinPlan
from joinery.model.spec import JoinQuerySpec
from joinery.model.time import TIME_MIN

IS_ROW, TIME_NS, EVENT_TIME = "__is_row", "__time_ns", "__event_time"
SHIFT_US: Final = -TIME_MIN // 1000 + 86_400_000_000
"""Spark's watermark begins with 1970, and what is not later it drops: so all times are moved behind that."""
AFTER_ALL_US: Final = 32_503_680_000_000_000
"""The year 3000."""
ROWS: Final = 1 << 17
"""Of one micro-batch, about."""


class JoinQueryInput(DataSource):
    """One stream of a JoinQuery; options: the spec as JSON, the folder of its file, the stream's number."""

    @classmethod
    def name(cls) -> str:
        return "joinery-input"

    def schema(self) -> StructType:
        """The stream's columns and ours."""
        return self._input.frame_schema

    def simpleStreamReader(self, schema: StructType) -> "InputReader":  # noqa: N802, ARG002
        return InputReader(self._input)

    @property
    def _input(self) -> "Input":
        return Input(self.options["spec"], self.options["folder"], int(self.options["stream"]))


class Input:
    """What is read."""

    def __init__(self, spec: str, folder: str, stream: int) -> None:
        self._spec, self._folder, self._stream = spec, folder, stream

    @cached_property
    def spec(self) -> JoinQuerySpec:
        """Of the query."""
        return JoinQuerySpec.parse(json.loads(self._spec))

    @cached_property
    def form(self) -> Any:
        """Of the stream."""
        return JoinPlan.of(self.spec).formats[self._stream]

    @property
    def lateness_ns(self) -> int:
        """How far behind a row may be."""
        return self.spec.streams[self._stream].lateness

    @property
    def frame_schema(self) -> StructType:
        """In Spark's types."""
        fields = [StructField(field.name, from_arrow_type(field.type)) for field in self.form.schema]
        extra = [StructField(IS_ROW, IntegerType()), StructField(TIME_NS, LongType())]
        return StructType([*fields, *extra, StructField(EVENT_TIME, TimestampType())])

    def pieces(self, start: int) -> Iterator[Piece]:
        """The source from this place on, as fast as it can be read."""
        stream = self.spec.streams[self._stream]
        source = None if stream.source is None else stream.source.model_copy(update={"pace": "none"})
        plain = stream.model_copy(update={"source": source})
        reader = reader_of(f"spec.streams[{self._stream}]", plain, self.form, Path(self._folder), "")
        return (piece for piece in reader.read(start) if isinstance(piece, Piece))

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("_spec", "_folder", "_stream")}


class InputReader(SimpleDataSourceStreamReader):
    """Reads a source in order, in the driver."""

    def __init__(self, wanted: Input) -> None:
        self._input = wanted
        self._open: tuple[int, Iterator[Piece]] | None = None
        """The source as far as it was read."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"place": 0, "greatest": TIME_MIN, "rows": 0, "late": 0, "over": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[Any], dict[str, int]]:
        """The next rows, at least one piece."""
        if start["over"]:
            return iter(()), start
        at, pieces = self._open if self._open is not None else (-1, iter(()))
        if at != start["place"]:
            pieces = self._input.pieces(start["place"])
        found, end = [], dict(start)
        while end["rows"] - start["rows"] < ROWS and not end["over"]:
            piece = next(pieces, None)
            found.append(self._last() if piece is None else self._taken(piece, end))
            end["over"] = int(piece is None)
        self._open = (end["place"], pieces)
        return iter(found), end

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[Any]:  # noqa: N802
        """The same again."""
        at = dict(start)
        if at["place"] < end["place"]:
            for piece in self._input.pieces(at["place"]):
                left = end["place"] - at["place"]
                short = Piece(piece.sequence, min(piece.next_sequence, end["place"]), piece.rows.slice(0, left))
                yield self._taken(short, at)
                if at["place"] >= end["place"]:
                    break
        if end["over"] and not start["over"]:
            yield self._last()

    def _taken(self, piece: Piece, at: dict[str, int]) -> pa.RecordBatch:
        """The timely rows of a piece; the offset goes on (rules 1 and 2)."""
        times = ingest.times(self._input.form, piece.rows, 0)
        before = np.maximum.accumulate(np.append(at["greatest"], times))
        late = (before[:-1] > TIME_MIN) & (times < before[:-1] - self._input.lateness_ns)
        at["place"], at["greatest"] = piece.next_sequence, int(before[-1])
        at["rows"], at["late"] = at["rows"] + times.size, at["late"] + int(late.sum())
        timely = ~late
        return self._frame(piece.rows.filter(pa.array(timely)), times[timely], times[timely] // 1000 + SHIFT_US)

    def _last(self) -> pa.RecordBatch:
        """Rule 3."""
        zeros = [_zero(field.type) for field in self._input.form.schema]
        row = pa.RecordBatch.from_arrays(zeros, schema=self._input.form.schema)
        return self._frame(row, None, np.array([AFTER_ALL_US]))

    def _frame(self, rows: pa.RecordBatch, times: Any, micros: Any) -> pa.RecordBatch:
        wanted = to_arrow_schema(self._input.frame_schema, timezone="UTC")
        columns = [column.cast(wanted.field(number).type) for number, column in enumerate(rows.columns)]
        is_row = np.full(rows.num_rows, times is not None, np.int32)
        columns += [pa.array(is_row), pa.array(np.zeros(1, np.int64) if times is None else times)]
        columns.append(pa.array(micros).cast(wanted.field(EVENT_TIME).type))
        return pa.RecordBatch.from_arrays(columns, schema=wanted)

    def __getstate__(self) -> dict[str, Any]:
        return {"_input": self._input, "_open": None}


def _zero(kind: pa.DataType) -> pa.Array:
    """One value of a type, whichever."""
    if pa.types.is_string(kind):
        return pa.array([""], kind)
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.array([bytes(kind.byte_width) if pa.types.is_fixed_size_binary(kind) else b""], kind)
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(0)], kind)
    return pa.array([0], pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)
