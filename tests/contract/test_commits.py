"""What every commit store keeps (`ports.CommitStore`): the last commit, under the newest term."""

from collections.abc import Callable

import pytest

from joinery.machine.ports import CommitStore, Stale
from joinery.model.errors import Bug
from tests.contract.samples import commit, commit_seen

Connect = Callable[[], CommitStore]


def last(connect: Connect, instance: str) -> object:
    return commit_seen(connect().open(instance)[1])


def test_there_is_no_commit_at_first(connect_commits: Connect) -> None:
    term, found = connect_commits().open("c/1")
    assert term > 0
    assert None is found


def test_every_instance_gets_a_greater_term(connect_commits: Connect) -> None:
    terms = [connect_commits().open(f"c/{number}")[0] for number in range(4)]
    assert sorted(set(terms)) == terms


def test_an_instance_that_opens_again_keeps_its_term_and_sees_the_last_commit(connect_commits: Connect) -> None:
    store = connect_commits()
    term, _ = store.open("c/1")
    store.write(term, commit(1, 4, 5))
    again, found = store.open("c/1")
    assert (term, commit_seen(commit(1, 4, 5))) == (again, commit_seen(found))


def test_a_late_repetition_of_an_opening_takes_nothing_back(connect_commits: Connect) -> None:
    store = connect_commits()
    old, _ = store.open("c/1")
    newer, _ = connect_commits().open("c/2")
    assert old == store.open("c/1")[0]
    connect_commits().write(newer, commit(1, 4))
    with pytest.raises(Stale):
        store.write(old, commit(2, 5))


def test_the_last_commit_is_read_as_it_was(connect_commits: Connect) -> None:
    store = connect_commits()
    term, _ = store.open("c/1")
    store.write(term, commit(1, 4, 5, valid=3))
    store.write(term, commit(2, 6, 5, valid=8))
    assert commit_seen(commit(2, 6, 5, valid=8)) == last(connect_commits, "c/2")


def test_a_repeated_commit_has_no_effect(connect_commits: Connect) -> None:
    store = connect_commits()
    term, _ = store.open("c/1")
    for _ in range(2):
        store.write(term, commit(1, 4))
    store.write(term, commit(2, 5))
    assert commit_seen(commit(2, 5)) == last(connect_commits, "c/2")


def test_a_collector_that_was_replaced_commits_nothing(connect_commits: Connect) -> None:
    store = connect_commits()
    old, _ = store.open("c/1")
    store.write(old, commit(1, 4))
    newer, _ = connect_commits().open("c/2")
    for stale in (commit(2, 5), commit(1, 4)):
        with pytest.raises(Stale) as refused:
            store.write(old, stale)
        assert (newer, old) == (refused.value.held, refused.value.own)
    assert commit_seen(commit(1, 4)) == last(connect_commits, "c/3")


def test_commits_go_on_under_the_next_term(connect_commits: Connect) -> None:
    old, _ = connect_commits().open("c/1")
    connect_commits().write(old, commit(1, 4))
    store = connect_commits()
    term, _ = store.open("c/2")
    store.write(term, commit(2, 7))
    assert commit_seen(commit(2, 7)) == last(connect_commits, "c/3")


@pytest.mark.parametrize("number", [1, 3])
def test_a_number_out_of_turn_is_refused_loudly(connect_commits: Connect, number: int) -> None:
    old, _ = connect_commits().open("c/1")
    connect_commits().write(old, commit(1, 4))
    store = connect_commits()
    term, _ = store.open("c/2")
    with pytest.raises(Bug):
        store.write(term, commit(number, 9))
    assert commit_seen(commit(1, 4)) == last(connect_commits, "c/3")
