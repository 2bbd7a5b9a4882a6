from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from joinery.hybrid.config import HybridConfig, Kind
from joinery.hybrid.hybrid import HybridJoin, Probe, Step
from joinery.hybrid.meshjoin import MeshJoin
from joinery.hybrid.segments import HashCut, Relation, Segment, cut_relation, range_cut, row_bytes, unchanged
from joinery.model.errors import BadSpec, Bug, UserMustAct
from joinery.partition.hashing import hash_words
from tests.unit.hybrid.relations import SCHEMA, answered, batch_of, cut_rows, naive, rows_of, table, words_of

ROWS = table(list(range(40)), "r")
"""Rows of 14 and 15 bytes: with theta 100 segments of ten keys or so."""
CONFIG = HybridConfig(memory_bytes=400, wait_bytes=4096, block_bytes=64, invoke_rows=3)


def stored(version: int = 1, rows: pa.RecordBatch = ROWS) -> tuple[Relation, tuple[Segment, ...]]:
    return cut_rows(version, range_cut(words_of(rows), row_bytes(rows), 100), rows)


def joined_with(config: HybridConfig = CONFIG) -> tuple[HybridJoin, tuple[Segment, ...]]:
    relation, segments = stored()
    join = HybridJoin(config, SCHEMA)
    join.on_version(relation)
    return join, segments


def feed(join: HybridJoin, keys: list[int | None], first: int = 0, *, version: int = 1, now: int = 0) -> Step:
    return join.on_batch(batch_of(keys, first), version=version, tag=first, now_ns=now)


def test_rows_of_a_segment_that_is_not_here_wait_until_n_invoke_of_them_are_there() -> None:
    join, segments = joined_with()
    assert Step() == feed(join, [0, 1])
    assert (Probe(1, 0),) == feed(join, [2], 2).probes
    assert {(0, "r0", 1): 1, (1, "r1", 1): 1, (2, "r2", 1): 1} == rows_of(join.on_segment(segments[0]))
    assert 0 == join.waiting_rows


def test_rows_of_a_segment_in_memory_are_joined_at_once() -> None:
    join, segments = joined_with()
    join.on_segment(segments[0])
    assert {(0, "r3", 1): 1} == rows_of(feed(join, [3]))
    assert (Probe(1, 0),) == join.held


def test_a_segment_is_asked_for_once_while_it_is_being_read() -> None:
    join, _ = joined_with()
    assert (Probe(1, 0),) == feed(join, [0, 1, 2]).probes
    assert () == feed(join, [0, 1, 2], 3).probes


def test_a_segment_that_comes_twice_or_unasked_changes_nothing() -> None:
    join, segments = joined_with()
    feed(join, [0, 1, 2])
    assert 3 == sum(rows_of(join.on_segment(segments[0])).values())
    assert Step() == join.on_segment(segments[0])
    assert Step() == join.on_segment(segments[2])


def test_a_full_pool_is_emptied_in_descending_size_until_enough_is_free() -> None:
    join, _ = joined_with(replace(CONFIG, wait_bytes=640, invoke_rows=1000, free_share=0.4))
    first, second, third = (segment.words.tolist()[0] for segment in stored()[1][:3])
    #  rows of 16 bytes, 4 to a block: 5 blocks, 3 blocks, then the third segment takes the last two
    probes = [feed(join, [first] * 20 + [second] * 12 + [third] * 5).probes]
    assert [(Probe(1, 0),)] == probes  # 5 of 10 blocks are free then: more than 0.4


def test_what_has_waited_too_long_is_read() -> None:
    join, _ = joined_with(replace(CONFIG, max_wait_ns=10))
    feed(join, [0], now=5)
    assert 15 == join.next_time_ns()
    assert () == join.on_time(14).probes
    assert (Probe(1, 0),) == join.on_time(15).probes
    assert join.next_time_ns() is None


def test_the_end_of_the_source_reads_everything_that_waits() -> None:
    join, segments = joined_with()
    feed(join, [0, 39])
    step = join.on_end()
    assert {Probe(1, 0), Probe(1, len(segments) - 1)} == set(step.probes)
    assert 2 == sum(answered(join, step, {(one.stamp, one.number): one for one in segments}).values())


def test_keys_outside_the_relation_and_nulls_are_answered_without_a_read() -> None:
    for kind, expected in ((Kind.INNER, {}), (Kind.LEFT, {(0, None, 1): 1, (1, None, 1): 1})):
        join, _ = joined_with(replace(CONFIG, kind=kind))
        step = feed(join, [99, None])
        assert expected == rows_of(step)
        assert () == step.probes


def test_a_row_is_joined_with_the_version_of_its_batch() -> None:
    join, segments = joined_with()
    relation, newer = stored(2, table(list(range(40)), "s"))
    feed(join, [0])
    join.on_version(relation)
    feed(join, [0], 1, version=2)
    found = rows_of(join.on_segment(newer[0])) + rows_of(join.on_segment(segments[0]))
    assert {(0, "r0", 1): 1, (1, "s0", 2): 1} == found


def test_a_refresh_leaves_segments_in_memory_that_it_did_not_change() -> None:
    before = stored()
    join = HybridJoin(CONFIG, SCHEMA)
    join.on_version(before[0])
    join.on_segment(before[1][0])
    keys = [*range(40)]
    relation, _ = unchanged(*before, *cut_rows(2, before[0].cut, table([*keys, 39], "r")))
    join.on_version(relation)
    assert {(0, "r0", 2): 1} == rows_of(feed(join, [0], version=2))
    assert () == feed(join, [39], 1, version=2).probes


def test_a_retired_version_leaves_memory_and_its_segments_are_no_longer_known() -> None:
    join, segments = joined_with()
    join.on_segment(segments[0])
    relation, newer = stored(2, table(list(range(40)), "s"))
    join.on_version(relation)
    join.retire(1)
    assert () == join.held
    assert Step() == join.on_segment(segments[0])
    join.on_segment(newer[0])
    assert {(0, "s0", 2): 1} == rows_of(feed(join, [0], version=2))
    with pytest.raises(Bug, match="names version 1"):
        feed(join, [0])


def test_a_join_that_begins_with_a_later_version_knows_the_sizes_of_its_older_segments() -> None:
    before = stored()
    relation, segments = unchanged(*before, *cut_rows(2, before[0].cut, table([*range(40), 39], "r")))
    join = HybridJoin(replace(CONFIG, memory_bytes=segments[0].size), SCHEMA)
    join.on_version(relation)
    join.on_segment(segments[0])
    join.on_segment(segments[1])
    assert 1 == len(join.held)


def test_a_version_that_is_cut_anew_cannot_hold_older_segments() -> None:
    join, _ = joined_with()
    relation, _ = stored(2, table(list(range(30)), "r"))
    with pytest.raises(Bug, match="is cut anew"):
        join.on_version(replace(relation, stamps=np.ones(relation.cut.segments, np.int64)))


def test_a_version_whose_rows_wait_cannot_be_retired() -> None:
    join, _ = joined_with()
    feed(join, [0])
    with pytest.raises(Bug, match="1 of its rows wait"):
        join.retire(1)


def test_in_block_mode_rows_of_a_segment_in_memory_wait_until_a_block_is_full_or_the_input_is_low() -> None:
    join, segments = joined_with(replace(CONFIG, high_mark_blocks=1, low_mark_blocks=1, invoke_rows=100))
    join.on_segment(segments[0])
    #  rows of 16 bytes, 4 to a block; 1000 bytes behind: block mode from the first row on, which was joined before
    step = join.on_batch(batch_of([0] * 6), version=1, tag=0, now_ns=0, behind_bytes=1000)
    assert (5, 1) == (sum(rows_of(step).values()), join.waiting_rows)
    assert 2 == sum(rows_of(feed(join, [0], 6)).values())
    assert 0 == join.waiting_rows


def test_the_oldest_tag_of_a_waiting_row_says_which_labels_are_free() -> None:
    join, segments = joined_with()
    assert join.oldest_tag is None
    feed(join, [0], 4)
    feed(join, [39, 39], 5)
    assert 4 == join.oldest_tag
    join.on_segment(segments[0])
    assert 5 == join.oldest_tag


def test_a_condition_decides_about_pairs_whose_words_are_equal() -> None:
    def even(stream: pa.RecordBatch, relation: pa.RecordBatch) -> np.ndarray:
        del relation
        return stream.column("place").to_numpy() % 2 == 0

    relation, segments = stored()
    for kind, expected in ((Kind.INNER, {(0, "r0", 1): 1}), (Kind.LEFT, {(0, "r0", 1): 1, (1, None, 1): 1})):
        join = HybridJoin(replace(CONFIG, kind=kind), SCHEMA, even)
        join.on_version(relation)
        join.on_segment(segments[0])
        assert expected == rows_of(feed(join, [0, 0]))


@pytest.mark.parametrize("kind", Kind)
def test_keys_whose_words_collide_are_told_apart_by_the_condition(kind: Kind) -> None:
    def same_keys(stream: pa.RecordBatch, relation: pa.RecordBatch) -> np.ndarray:
        return stream.column("key").to_numpy() == relation.column("key").to_numpy()

    rows, batch = table([0, 3, 6, 9, 1, 1], "r"), batch_of([0, 1, 3, 12, 4, None])
    words = words_of(rows) % 3  # as if the hash had only so many values
    relation, segments = cut_relation(1, HashCut(2), words, hash_words(words), rows, None)
    poor = replace(batch, words=batch.words % 3, hashes=hash_words(batch.words % 3))
    join = HybridJoin(replace(CONFIG, kind=kind), SCHEMA, same_keys)
    join.on_version(relation)
    results = [join.on_batch(poor, version=1, tag=0, now_ns=0), *map(join.on_segment, segments)]
    found = Counter(
        (place, name)
        for step in results
        for part in step.results
        for place, name in zip(part.stream.places.tolist(), part.relation.column("name").to_pylist(), strict=True)
    )
    expected = naive([(batch, 1)], {1: rows}, left=kind is Kind.LEFT)
    assert Counter((place, name) for place, name, _ in expected.elements()) == found


def test_a_restored_join_asks_again_for_what_was_on_its_way() -> None:
    join, segments = joined_with()
    feed(join, [0, 1, 2, 39])
    again, step = HybridJoin.restored(join.snapshot(), CONFIG, SCHEMA)
    assert (Probe(1, 0),) == step.probes
    assert 4 == again.waiting_rows
    assert 3 == sum(rows_of(again.on_segment(segments[0])).values())


def test_the_caller_is_told_when_far_more_waits_than_the_pool_holds() -> None:
    join, segments = joined_with(replace(CONFIG, wait_bytes=64))
    assert not join.is_overfull
    feed(join, [0] * 12)
    assert join.is_overfull
    join.on_segment(segments[0])
    assert not join.is_overfull


def test_late_rows_are_a_bug() -> None:
    join, _ = joined_with()
    late = replace(batch_of([1]), late=np.array([True]))
    with pytest.raises(Bug, match="late rows"):
        join.on_batch(late, version=1, tag=0, now_ns=0)


def test_bad_settings_are_refused_all_at_once() -> None:
    with pytest.raises(BadSpec) as refused:
        HybridConfig(alpha=0, rho=-1, wait_bytes=1)
    assert 3 == len(refused.value.complaints)


def test_meshjoin_reads_a_segment_whenever_a_piece_of_its_queue_is_full() -> None:
    relation, segments = stored()
    #  pieces of (M - d) / k bytes: two rows of 16 bytes
    count, largest = len(segments), max(one.size for one in segments)
    mesh = MeshJoin(memory_bytes=largest + 32 * count, schema=SCHEMA)
    mesh.on_version(relation)
    store = {(one.stamp, one.number): one for one in segments}
    probes, found = [], 0
    for number in range(2 * count):
        step = mesh.on_batch(batch_of([39], number), version=1, tag=number, now_ns=number)
        probes += step.probes
        found += sum(answered(mesh, step, store).values())
    assert [Probe(1, number) for number in range(count)] == probes
    assert 2 * count == found  # all met the last segment
    assert 2 * (count - 1) == mesh.waiting_rows


def test_meshjoin_refuses_a_relation_that_changes() -> None:
    mesh = MeshJoin(memory_bytes=100, schema=SCHEMA)
    mesh.on_version(stored()[0])
    with pytest.raises(UserMustAct, match="use the hybrid join"):
        mesh.on_version(stored(2)[0])
