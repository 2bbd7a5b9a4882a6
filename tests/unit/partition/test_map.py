import numpy as np
import pytest

from joinery.model.errors import Bug, UserMustAct
from joinery.model.ids import GroupId, MapVersion, WorkerId
from joinery.partition.map import PartitionMap

A, B, C = WorkerId("a"), WorkerId("b"), WorkerId("c")


def groups(*numbers: int) -> tuple[GroupId, ...]:
    return tuple(GroupId(number) for number in numbers)


def test_the_first_map_has_version_one_and_spreads_neighbouring_groups_evenly() -> None:
    pmap = PartitionMap.initial(7, [A, B, C])
    assert MapVersion(1) == pmap.version
    assert [groups(0, 1, 2), groups(3, 4), groups(5, 6)] == [pmap.groups_of(worker) for worker in (A, B, C)]


@pytest.mark.parametrize(("count", "workers"), [(60, 1), (60, 7), (60, 8), (3, 5), (1, 1)])
def test_initial_shares_differ_by_one_group_at_most(count: int, workers: int) -> None:
    names = [WorkerId(f"w{n}") for n in range(workers)]
    pmap = PartitionMap.initial(count, names)
    shares = [len(pmap.groups_of(name)) for name in names]
    assert count == sum(shares)
    assert max(shares) - min(shares) <= 1


def test_a_move_makes_a_new_map_and_leaves_the_old_one_alone() -> None:
    old = PartitionMap.initial(4, [A, B])
    new = old.move({GroupId(3): A})
    assert (B, A) == (old.owner(GroupId(3)), new.owner(GroupId(3)))
    assert (MapVersion(1), MapVersion(2)) == (old.version, new.version)


def test_the_term_of_a_group_is_the_version_that_gave_it_its_owner() -> None:
    pmap = PartitionMap.initial(4, [A, B]).move({GroupId(3): A}).move({GroupId(0): B})
    assert [3, 1, 1, 2] == [pmap.term_of(GroupId(group)) for group in range(4)]


def test_a_group_given_to_its_own_worker_again_gets_a_new_term() -> None:
    pmap = PartitionMap.initial(2, [A]).move({GroupId(1): A})
    assert [1, 2] == [pmap.term_of(group) for group in groups(0, 1)]
    assert A == pmap.owner(GroupId(1))


def test_new_workers_own_nothing_and_raise_the_version_but_no_term() -> None:
    pmap = PartitionMap.initial(2, [A]).with_workers([A, B])
    assert MapVersion(2) == pmap.version
    assert () == pmap.groups_of(B)
    assert MapVersion(1) == pmap.term_of(GroupId(0))


def test_owners_survive_when_the_places_of_workers_change() -> None:
    pmap = PartitionMap.initial(4, [A, B]).with_workers([C, B, A])
    assert [A, A, B, B] == [pmap.owner(GroupId(group)) for group in range(4)]


def test_the_same_workers_are_no_change() -> None:
    pmap = PartitionMap.initial(4, [A, B])
    assert pmap is pmap.with_workers([A, B])


def test_a_worker_that_owns_groups_cannot_leave() -> None:
    pmap = PartitionMap.initial(4, [A, B])
    with pytest.raises(Bug, match=r"\['b'\] would leave but still own groups"):
        pmap.with_workers([A])
    assert (A,) == pmap.move({GroupId(2): A, GroupId(3): A}).with_workers([A]).workers


def test_a_stored_map_comes_back_equal() -> None:
    pmap = PartitionMap.initial(5, [A, B]).move({GroupId(1): B})
    assert pmap == PartitionMap.from_dict(pmap.to_dict())
    assert hash(pmap) == hash(PartitionMap.from_dict(pmap.to_dict()))
    assert pmap != PartitionMap.initial(5, [A, B])


def test_the_arrays_of_a_map_cannot_be_written() -> None:
    pmap = PartitionMap.initial(5, [A, B])
    with pytest.raises(ValueError, match="read-only"):
        pmap.owners[0] = 1


@pytest.mark.parametrize(
    "broken",
    [
        lambda pmap: pmap.move({}),
        lambda pmap: pmap.move({GroupId(9): A}),
        lambda pmap: pmap.move({GroupId(-1): A}),
        lambda pmap: pmap.move({GroupId(0): C}),
        lambda pmap: pmap.owner(GroupId(4)),
        lambda pmap: pmap.term_of(GroupId(-1)),
        lambda _: PartitionMap.initial(4, []),
        lambda _: PartitionMap.initial(4, [A, A]),
        lambda _: PartitionMap(MapVersion(1), (A,), np.array([1], np.int32), np.array([1], np.int64)),
        lambda _: PartitionMap(MapVersion(1), (A,), np.array([0], np.int32), np.array([2], np.int64)),
    ],
)
def test_a_map_that_contradicts_itself_is_a_bug(broken) -> None:
    with pytest.raises(Bug):
        broken(PartitionMap.initial(4, [A, B]))


def test_a_query_without_partitions_is_refused_with_its_remedy() -> None:
    with pytest.raises(UserMustAct, match=r"spec.partitions: found 0, wanted at least 1; leave it out for 60"):
        PartitionMap.initial(0, [A])
