"""Results until they are committed: what is kept, dropped, sent again, lost."""

import numpy as np
import pytest

from joinery.join.results import ResultPart
from joinery.machine.messages import Results
from joinery.machine.retention import Retention
from joinery.model.ids import GroupId, MapVersion, RecordNo
from joinery.model.tuples import I64Array
from tests.unit.machine.building import results
from tests.unit.machine.result_parts import part, vector

GROUPS = 3
LIMIT = 64
"""Eight rows."""
HERE = np.ones(GROUPS, np.bool_)


@pytest.fixture
def kept() -> Retention:
    """All groups are here under version 1, nothing is committed."""
    made = Retention(GROUPS, LIMIT)
    for group in range(GROUPS):
        made.begin(GroupId(group), MapVersion(1), RecordNo(-1))
    return made


def rows(count: int, group: int = 0) -> ResultPart:
    """A part with so many rows of 8 bytes."""
    return part([(number, group, 0) for number in range(count)])


def add(
    kept: Retention, after: int, upto: int, *groups: int, count: int = 1, may_drop: bool = True, **more: int
) -> Results:
    message = results(groups or (0,), after, upto, rows(count), **more)
    kept.keep(message, may_drop=may_drop)
    return message


def after(kept: Retention, *taken: int, versions: I64Array | None = None) -> tuple[list[Results], set[GroupId]]:
    """What a collector that has taken so much is sent, and what is lost for it."""
    return kept.after(vector(*taken), vector(1, 1, 1) if versions is None else versions, HERE)


# --- rule 1: dropped when committed


def test_results_are_dropped_when_they_are_committed(kept: Retention) -> None:
    add(kept, -1, 4)
    kept.committed(vector(0), vector(4))
    assert 0 == kept.nbytes


def test_results_are_kept_while_their_end_is_not_committed(kept: Retention) -> None:
    add(kept, -1, 4)
    kept.committed(vector(0), vector(3))
    assert 8 == kept.nbytes


def test_results_are_kept_until_all_their_groups_are_committed(kept: Retention) -> None:
    add(kept, -1, 4, 0, 1)
    kept.committed(vector(0), vector(4))
    before = kept.nbytes
    kept.committed(vector(1), vector(9))
    assert (8, 0) == (before, kept.nbytes)


def test_results_of_a_group_with_another_version_are_dropped(kept: Retention) -> None:
    add(kept, -1, 4, 0, 1)
    kept.begin(GroupId(1), MapVersion(2), RecordNo(-1))
    kept.committed(vector(0), vector(4))
    assert 0 == kept.nbytes


def test_an_older_commit_takes_nothing_back(kept: Retention) -> None:
    add(kept, -1, 4, 0, 1)
    kept.committed(vector(0), vector(4))
    kept.committed(vector(0, 1), vector(2, 4))
    assert 0 == kept.nbytes


def test_a_batch_whose_last_part_is_to_come_is_not_dropped(kept: Retention) -> None:
    kept.keep(results((0,), -1, 4, rows(1), last=False), may_drop=True)
    kept.committed(vector(0), vector(4))
    assert 8 == kept.nbytes


# --- rule 2: a bounded cache


def test_above_the_limit_the_oldest_results_go(kept: Retention) -> None:
    add(kept, -1, 1, count=4)
    add(kept, 1, 2, count=4)
    full = kept.nbytes
    newest = add(kept, 2, 3, count=1)
    assert (64, 40, [newest]) == (full, kept.nbytes, after(kept, 2, -1, -1)[0])


def test_at_the_limit_nothing_goes(kept: Retention) -> None:
    first = add(kept, -1, 1, count=8)
    assert ([first], set()) == after(kept, -1, -1, -1)


def test_results_that_were_dropped_are_lost_for_a_collector_that_needs_them(kept: Retention) -> None:
    add(kept, -1, 1, count=4)
    add(kept, 1, 2, count=5)
    assert {GroupId(0)} == after(kept, -1, -1, -1)[1]


def test_results_that_were_dropped_are_not_lost_for_a_collector_that_has_them(kept: Retention) -> None:
    add(kept, -1, 1, count=4)
    second = add(kept, 1, 2, count=5)
    assert ([second], set()) == after(kept, 1, -1, -1)


def test_a_batch_is_dropped_only_when_its_last_part_is_there(kept: Retention) -> None:
    for number in range(3):
        kept.keep(results((0,), -1, 4, rows(4), part=number, last=False), may_drop=True)
    assert 96 == kept.nbytes


def test_older_results_go_while_the_parts_of_a_large_batch_come(kept: Retention) -> None:
    add(kept, -1, 1, count=4)
    kept.keep(results((0,), 1, 2, rows(5), last=False), may_drop=True)
    assert 40 == kept.nbytes


def test_a_batch_larger_than_the_limit_is_lost_at_once(kept: Retention) -> None:
    add(kept, -1, 1, count=9)
    assert (0, {GroupId(0)}) == (kept.nbytes, after(kept, -1, -1, -1)[1])


# --- rule 3: without a collector


def test_nothing_is_dropped_while_no_collector_is_there(kept: Retention) -> None:
    first = add(kept, -1, 1, count=9, may_drop=False)
    second = add(kept, 1, 2, count=9, may_drop=False)
    assert ([first, second], set()) == after(kept, -1, -1, -1)


def test_the_cache_is_full_at_its_limit(kept: Retention) -> None:
    add(kept, -1, 1, count=7)
    before = kept.is_full
    add(kept, 1, 2)
    assert (False, True) == (before, kept.is_full)


# --- what a new collector is sent


def test_what_a_collector_has_is_not_sent_again(kept: Retention) -> None:
    add(kept, -1, 1)
    second = add(kept, 1, 2)
    assert ([second], set()) == after(kept, 1, -1, -1)


def test_a_batch_is_sent_again_with_all_its_parts(kept: Retention) -> None:
    parts = [results((0,), -1, 4, rows(1), part=number, last=number == 2) for number in range(3)]
    for one in parts:
        kept.keep(one, may_drop=True)
    assert parts == after(kept, -1, -1, -1)[0]


def test_a_batch_is_sent_again_if_one_of_its_groups_is_wanted(kept: Retention) -> None:
    message = add(kept, -1, 4, 0, 1)
    assert ([message], set()) == after(kept, 4, -1, -1)


def test_batches_are_sent_again_in_their_order(kept: Retention) -> None:
    messages = [add(kept, number - 1, number) for number in range(4)]
    assert messages == after(kept, -1, -1, -1)[0]


def test_results_of_an_older_version_are_not_sent_again(kept: Retention) -> None:
    add(kept, -1, 4)
    kept.begin(GroupId(0), MapVersion(2), RecordNo(-1))
    assert ([], set()) == after(kept, -1, -1, -1, versions=vector(2, 1, 1))


def test_a_group_without_results_so_far_is_not_lost(kept: Retention) -> None:
    assert ([], set()) == after(kept, -1, -1, -1)


def test_a_group_whose_collector_is_ahead_of_what_was_made_is_not_lost(kept: Retention) -> None:
    assert ([], set()) == after(kept, 5, -1, -1)


def test_a_group_that_is_silent_up_to_what_is_committed_is_not_lost(kept: Retention) -> None:
    kept.begin(GroupId(0), MapVersion(2), RecordNo(7))
    assert ([], set()) == after(kept, 7, -1, -1, versions=vector(2, 1, 1))


def test_a_group_that_is_not_here_is_not_lost(kept: Retention) -> None:
    add(kept, -1, 1, count=9)
    _, lost = kept.after(vector(-1, -1, -1), vector(1, 1, 1), np.array([False, True, True]))
    assert set() == lost


def test_a_collector_that_stands_inside_a_batch_cannot_go_on(kept: Retention) -> None:
    add(kept, -1, 4)
    assert {GroupId(0)} == after(kept, 2, -1, -1)[1]
