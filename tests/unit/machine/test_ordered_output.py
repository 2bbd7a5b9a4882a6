"""Output by time: what a commit gives out, what it says, and that nothing is lost or told twice."""

import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.join.results import Kind
from joinery.machine.ordered_output import Draft, OrderedOutput, PlainOutput, endless_streams
from joinery.machine.ports import Commit
from joinery.model.errors import Bug
from joinery.model.ids import RecordNo
from joinery.model.spec import JoinQuerySpec
from joinery.model.time import DEAD, FOREVER
from joinery.model.tuples import I64Array
from joinery.window.sliding import Marks
from tests.unit.machine.result_parts import marks, numbers, part, times, vector

NOTHING = Commit(0, vector(-1, -1))


def ordered(disorder: int = 0, commit: Commit = NOTHING) -> OrderedOutput:
    return OrderedOutput(commit, disorder)


def take(output: OrderedOutput, group: int, after: int, upto: int, watermark: int, *rows: tuple[int, int]) -> None:
    """A batch (after, upto] of one group; a row is (number, time)."""
    parts = [part([(number, group, time) for number, time in rows])] if rows else []
    output.take(vector(group), vector(after), RecordNo(upto), marks(watermark), parts)


def drafted(output: OrderedOutput, taken: I64Array, committed: I64Array) -> Draft:
    draft = output.draft(taken, committed)
    assert draft is not None
    output.check(taken)
    return draft


# --- in order


def test_rows_wait_until_every_group_has_passed_them() -> None:
    output = ordered()
    take(output, 0, -1, 0, 10, (1, 5))
    assert output.draft(vector(0, -1), vector(-1, -1)) is None
    take(output, 1, -1, 0, 10)
    draft = drafted(output, vector(0, 0), vector(-1, -1))
    assert [1] == numbers(draft.parts)


def test_a_commit_gives_out_rows_sorted_by_time_and_equal_times_as_they_came() -> None:
    output = ordered()
    take(output, 0, -1, 0, 10, (1, 5), (2, 3))
    take(output, 1, -1, 0, 10, (3, 3), (4, 1))
    draft = drafted(output, vector(0, 0), vector(-1, -1))
    assert [4, 2, 3, 1] == numbers(draft.parts)


def test_a_row_on_the_frontier_waits_because_one_of_equal_time_may_come() -> None:
    output = ordered()
    take(output, 0, -1, 0, 10, (1, 9), (2, 10))
    take(output, 1, -1, 0, 10)
    draft = drafted(output, vector(0, 0), vector(-1, -1))
    assert ([1], 10) == (numbers(draft.parts), draft.before_ns)


def test_committed_stays_before_the_first_batch_that_is_not_out_whole() -> None:
    output = ordered()
    take(output, 0, -1, 3, 10, (1, 5))
    take(output, 0, 3, 7, 10, (2, 5), (3, 20))
    take(output, 1, -1, 7, 10)
    draft = drafted(output, vector(7, 7), vector(-1, -1))
    assert ([3, 7], [7, 7]) == (draft.committed.tolist(), draft.seen.tolist())


def test_streams_that_ended_let_everything_out() -> None:
    output = ordered()
    for group in (0, 1):
        rows = [part([(group, group, 1 << 61)])]
        output.take(vector(group), vector(-1), RecordNo(0), Marks((FOREVER, FOREVER)), rows)
    assert [0, 1] == numbers(drafted(output, vector(0, 0), vector(-1, -1)).parts)


def test_nothing_new_to_say_is_no_commit() -> None:
    output = ordered()
    take(output, 0, -1, 0, 0, (1, 5))
    take(output, 1, -1, 0, 0, (2, 6))
    assert output.draft(vector(0, 0), vector(-1, -1)) is None


def test_parts_of_several_streams_become_one_with_a_gap_for_missing_members() -> None:
    output = ordered()
    pair = [part([(1, 0, 2)], stream=0), part([(2, 0, 1)], stream=1)]
    output.take(vector(0), vector(-1), RecordNo(0), marks(10), pair)
    take(output, 1, -1, 0, 10)
    (whole,) = drafted(output, vector(0, 0), vector(-1, -1)).parts
    members = [None if places is None else places.tolist() for places in whole.members]
    assert ([2, 1], [[-1, 1], [2, -1]]) == (numbers([whole]), members)


# --- after a recovery


def test_of_a_batch_made_again_only_rows_that_were_held_are_taken() -> None:
    commit = Commit(4, vector(3, 7), seen=vector(7, 7), before_ns=10)
    output = ordered(commit=commit)
    take(output, 0, 3, 7, 10, (2, 5), (3, 20))
    take(output, 1, 7, 9, 30)
    take(output, 0, 7, 9, 30)
    draft = drafted(output, vector(9, 9), vector(3, 7))
    assert [3] == numbers(draft.parts)


def test_a_batch_that_reaches_across_what_was_seen_is_a_bug() -> None:
    output = ordered(commit=Commit(4, vector(3, 7), seen=vector(7, 7), before_ns=10))
    with pytest.raises(Bug, match="reach across"):
        take(output, 0, 3, 8, 10)


def test_while_a_group_is_behind_nothing_further_is_given_out() -> None:
    output = ordered(commit=Commit(4, vector(3, 7), seen=vector(7, 7), before_ns=10))
    take(output, 1, 7, 9, 30, (5, 12))
    take(output, 0, 3, 5, 30)
    draft = drafted(output, vector(5, 9), vector(3, 7))
    assert ([], 10, [7, 9], [5, 7]) == (
        numbers(draft.parts),
        draft.before_ns,
        draft.seen.tolist(),
        draft.committed.tolist(),
    )


def test_a_group_with_a_new_owner_is_forgotten() -> None:
    output = ordered()
    take(output, 0, -1, 0, 10, (1, 5))
    take(output, 1, -1, 0, 10, (2, 6))
    output.forget(np.array([True, False]))
    assert output.draft(vector(-1, 0), vector(-1, -1)) is None
    take(output, 0, -1, 0, 10, (1, 5))
    assert [1, 2] == numbers(drafted(output, vector(0, 0), vector(-1, -1)).parts)


def test_what_one_group_tells_of_a_record_holds_for_a_group_that_was_committed_up_to_it() -> None:
    output = ordered(commit=Commit(4, vector(3, 9), seen=vector(9, 9), before_ns=10))
    take(output, 0, 3, 9, 30, (3, 20))
    assert [3] == numbers(drafted(output, vector(9, 9), vector(3, 9)).parts)


# --- late rows


def test_late_rows_go_out_with_the_next_commit_and_are_not_ordered() -> None:
    output = ordered()
    late = [part([(1, 0, 99)], Kind.LATE)]
    output.take(vector(0), vector(-1), RecordNo(0), marks(10), late)
    draft = drafted(output, vector(0, -1), vector(-1, -1))
    assert ([1], [0, -1]) == (numbers(draft.parts, Kind.LATE), draft.seen.tolist())


def test_late_rows_of_a_batch_made_again_were_out() -> None:
    output = ordered(commit=Commit(4, vector(3, 7), seen=vector(7, 7), before_ns=10))
    output.take(vector(0), vector(3), RecordNo(7), marks(10), [part([(1, 0, 99)], Kind.LATE)])
    assert [] == numbers(drafted(output, vector(7, 7), vector(3, 7)).parts, Kind.LATE)


# --- disorder


def test_the_earliest_rows_beyond_the_frontier_go_too_as_many_as_disorder_allows() -> None:
    output = ordered(disorder=2)
    take(output, 0, -1, 0, 10, (1, 12), (2, 11), (3, 13))
    take(output, 1, -1, 0, 10)
    draft = drafted(output, vector(0, 0), vector(-1, -1))
    assert ([2, 1], 13) == (numbers(draft.parts), draft.before_ns)


def test_rows_of_equal_time_go_together_or_stay_together() -> None:
    output = ordered(disorder=2)
    take(output, 0, -1, 0, 10, (1, 11), (2, 12), (3, 12))
    take(output, 1, -1, 0, 10)
    draft = drafted(output, vector(0, 0), vector(-1, -1))
    assert ([1], 12) == (numbers(draft.parts), draft.before_ns)


def test_too_many_new_rows_below_what_is_out_wait_for_the_frontier() -> None:
    output = ordered(disorder=1)
    take(output, 0, -1, 0, 5, (1, 10))
    take(output, 1, -1, 0, 5)
    assert [1] == numbers(drafted(output, vector(0, 0), vector(-1, -1)).parts)
    take(output, 0, 0, 1, 6, (2, 7), (3, 8))
    take(output, 1, 0, 1, 6)
    assert output.draft(vector(1, 1), vector(0, 0)) is None
    take(output, 0, 1, 2, 11)
    take(output, 1, 1, 2, 11)
    assert [2, 3] == numbers(drafted(output, vector(2, 2), vector(0, 0)).parts)


def test_a_new_collector_takes_the_disorder_for_used_up() -> None:
    output = ordered(disorder=1, commit=Commit(1, vector(0, 0), seen=vector(0, 0), before_ns=11))
    take(output, 0, 0, 1, 6, (2, 7))
    take(output, 1, 0, 1, 6)
    assert output.draft(vector(1, 1), vector(0, 0)) is None


# --- which queries


def spec_of(kind: str, window: object) -> JoinQuerySpec:
    streams = [
        {"name": name, "schema": {"k": "int64", "ts": "int64"}, "window": one, "time": {"column": "ts", "unit": "ns"}}
        for name, one in (("a", window), ("b", "10s"))
    ]
    return JoinQuerySpec.parse({"streams": streams, "join": {"on": ["k"], "type": kind}})


@pytest.mark.parametrize(
    ("kind", "window", "expected"),
    [
        ("left", "10s", ()),
        ("left", "unbounded", (0,)),
        ("anti", {"count": 3}, (0,)),
        ("inner", "unbounded", ()),
        ("right", "unbounded", ()),
    ],
)
def test_rows_kept_in_an_endless_window_make_a_stream_endless(
    kind: str, window: object, expected: tuple[int, ...]
) -> None:
    assert expected == endless_streams(spec_of(kind, window))


def test_an_endless_stream_holds_everything_until_the_others_have_ended() -> None:
    output = OrderedOutput(Commit(0, vector(-1)), 0, endless=(0,))
    output.take(vector(0), vector(-1), RecordNo(0), Marks((10, 10)), [part([(1, 0, 5)])])
    assert output.draft(vector(0), vector(-1)) is None
    output.take(vector(0), vector(0), RecordNo(1), Marks((10, FOREVER)), [part([(2, 0, 3)])])
    assert [2, 1] == numbers(drafted(output, vector(1), vector(-1)).parts)


def test_without_order_a_commit_gives_out_all_that_was_taken() -> None:
    output = PlainOutput(2)
    output.take(vector(0), vector(-1), RecordNo(0), marks(DEAD), [part([(1, 0, 9), (2, 0, 3)])])
    draft = output.draft(vector(0, -1), vector(-1, -1))
    assert draft is not None
    assert ([1, 2], [-1, -1], DEAD) == (numbers(draft.parts), draft.seen.tolist(), draft.before_ns)


# --- all of it, at random


@dataclass
class World:
    """A log of some records and groups, a collector that may crash, groups that may move, and the output so far."""

    seed: int
    disorder: int
    groups: int = 3
    records: int = 12
    spread: int = 0
    """How far below the watermark a row may be; none should be."""
    out: list[tuple[int, int]] = field(default_factory=list)
    late: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.rows: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self.late_rows: dict[tuple[int, int], list[int]] = {}
        self.watermarks = [0]
        number = 0
        for record in range(self.records):
            for group in range(self.groups):
                count = self.rng.choice([0, 0, 1, 2, 4])
                low = self.watermarks[-1]
                self.rows[group, record] = [
                    (number + i, low + self.rng.randrange(12 + self.spread) - self.spread) for i in range(count)
                ]
                number += count
                self.late_rows[group, record] = [number] if self.rng.random() < 0.1 else []
                number += len(self.late_rows[group, record])
            self.watermarks.append(self.watermarks[-1] + self.rng.choice([0, 1, 3, 8]))
        self.watermarks[-1] = FOREVER
        self.commit = Commit(0, np.full(self.groups, -1, np.int64))
        self.start()

    def start(self) -> None:
        self.output = OrderedOutput(self.commit, self.disorder)
        self.taken = self.commit.committed.copy()

    def take_some(self) -> None:
        """The next batch of a group; cut anywhere, but not across what was seen."""
        group = self.rng.randrange(self.groups)
        after = int(self.taken[group])
        last = self.records - 1
        if after == last:
            return
        if self.output.seen[group] > after:
            last = int(self.output.seen[group])
        upto = self.rng.randint(after + 1, min(last, after + 3))
        span = range(after + 1, upto + 1)
        rows = [(number, group, time) for record in span for number, time in self.rows[group, record]]
        late = [(number, group, 0) for record in span for number in self.late_rows[group, record]]
        self.rng.shuffle(rows)
        parts = [part(one) for one in (rows[::2], rows[1::2]) if one] + ([part(late, Kind.LATE)] if late else [])
        mark = self.watermarks[upto + 1]
        self.output.take(vector(group), vector(after), RecordNo(upto), Marks((mark, FOREVER)), parts)
        self.taken[group] = upto

    def commit_some(self, is_durable: bool) -> bool:
        draft = self.output.draft(self.taken, self.commit.committed)
        self.output.check(self.taken)
        if draft is None:
            return False
        if is_durable:
            assert (draft.committed >= self.commit.committed).all()
            assert (draft.committed <= draft.seen).all()
            self.commit = Commit(self.commit.number + 1, draft.committed.copy(), (), draft.seen.copy(), draft.before_ns)
            self.out += zip(times(draft.parts), numbers(draft.parts), strict=True)
            self.late += numbers(draft.parts, Kind.LATE)
        else:
            self.start()
        return True

    def move(self) -> None:
        moved = np.array([self.rng.random() < 0.4 for _ in range(self.groups)])
        self.output.forget(moved)
        self.taken[moved] = self.commit.committed[moved]

    def run(self, faults: float) -> None:
        """Faults at random, but not for ever."""
        for count in range(3000):
            step = self.rng.random() if count < 200 else self.rng.uniform(faults, 1)
            if step < faults / 3:
                self.start()
            elif step < 2 * faults / 3:
                self.move()
            elif step < faults:
                self.commit_some(is_durable=False)
            elif step < faults + (1 - faults) / 3:
                self.commit_some(is_durable=True)
            else:
                self.take_some()
            if (self.commit.committed == self.records - 1).all():
                return
        raise AssertionError("the output never ended")

    def disorder_found(self) -> int:
        """The most rows with a later time that stand before a row."""
        stamps = np.array([time for time, _ in self.out])
        return max((int((stamps[:place] > time).sum()) for place, time in enumerate(stamps)), default=0)


DISORDERS = st.sampled_from([0, 0, 1, 2, 5, 1000])


@settings(max_examples=300)
@given(seed=st.integers(0, 10**9), disorder=DISORDERS, faults=st.sampled_from([0.0, 0.1, 0.3]))
def test_any_batches_and_recoveries_give_every_row_once_and_in_order(seed: int, disorder: int, faults: float) -> None:
    world = World(seed, disorder)
    world.run(faults)
    wanted = Counter(number for rows in world.rows.values() for number, _ in rows)
    late = Counter(number for rows in world.late_rows.values() for number in rows)
    assert (wanted, late) == (Counter(number for _, number in world.out), Counter(world.late))
    assert world.disorder_found() <= disorder


@settings(max_examples=200)
@given(seed=st.integers(0, 10**9), disorder=DISORDERS, faults=st.sampled_from([0.1, 0.3]))
def test_rows_below_the_frontier_break_the_order_but_none_is_lost_or_told_twice(
    seed: int, disorder: int, faults: float
) -> None:
    world = World(seed, disorder, spread=30)
    world.run(faults)
    wanted = Counter(number for rows in world.rows.values() for number, _ in rows)
    assert wanted == Counter(number for _, number in world.out)


def test_the_random_worlds_do_use_their_disorder() -> None:
    """Else the property above would hold for an output that never gives out early."""
    found = []
    for seed in range(40):
        world = World(seed, disorder=2)
        world.run(0.1)
        found.append(world.disorder_found())
    assert {0, 1, 2} == set(found)
