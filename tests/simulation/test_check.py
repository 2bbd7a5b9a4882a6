"""The check finds what is wrong, and nothing where nothing is."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from joinery.join.results import Kind, ResultPart
from joinery.machine.log import ProducerIdle, Record, StreamEnded
from joinery.model.ids import ProducerId, RecordNo
from joinery.simulate.schedule import Change, Schedule
from tests.simulation.check import verify
from tests.simulation.plain_run import PlainOutcome, run_plainly
from tests.simulation.schedules import random_schedule

SEEDS = range(150)


@pytest.mark.parametrize("chunk", range(5))
def test_a_plain_run_is_exact(chunk: int) -> None:
    for seed in SEEDS[chunk::5]:
        schedule = random_schedule(seed)
        complaints = verify(schedule, run_plainly(schedule))
        if "output" in schedule.query:  # nobody put these results in order
            complaints = [text for text in complaints if not text.startswith("order")]
        assert [] == complaints, f"seed {seed}"


def some_run(
    wanted: Callable[[PlainOutcome], bool] = lambda _: True, fits: Callable[[Schedule], bool] = lambda _: True
) -> tuple[int, PlainOutcome]:
    for seed in range(500):
        schedule = random_schedule(seed)
        changes = any(isinstance(step, Change) for step in schedule.steps)
        if "output" in schedule.query or changes or not fits(schedule):
            continue
        outcome = run_plainly(schedule)
        if parts_of(outcome, Kind.RESULT) and wanted(outcome):
            return seed, outcome
    raise AssertionError("no such run")


def parts_of(outcome: PlainOutcome, kind: Kind) -> list[ResultPart]:
    return [part for part in outcome.sinks["results"] if part.kind is kind and part.rows.num_rows > 1]


def only(part: ResultPart, rows: slice) -> ResultPart:
    return replace(
        part,
        rows=part.rows.take(np.arange(part.rows.num_rows)[rows]),
        groups=part.groups[rows],
        times=part.times[rows],
        origin=None if part.origin is None else part.origin[rows],
        members=tuple(None if one is None else one[rows] for one in part.members),
    )


def kinds_of(seed: int, outcome: PlainOutcome) -> set[str]:
    return {text.partition(":")[0] for text in verify(random_schedule(seed), outcome)}


@pytest.mark.parametrize(("kind", "word"), [(Kind.RESULT, ""), (Kind.LATE, "late ")])
def test_a_row_that_is_left_out_is_missing_and_one_that_comes_twice_is_a_duplicate(kind: Kind, word: str) -> None:
    seed, outcome = some_run(lambda outcome: bool(parts_of(outcome, kind)))
    parts, one = outcome.sinks["results"], parts_of(outcome, kind)[0]
    outcome.sinks["results"] = [only(part, slice(1, None)) if part is one else part for part in parts]
    assert {f"{word}missing"} == kinds_of(seed, outcome)
    outcome.sinks["results"] = [*parts, only(one, slice(0, 1))]
    assert {f"{word}duplicate"} == kinds_of(seed, outcome)


def test_a_pair_that_does_not_match_is_extra() -> None:
    seed, outcome = some_run(lambda outcome: all(one is not None for one in parts_of(outcome, Kind.RESULT)[0].members))
    one = only(parts_of(outcome, Kind.RESULT)[0], slice(0, 1))
    first, *others = (np.asarray(member) for member in one.members)
    wrong = replace(one, members=(first + 10_000, *others))
    outcome.sinks["results"].append(wrong)
    assert {"extra"} == kinds_of(seed, outcome)


def test_other_columns_and_other_times_are_found() -> None:
    seed, outcome = some_run(lambda outcome: all(one is not None for one in parts_of(outcome, Kind.RESULT)[0].members))
    parts, one = outcome.sinks["results"], parts_of(outcome, Kind.RESULT)[0]
    late = replace(one, times=one.times + 1)
    outcome.sinks["results"] = [late if part is one else part for part in parts]
    assert {"time"} == kinds_of(seed, outcome)
    swapped = replace(one, rows=one.rows.take(np.zeros(one.rows.num_rows, np.int64)))
    outcome.sinks["results"] = [swapped if part is one else part for part in parts]
    assert {"rendered"} == kinds_of(seed, outcome)


def test_results_out_of_order_are_found_where_order_was_asked_for() -> None:
    seed, outcome = some_run()
    schedule = random_schedule(seed)
    asked = replace(schedule, query=schedule.query | {"output": {"order": "time", "disorder": 0}})
    outcome.sinks["results"].sort(key=lambda part: -int(part.times.max()))
    assert {"order"} == {text.partition(":")[0] for text in verify(asked, outcome)}
    loose = replace(schedule, query=schedule.query | {"output": {"order": "time", "disorder": 10_000}})
    assert [] == verify(loose, outcome)


def with_record(outcome: PlainOutcome, number: RecordNo, record: Record) -> PlainOutcome:
    outcome.history.records[number] = record
    return outcome


def test_a_row_that_is_wrongly_late_is_a_complaint_about_the_log() -> None:
    seed, outcome = some_run(lambda outcome: any(record.batches for record in outcome.history.records.values()))
    number, record = next((n, one) for n, one in outcome.history.records.items() if one.batches)
    first = record.batches[0]
    flags = np.zeros(first.rows.num_rows, np.bool_) if first.late is None else first.late.copy()
    flags[0] = not flags[0]
    changed = replace(record, batches=(replace(first, late=flags), *record.batches[1:]))
    assert "log" in kinds_of(seed, with_record(outcome, number, changed))


def test_a_batch_that_is_recorded_twice_is_found_in_the_log_and_in_what_was_sent() -> None:
    seed, outcome = some_run()
    number, record = next((n, one) for n, one in outcome.history.records.items() if one.batches)
    changed = replace(record, batches=(record.batches[0], *record.batches))
    assert {"log", "sent"} <= kinds_of(seed, with_record(outcome, number, changed))


def test_a_watermark_that_differs_is_found() -> None:
    seed, outcome = some_run(fits=lambda schedule: "time" in schedule.query["streams"][0])
    number, record = next((n, one) for n, one in outcome.history.records.items() if one.watermarks[0] > 0)
    changed = replace(record, watermarks=(record.watermarks[0] - 1, *record.watermarks[1:]))
    assert "log" in kinds_of(seed, with_record(outcome, number, changed))


def test_an_end_that_not_everybody_said_and_a_stranger_are_found() -> None:
    seed, outcome = some_run()
    record = outcome.history.records[RecordNo(2)]
    entries = (*record.entries, StreamEnded(0), ProducerIdle(0, ProducerId("stranger")))
    assert "log" in kinds_of(seed, with_record(outcome, RecordNo(2), replace(record, entries=entries)))


def test_floors_that_differ_are_found() -> None:
    for seed in range(500):
        schedule = random_schedule(seed)
        outcome = run_plainly(schedule)
        for number, record in outcome.history.records.items():
            if record.changes():
                change = record.changes()[0]
                moved = replace(change, floors=tuple(floor // 2 + 1 for floor in change.floors))
                outcome.history.records[number] = replace(record, entries=(*record.entries[:-1], moved))
                assert "log" in {text.partition(":")[0] for text in verify(schedule, outcome)}
                return
    raise AssertionError("no schedule with a change")


def test_a_stuck_and_a_failed_run_are_complaints() -> None:
    seed, outcome = some_run()
    assert ["stuck: nothing happens"] == verify(random_schedule(seed), replace(outcome, stuck="nothing happens"))
    assert ["failed: Bug"] == verify(random_schedule(seed), replace(outcome, failed="Bug"))
