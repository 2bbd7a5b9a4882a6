"""What nobody can ask for again: trim(group) is the newest tag up to committed(group)."""

import numpy as np
import pytest

from joinery.machine.trimming import Trimming
from joinery.model.ids import RecordNo
from joinery.model.time import DEAD
from joinery.model.tuples import I64Array
from tests.unit.machine.building import Feed, plainly, spec_of
from tests.unit.machine.result_parts import vector

BOTH = vector(0, 1)


@pytest.fixture
def trimming() -> Trimming:
    """Two groups, whose owners began empty."""
    made = Trimming(2)
    made.owned(BOTH, vector(-1, -1))
    return made


def tag(trimming: Trimming, *tags: int) -> None:
    """Both groups were checkpointed at these records."""
    for one in tags:
        trimming.tagged(BOTH, vector(one, one))


def committed(*upto: int) -> I64Array:
    return vector(*upto)


# --- trim(group)


def test_a_group_is_trimmed_to_its_newest_tag_that_is_committed(trimming: Trimming) -> None:
    tag(trimming, 2, 5, 8)
    trimming.advance(committed(6, 5))
    assert [5, 5] == plainly(trimming.trim)


def test_a_tag_that_is_not_committed_trims_nothing(trimming: Trimming) -> None:
    tag(trimming, 5)
    assert ([], [-1, -1]) == (plainly(trimming.advance(committed(4, 4))), plainly(trimming.trim))


def test_a_tag_trims_once_it_is_committed(trimming: Trimming) -> None:
    tag(trimming, 2, 5)
    trimming.advance(committed(3, 3))
    trimming.advance(committed(5, 3))
    assert [5, 2] == plainly(trimming.trim)


def test_the_groups_whose_trim_rose_are_told(trimming: Trimming) -> None:
    tag(trimming, 2, 5)
    trimming.advance(committed(3, 3))
    assert [1] == plainly(trimming.advance(committed(4, 9)))


def test_without_a_tag_a_commit_trims_nothing(trimming: Trimming) -> None:
    assert [] == plainly(trimming.advance(committed(9, 9)))


def test_a_tag_told_twice_counts_once(trimming: Trimming) -> None:
    tag(trimming, 5, 5, 4)
    trimming.advance(committed(9, 9))
    assert [5, 5] == plainly(trimming.trim)


# --- rule 1: only the present owner's tags


def test_a_former_owners_tag_does_not_count(trimming: Trimming) -> None:
    tag(trimming, 2, 8)
    trimming.owned(vector(0), vector(2))
    trimming.advance(committed(9, 9))
    assert [2, 8] == plainly(trimming.trim)


def test_an_owner_that_holds_a_group_empty_makes_all_tags_before_it_void(trimming: Trimming) -> None:
    tag(trimming, 2, 8)
    trimming.owned(vector(0), vector(-1))
    trimming.advance(committed(9, 9))
    assert [-1, 8] == plainly(trimming.trim)


def test_the_tag_at_which_an_owner_holds_a_group_counts(trimming: Trimming) -> None:
    trimming.owned(vector(0), vector(4))
    trimming.advance(committed(4, 4))
    assert [4, -1] == plainly(trimming.trim)


def test_the_new_owners_own_tags_follow(trimming: Trimming) -> None:
    tag(trimming, 2, 8)
    trimming.owned(vector(0), vector(2))
    trimming.tagged(vector(0), vector(6))
    trimming.advance(committed(7, 7))
    assert [6, 2] == plainly(trimming.trim)


def test_a_trim_never_goes_back(trimming: Trimming) -> None:
    tag(trimming, 8)
    trimming.advance(committed(8, 8))
    trimming.owned(vector(0), vector(2))
    assert ([], [8, 8]) == (plainly(trimming.advance(committed(8, 8))), plainly(trimming.trim))


# --- rule 2: the log


def recorded(trimming: Trimming, feed: Feed) -> None:
    for cut in feed.cuts:
        trimming.recorded(cut)


def plain(count: int) -> Feed:
    """So many records of one row each, of a query that does not run in order."""
    feed = Feed()
    for number in range(count):
        feed.send(0, (1, number))
        feed.cut()
    return feed


def test_the_log_is_trimmed_up_to_the_smallest_trim(trimming: Trimming) -> None:
    feed = plain(6)
    recorded(trimming, feed)
    tag(trimming, 2, 4)
    trimming.advance(committed(5, 3))
    assert (feed.cuts[2].head, RecordNo(3)) == trimming.trim_log()


def test_the_log_stays_while_one_group_has_no_tag(trimming: Trimming) -> None:
    recorded(trimming, plain(6))
    trimming.tagged(vector(0), vector(4))
    trimming.advance(committed(5, 5))
    assert trimming.trim_log() is None


def test_the_log_is_trimmed_once(trimming: Trimming) -> None:
    recorded(trimming, plain(6))
    tag(trimming, 2)
    trimming.advance(committed(5, 5))
    trimming.trim_log()
    assert trimming.trim_log() is None


def test_the_log_is_trimmed_further_when_the_smallest_trim_rises(trimming: Trimming) -> None:
    feed = plain(6)
    recorded(trimming, feed)
    tag(trimming, 2, 4)
    trimming.advance(committed(3, 3))
    trimming.trim_log()
    trimming.advance(committed(4, 4))
    assert (feed.cuts[4].head, RecordNo(5)) == trimming.trim_log()


# --- rule 3: in order


def in_order() -> Feed:
    """After record 2 every watermark has passed 20: the rows of record 0 are released, 100 of record 1 is not."""
    feed = Feed(spec_of({"count": 2}, "30ns", lateness=40))
    for times in ((10, 10), (100, 60), (70, 61), (71, 61)):
        for stream, time in enumerate(times):
            feed.send(stream, (1, time))
        feed.cut()
    return feed


def test_in_order_the_log_keeps_the_records_with_rows_that_are_not_released(trimming: Trimming) -> None:
    feed = in_order()
    recorded(trimming, feed)
    tag(trimming, 2)
    trimming.advance(committed(3, 3))
    assert (feed.cuts[2].head, RecordNo(1)) == trimming.trim_log()


def test_in_order_a_row_exactly_at_the_smallest_watermark_is_not_released(trimming: Trimming) -> None:
    feed = Feed(spec_of({"count": 2}, "30ns"))
    for time in (10, 20):
        feed.send(0, (1, time))
        feed.send(1, (1, time))
        feed.cut()
    recorded(trimming, feed)
    tag(trimming, 1)
    trimming.advance(committed(1, 1))
    assert (feed.cuts[1].head, RecordNo(1)) == trimming.trim_log()


def test_in_order_the_log_keeps_nothing_when_all_is_released(trimming: Trimming) -> None:
    feed = Feed(spec_of({"count": 2}, "30ns"))
    for time in (10, 20, 30):
        feed.send(0, (1, time), end=time == 30)
        feed.send(1, (1, time), end=time == 30)
        feed.cut()
    recorded(trimming, feed)
    tag(trimming, 2)
    trimming.advance(committed(2, 2))
    assert (feed.cuts[2].head, RecordNo(3)) == trimming.trim_log()


def test_in_order_a_late_row_keeps_no_record(trimming: Trimming) -> None:
    feed = Feed(spec_of({"count": 2}, "30ns"))
    feed.send(0, (1, 100))
    feed.cut()
    feed.send(0, (1, 3))
    feed.cut()
    recorded(trimming, feed)
    assert [100, DEAD] == [latest for _, latest in trimming._latest]


def test_in_order_records_from_before_the_head_stay_while_their_rows_are_not_released(trimming: Trimming) -> None:
    feed = in_order()
    trimming.kept(feed.cuts[1].number, feed.cuts[1].latest_ns)
    for cut in feed.cuts[2:]:
        trimming.recorded(cut)
    tag(trimming, 2)
    trimming.advance(committed(3, 3))
    assert (feed.cuts[2].head, RecordNo(1)) == trimming.trim_log()


def test_not_in_order_rows_that_wait_for_a_watermark_keep_no_record(trimming: Trimming) -> None:
    feed = Feed()
    for time in (50, 60):
        feed.send(0, (1, time))
        feed.cut()
    recorded(trimming, feed)
    tag(trimming, 1)
    trimming.advance(committed(1, 1))
    assert (feed.cuts[1].head, RecordNo(2)) == trimming.trim_log()


def test_tags_below_the_trim_are_forgotten(trimming: Trimming) -> None:
    tag(trimming, *range(50))
    trimming.advance(np.array([40, 49]))
    assert [10, 1] == [len(tags) for tags in trimming._tags]
