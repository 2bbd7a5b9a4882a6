"""What every store of retained results keeps (`ports.Retained`): what subscribers may ask the next collector for."""

from collections.abc import Callable

import pytest

from joinery.join.results import Kind
from joinery.machine.ports import Kept, Receipt, Retained, Stale
from joinery.model.ids import Term
from tests.contract.samples import result

Connect = Callable[[], Retained]


def begun(connect: Connect, term: int = 1, valid: int | None = None) -> Retained:
    store = connect()
    store.recover(Term(term), None if valid is None else Receipt(store.name, valid))
    return store


def seen(kept: Kept | None) -> object:
    """What is kept, as plain values."""
    if kept is None:
        return None
    commits = {}
    for number, parts in kept.commits:
        keys = [key for part in parts for key in part.rows.column("k").to_pylist()]
        assert [key + 100 for key in keys] == [time for part in parts for time in part.times.tolist()]
        assert {0} == {group for part in parts for group in part.groups.tolist()}
        commits[number] = keys
    return kept.first, commits


def found(connect: Connect, term: int, valid: int) -> object:
    return seen(begun(connect, term, valid).read())


def test_nothing_is_kept_before_somebody_subscribes(connect_retained: Connect) -> None:
    store = begun(connect_retained)
    assert Receipt(store.name, 1) == store.stage(1, [result(1)])
    assert None is store.read()
    assert None is found(connect_retained, 2, 1)


def test_what_was_staged_before_and_after_the_first_subscriber_is_there_for_the_next_collector(
    connect_retained: Connect,
) -> None:
    store = begun(connect_retained)
    store.stage(1, [result(1, 2), result(3)])
    store.keep(1)
    store.stage(2, [])
    store.stage(3, [result(4)])
    assert (1, {1: [1, 2, 3], 3: [4]}) == found(connect_retained, 2, 3)
    assert (1, {1: [1, 2, 3], 3: [4]}) == found(connect_retained, 3, 3)


def test_what_no_commit_made_valid_is_dropped_and_staged_anew(connect_retained: Connect) -> None:
    store = begun(connect_retained)
    store.keep(1)
    store.stage(1, [result(1)])
    store.stage(2, [result(2)])
    store = begun(connect_retained, 2, 1)
    assert (1, {1: [1]}) == seen(store.read())
    store.stage(2, [result(5, 6)])
    assert (1, {1: [1], 2: [5, 6]}) == found(connect_retained, 3, 2)


def test_the_same_commit_staged_again_replaces_what_was_staged(connect_retained: Connect) -> None:
    store = begun(connect_retained)
    store.keep(1)
    for _ in range(2):
        store.stage(1, [result(1)])
        store.keep(1)
    assert (1, {1: [1]}) == found(connect_retained, 2, 1)


def test_late_rows_are_not_kept(connect_retained: Connect) -> None:
    store = begun(connect_retained)
    store.keep(1)
    store.stage(1, [result(1, kind=Kind.LATE), result(2)])
    assert (1, {1: [2]}) == found(connect_retained, 2, 1)


def test_no_more_than_the_limit_is_kept_of_valid_commits(connect_retained: Connect) -> None:
    store = begun(connect_retained)
    store.keep(1)
    for number in range(1, 8):
        store.stage(number, [result(number)])
    assert (4, {4: [4], 5: [5], 6: [6], 7: [7]}) == found(connect_retained, 2, 7)
    assert (4, {4: [4], 5: [5], 6: [6]}) == found(connect_retained, 3, 6)  # the seventh was not made: three are left


def test_what_was_kept_by_one_collector_makes_room_for_what_the_next_one_keeps(connect_retained: Connect) -> None:
    store = begun(connect_retained)
    store.keep(1)
    for number in (1, 2, 3):
        store.stage(number, [result(number)])
    store = begun(connect_retained, 2, 3)
    for number in (4, 5, 6):
        store.stage(number, [result(number)])
    assert (3, {3: [3], 4: [4], 5: [5], 6: [6]}) == found(connect_retained, 3, 6)


def test_before_the_first_subscriber_the_limit_holds_too(connect_retained: Connect) -> None:
    store = begun(connect_retained)
    for number in range(1, 8):
        store.stage(number, [result(number)])
    store.keep(6)
    assert (6, {6: [6], 7: [7]}) == found(connect_retained, 2, 7)


def test_a_commit_larger_than_the_limit_ends_what_can_be_asked_for(connect_retained: Connect) -> None:
    store = begun(connect_retained)
    store.keep(1)
    store.stage(1, [result(1)])
    store.stage(2, [result(2, 3, 4, 5)])
    assert (3, {}) == found(connect_retained, 2, 2)
    store = begun(connect_retained, 3, 2)
    store.stage(3, [result(6)])
    assert (3, {3: [6]}) == found(connect_retained, 4, 3)


def test_a_subscriber_that_comes_before_any_commit_begins_after_the_last_one(connect_retained: Connect) -> None:
    store = begun(connect_retained, 1, 8)
    store.keep(9)
    assert (9, {}) == found(connect_retained, 2, 8)


def test_commits_that_were_made_without_it_are_a_gap_that_is_never_hidden(connect_retained: Connect) -> None:
    store = begun(connect_retained)
    store.keep(1)
    store.stage(1, [result(1)])
    store = begun(connect_retained, 2, None)
    assert None is store.read()
    store.stage(7, [result(7)])
    store.keep(7)
    assert (7, {7: [7]}) == found(connect_retained, 3, 7)


def test_a_collector_that_was_replaced_changes_nothing(connect_retained: Connect) -> None:
    old = begun(connect_retained)
    old.keep(1)
    old.stage(1, [result(1)])
    newer = begun(connect_retained, 2, 1)
    newer.stage(2, [result(2)])
    for step in (
        lambda: old.stage(2, [result(9)]),
        lambda: old.keep(2),
        lambda: old.recover(Term(1), None),
        lambda: old.finish(None),
    ):
        with pytest.raises(Stale) as refused:
            step()
        assert (2, 1) == (refused.value.held, refused.value.own)
    assert (1, {1: [1], 2: [2]}) == found(connect_retained, 3, 2)


def test_the_end_takes_nothing_away(connect_retained: Connect) -> None:
    store = begun(connect_retained)
    store.keep(1)
    store.finish(store.stage(1, [result(1)]))
    assert (1, {1: [1]}) == found(connect_retained, 2, 1)
