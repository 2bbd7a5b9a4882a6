import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.hybrid.segments import NOWHERE, HashCut, hash_cut, over, range_cut, row_bytes, unchanged
from joinery.model.errors import BadSpec, Bug
from joinery.partition.hashing import hash_words
from tests.unit.hybrid.relations import cut_rows, table

THETA = 100
ROW = 10


def cut_of(keys: list[int], theta: int = THETA) -> tuple[list[int], list[int]]:
    """The segment of each key, and the bytes of each segment."""
    words = np.array(keys, np.int64)
    cut = range_cut(words, np.full(words.size, ROW, np.int64), theta)
    of = cut.segments_of(words, hash_words(words))
    return of.tolist(), (np.bincount(of, minlength=cut.segments) * ROW).tolist()


def test_even_keys_are_cut_into_segments_between_theta_and_two_theta() -> None:
    #  64 keys of 10 bytes, theta 100: slots of 8 keys (80 bytes), two of them per segment
    of, sizes = cut_of(list(range(64)))
    assert [160, 160, 160, 160] == sizes
    assert [key // 16 for key in range(64)] == of


def test_a_slot_of_one_key_may_exceed_theta_and_is_a_segment_of_its_own() -> None:
    of, sizes = cut_of([*range(20), *[21] * 50, *range(22, 42)])
    hot = of[20]
    assert [500] == [size for size in sizes if size > 2 * THETA]
    assert {hot} == {segment for segment, key in zip(of, [*range(20), *[21] * 50], strict=False) if key == 21}


def test_keys_outside_the_relation_have_no_segment() -> None:
    cut = range_cut(np.array([5, 9]), np.array([ROW, ROW]), THETA)
    words = np.array([4, 5, 7, 9, 10, -(2**63), 2**63 - 1])
    assert [NOWHERE, 0, 0, 0, NOWHERE, NOWHERE, NOWHERE] == cut.segments_of(words, hash_words(words)).tolist()


def test_the_widest_range_of_keys_can_be_cut() -> None:
    least, most = -(2**63), 2**63 - 1
    of, sizes = cut_of([*[least] * 12, *[0] * 12, *[most] * 12])
    assert [120, 120, 120] == sizes
    assert 3 == len(set(of))


def test_an_empty_relation_has_no_segment() -> None:
    cut = range_cut(np.empty(0, np.int64), np.empty(0, np.int64), THETA)
    assert 0 == cut.segments
    assert [NOWHERE] == cut.segments_of(np.array([0]), hash_words(np.array([0]))).tolist()


@given(keys=st.lists(st.one_of(st.integers(-300, 300), st.integers(0, 20)), min_size=1, max_size=400))
def test_every_segment_lies_in_theta_to_two_theta_but_for_hot_keys_their_neighbours_and_the_last(
    keys: list[int],
) -> None:
    of, sizes = cut_of(keys)
    by_key = sorted(zip(keys, of, strict=True))
    assert [segment for _, segment in by_key] == sorted(of)
    assert len(keys) * ROW == sum(sizes)
    for number, size in enumerate(sizes):
        keys_inside = {key for key, segment in by_key if segment == number}
        if size > 2 * THETA:
            assert 1 == len(keys_inside)
        if size < THETA and number + 1 < len(sizes):
            assert sizes[number + 1] > THETA  # what came next would have gone above 2 theta
    assert [] == [size for size in sizes if not size]


def test_hash_segments_hold_one_and_a_half_theta_in_the_mean() -> None:
    assert HashCut(2) == hash_cut(300, THETA)
    assert HashCut(1) == hash_cut(0, THETA)


def test_segments_hold_their_rows_in_the_order_of_their_words_and_none_without_a_key() -> None:
    relation, segments = cut_rows(3, HashCut(2), table([5, None, 1, 5, 9], "r"))
    assert [[1, 5, 5, 9]] == [sorted(word for one in segments for word in one.words.tolist())]
    for one in segments:
        assert one.words.tolist() == sorted(one.rows.column("key").to_pylist())
        assert int(relation.sizes[one.number]) == one.size == int(row_bytes(one.rows).sum())
        assert 3 == one.stamp


def test_a_refresh_leaves_the_stamp_of_a_segment_whose_rows_are_the_same() -> None:
    before = cut_rows(1, HashCut(8), table([1, 2, 3, 4, 5], "r"))
    changed = cut_rows(2, HashCut(8), table([1, 2, 3, 4, 5, 5], "r"))
    relation, segments = unchanged(*before, *changed)
    of_five = int(relation.cut.segments_of(np.array([5]), hash_words(np.array([5])))[0])
    assert [2 if number == of_five else 1 for number in range(8)] == relation.stamps.tolist()
    assert relation.stamps.tolist() == [one.stamp for one in segments]


def test_a_key_outside_the_cut_of_its_version_is_a_bug() -> None:
    cut = range_cut(np.array([1, 2]), np.array([ROW, ROW]), THETA)
    with pytest.raises(Bug, match="cut it anew"):
        cut_rows(1, cut, table([1, 2, 3], "r"))


def test_what_exceeds_two_theta_is_counted() -> None:
    relation, _ = cut_rows(1, HashCut(1), table(list(range(50)), "r"))
    assert 1 == over(relation, THETA)


def test_a_theta_of_nothing_is_refused() -> None:
    with pytest.raises(BadSpec, match=r"table.theta: found 0"):
        hash_cut(100, 0)


def test_a_row_weighs_its_widths_and_the_lengths_of_its_texts() -> None:
    rows = pa.record_batch({"a": pa.array([1, 2], pa.int32()), "b": ["xyz", None], "c": [True, False]})
    assert [4 + 4 + 3 + 1, 4 + 4 + 1] == row_bytes(rows).tolist()
