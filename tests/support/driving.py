"""Drives the join core with a recorded history, as gateway and worker will: batches cut anywhere, groups moved."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from joinery.flow import ingest
from joinery.join.logic import WindowJoin
from joinery.join.plan import JoinPlan
from joinery.join.results import Kind, ResultPart
from joinery.model.quantities import UNBOUNDED_WINDOW, CountWindow, TimeWindow, Window
from joinery.model.spec import JoinQuerySpec
from joinery.model.tuples import Order, TupleBatch
from joinery.window.sliding import Marks
from tests.oracle import recorded
from tests.oracle.history import History, Released, released, released_counts
from tests.oracle.recorded import Identity, Question, Row


@dataclass(slots=True)
class Outcome:
    """What came out of a run: results by their members' positions, rendered rows, and late rows."""

    results: list[Identity] = field(default_factory=list)
    rows: list[dict[str, object]] = field(default_factory=list)
    late: list[tuple[int, int]] = field(default_factory=list)

    def add(self, question: Question, part: ResultPart) -> None:
        part.rows.validate(full=True)
        columns = [[None] * len(part.groups) if one is None else one.tolist() for one in part.members]
        if part.kind is Kind.LATE:
            self.late += [(part.stream, place) for place in columns[part.stream]]
            return
        shown = len(question.shown)
        self.results += [tuple(places[:shown]) for places in zip(*columns, strict=True)]
        self.rows += part.rows.to_pylist()


def spec_of(history: History, **changed: object) -> JoinQuerySpec:
    """The spec that asks the history's question."""
    question = history.question
    streams = [
        {
            "name": name,
            "schema": {column.name: type_name(column.type) for column in schema},
            "window": _window_text(window),
            "time": {"column": "ts", "unit": "ns", "lateness": f"{lateness}ns"},
        }
        for name, schema, window, lateness in zip(
            question.streams, history.schemas, question.windows, history.lateness, strict=True
        )
    ]
    on = [dict(zip(question.streams, part, strict=True)) for part in zip(*question.keys, strict=True)]
    spec: dict[str, object] = {"streams": streams, "join": {"on": on, "type": question.type}}
    if question.where_sql:
        spec["join"]["where"] = question.where_sql  # type: ignore[index]
    if question.filter_sql:
        spec["filter"] = question.filter_sql
    if question.select:
        spec["select"] = [f"{s}.{c}" + (f" as {name}" if name else "") for s, c, name in question.select]
    for path, value in changed.items():
        section, _, name = path.partition("__")
        spec[section] = {**spec.get(section, {}), name: value} if name else value  # type: ignore[dict-item]
    return JoinQuerySpec.parse(spec)


def type_name(kind: pa.DataType) -> str:
    """The spec's word for an Arrow type."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return f"timestamp({kind.unit})"
    plain = {
        "large_string": "string",
        "large_binary": "binary",
        "date32[day]": "date",
        "double": "float64",
        "float": "float32",
    }
    return plain.get(str(kind), str(kind))


def _window_text(window: recorded.Window) -> object:
    match window:
        case recorded.Time(ns):
            return f"{ns}ns"
        case recorded.Count(n):
            return {"count": n}
        case recorded.Unbounded():
            return "unbounded"


def window_of(window: recorded.Window) -> Window:
    match window:
        case recorded.Time(ns):
            return TimeWindow(ns)
        case recorded.Count(n):
            return CountWindow(n)
        case recorded.Unbounded():
            return UNBOUNDED_WINDOW


def batches(
    history: History, plan: JoinPlan, after: int, upto: int, known: Sequence[Released] | None
) -> list[TupleBatch]:
    """The rows of the records after+1 .. upto, per stream; for a question in order, those released by them."""
    if known is None:
        rows = [row for row in history.rows if after < row.record <= upto]
        return [_batch(history, plan, [r for r in rows if r.stream == s], None) for s in range(plan.streams)]
    going = [one for one in known if after < one.record <= upto]
    found = []
    for stream in range(plan.streams):
        own = [one for one in going if one.row.stream == stream]
        none = (0,) * plan.streams
        ranks = np.array([-1 if one.rank is None else one.rank for one in own], np.int64)
        counts = np.array([one.counts or none for one in own], np.int64).reshape(len(own), plan.streams)
        found.append(_batch(history, plan, [one.row for one in own], Order(ranks, counts)))
    return found


def _batch(history: History, plan: JoinPlan, rows: Sequence[Row], order: Order | None) -> TupleBatch:
    form = plan.formats[rows[0].stream] if rows else plan.formats[0]
    schema = history.schemas[form.index]
    arrow = pa.RecordBatch.from_pylist([dict(row.values) for row in rows], schema=schema)
    read = ingest.read(form, arrow, first_place=0)
    late = np.array([row.late for row in rows], np.bool_)
    return TupleBatch(
        read.stream, read.times, read.hashes, read.words, read.keyed,
        np.array([row.position for row in rows], np.int64), read.rows, late if late.any() else None, order,
    )  # fmt: skip


def marks(history: History, record: int) -> Marks:
    counts = released_counts(history, record) if history.question.in_order else ()
    return Marks(history.records[record], counts)


def run(history: History, plan: JoinPlan, cuts: Iterable[int]) -> Outcome:
    """Join the whole history; `cuts` are records after which a batch ends (a change of windows always ends one)."""
    outcome, join = Outcome(), WindowJoin(plan)
    known = released(history) if history.question.in_order else None
    last = len(history.records) - 1
    changes = {change.record for change in history.changes if change.record < last}
    after = -1
    for upto in sorted({*(cut for cut in cuts if cut < last), *changes, last}):
        for part in join.on_batch(batches(history, join.plan, after, upto, known), marks(history, upto)):
            outcome.add(history.question, part)
        change_windows(join, history, upto)
        after = upto
    return outcome


def change_windows(join: WindowJoin, history: History, record: int) -> None:
    """Let the join know of a change that this record holds, if it does."""
    for change in history.changes:
        if change.record == record:
            windows = tuple(map(window_of, change.windows))
            join.change_windows(windows, _clocks(history, change), _serials(history, record))


def _serials(history: History, record: int) -> tuple[int, ...]:
    """The last serial number of each stream when a record ends: position, or rank where rows are released in order."""
    known = [(row.stream, row.position) for row in history.rows if row.record <= record]
    if history.question.in_order:
        known = [
            (one.row.stream, one.rank) for one in released(history) if one.rank is not None and one.record <= record
        ]
    return tuple(
        max((n for s, n in known if s == stream), default=-1) for stream in range(len(history.question.streams))
    )


def _clocks(history: History, change: recorded.WindowChange) -> tuple[int, ...]:
    """Floors as the core counts: a count window's clock is 1 for the first row, the oracle's rank 0."""
    old = _windows_before(history, change)
    return tuple(
        floor + 1 if isinstance(window, recorded.Count) and floor != recorded.FOREVER else floor
        for floor, window in zip(change.floors, old, strict=True)
    )


def _windows_before(history: History, change: recorded.WindowChange) -> tuple[recorded.Window, ...]:
    earlier = [one for one in history.changes if one.record < change.record]
    return earlier[-1].windows if earlier else history.question.windows
