"""What concerns several fields of a spec at once.

Each check names the fields that it reads, and is skipped where one of them is broken itself.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from joinery.model.complaints import BadValue, did_you_mean, nearest, which_column
from joinery.model.errors import BadExpression, Complaint
from joinery.model.expression import parse
from joinery.model.expression_arrow import check
from joinery.model.quantities import format_duration, format_size
from joinery.model.spec_lookup import Place
from joinery.model.spec_parsing import touches
from joinery.model.spec_sections import StreamSpec
from joinery.model.spec_table_checks import check_table
from joinery.model.spec_texts import as_bad_value
from joinery.model.types import ColumnType, Family, check_keys

if TYPE_CHECKING:
    from joinery.model.spec import JoinQuery, JoinQuerySpec

Rule = Callable[["JoinQuerySpec"], Iterator[Complaint]]


def check_query(query: "JoinQuery", broken: list[Place]) -> Iterator[Complaint]:
    """Every complaint about the spec of a query that no single field shows."""
    yield from check_spec(query.spec, [place[1:] for place in broken if place[:1] == ("spec",)])


def check_spec(spec: "JoinQuerySpec", broken: list[Place]) -> Iterator[Complaint]:
    """Every complaint that no single field shows, of the checks whose fields are sound."""
    for read, rule in _RULES:
        if not touches(broken, *read):
            yield from rule(spec)


def _names(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    for place, stream in enumerate(spec.streams):
        if stream.name in [earlier.name for earlier in spec.streams[:place]]:
            yield Complaint(
                f"spec.streams[{place}].name", stream.name, "a name of its own", "rename one of the streams"
            )


def _keys(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    for place, part in enumerate(spec.join.on):
        field = f"spec.join.on[{place}]"
        if part in spec.join.on[:place]:
            yield Complaint(field, "the same key column again", "each once", "take it out")
        problems = list(_key_problems(field, spec.streams, part.name, dict(part.by_stream)))
        yield from problems
        if not problems:
            try:
                check_keys(
                    [kind for stream in spec.streams if (kind := stream.column_type(part.column_of(stream.name)))]
                )
            except BadValue as bad:
                yield bad.complaint(field)


def _key_problems(
    field: str, streams: tuple[StreamSpec, ...], name: str | None, by_stream: Mapping[str, str]
) -> Iterator[Complaint]:
    known = [stream.name for stream in streams]
    for unknown in sorted(by_stream.keys() - set(known)):
        yield Complaint(
            f"{field}.{unknown}",
            f"the unknown stream {unknown}",
            "a stream of this query",
            did_you_mean(unknown, known),
        )
    if name is not None:
        yield from _common_name_problems(field, streams, name)
        return
    for stream in streams:
        column = by_stream.get(stream.name)
        if column is None:
            remedy = f"add {stream.name}: {_nearest_column(stream, *by_stream.values())}"
            yield Complaint(field, f"no column of {stream.name}", "a column of every stream", remedy)
        elif stream.column_type(column) is None:
            remedy = did_you_mean(column, [held for held, _ in stream.columns])
            found = f"{column}, which {stream.name} does not have"
            yield Complaint(field, found, "a column of every stream", remedy)


def _common_name_problems(field: str, streams: tuple[StreamSpec, ...], name: str) -> Iterator[Complaint]:
    lacking = [stream.name for stream in streams if stream.column_type(name) is None]
    if lacking:
        verb = "does" if len(lacking) == 1 else "do"
        found = f"{name}, which {' and '.join(lacking)} {verb} not have"
        yield Complaint(field, found, "a column of every stream", _key_remedy(streams, name))


def _key_remedy(streams: tuple[StreamSpec, ...], name: str) -> str:
    """A near name that every stream has; else the form for names that differ, with the likeliest column of each."""
    common = [held for held, _ in streams[0].columns if all(stream.column_type(held) for stream in streams)]
    if (near := nearest(name, common)) is not None:
        return f"did you mean {near}?"
    if common and not any(_like(stream, name) for stream in streams):
        return did_you_mean(name, common)
    pairs = ", ".join(f"{stream.name}: {_nearest_column(stream, name)}" for stream in streams)
    return f"where names differ, write for example {{{pairs if len(pairs) <= 300 else 'orders: id, items: order'}}}"


def _nearest_column(stream: StreamSpec, *names: str) -> str:
    """The column of a stream that is probably meant by the names of others; else its first."""
    near = (_like(stream, name) for name in names)
    return next((column for column in near if column is not None), stream.columns[0][0])


def _like(stream: StreamSpec, name: str) -> str | None:
    return name if stream.column_type(name) else nearest(name, [held for held, _ in stream.columns])


def _times(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    for place, stream in enumerate(spec.streams):
        if stream.time is not None:
            yield from _time(f"spec.streams[{place}].time", stream, stream.time.column, stream.time.unit)


def _time(field: str, stream: StreamSpec, column: str, unit: str | None) -> Iterator[Complaint]:
    kind = stream.column_type(column)
    if kind is None:
        remedy = did_you_mean(column, [name for name, _ in stream.columns])
        yield Complaint(f"{field}.column", column, f"a column of {stream.name}", remedy)
    elif kind.family is Family.INTEGER:
        if unit is None:
            yield Complaint(
                f"{field}.unit", "nothing", f"the unit of {column}, which is {kind}", "add unit: s, ms, us or ns"
            )
    elif kind.family is not Family.TIMESTAMP:
        remedy = "declare it timestamp(us), or int64 with a unit; leave time out for arrival time"
        yield Complaint(f"{field}.column", f"{column}, which is {kind}", "an integer or a timestamp column", remedy)
    elif unit not in (None, kind.arrow.unit):
        yield Complaint(
            f"{field}.unit",
            str(unit),
            f"{kind.arrow.unit}, the unit of {column}",
            "leave unit out for a timestamp column",
        )


def _two_streams(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    if spec.join.type != "inner" and len(spec.streams) != 2:
        found = f"{spec.join.type} with {len(spec.streams)} streams"
        yield Complaint(
            "spec.join.type", found, "exactly two streams for all but inner", "write inner, or make two queries"
        )


def _alignment(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    lateness = max(stream.lateness for stream in spec.streams)
    if spec.alignment != "auto" and spec.alignment < lateness:
        wanted = f"at least the largest lateness, {format_duration(lateness)}"
        yield Complaint("spec.alignment", format_duration(spec.alignment), wanted, "leave it out for auto")


def _scaling(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    scaling = spec.scaling
    if scaling.consumer_threshold >= scaling.supplier_threshold:
        wanted = f"less than supplierThreshold, {scaling.supplier_threshold}"
        remedy = "leave both out for 0.01 and 0.5"
        yield Complaint("spec.scaling.consumerThreshold", str(scaling.consumer_threshold), wanted, remedy)
    if scaling.min > scaling.max:
        yield Complaint("spec.scaling.min", str(scaling.min), f"at most max, {scaling.max}", "raise max or lower min")


LONGEST_EPOCH: Final = 60_000_000_000
"""Of distribution, in nanoseconds."""


def _epochs(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    """Rows wait for up to a distribution epoch: one of days would look like a query that stands still."""
    if spec.epochs.distribution != "auto" and spec.epochs.distribution > LONGEST_EPOCH:
        found, wanted = format_duration(spec.epochs.distribution), f"at most {format_duration(LONGEST_EPOCH)}"
        yield Complaint("spec.epochs.distribution", found, wanted, "leave it out for auto, 5 to 200 ms by load")


def _sizes(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    if spec.worker.buffer >= spec.worker.memory:
        wanted = f"less than memory, {format_size(spec.worker.memory)}"
        yield Complaint("spec.worker.buffer", format_size(spec.worker.buffer), wanted, "raise memory or lower buffer")
    if spec.fine_tuning.block > spec.fine_tuning.theta:
        wanted = f"at most theta, {format_size(spec.fine_tuning.theta)}"
        remedy = "raise theta or lower block"
        yield Complaint("spec.fineTuning.block", format_size(spec.fine_tuning.block), wanted, remedy)


def _redis_streams(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    """What is written must not be read again: each result would make others."""
    sources = [stream.source.redis_stream for stream in spec.streams if stream.source is not None]
    read = {one.key for one in sources if one is not None}
    written = [(f"spec.sinks[{place}]", sink.redis_stream, "") for place, sink in enumerate(spec.sinks)]
    if spec.late is not None:
        written += [("spec.late.sink", spec.late.sink.redis_stream, f"-{stream.name}") for stream in spec.streams]
    for field, one, suffix in written:
        if one is not None and one.key + suffix in read:
            found = f"{one.key + suffix}, the key of a source"
            yield Complaint(f"{field}.redisStream.key", found, "another key", "choose a new name")


def _output(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    if spec.output.order == "none" and spec.output.disorder > 0:
        wanted = "0 with order none, which promises nothing"
        yield Complaint(
            "spec.output.disorder", str(spec.output.disorder), wanted, "write order: time, or leave disorder out"
        )


def _select(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    for place, item in enumerate(spec.select or ()):
        if (item.stream, item.column) not in spec.result_types:
            yield _unresolved(f"spec.select[{place}]", spec, item.stream, item.column)


def _unresolved(field: str, spec: "JoinQuerySpec", stream: str, column: str) -> Complaint:
    if (stream, column) in spec.column_types:
        first = spec.streams[0].name
        found = f"{stream}.{column} in {'an' if spec.join.type == 'anti' else 'a'} {spec.join.type} join"
        return Complaint(
            field, found, f"a column of {first}, the only ones in its results", f"select columns of {first}"
        )
    remedy = which_column(stream, column, spec.result_types)
    return Complaint(field, f"{stream}.{column}", "a column of a stream of this query", remedy)


def _result_names(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    counts = Counter(item.name for item in spec.result_columns)
    for name, count in counts.items():
        if count > 1:
            sources = " and ".join(f"{item.stream}.{item.column}" for item in spec.result_columns if item.name == name)
            field = "spec.streams" if spec.select is None else "spec.select"
            found = f"{sources}, both named {name} in the result"
            yield Complaint(
                field, found, "a name of its own for every column", "rename one in select: stream.column as name"
            )


def _where(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    yield from _condition("spec.join.where", spec.join.where, spec.column_types)


def _filter(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    yield from _condition("spec.filter", spec.filter, spec.result_types)


def _condition(field: str, text: str | None, types: Mapping[tuple[str, str], ColumnType]) -> Iterator[Complaint]:
    if text is None:
        return
    try:
        expression = parse(text)
        kind = check(expression, types)
        if kind.family not in (Family.BOOLEAN, Family.NULL):
            raise BadExpression(
                text, 0, f"an expression of type {kind}", "a condition, true or false", "compare it with a value"
            )
    except BadExpression as error:
        yield as_bad_value(error).complaint(field)


_RULES: Final[tuple[tuple[tuple[str, ...], Rule], ...]] = (
    (("streams.*.name",), _names),
    (("streams.*.name", "streams.*.schema", "join.on"), _keys),
    (("streams.*.schema", "streams.*.time"), _times),
    (("join.type",), _two_streams),
    (("streams.*.time", "alignment"), _alignment),
    (("streams", "join", "output", "engine"), check_table),
    (("scaling",), _scaling),
    (("epochs",), _epochs),
    (("worker", "fineTuning"), _sizes),
    (("streams.*.source", "streams.*.name", "sinks", "late"), _redis_streams),
    (("output",), _output),
    (("streams.*.name", "streams.*.schema", "join.type", "select"), _select),
    (("streams.*.name", "streams.*.schema", "join.type", "select"), _result_names),
    (("streams.*.name", "streams.*.schema", "join.where"), _where),
    (("streams.*.name", "streams.*.schema", "join.type", "filter"), _filter),
)
