"""What a query with a stored table may not have: everything that is about windows, and what is not built yet."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from joinery.model.complaints import BadValue
from joinery.model.errors import BadExpression, Complaint
from joinery.model.expression import parse
from joinery.model.expression_arrow import compile_predicate
from joinery.model.quantities import Nanoseconds, TimeWindow
from joinery.model.spec_table import VERSION
from joinery.model.spec_texts import KeyPart
from joinery.model.types import Family

if TYPE_CHECKING:
    from joinery.model.spec import JoinQuerySpec

_NO_WINDOW: Final = TimeWindow(Nanoseconds(0))
_ONE_WORD: Final = (Family.INTEGER, Family.TIMESTAMP, Family.BOOLEAN, Family.DATE)


def check_table(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    """Every complaint about a query with a table; none if it has none."""
    if spec.table is None:
        return
    problems = list(_sides(spec))
    yield from problems
    yield from _join(spec)
    yield from _streams(spec)
    if not problems:
        yield from _columns(spec)
    if spec.output.order == "time":
        wanted = "no order with a table: rows wait for segments, not for watermarks"
        yield Complaint("spec.output.order", "time", wanted, "leave it out")
    if spec.engine == "spark":
        yield Complaint("spec.engine", "spark", "service: it joins with tables", "leave it out")


def _sides(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    tables = [stream.name for stream in spec.streams if stream.table is not None]
    if len(spec.streams) != 2 or len(tables) != 1:
        found = f"{len(spec.streams) - len(tables)} streams and {len(tables)} tables"
        yield Complaint("spec.streams", found, "one stream and one table", "make one query for each table")
    elif spec.streams[0].table is not None:
        yield Complaint("spec.streams[0].table", "the table first", "the stream first", "change their order")


def _join(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    if spec.join.type not in ("inner", "left"):
        wanted = "inner or left with a table: only rows of the stream come and go"
        yield Complaint("spec.join.type", spec.join.type, wanted, "write inner or left")
    if spec.join.method != "hash":
        wanted = "hash: segments of a table are sorted, nobody compares all with all"
        yield Complaint("spec.join.method", spec.join.method, wanted, "leave it out")


def _streams(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    for place, stream in enumerate(spec.streams):
        field = f"spec.streams[{place}]"
        if stream.window != _NO_WINDOW:
            wanted = "no window in a query with a table: a row meets the version of its moment"
            yield Complaint(f"{field}.window", str(stream.window), wanted, "leave it out")
        if stream.table is None:
            continue
        for name, held in (("time", stream.time), ("source", stream.source)):
            if held is not None:
                yield Complaint(f"{field}.{name}", name, f"no {name} of a table: it is stored", "leave it out")
        if VERSION in dict(stream.declared):
            wanted = f"a name of its own: results carry the table's version as {stream.name}_{VERSION}"
            yield Complaint(f"{field}.schema.{VERSION}", VERSION, wanted, "rename the column of the table")


def _columns(spec: "JoinQuerySpec") -> Iterator[Complaint]:
    table = spec.streams[1]
    kinds = [stream.column_type(_column(part, stream.name)) for part in spec.join.on for stream in spec.streams]
    for place, part in enumerate(spec.join.on):
        if _column(part, table.name) == VERSION:
            wanted = f"a column of the table, which {VERSION} is not"
            yield Complaint(f"spec.join.on[{place}]", VERSION, wanted, "choose another key")
    is_word = len(spec.join.on) == 1 and all(kind is not None and kind.family in _ONE_WORD for kind in kinds)
    if table.table is not None and table.table.cut == "range" and not is_word:
        found = f"range with the key {', '.join(str(kind) for kind in kinds[::2])}"
        wanted = "a key that is one integer: others have no order here"
        yield Complaint("spec.streams[1].table.cut", found, wanted, "write hash, or leave it out")
    if spec.join.where is not None and (table.name, VERSION) in _asked(spec):
        wanted = "a condition on rows: the version is known when they have met"
        yield Complaint("spec.join.where", f"{table.name}.{VERSION}", wanted, "ask for it in filter")


def _column(part: KeyPart, stream: str) -> str:
    """The key column in a stream; one that lacks it is told elsewhere."""
    return part.name if part.name is not None else dict(part.by_stream).get(stream, "")


def _asked(spec: "JoinQuerySpec") -> tuple[tuple[str, str], ...]:
    """The columns that `where` reads; none if it is broken, which is told elsewhere."""
    try:
        return tuple(compile_predicate(parse(spec.join.where or ""), spec.column_types).columns)
    except (BadExpression, BadValue):
        return ()
