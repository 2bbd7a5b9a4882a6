import numpy as np
import pytest

from joinery.model.errors import Bug, UserMustAct
from joinery.partition.extendible import (
    MAX_DEPTH,
    Directory,
    Merge,
    OutOfBounds,
    Split,
    out_of_bounds,
    separating_bit,
    tune,
)


def yes(bucket: int) -> bool:
    return True


def no(bucket: int) -> bool:
    return False


def figure_4b() -> Directory:
    """Three mini-groups: 0 owns *0, 1 owns 01, 2 owns 11."""
    directory = Directory.single(0)
    directory.split(0, 1)
    directory.split(1, 2)
    return directory


def test_an_unsplit_group_has_one_entry_and_no_buddy() -> None:
    directory = Directory.single(7)
    assert ([7], 0, {7: 0}) == (directory.entries.tolist(), directory.global_depth, directory.local_depth)
    assert directory.buddy(7) is None


def test_a_split_at_the_global_depth_doubles_the_directory_by_its_next_low_bit() -> None:
    directory = Directory.single(0)
    assert 0 == directory.split(0, 1)
    assert [0, 1] == directory.entries.tolist()
    assert 1 == directory.split(1, 2)
    #        00 01 10 11
    assert [0, 1, 0, 2] == directory.entries.tolist()
    assert {0: 1, 1: 2, 2: 2} == directory.local_depth


def test_a_split_below_the_global_depth_shares_the_entries_and_doubles_nothing() -> None:
    directory = figure_4b()
    assert 1 == directory.split(0, 3)
    assert [0, 1, 3, 2] == directory.entries.tolist()
    assert 2 == directory.global_depth


def test_entries_are_int32_for_the_kernels() -> None:
    assert np.int32 == figure_4b().entries.dtype


def test_the_buddy_differs_in_the_highest_bit_of_the_local_depth() -> None:
    directory = figure_4b()
    assert (2, 1) == (directory.buddy(1), directory.buddy(2))
    assert (0b01, 0b11) == (directory.first_entry(1), directory.first_entry(2))


def test_a_deeper_neighbour_is_no_buddy() -> None:
    assert figure_4b().buddy(0) is None


@pytest.mark.parametrize("first", [1, 2])
def test_a_merge_keeps_the_bucket_with_the_clear_bit_and_halves_the_directory(first: int) -> None:
    directory = figure_4b()
    assert 1 == directory.merge(first, 3 - first)
    assert ([0, 1], 1) == (directory.entries.tolist(), directory.global_depth)
    assert 0 == directory.merge(1, 0)
    assert ([0], 0) == (directory.entries.tolist(), directory.global_depth)


def test_the_directory_does_not_halve_while_another_bucket_is_as_deep() -> None:
    directory = figure_4b()
    directory.split(0, 3)
    directory.merge(3, 0)
    assert ([0, 1, 0, 2], 2) == (directory.entries.tolist(), directory.global_depth)


def test_a_checkpointed_directory_comes_back() -> None:
    directory = figure_4b()
    assert [(0, 1, 0), (1, 2, 1), (2, 2, 3)] == directory.to_list()
    again = Directory.from_list([list(row) for row in directory.to_list()])
    assert directory.to_list() == again.to_list()
    assert directory.entries.tolist() == again.entries.tolist()


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [(0, 1, 0)],
        [(0, 1, 0), (1, 1, 0)],
        [(0, 1, 0), (1, 2, 1)],
        [(0, 1, 0), (0, 1, 1)],
        [(0, 0, 1)],
        [(-1, 0, 0)],
        [(0, MAX_DEPTH + 1, 0)],
        [(0, 0)],
    ],
)
def test_a_checkpoint_that_is_no_directory_is_a_bug(rows: list[tuple[int, ...]]) -> None:
    with pytest.raises(Bug):
        Directory.from_list(rows)


@pytest.mark.parametrize(
    "damage",
    [
        lambda directory: directory.entries.__setitem__(0, 2),
        lambda directory: directory.entries.__setitem__(0, 9),
        lambda directory: directory.local_depth.__setitem__(0, 2),
        lambda directory: directory.local_depth.pop(2),
        lambda directory: setattr(directory, "global_depth", 3),
        lambda directory: setattr(directory, "entries", np.tile(directory.entries, 2)),
        lambda directory: setattr(directory, "entries", directory.entries.astype(np.int64)),
    ],
)
def test_check_finds_damage(damage) -> None:
    directory = figure_4b()
    directory.check()
    damage(directory)
    with pytest.raises(Bug):
        directory.check()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda directory: directory.split(9, 10),
        lambda directory: directory.split(0, 1),
        lambda directory: directory.split(0, -1),
        lambda directory: directory.split(0, 2**31),
        lambda directory: directory.merge(0, 1),
        lambda directory: directory.merge(1, 0),
        lambda directory: directory.first_entry(9),
    ],
)
def test_an_impossible_change_is_a_bug_and_changes_nothing(wrong) -> None:
    directory = figure_4b()
    with pytest.raises(Bug):
        wrong(directory)
    directory.check()
    assert figure_4b().to_list() == directory.to_list()


def test_nothing_is_split_beyond_the_greatest_depth() -> None:
    directory = Directory.single(0)
    for new in range(1, MAX_DEPTH + 1):
        directory.split(0, new)
    assert 2**MAX_DEPTH == len(directory.entries)
    with pytest.raises(Bug, match="nothing is split beyond 16"):
        directory.split(0, 99)
    assert [] == tune(directory, dict.fromkeys(directory.buckets(), 0) | {0: 21, MAX_DEPTH: 3}, 10, yes)


@pytest.mark.parametrize(("size", "splits"), [(20, 0), (21, 1)])
def test_a_mini_group_is_split_above_two_theta_not_at_it(size: int, splits: int) -> None:
    assert splits == len(tune(Directory.single(0), {0: size}, 10, yes))


def test_a_split_says_why() -> None:
    assert [Split(0, "21 bytes > 2 x 10")] == tune(Directory.single(0), {0: 21}, 10, {0: True})


def test_one_hot_key_is_not_split_but_counted() -> None:
    directory = Directory.single(0)
    assert [] == tune(directory, {0: 99}, 10, no)
    assert OutOfBounds(hot=(0,), deepest=(), small=()) == out_of_bounds(directory, {0: 99}, 10, no)


@pytest.mark.parametrize(
    ("size_1", "size_2", "merges"),
    [(9, 10, 1), (10, 9, 1), (9, 11, 0), (10, 10, 0), (0, 0, 1), (0, 20, 0)],
)
def test_buddies_merge_when_one_is_below_theta_and_both_are_below_two_theta(
    size_1: int, size_2: int, merges: int
) -> None:
    actions = tune(figure_4b(), {0: 15, 1: size_1, 2: size_2}, 10, yes)
    assert merges == len(actions)
    assert all({1, 2} == {action.bucket, action.buddy} for action in actions if isinstance(action, Merge))


def test_a_merge_says_why() -> None:
    actions = tune(figure_4b(), {0: 15, 1: 3, 2: 4}, 10, yes)
    assert [Merge(1, 2, "3 bytes < 10, with buddy 7 < 2 x 10")] == actions


def test_a_small_mini_group_beside_a_deeper_one_waits_and_is_counted() -> None:
    directory, sizes = figure_4b(), {0: 1, 1: 10, 2: 10}
    assert [] == tune(directory, sizes, 10, yes)
    assert OutOfBounds(hot=(), deepest=(), small=(0,)) == out_of_bounds(directory, sizes, 10, yes)


def test_no_mini_group_appears_in_two_actions() -> None:
    directory = figure_4b()
    directory.split(0, 3)
    actions = tune(directory, {0: 21, 3: 1, 1: 2, 2: 3}, 10, yes)
    assert [Split, Merge] == [type(action) for action in actions]
    assert [0, 1] == [action.bucket for action in actions]


def test_sizes_must_name_every_mini_group() -> None:
    with pytest.raises(Bug, match=r"\[2\] are missing"):
        tune(figure_4b(), {0: 1, 1: 1}, 10, yes)


def test_theta_must_be_positive() -> None:
    with pytest.raises(UserMustAct, match=r"spec.fineTuning.theta: found 0, wanted at least 1 byte; leave it out"):
        tune(Directory.single(0), {0: 1}, 0, yes)


@pytest.mark.parametrize(
    ("hashes", "depth", "bit"),
    [
        ([], 0, None),
        ([5], 0, None),
        ([5, 5, 5], 0, None),
        ([0b1001, 0b0001], 0, 3),
        ([0b1001, 0b0001], 3, 3),
        ([0b1001, 0b0001], 4, None),
        ([0b11, 0b00], 1, 1),
        ([1 << 16, 0], 0, None),
        ([1 << 15 | 1 << 63, 0], 0, 15),
    ],
)
def test_the_separating_bit_is_the_lowest_usable_one_that_differs(
    hashes: list[int], depth: int, bit: int | None
) -> None:
    assert bit == separating_bit(np.array(hashes, np.uint64), depth)
