"""Recorded rows by group: a batch (a, b] of any groups is what filtering by hand gives."""

import random
from dataclasses import replace

import numpy as np
import pytest

from joinery.join.plan import JoinPlan
from joinery.machine.backlog import Backlog
from joinery.model.errors import Bug
from joinery.model.ids import RecordNo
from joinery.model.tuples import I64Array, TupleBatch
from joinery.partition.hashing import groups_of
from joinery.window.sliding import Marks
from tests.unit.machine.building import GROUPS, key_in, plainly, plan_of, tuples
from tests.unit.machine.result_parts import vector

PLAN = plan_of()
ROW = 16
"""Bytes of a row."""


def backlog_of(*records: list[TupleBatch], first: int = 0) -> Backlog:
    """Records from `first` on; the watermarks of record n are n."""
    made = Backlog(GROUPS, RecordNo(first))
    for number, batches in enumerate(records, start=first):
        made.add(batches, Marks((number, number)))
    return made


def row(group: int, stream: int = 0, place: int = 0) -> TupleBatch:
    return tuples(PLAN, stream, (key_in(group), place), place=place)


def places(batches: tuple[TupleBatch, ...]) -> list[tuple[int, list[int]]]:
    return [(batch.stream, batch.places.tolist()) for batch in batches]


def one_each(*groups: int) -> Backlog:
    """Record n holds one row of the n-th of these groups, at place n."""
    return backlog_of(*([row(group, place=place)] for place, group in enumerate(groups)))


# --- batches


def test_a_batch_holds_the_rows_after_its_begin_up_to_its_end() -> None:
    assert [(0, [1, 2])] == places(one_each(0, 0, 0, 0).batch(vector(0), vector(0), RecordNo(2)))


def test_a_batch_holds_no_rows_of_other_groups() -> None:
    assert [(0, [0, 2])] == places(one_each(1, 2, 1).batch(vector(1), vector(-1), RecordNo(2)))


def test_every_group_of_a_batch_begins_at_its_own_place() -> None:
    assert [(0, [2, 1])] == places(one_each(0, 1, 0).batch(vector(0, 1), vector(0, -1), RecordNo(2)))


def test_a_batch_is_ordered_by_stream_then_group_then_as_recorded() -> None:
    log = backlog_of(
        [row(3, stream=1, place=0)],
        [tuples(PLAN, 0, (key_in(2), 1), (key_in(0), 2), place=0)],
        [tuples(PLAN, 0, (key_in(0), 3), (key_in(2), 4), place=2)],
    )
    assert [(0, [1, 2, 0, 3]), (1, [0])] == places(log.batch(np.arange(GROUPS), np.full(GROUPS, -1), RecordNo(2)))


def test_a_batch_without_rows_is_empty() -> None:
    assert () == one_each(0, 0).batch(vector(1), vector(-1), RecordNo(1))


def test_rows_after_a_place_of_each_group_are_counted() -> None:
    log = one_each(0, 1, 0, 3, 0)
    log.drop(RecordNo(0))
    assert [4, 2, 0] == [log.rows_after(vector(*after)) for after in ((0, 0, 0, 0), (2, 1, -1, 2), (4, 4, 4, 4))]
    assert 0 == Backlog(GROUPS, RecordNo(7)).rows_after(vector(6, 6, 6, 6))


def by_hand(records: list[list[TupleBatch]], groups: I64Array, after: I64Array, upto: int) -> list[tuple[int, ...]]:
    """(stream, group, record, place) of the wanted rows, sorted: the order that a batch must have."""
    start = dict(zip(groups.tolist(), after.tolist(), strict=True))
    found = []
    for number, batches in enumerate(records):
        for batch in batches:
            of = groups_of(batch.hashes, GROUPS).tolist()
            for group, place in zip(of, batch.places.tolist(), strict=True):
                if group in start and start[group] < number <= upto:
                    found.append((batch.stream, group, number, place))
    return sorted(found)


def drawn(seed: int, plan: JoinPlan) -> list[list[TupleBatch]]:
    draw, next_place = random.Random(seed), [0, 0]
    records = []
    for _ in range(12):
        batches = []
        for stream in range(2):
            pairs = [(draw.randrange(50), draw.randrange(99)) for _ in range(draw.randrange(6))]
            if pairs:
                batches.append(tuples(plan, stream, *pairs, place=next_place[stream]))
                next_place[stream] += len(pairs)
        records.append(batches)
    return records


@pytest.mark.parametrize("seed", range(20))
def test_a_batch_of_any_groups_is_what_filtering_by_hand_gives(seed: int) -> None:
    records, draw = drawn(seed, PLAN), random.Random(seed)
    log = backlog_of(*records)
    for _ in range(10):
        groups = vector(*sorted(draw.sample(range(GROUPS), draw.randrange(1, GROUPS + 1))))
        upto = draw.randrange(12)
        after = vector(*(draw.randrange(-1, upto + 1) for _ in groups))
        batches = log.batch(groups, after, RecordNo(upto))
        wanted = by_hand(records, groups, after, upto)
        streams = sorted({stream for stream, *_ in wanted})
        assert [(s, [place for t, _, _, place in wanted if t == s]) for s in streams] == places(batches)


@pytest.mark.parametrize("seed", range(5))
def test_bytes_are_those_of_the_rows_that_a_batch_would_hold(seed: int) -> None:
    records, draw = drawn(seed, PLAN), random.Random(seed)
    log = backlog_of(*records)
    after = vector(*(draw.randrange(-1, 12) for _ in range(GROUPS)))
    wanted = by_hand(records, np.arange(GROUPS), after, 11)
    assert [ROW * sum(group == g for _, g, _, _ in wanted) for group in range(GROUPS)] == plainly(
        log.bytes_after(after)
    )


def test_late_flags_stay_with_their_rows() -> None:
    batch = tuples(PLAN, 0, (key_in(2), 1), (key_in(0), 2))
    log = backlog_of([replace(batch, late=np.array([True, False]))])
    (found,) = log.batch(vector(0, 2), vector(-1, -1), RecordNo(0))
    assert found.late is not None
    assert [(1, False), (0, True)] == list(zip(found.places.tolist(), found.late.tolist(), strict=True))


# --- marks and numbers


def test_the_newest_record_is_the_last_added() -> None:
    assert RecordNo(6) == backlog_of([], [], first=5).last


def test_before_the_first_record_the_newest_is_the_one_before_it() -> None:
    assert RecordNo(4) == backlog_of(first=5).last


def test_marks_are_those_of_the_record() -> None:
    assert Marks((6, 6)) == backlog_of([], [], [], first=5).marks_at(RecordNo(6))


def test_records_without_rows_count() -> None:
    assert [(0, [2])] == places(backlog_of([], [], [row(0, place=2)]).batch(vector(0), vector(-1), RecordNo(2)))


# --- reach


def test_a_message_reaches_to_the_record_with_which_it_is_full() -> None:
    assert RecordNo(1) == one_each(0, 0, 0, 0).reach(vector(0), vector(-1), RecordNo(3), limit=2 * ROW)


def test_a_message_reaches_no_further_than_it_may() -> None:
    assert RecordNo(2) == one_each(0, 0, 0, 0).reach(vector(0), vector(-1), RecordNo(2), limit=100 * ROW)


def test_a_message_reaches_one_record_even_if_that_is_too_large() -> None:
    assert RecordNo(1) == one_each(0, 0, 0, 0).reach(vector(0), vector(0), RecordNo(3), limit=1)


def test_only_the_messages_own_groups_fill_it() -> None:
    assert RecordNo(3) == one_each(1, 1, 1, 0).reach(vector(0), vector(-1), RecordNo(3), limit=ROW)


def test_what_a_group_was_sent_before_does_not_fill_its_message() -> None:
    assert RecordNo(3) == one_each(0, 0, 0, 0).reach(vector(0), vector(1), RecordNo(3), limit=2 * ROW)


def test_a_message_of_groups_at_different_places_reaches_past_the_last_of_them() -> None:
    assert RecordNo(3) == one_each(0, 0, 1, 1).reach(vector(0, 1), vector(1, 2), RecordNo(3), limit=ROW)


# --- drop


def test_dropped_rows_take_no_bytes() -> None:
    log = one_each(0, 1, 2)
    log.drop(RecordNo(1))
    assert ROW == log.nbytes


def test_what_is_left_after_a_drop_can_be_asked_for() -> None:
    log = one_each(0, 0, 0)
    log.drop(RecordNo(1))
    assert [(0, [2])] == places(log.batch(vector(0), vector(1), RecordNo(2)))


def test_what_was_dropped_cannot_be_asked_for() -> None:
    log = one_each(0, 0, 0)
    log.drop(RecordNo(1))
    with pytest.raises(Bug, match="are gone"):
        log.batch(vector(0), vector(0), RecordNo(2))


def test_dropping_twice_drops_once() -> None:
    log = one_each(0, 0, 0)
    log.drop(RecordNo(1))
    log.drop(RecordNo(0))
    assert (RecordNo(2), ROW) == (log.last, log.nbytes)


def test_bytes_after_a_drop_are_still_those_after_each_groups_place() -> None:
    log = one_each(0, 1, 0, 1)
    log.drop(RecordNo(0))
    assert [ROW, 2 * ROW, 0, 0] == plainly(log.bytes_after(vector(0, 0, 0, 0)))


def test_numbers_go_on_after_everything_was_dropped() -> None:
    log = one_each(0, 0)
    log.drop(RecordNo(1))
    log.add([row(0, place=2)], Marks((2, 2)))
    assert (RecordNo(2), [ROW, 0, 0, 0]) == (log.last, plainly(log.bytes_after(vector(1, 1, 1, 1))))


def test_a_backlog_without_records_holds_nothing() -> None:
    log = backlog_of(first=5)
    assert (0, [0] * GROUPS) == (log.nbytes, plainly(log.bytes_after(np.full(GROUPS, 4))))
