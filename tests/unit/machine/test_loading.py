"""How a group's state comes to its owner: preloaded, claimed, restored at the newest tag that is committed."""

import pytest

from joinery.join.state import Age, Increment
from joinery.machine.facts import CheckpointRead
from joinery.machine.loading import Loading
from joinery.machine.log import SpecChange
from joinery.machine.orders import ReadCheckpoint, RestoreGroup
from joinery.machine.ports import Chain
from joinery.model.errors import Bug
from joinery.model.ids import GroupId, MapVersion, RecordNo
from tests.unit.machine.building import change_of, increment

GROUP, VERSION = GroupId(1), MapVersion(3)


def chain_of(*increments: Increment, known: int = 0, base: int | None = None) -> Chain:
    """A chain of which the reader knows the first few."""
    tags = tuple(one.tag for one in increments)
    return Chain(tags, increments[known:], None if base is None else RecordNo(base))


def three() -> list[Increment]:
    return [increment(1, 2, None), increment(1, 5, 2), increment(1, 8, 5)]


def read(chain: Chain) -> CheckpointRead:
    return CheckpointRead(GROUP, VERSION, chain)


def restored(
    chain: Chain, silent: int, loading: Loading | None = None, changes: tuple[SpecChange, ...] = ()
) -> RestoreGroup:
    made = (loading or Loading()).restore(read(chain), RecordNo(silent), changes)
    assert isinstance(made, RestoreGroup)
    return made


def tags(order: RestoreGroup) -> list[int]:
    return [int(one.tag) for one in order.increments]


# --- rule 1: preload and claim


def test_a_preload_reads_and_claims_nothing() -> None:
    assert [ReadCheckpoint(GROUP, None, ())] == Loading().preload([GROUP])


def test_a_claim_reads_under_the_new_version() -> None:
    assert [ReadCheckpoint(GROUP, VERSION, ())] == Loading().claim(GROUP, VERSION)


def test_a_preload_tells_the_newest_tag() -> None:
    assert 8 == Loading().preloaded(GROUP, chain_of(*three()))


def test_a_preload_of_an_empty_chain_tells_that_there_is_none() -> None:
    assert -1 == Loading().preloaded(GROUP, Chain((), ()))


def test_a_second_preload_reads_only_what_is_new() -> None:
    loading = Loading()
    loading.preloaded(GROUP, chain_of(*three()[:2]))
    assert [ReadCheckpoint(GROUP, None, (RecordNo(2), RecordNo(5)))] == loading.preload([GROUP])


def test_a_claim_reads_only_what_the_preload_has_not() -> None:
    loading = Loading()
    loading.preloaded(GROUP, chain_of(*three()[:2]))
    assert [ReadCheckpoint(GROUP, VERSION, (RecordNo(2), RecordNo(5)))] == loading.claim(GROUP, VERSION)


def test_a_group_is_restored_from_what_was_preloaded_and_what_was_read_later() -> None:
    loading, all_of_it = Loading(), three()
    loading.preloaded(GROUP, chain_of(*all_of_it[:2]))
    assert [2, 5, 8] == tags(restored(chain_of(*all_of_it, known=2), 8, loading))


def test_preloaded_increments_that_are_no_longer_in_the_chain_are_not_used() -> None:
    loading = Loading()
    loading.preloaded(GROUP, chain_of(*three()))
    fresh = increment(1, 6, 5)
    order = restored(Chain((RecordNo(2), RecordNo(5), RecordNo(6)), (fresh,)), 9, loading)
    assert [2, 5, 6] == tags(order)


def test_an_increment_that_was_written_anew_replaces_the_preloaded_one() -> None:
    loading, anew = Loading(), increment(1, 5, 2)
    loading.preloaded(GROUP, chain_of(*three()[:2]))
    order = restored(Chain((RecordNo(2), RecordNo(5)), (anew,)), 9, loading)
    assert order.increments[-1] is anew


def test_a_preload_of_a_replaced_owner_that_does_not_fit_the_chain_is_read_again() -> None:
    loading = Loading()
    loading.preloaded(GROUP, chain_of(increment(1, 5, None), increment(1, 10, 5)))
    chain = Chain((RecordNo(5), RecordNo(7), RecordNo(10)), (increment(1, 7, 5),))
    made = loading.restore(read(chain), RecordNo(12), ())
    assert ReadCheckpoint(GROUP, VERSION, ()) == made


def test_what_was_read_again_is_restored() -> None:
    loading, anew = Loading(), [increment(1, 5, None), increment(1, 7, 5), increment(1, 10, 7)]
    loading.preloaded(GROUP, chain_of(increment(1, 5, None), increment(1, 10, 5)))
    loading.restore(read(Chain(tuple(one.tag for one in anew), (anew[1],))), RecordNo(12), ())
    assert [5, 7, 10] == tags(restored(chain_of(*anew), 12, loading))


def test_a_group_that_went_elsewhere_is_read_anew() -> None:
    loading = Loading()
    loading.preloaded(GROUP, chain_of(*three()))
    loading.forget(GROUP)
    assert [ReadCheckpoint(GROUP, VERSION, ())] == loading.claim(GROUP, VERSION)


def test_a_group_that_was_restored_is_not_kept_twice() -> None:
    loading = Loading()
    loading.preloaded(GROUP, chain_of(*three()))
    restored(chain_of(*three(), known=3), 8, loading)
    assert [ReadCheckpoint(GROUP, VERSION, ())] == loading.claim(GROUP, VERSION)


def test_a_preload_is_not_restored() -> None:
    with pytest.raises(ValueError, match="preload"):
        Loading().restore(CheckpointRead(GROUP, None, chain_of(*three())), RecordNo(9), ())


# --- rule 2: the newest tag that is committed


@pytest.mark.parametrize(("silent", "used"), [(8, [2, 5, 8]), (7, [2, 5]), (5, [2, 5]), (4, [2])])
def test_increments_are_used_up_to_the_newest_tag_that_is_committed(silent: int, used: list[int]) -> None:
    assert used == tags(restored(chain_of(*three()), silent))


def test_without_a_committed_tag_the_group_starts_empty() -> None:
    order = restored(chain_of(*three()), 1)
    assert ((), None) == (order.increments, order.base)


def test_a_group_that_was_never_checkpointed_starts_empty() -> None:
    assert () == restored(Chain((), ()), -1).increments


def test_a_trimmed_chain_without_a_committed_tag_is_a_bug() -> None:
    with pytest.raises(Bug, match="are gone"):
        restored(chain_of(*three()[1:], base=2), 4)


def test_a_trimmed_chain_starts_after_its_base() -> None:
    order = restored(chain_of(*three()[1:], base=2), 8)
    assert ([5, 8], 2) == (tags(order), order.base)


def test_a_chain_is_used_from_its_last_whole_state_on() -> None:
    chain = chain_of(*three(), increment(1, 11, None), increment(1, 14, 11))
    assert ([11, 14], None) == (tags(restored(chain, 20)), restored(chain, 20).base)


def test_a_whole_state_that_is_not_committed_is_not_used() -> None:
    chain = chain_of(*three(), increment(1, 11, None))
    assert [2, 5, 8] == tags(restored(chain, 10))


def test_a_restored_group_has_the_version_of_its_claim_and_all_changes() -> None:
    change = change_of(3)
    order = restored(chain_of(*three()), 8, changes=(change,))
    assert (GROUP, VERSION, (change,)) == (order.group, order.version, order.changes)


def test_the_ages_of_all_increments_that_stay_in_the_chain_are_known() -> None:
    loading, chain = Loading(), [*three(), increment(1, 11, None)]
    restored(chain_of(*chain), 20, loading)
    assert tuple(Age.of(one) for one in chain) == loading.ages(GROUP)


def test_ages_are_told_once() -> None:
    loading = Loading()
    restored(chain_of(*three()), 20, loading)
    loading.ages(GROUP)
    assert () == loading.ages(GROUP)


# --- rule 5: one at a time


def test_a_preload_that_is_asked_for_while_one_is_read_follows_it_and_reads_only_what_is_new() -> None:
    loading = Loading()
    loading.preload([GROUP])
    assert [] == loading.preload([GROUP])
    assert loading.has_more(GROUP)
    loading.preloaded(GROUP, chain_of(*three()[:2]))
    assert [ReadCheckpoint(GROUP, None, (RecordNo(2), RecordNo(5)))] == loading.preload([GROUP])
    assert not loading.has_more(GROUP)
