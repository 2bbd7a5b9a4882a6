"""What a query asks of the join, settled once: formats, windows, join type, conditions, output columns."""

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from joinery.model.expression import parse
from joinery.model.expression_arrow import Predicate, compile_predicate
from joinery.model.quantities import CountWindow, Window
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_table import TableSpec
from joinery.partition.format import StreamFormat, unit_ns
from joinery.partition.keys import KeyForm, canonical_type


class JoinType(StrEnum):
    """The six joins of two streams; more streams are joined by INNER."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"

    @property
    def kept_unmatched(self) -> tuple[int, ...]:
        """Streams whose rows are told when they close without a partner."""
        return {"left": (0,), "right": (1,), "full": (0, 1), "anti": (0,)}.get(self.value, ())

    @property
    def tells_pairs(self) -> bool:
        return self not in (JoinType.SEMI, JoinType.ANTI)


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column of the result: which column of which stream, under which name."""

    stream: int
    number: int
    name: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """A query as the join sees it."""

    formats: tuple[StreamFormat, ...]
    windows: tuple[Window, ...]
    type: JoinType
    output: tuple[OutputColumn, ...]
    where: Predicate | None = None
    filter: Predicate | None = None
    method: str = "hash"
    partitions: int = 60
    theta_bytes: int | None = None
    """Fine tuning: mini-groups of θ..2θ bytes; None: a group is one mini-group."""
    block_bytes: int = 4096
    table: TableSpec | None = None
    """The second stream is a stored table (`machine.hybrid_module`); None: both are streams."""

    @property
    def streams(self) -> int:
        return len(self.formats)

    @property
    def runs_in_order(self) -> bool:
        """Queries with a count window get released rows, which carry rank and counts."""
        return any(isinstance(window, CountWindow) for window in self.windows)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(column.name, column.type) for column in self.output])

    @staticmethod
    def of(spec: JoinQuerySpec) -> "JoinPlan":
        """The plan of a checked spec."""
        formats = _formats(spec)
        types = {(stream.name, name): kind for stream in spec.streams for name, kind in stream.columns}
        return JoinPlan(
            formats=formats,
            windows=tuple(stream.window for stream in spec.streams),
            type=JoinType(spec.join.type),
            output=_output(spec, formats),
            where=compile_predicate(parse(spec.join.where), types) if spec.join.where else None,
            filter=compile_predicate(parse(spec.filter), types) if spec.filter else None,
            method=spec.join.method,
            partitions=spec.partitions,
            theta_bytes=JoinPlan.theta_of(spec),
            block_bytes=spec.fine_tuning.block,
            table=spec.table,
        )

    @staticmethod
    def theta_of(spec: JoinQuerySpec) -> int | None:
        """θ in bytes; None: no fine tuning."""
        return spec.fine_tuning.theta if spec.fine_tuning.enabled else None


def _formats(spec: JoinQuerySpec) -> tuple[StreamFormat, ...]:
    keys = [stream.key_columns(spec.join) for stream in spec.streams]
    kinds = [dict(stream.columns) for stream in spec.streams]
    pairs = zip(*[[kind[name] for name in names] for kind, names in zip(kinds, keys, strict=True)], strict=True)
    forms = tuple(canonical_type([kind.arrow for kind in column]) for column in pairs)
    found = []
    for index, (stream, names) in enumerate(zip(spec.streams, keys, strict=True)):
        schema = pa.schema([(name, kind.arrow) for name, kind in stream.columns])
        time, unit = None, 1
        if stream.time is not None:
            time = stream.time.column
            unit = unit_ns(schema.field(time).type, stream.time.unit or "ns")
        found.append(StreamFormat(index, stream.name, schema, KeyForm(stream.name, tuple(names), forms), time, unit))
    return tuple(found)


def _output(spec: JoinQuerySpec, formats: tuple[StreamFormat, ...]) -> tuple[OutputColumn, ...]:
    shown = formats if JoinType(spec.join.type).tells_pairs else formats[:1]
    if spec.select is None:
        wanted = [(form, field.name, f"{form.name}_{field.name}") for form in shown for field in form.schema]
    else:
        by_name = {form.name: form for form in shown}
        wanted = [(by_name[item.stream], item.column, item.name) for item in spec.select]
    return tuple(
        OutputColumn(form.index, form.schema.get_field_index(column), name, form.schema.field(column).type)
        for form, column, name in wanted
    )
