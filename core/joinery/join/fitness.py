"""What of a JoinQuery Spark cannot execute exactly: refused by name, all at once, before Spark is started."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final

import pyarrow as pa

from joinery.join.plan import JoinPlan, JoinType
from joinery.model.errors import BadSpec, Complaint
from joinery.model.expression import parse
from joinery.model.expression_tree import Column, Compare, In, Is, Literal, Logic, Node, Not, children, walk
from joinery.model.quantities import CountWindow, TimeWindow
from joinery.model.spec import JoinQuerySpec
from joinery.model.types import ColumnType, Family

Types = Mapping[tuple[str, str], ColumnType]
_EXACT: Final = (Family.INTEGER, Family.DECIMAL)
_SAFE_INTEGER: Final = 2**53
_SERVICE: Final = "leave out engine: spark, and let the service run it"


def check(spec: JoinQuerySpec) -> None:
    """`BadSpec` with every reason why Spark would not give the same rows as the service."""
    complaints = [*_of_join(spec), *_of_streams(spec), *_of_outputs(spec)]
    if complaints:
        raise BadSpec(complaints)


def _of_join(spec: JoinQuerySpec) -> Iterator[Complaint]:
    kind = JoinType(spec.join.type)
    if kind is JoinType.ANTI:
        yield Complaint("spec.join.type", "anti", "a join that Spark has on streams", _SERVICE)
    if len(spec.streams) > 2:
        yield Complaint("spec.streams", f"{len(spec.streams)} streams", "2 with engine: spark", _SERVICE)
    if kind is not JoinType.INNER and spec.join.where is not None:
        for found in sorted(set(differences(spec.join.where, spec.column_types))):
            wanted = f"what Spark judges as the service does in a {kind} join: and, or, not, is, in, comparisons"
            yield Complaint("spec.join.where", found, wanted, _SERVICE)


def _of_streams(spec: JoinQuerySpec) -> Iterator[Complaint]:
    plan = JoinPlan.of(spec)
    for number, (stream, form) in enumerate(zip(spec.streams, plan.formats, strict=True)):
        field = f"spec.streams[{number}]"
        if isinstance(stream.window, CountWindow):
            yield Complaint(
                f"{field}.window", f"count: {stream.window.rows}", "a time window: Spark has no other", _SERVICE
            )
        elif isinstance(stream.window, TimeWindow) and stream.window.is_unbounded and plan.type is not JoinType.INNER:
            wanted = f"a time window in a {plan.type} join: Spark tells no unmatched row without"
            yield Complaint(f"{field}.window", "unbounded", wanted, _SERVICE)
        if stream.source is None or stream.source.redis_stream is not None:
            found = "pushed rows" if stream.source is None else "a Redis Stream"
            yield Complaint(f"{field}.source", found, "a file or a generator with engine: spark", _SERVICE)
        elif stream.source.generator is not None and stream.source.generator.rows is None:
            yield Complaint(f"{field}.source.generator.rows", "nothing", "a number of rows", "say how many")
        if form.time_column is None:
            yield Complaint(f"{field}.time", "arrival time", "a time column: Spark has event time only", _SERVICE)
        for column in form.schema:
            if (why := _is_foreign(column.type)) is not None:
                yield Complaint(f"{field}.schema.{column.name}", str(column.type), why, _SERVICE)


def _is_foreign(kind: pa.DataType) -> str | None:
    if pa.types.is_unsigned_integer(kind):
        return "a signed integer: Spark has no other"
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return "timestamp(us) or coarser: Spark has no finer"
    return None


def _of_outputs(spec: JoinQuerySpec) -> Iterator[Complaint]:
    for number, sink in enumerate(spec.sinks):
        if sink.file is None and sink.count is None:
            found = "stdout" if sink.stdout is not None else "redisStream"
            yield Complaint(f"spec.sinks[{number}]", found, "file or count with engine: spark", _SERVICE)
    if spec.late is not None:
        yield Complaint("spec.late", "a sink of late rows", "none with engine: spark, they are counted", _SERVICE)
    if spec.output.order == "time":
        yield Complaint("spec.output.order", "time", "no order with engine: spark", _SERVICE)


def differences(text: str, types: Types) -> Iterator[str]:
    """What of an expression Spark may judge otherwise."""
    for node, _ in walk(parse(text).root):
        match node:
            case Compare() | In():
                if not _compare_alike(children(node), types):
                    yield f"a comparison of types that differ in {text!r}"
            case Logic() | Not() | Is() | Column():
                pass
            case Literal(value=bool() | int() | Decimal() | float() | str() | None):
                pass
            case _:
                yield f"{type(node).__name__.lower()} in {text!r}"


def _compare_alike(nodes: tuple[Node, ...], types: Types) -> bool:
    families = {types[node.stream, node.column].family for node in nodes if isinstance(node, Column)}
    values = [node.value for node in nodes if isinstance(node, Literal) and node.value is not None]
    if not all(isinstance(node, Column | Literal) for node in nodes):
        return False
    numbers = [value for value in values if isinstance(value, int | Decimal | float) and not isinstance(value, bool)]
    if families <= set(_EXACT):
        return len(numbers) == len(values) and not any(isinstance(value, float) for value in values)
    if len(families) != 1:
        return False
    family = families.pop()
    if family is Family.FLOAT:
        is_double = all(str(types[n.stream, n.column]) == "float64" for n in nodes if isinstance(n, Column))
        return (
            is_double and len(numbers) == len(values) and all(abs(float(value)) <= _SAFE_INTEGER for value in numbers)
        )
    wanted = {Family.TEXT: str, Family.BOOLEAN: bool}.get(family)
    return not values if wanted is None else all(isinstance(value, wanted) for value in values)
