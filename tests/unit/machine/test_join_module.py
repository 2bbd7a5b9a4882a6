"""A worker's join module: orders one after the other; lanes for groups that follow different versions of the spec."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from joinery.join import state
from joinery.join.plan import JoinPlan
from joinery.join.results import ResultPart
from joinery.join.state import Increment
from joinery.machine.backlog import Backlog
from joinery.machine.facts import BatchJoined, GroupPrepared, GroupRestored, IncrementsTaken, StateMeasured
from joinery.machine.join_module import JoinModule
from joinery.machine.log import SpecChange
from joinery.machine.messages import Exchange
from joinery.machine.orders import (
    DropGroups,
    JoinBatch,
    MeasureState,
    PrepareGroup,
    PrepareMore,
    RestoreGroup,
    TakeIncrements,
)
from joinery.model.errors import Bug
from joinery.model.ids import GroupId, MapVersion, RecordNo
from joinery.model.tuples import TupleBatch
from tests.unit.machine.building import GROUPS, Feed, exchange, key_in, plan_of, spec_of, tuples, wish
from tests.unit.machine.result_parts import vector

EMPTY = np.empty(0, np.uint8)
Told = list[tuple[object, ...]]
"""Results as (group, kind, time, members), in order."""


class Bench:
    """A module, and the records that it is fed from."""

    def __init__(self, plan: JoinPlan | None = None, feed: Feed | None = None) -> None:
        self.module = JoinModule(plan or plan_of())
        self.changes: tuple[SpecChange, ...] = ()
        if feed is not None:
            self.module = JoinModule(feed.intake.plan)
            self.changes = feed.intake.head.changes
            self.log = Backlog(GROUPS, RecordNo(0))
            for cut in feed.cuts:
                self.log.add(cut.released, cut.marks)

    def restore(self, *groups: int, increments: Sequence[Increment] = (), base: int | None = None) -> "Bench":
        for group in groups:
            own, since = tuple(increments), None if base is None else RecordNo(base)
            order = RestoreGroup(GroupId(group), MapVersion(1), own, since, self.changes)
            (fact,) = self.module.perform(order)
            assert isinstance(fact, GroupRestored)
            assert (own[-1].tag if own else -1) == fact.tag
        return self

    def prepare(self, group: int, increments: Sequence[Increment]) -> None:
        order = PrepareGroup(GroupId(group), tuple(increments), increments[0].since, self.changes)
        assert [GroupPrepared(GroupId(group), increments[-1].tag)] == list(self.module.perform(order))

    def begin_to_prepare(self, group: int, increments: Sequence[Increment]) -> None:
        order = PrepareGroup(GroupId(group), tuple(increments), increments[0].since, self.changes)
        (fact,) = self.module.perform(order)
        assert isinstance(fact, GroupPrepared)

    def prepare_more(self, group: int) -> list[bool]:
        """Whether it is in place now; nothing: it is not being prepared."""
        found = list(self.module.perform(PrepareMore(GroupId(group))))
        return [fact.is_whole for fact in found if isinstance(fact, GroupPrepared)]

    def join(self, message: Exchange) -> list[BatchJoined]:
        found = list(self.module.perform(JoinBatch(message)))
        assert all(isinstance(fact, BatchJoined) for fact in found)
        return found  # type: ignore[return-value]

    def take(self, *groups: int) -> tuple[Increment, ...]:
        (fact,) = self.module.perform(TakeIncrements(tuple(GroupId(group) for group in groups)))
        assert isinstance(fact, IncrementsTaken)
        return fact.increments

    def drop(self, *groups: int) -> None:
        assert [] == list(self.module.perform(DropGroups(tuple(GroupId(group) for group in groups))))

    def measure(self) -> StateMeasured:
        (fact,) = self.module.perform(MeasureState())
        assert isinstance(fact, StateMeasured)
        return fact

    def feed(self, groups: Sequence[int], after: int | Sequence[int], upto: int) -> Told:
        """Join the recorded batch (after, upto] of these groups."""
        ends = vector(*([after] * len(groups) if isinstance(after, int) else after))
        own, end = vector(*groups), RecordNo(upto)
        in_force = tuple(change for change in self.changes if change.record < upto)
        message = exchange(groups, ends.tolist(), upto, *self.log.batch(own, ends, end), changes=in_force)
        message = replace(message, marks=self.log.marks_at(end))
        return shown(part for fact in self.join(message) for part in fact.parts)


def shown(parts: Iterable[ResultPart]) -> Told:
    found: Told = []
    for part in parts:
        members = [[None] * len(part.groups) if one is None else one.tolist() for one in part.members]
        columns = zip(part.groups.tolist(), part.times.tolist(), *members, strict=True)
        found += [(group, str(part.kind), time, rest) for group, time, *rest in columns]
    return sorted(found, key=str)


def rows(stream: int, *times: int, group: int = 0, place: int = 0) -> TupleBatch:
    return tuples(plan_of(), stream, *((key_in(group), time) for time in times), place=place)


# --- orders


def test_a_group_without_increments_starts_empty_before_the_first_record() -> None:
    (fact,) = JoinModule(plan_of()).perform(RestoreGroup(GroupId(2), MapVersion(5), (), None, ()))
    assert GroupRestored(GroupId(2), MapVersion(5), RecordNo(-1)) == fact


def test_rows_of_a_batch_meet_those_that_came_before() -> None:
    bench = Bench().restore(0)
    bench.join(exchange([0], -1, 0, rows(0, 1)))
    (fact,) = bench.join(exchange([0], 0, 1, rows(1, 2)))
    assert [(0, "result", 2, [0, 0])] == shown(fact.parts)


def test_a_batch_is_told_to_its_end_once() -> None:
    found = Bench().restore(0).join(exchange([0], -1, 0, rows(0, 1), rows(1, 2)))
    assert [True] == [fact.last for fact in found if fact.last]


def test_a_batch_without_results_is_told_too() -> None:
    assert [((), True)] == [(fact.parts, fact.last) for fact in Bench().restore(0).join(exchange([0], -1, 0))]


def test_the_work_of_a_batch_is_counted_by_rows_if_the_method_counts_nothing() -> None:
    (fact,) = Bench().restore(0).join(exchange([0], -1, 0, rows(0, 1, 2, 3)))
    assert 3 == fact.comparisons


def test_a_batch_that_does_not_follow_what_was_joined_is_a_bug() -> None:
    with pytest.raises(Bug, match="joined is"):
        Bench().restore(0).join(exchange([0], 3, 4))


def test_groups_of_one_batch_may_stand_at_different_places() -> None:
    bench = Bench().restore(0, 1)
    bench.join(exchange([0], -1, 3, rows(0, 1)))
    bench.join(exchange([0, 1], [3, -1], 5))
    assert [5, 5] == [bench.module._joined[GroupId(group)] for group in (0, 1)]


def test_a_dropped_group_is_forgotten() -> None:
    bench = Bench().restore(0)
    bench.join(exchange([0], -1, 0, rows(0, 1)))
    bench.drop(0)
    assert ((), ()) == (bench.take(0), bench.measure().bytes_by_group)


def test_dropping_a_group_that_is_not_here_is_fine() -> None:
    Bench().drop(3)


def test_a_group_that_was_dropped_and_comes_back_empty_has_no_rows() -> None:
    bench = Bench().restore(0)
    bench.join(exchange([0], -1, 0, rows(0, 1)))
    bench.restore(0)
    (fact,) = bench.join(exchange([0], -1, 0, rows(1, 1)))
    assert () == fact.parts


def test_memory_is_divided_over_the_groups_by_their_rows() -> None:
    bench = Bench().restore(0, 1)
    bench.join(exchange([0, 1], -1, 0, rows(0, 1, 2, 3), rows(0, 1, group=1, place=3)))
    measured = dict(bench.measure().bytes_by_group)
    assert (True, 3) == (bench.measure().bytes_held > 0, round(measured[GroupId(0)] / measured[GroupId(1)]))


def test_the_oldest_row_of_all_windows_is_told_until_it_expires() -> None:
    bench = Bench().restore(0, 1)
    assert None is bench.measure().oldest_ns
    bench.join(exchange([0, 1], -1, 0, rows(0, 30, 90), rows(1, 20, group=1), marks=(30, 20)))
    assert 20 == bench.measure().oldest_ns
    bench.drop(1)
    assert 30 == bench.measure().oldest_ns
    bench.join(exchange([0], 0, 1, marks=(140, 140)))  # past 30 + 100
    assert 90 == bench.measure().oldest_ns
    bench.join(exchange([0], 1, 2, marks=(140, 191)))
    assert None is bench.measure().oldest_ns


# --- increments


def test_the_first_increment_of_a_group_is_its_whole_state() -> None:
    bench = Bench().restore(0)
    bench.join(exchange([0], -1, 4, rows(0, 1)))
    assert [(0, 4, None)] == [(one.group, one.tag, one.since) for one in bench.take(0)]


def test_the_next_increment_holds_what_came_since() -> None:
    bench = Bench().restore(0)
    bench.join(exchange([0], -1, 4, rows(0, 1)))
    bench.take(0)
    bench.join(exchange([0], 4, 6, rows(0, 7, place=1)))
    (one,) = bench.take(0)
    assert (6, 4, [7]) == (one.tag, one.since, one.rows[0].times.tolist())


def test_a_group_that_joined_nothing_since_its_tag_has_no_increment() -> None:
    bench = Bench().restore(0)
    bench.join(exchange([0], -1, 4, rows(0, 1)))
    bench.take(0)
    assert () == bench.take(0)


def test_a_group_that_never_joined_anything_has_no_increment() -> None:
    assert () == Bench().restore(0).take(0)


def test_a_restored_group_takes_increments_since_the_tag_that_it_was_restored_at() -> None:
    first = Bench().restore(0)
    first.join(exchange([0], -1, 4, rows(0, 1)))
    second = Bench().restore(0, increments=first.take(0))
    second.join(exchange([0], 4, 6, rows(0, 7, place=1)))
    assert [4] == [one.since for one in second.take(0)]


# --- lanes


def history(seed: int, *, kind: str, in_order: bool) -> Feed:
    """Twelve records of random rows in groups 0 and 1; windows change in records 4 and 7."""
    draw = random.Random(seed)
    windows = ({"count": 4}, "20ns") if in_order else ("30ns", "20ns")
    feed = Feed(spec_of(*windows, kind=kind, lateness=10))
    for number in range(12):
        for stream in range(2):
            drawn = [
                (key_in(draw.randrange(2), draw.randrange(2)), number * 10 + draw.randrange(25))
                for _ in range(draw.randrange(1, 5))
            ]
            feed.send(stream, *drawn, end=number == 11)
        if number in (4, 7):
            count = {"count": draw.randrange(1, 8)}
            lengths = (count if in_order else f"{draw.randrange(60)}ns", f"{draw.randrange(60)}ns")
            feed.intake.change_spec(wish(1 if number == 4 else 2, *lengths, lateness=10))
        feed.cut()
    return feed


def straight(bench: Bench, groups: Sequence[int], after: int, upto: int) -> Told:
    """Record by record."""
    return [one for record in range(after + 1, upto + 1) for one in bench.feed(groups, record - 1, record)]


def compared(found: Told, kind: str) -> Told:
    """In order; of a semi join only the rows themselves: which of its matches a row met first is nobody's business."""
    rows = [one if kind != "semi" else (*one[:2], one[3][0]) for one in found]  # type: ignore[index]
    return sorted(rows, key=str)


KINDS = [("inner", False), ("full", False), ("left", True), ("semi", False), ("anti", True)]


@pytest.mark.parametrize(("kind", "in_order"), KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_group_from_before_a_change_catches_up_and_joins_the_others_with_the_same_results(
    seed: int, kind: str, in_order: bool
) -> None:
    feed = history(seed, kind=kind, in_order=in_order)
    wanted = straight(Bench(feed=feed).restore(0, 1), [0, 1], -1, 11)
    bench = Bench(feed=feed).restore(0, 1)
    found = straight(bench, [0, 1], -1, 2)
    saved = bench.take(1)
    found += [one for one in straight(bench, [0, 1], 2, 3) if one[0] == 0]  # those of group 1 are made again
    found += straight(bench, [0], 3, 9)
    bench.restore(1, increments=saved)
    for after, upto in ((2, 4), (4, 7), (7, 9)):  # a batch never reaches across a change
        found += bench.feed([1], after, upto)
    found += bench.feed([0, 1], 9, 11)
    assert compared(wanted, kind) == compared(found, kind)


def test_a_group_from_before_a_change_has_a_lane_of_its_own_until_it_has_caught_up() -> None:
    bench = Bench(feed=history(0, kind="inner", in_order=False)).restore(0, 1)
    straight(bench, [0, 1], -1, 2)
    saved = bench.take(1)
    straight(bench, [0, 1], 2, 9)
    lanes = [dict(bench.module._lane_of)]
    bench.restore(1, increments=saved)
    lanes.append(dict(bench.module._lane_of))
    for after, upto in ((2, 4), (4, 7), (7, 9)):
        bench.feed([1], after, upto)
        lanes.append(dict(bench.module._lane_of))
    assert [(2, 2), (2, 0), (2, 0), (2, 1), (2, 2)] == [(lane[GroupId(0)], lane[GroupId(1)]) for lane in lanes]


def test_lanes_without_groups_are_closed() -> None:
    bench = Bench(feed=history(0, kind="inner", in_order=False)).restore(0, 1)
    straight(bench, [0, 1], -1, 2)
    saved = bench.take(1)
    straight(bench, [0, 1], 2, 9)
    bench.restore(1, increments=saved)
    for after, upto in ((2, 4), (4, 7), (7, 9)):
        bench.feed([1], after, upto)
    assert [2] == list(bench.module._lanes)


def test_a_whole_lane_changes_in_place_and_its_increments_go_on() -> None:
    bench = Bench(feed=history(0, kind="inner", in_order=False)).restore(0, 1)
    straight(bench, [0, 1], -1, 3)
    bench.take(0, 1)
    straight(bench, [0, 1], 3, 5)
    assert [3, 3] == [one.since for one in bench.take(0, 1)]


def test_a_group_that_changed_lanes_alone_is_checkpointed_whole() -> None:
    bench = Bench(feed=history(0, kind="inner", in_order=False)).restore(0, 1)
    straight(bench, [0, 1], -1, 4)
    bench.take(0, 1)
    bench.feed([0], 4, 5)
    bench.feed([1], 4, 5)
    assert [(0, None), (1, None)] == [(one.group, one.since) for one in bench.take(0, 1)]


def test_an_increment_knows_every_change_that_its_group_has_followed() -> None:
    bench = Bench(feed=history(0, kind="inner", in_order=False)).restore(0)
    counts = []
    for after, upto in ((-1, 4), (4, 5), (5, 8)):
        straight(bench, [0], after, upto)
        counts.append([len(one.floors) for one in bench.take(0)])
    assert [[0], [1], [2]] == counts


def test_a_group_restored_from_after_a_change_needs_no_other_lane() -> None:
    feed = history(0, kind="inner", in_order=False)
    first = Bench(feed=feed).restore(0)
    straight(first, [0], -1, 5)
    second = Bench(feed=feed).restore(0, increments=first.take(0))
    assert [1] == list(second.module._lanes)


def test_a_batch_from_before_a_change_that_its_group_has_followed_is_a_bug() -> None:
    bench = Bench(feed=history(0, kind="inner", in_order=False)).restore(0)
    straight(bench, [0], -1, 5)
    with pytest.raises(Bug, match="follow spec version 1"):
        bench.join(exchange([0], 5, 6, changes=()))


@pytest.mark.parametrize("seed", range(4))
def test_where_a_batch_is_cut_changes_no_result(seed: int) -> None:
    feed, draw = history(seed, kind="full", in_order=False), random.Random(seed)
    wanted = straight(Bench(feed=feed).restore(0, 1), [0, 1], -1, 11)
    cuts = sorted({4, 7, 11, *draw.sample(range(11), 3)})
    bench, found, after = Bench(feed=feed).restore(0, 1), [], -1
    for upto in cuts:
        found += bench.feed([0, 1], after, upto)
        after = upto
    assert sorted(wanted, key=str) == sorted(found, key=str)


def test_held_groups_are_those_that_were_restored() -> None:
    bench = Bench().restore(1, 3)
    held = bench.module._lanes[0].join.held
    assert [1, 3] == np.flatnonzero(held).tolist()


# --- prepared groups


CUTS = [(1, 2, 2), (1, 2, 3), (2, 3, 6), (5, 6, 7), (1, 5, 6), (2, 9, 10)]
"""Records up to which a group was checkpointed first, was prepared, and is assigned."""


def moved(feed: Feed, cuts: tuple[int, int, int], *, by_pieces: bool) -> Told:
    """Results of two groups, one of which moves: its first checkpoint, when it is prepared, when it is assigned."""
    _, prepared, assigned = cuts
    source, target = Bench(feed=feed).restore(0, 1), Bench(feed=feed).restore(0)
    found, chain = list[tuple[object, ...]](), list[Increment]()
    for record in range(12):
        found += target.feed([0], record - 1, record)
        if record <= assigned:
            found += [one for one in source.feed([0, 1], record - 1, record) if one[0] == 1]
        if record in cuts:
            chain += source.take(1)
        if record == prepared:
            (target.begin_to_prepare if by_pieces else target.prepare)(1, increments=chain)
        elif prepared < record < assigned:
            target.prepare_more(1)
        if record == assigned:
            target.restore(1, increments=chain)
            assert [] == target.prepare_more(1)
        elif record > assigned:
            found += target.feed([1], record - 1, record)
    return found


@pytest.mark.parametrize(("kind", "in_order"), KINDS)
@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("seed", range(3))
def test_a_group_that_was_prepared_goes_on_as_if_it_had_never_moved(
    seed: int, cuts: tuple[int, int, int], kind: str, in_order: bool
) -> None:
    feed = history(seed, kind=kind, in_order=in_order)
    wanted = straight(Bench(feed=feed).restore(0, 1), [0, 1], -1, 11)
    assert compared(wanted, kind) == compared(moved(feed, cuts, by_pieces=False), kind)


@pytest.mark.parametrize(("kind", "in_order"), KINDS)
@pytest.mark.parametrize("cuts", [(5, 5, 5), (2, 3, 6), (4, 6, 9)])
@pytest.mark.parametrize("piece_rows", [1, 3])
def test_a_group_is_prepared_piece_by_piece_while_others_are_joined(
    piece_rows: int, cuts: tuple[int, int, int], kind: str, in_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Assigned when all, some or one of its pieces are in place; windows change after records 4 and 7."""
    monkeypatch.setattr(state, "_PIECE_ROWS", piece_rows)
    feed = history(1, kind=kind, in_order=in_order)
    wanted = straight(Bench(feed=feed).restore(0, 1), [0, 1], -1, 11)
    assert compared(wanted, kind) == compared(moved(feed, cuts, by_pieces=True), kind)


def test_the_last_piece_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_PIECE_ROWS", 1)
    source, target = Bench().restore(0), Bench()
    source.join(exchange([0], -1, 4, rows(0, 1, 2)))
    target.begin_to_prepare(0, increments=source.take(0))
    assert [[False], [True], []] == [target.prepare_more(0) for _ in range(3)]


def prepared_group() -> tuple[Bench, tuple[Increment, ...], tuple[Increment, ...]]:
    """A module with a prepared group, the chain that it was made of, and the next increment."""
    source = Bench().restore(0)
    source.join(exchange([0], -1, 4, rows(0, 1, 2)))
    before = source.take(0)
    source.join(exchange([0], 4, 6, rows(0, 7, place=2)))
    target = Bench()
    target.prepare(0, increments=before)
    return target, before, source.take(0)


def test_of_a_prepared_group_only_what_is_missing_is_added() -> None:
    target, before, after = prepared_group()
    hollow = replace(before[0], rows=tuple(one.slice(0, 0) for one in before[0].rows), flags=(EMPTY, EMPTY))
    target.restore(0, increments=(hollow, *after))
    (fact,) = target.join(exchange([0], 6, 7, rows(1, 7)))
    assert 3 == len(shown(fact.parts))


def test_a_preparation_that_does_not_fit_is_thrown_away() -> None:
    target, before, _ = prepared_group()
    target.restore(0, increments=(replace(before[0], tag=RecordNo(5)),))
    (fact,) = target.join(exchange([0], 5, 7, rows(1, 7)))
    assert 2 == len(shown(fact.parts))


def test_a_prepared_group_that_is_dropped_leaves_nothing() -> None:
    target, _, _ = prepared_group()
    target.drop(0)
    assert ({}, {}) == (target.module._prepared, target.module._lanes)


def test_a_prepared_group_is_not_ours_yet() -> None:
    target, _, _ = prepared_group()
    assert ((), ()) == (target.take(0), target.measure().bytes_by_group)
