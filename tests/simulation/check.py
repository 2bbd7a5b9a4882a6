"""Is a run exact? What the sinks hold, against the oracle's answer to what was recorded; that, against what was sent.

A complaint is one line, `kind: what is wrong`; a run without complaints is exact. Kinds: stuck, failed, history (the
world's own comparison and invariants), log (a decision of the gateway), sent (rows that were not recorded, or not as
they were sent), missing, extra, duplicate (with `late` before them for the late output), rendered, time, order.
"""

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from joinery.join.results import Kind, ResultPart
from joinery.model.tuples import I64Array
from joinery.simulate.schedule import Schedule, Script
from tests.oracle import naive
from tests.oracle.compare import compare
from tests.oracle.history import Prefix, prefix
from tests.oracle.recorded import Identity, Question, Row, Time
from tests.simulation.recorded_log import LogReader, read

Outcome = Any
"""What `joinery.simulate.world.run` gives back."""
EXAMPLES = 6


def verify(schedule: Schedule, outcome: Outcome) -> list[str]:
    """What is wrong with a run; nothing if it is exact."""
    if outcome.failed:
        return [f"failed: {outcome.failed}"]
    log = read(schedule.query, outcome.history.records)
    complaints = [*(f"history: {text}" for text in outcome.history.complaints()), *log.complaints]
    if outcome.stuck:
        return [f"stuck: {outcome.stuck}", *complaints]
    complaints += _sent(schedule, log, outcome.history.refusals)
    for name, parts in outcome.sinks.items():
        complaints += [f"{text} (sink {name})" for text in judge(schedule, log, parts)]
    return complaints


def judge(schedule: Schedule, log: LogReader, parts: Sequence[ResultPart]) -> list[str]:
    """The complaints about the parts that a sink holds, given what was recorded."""
    question, known = log.question, prefix(log.history)
    truth = naive.filtered(question, known.rows, naive.join(question, known.rows, known.changes, known.final))
    results = [part for part in parts if part.kind is Kind.RESULT]
    found = [identity for part in results for identity in identities(question, part)]
    late = [(part.stream, place) for part in parts if part.kind is Kind.LATE for place in part.members[part.stream]]
    named = _Names(question, known.rows)
    complaints = list(_differences("", found, truth, named.result))
    complaints += _differences("late ", late, naive.late(known.rows), named.row)
    if not complaints:
        complaints += _rendered(question, known, parts)
        complaints += _times(schedule, log, known, results)
    return complaints + list(_order(schedule, log, results))


def identities(question: Question, part: ResultPart) -> list[Identity]:
    """The results of a part by their members' positions."""
    shown = len(question.shown)
    columns = [_places(one, len(part.groups)) for one in part.members[:shown]]
    return list(zip(*columns, strict=True))


def _differences(what: str, found: Sequence[Any], truth: Sequence[Any], name: Any) -> Iterable[str]:
    held, wanted = Counter(found), Counter(truth)
    for kind, items in (
        ("missing", wanted - held),
        ("extra", Counter({item: n for item, n in held.items() if item not in wanted})),
        ("duplicate", Counter({item: n - wanted[item] for item, n in held.items() if 0 < wanted[item] < n})),
    ):
        shown = [name(item) for item in items.elements()]
        if shown:
            more = f" and {len(shown) - EXAMPLES} more" if len(shown) > EXAMPLES else ""
            yield f"{what}{kind}: {', '.join(shown[:EXAMPLES])}{more}"


class _Names:
    """Results and rows as a reader knows them: by stream and number."""

    def __init__(self, question: Question, rows: Sequence[Row]) -> None:
        self._streams = question.streams
        self._numbers = {(row.stream, row.position): row.values["n"] for row in rows}

    def row(self, which: tuple[int, int]) -> str:
        stream, position = which
        return f"{self._streams[stream]} n={self._numbers.get((stream, int(position)), f'? at {position}')}"

    def result(self, result: Identity) -> str:
        members = [self.row((stream, at)) if at is not None else "-" for stream, at in enumerate(result)]
        return f"({', '.join(members)})"


def _rendered(question: Question, known: Prefix, parts: Sequence[ResultPart]) -> Iterable[str]:
    """The columns of results that have the right members; and of late rows, which keep their stream's columns."""
    truth = naive.join(question, known.rows, known.changes, known.final)
    wanted = naive.render(question, known.rows, truth)
    found = [row for part in parts if part.kind is Kind.RESULT for row in part.rows.to_pylist()]
    if not (comparison := compare(found, wanted, examples=2)).exact:
        yield f"rendered: {comparison}".replace("\n", ";")
    late = [(part.stream, tuple(sorted(row.items()))) for part in parts if part.kind is Kind.LATE
            for row in part.rows.to_pylist()]  # fmt: skip
    late_wanted = [(row.stream, tuple(sorted(row.values.items()))) for row in known.rows if row.late]
    if not (comparison := compare(late, late_wanted, examples=2)).exact:
        yield f"late rendered: {comparison}".replace("\n", ";")


def _times(schedule: Schedule, log: LogReader, known: Prefix, results: Sequence[ResultPart]) -> Iterable[str]:
    """The time of a result: of its latest member; of a row that closed alone, the end of its window.

    A row of a semi join has the time of its first partner in the log, if that is later; it matters only for output in
    order, where a row that is made again must have the time that it had. After a change of the windows nothing is said
    of rows that close alone: it depends on which window closed them.
    """
    question, time_of = log.question, {(row.stream, row.position): row.time for row in known.rows}
    if question.type == "semi" and schedule.query.get("output", {}).get("order") != "time":
        return
    partners = _first_partners(question, known) if question.type == "semi" else {}
    for part in results:
        for result, found in zip(identities(question, part), part.times.tolist(), strict=True):
            members = [(stream, at) for stream, at in enumerate(result) if at is not None]
            is_alone = len(members) == 1 and question.type != "semi"
            if is_alone and known.changes:
                continue
            window = question.windows[members[0][0]]
            partner = partners.get(members[0][1])
            wanted = max(time_of[member] for member in members + ([] if partner is None else [(1, partner)]))
            if is_alone and isinstance(window, Time):
                wanted += window.ns
            if found != wanted:
                yield f"time: {_Names(question, known.rows).result(result)} has time {found}, wanted {wanted}"
                return


def _first_partners(question: Question, known: Prefix) -> dict[int, int]:
    """The partner with which each row of stream 0 met first: by position, in order by place."""
    places = {row.position: row.place if question.in_order else row.position for row in known.rows if row.stream == 1}
    inner = replace(question, type="inner", select=None, filter=None)
    found: dict[int, int] = {}
    for first, second in naive.join(inner, known.rows, known.changes, known.final):
        if first not in found or places[second] < places[found[first]]:
            found[first] = second
    return found


def _order(schedule: Schedule, log: LogReader, results: Sequence[ResultPart]) -> Iterable[str]:
    """With `output.order: time` at most `disorder` rows may overtake a row.

    Rows that closed alone are left out after a change of the windows: a shorter one closes them earlier than was waited
    for (`machine.ordered_output` says so).
    """
    output, question = schedule.query.get("output", {}), log.question
    if output.get("order") != "time":
        return
    before: list[int] = []
    for part in results:
        for result, time in zip(identities(question, part), part.times.tolist(), strict=True):
            if log.changes and (question.type == "anti" or None in result):
                continue
            overtaken = len(before) - bisect_right(before, time)
            if overtaken > output["disorder"]:
                yield f"order: {overtaken} rows with a greater time came before one of time {time}"
                return
            insort(before, time)


def _sent(schedule: Schedule, log: LogReader, refusals: Any) -> Iterable[str]:
    """Every producer's rows are recorded once and in order; only one that came after its stream's end has none."""
    scripts = {(script.stream, str(script.name)): script for script in schedule.scripts}
    recorded = {refusals.source(*source): rows for source, rows in log.sent.items()}
    for stranger in sorted(recorded.keys() - scripts.keys()):
        yield f"sent: {stranger[1]} recorded rows, but has no script"
    for source, script in scripts.items():
        found = recorded.get(source, [])
        wanted = _offered(script, found)
        if found != wanted and (found or not refusals.is_excused(source)):
            lost, more = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
            yield f"sent: {source[1]}: not recorded {sorted(lost)}, too much {sorted(more)}"


def _offered(script: Script, found: Sequence[int]) -> list[int]:
    """The numbers of the rows that a producer sends; of one that sends others when it is started again, as recorded."""
    wanted: list[int] = []
    for place in range(len(script.batches)):
        versions = [batches[place].rows for batches in (script.batches, script.again) if batches]
        numbers = [[] if rows is None else rows.column("n").to_pylist() for rows in versions]
        start = len(wanted)
        fits = [one for one in numbers if found[start : start + len(one)] == one]
        wanted += fits[0] if fits else numbers[0]
    return wanted


def _places(members: I64Array | None, rows: int) -> list[int | None]:
    """Positions in a stream; parts that were put together have -1 where a row has no member of it."""
    return [None] * rows if members is None else [None if place < 0 else place for place in members.tolist()]
