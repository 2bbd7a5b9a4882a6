"""Cuts of a relation by partition-groups: who is where, and what a refresh leaves alone."""

import numpy as np
import pytest

from joinery.hybrid.grouped import (
    EMPTY,
    GROUP_SHIFT,
    GroupedCut,
    group_cut,
    kept_segments,
    segments_within,
    together,
)
from joinery.hybrid.segments import NOWHERE, Cut, HashCut, RangeCut
from joinery.model.tuples import I64Array
from joinery.partition.hashing import groups_of, hash_words

GROUPS = 5
THETA = 400


def cut_all(words: I64Array, kind: str, before: GroupedCut | None = None) -> GroupedCut:
    """Every group cut for itself, each row of 20 bytes."""
    hashes = hash_words(words)
    of, cuts = groups_of(hashes, GROUPS), list[Cut]()
    for group in range(GROUPS):
        own = of == group
        sizes = np.full(int(own.sum()), 20, np.int64)
        old = None if before is None else before.of(group)
        cuts.append(group_cut(kind, words[own], hashes[own], sizes, THETA, old) if own.any() else EMPTY)
    return together(kind, cuts)


@pytest.mark.parametrize("kind", ["range", "hash"])
def test_a_key_is_in_its_own_group_and_there_where_the_groups_own_cut_says(kind: str) -> None:
    words = np.random.default_rng(1).integers(-(2**40), 2**40, 1000)
    hashes, cut = hash_words(words), cut_all(words, kind)
    found = cut.segments_of(words, hashes)
    groups = groups_of(hashes, GROUPS)
    assert (cut.numbers[found] >> GROUP_SHIFT == groups).all()
    for group in range(GROUPS):
        own = groups == group
        within = segments_within(cut.of(group), words[own], hashes[own])
        assert np.array_equal(cut.numbers[found[own]] & ((1 << GROUP_SHIFT) - 1), within)
    sizes = np.bincount(found, np.full(words.size, 20), minlength=cut.segments)
    assert sizes.sum() == 20_000
    assert cut.segments > 3 * GROUPS
    if kind == "range":
        assert sizes.max() <= 2 * THETA


def test_a_key_outside_the_range_of_its_group_is_nowhere() -> None:
    words = np.arange(100, 200)
    cut = cut_all(words, "range")
    far = np.array([-5, 99, 10**6])
    assert (cut.segments_of(far, hash_words(far)) == -1).all()


def test_keys_behind_the_old_ones_leave_the_old_segments_as_they_are() -> None:
    words = np.arange(1000)
    cut = cut_all(words, "range")
    more = cut_all(np.arange(1400), "range", cut)
    assert more.segments > cut.segments
    assert cut.segments == int(more.alike(cut).sum())
    both = hash_words(words)
    assert np.array_equal(cut.numbers[cut.segments_of(words, both)], more.numbers[more.segments_of(words, both)])


def test_a_key_below_the_old_ones_cuts_its_group_anew_and_no_other() -> None:
    words = np.arange(1000)
    cut = cut_all(words, "range")
    low = np.array([-7])
    anew = cut_all(np.concatenate([words, low]), "range", cut)
    group = int(groups_of(hash_words(low), GROUPS)[0])
    alike = anew.alike(cut)
    of = anew.numbers >> GROUP_SHIFT
    assert not alike[of == group].any()
    assert alike[of != group].all()


def test_a_segment_that_has_grown_too_large_cuts_its_group_anew_but_one_hot_key_does_not() -> None:
    words = np.arange(1000)
    cut = cut_all(words, "range")
    crowded = np.concatenate([words, np.repeat(np.arange(100, 140), 50)])
    assert not cut_all(crowded, "range", cut).alike(cut).all()
    hot = np.repeat(np.array([3]), 500)
    one = group_cut("range", hot, hash_words(hot), np.full(500, 20), THETA, None)
    again = group_cut("range", hot, hash_words(hot), np.full(500, 20), THETA, one)
    assert again.same_as(one)


def test_a_group_without_rows_has_no_segment() -> None:
    cut = together("hash", [HashCut(2), EMPTY, HashCut(1)])
    assert [0, 1, 2 << GROUP_SHIFT] == cut.numbers.tolist()
    words = np.arange(300)
    hashes = hash_words(words)
    nowhere = cut.segments_of(words, hashes) == -1
    assert np.array_equal(nowhere, groups_of(hashes, 3) == 1)
    assert cut.of(1) is not None
    assert 0 == cut.of(1).segments


def test_another_kind_of_cut_has_nothing_in_common() -> None:
    words = np.arange(500)
    assert not cut_all(words, "hash").alike(cut_all(words, "range")).any()
    assert not kept_segments(HashCut(3), RangeCut(0, 5, 0, np.zeros(6, np.int32), 1)).any()


def test_a_refresh_with_keys_more_than_half_of_all_numbers_apart_is_cut() -> None:
    hashes, sizes = np.array([1, 2], np.uint64), np.array([100, 100])
    first = group_cut("range", np.array([-9 * 10**18, -9 * 10**18 + 100]), hashes, sizes, 50, None)
    words = np.array([-9 * 10**18, 9 * 10**18])
    cut = group_cut("range", words, hashes, sizes, 50, first)
    assert not (segments_within(cut, words, hashes) == NOWHERE).any()
