"""The simulation of the hybrid join decides as the join does, and its sums add up."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from joinery.hybrid.config import HybridConfig
from joinery.hybrid.costs import HybridCosts
from joinery.hybrid.hybrid import HybridJoin
from joinery.hybrid.replay import SECOND, Span, Trace, replay_mesh, replay_partitioned
from joinery.hybrid.segments import HashCut
from joinery.model.tuples import TupleBatch
from joinery.partition.hashing import hash_words
from tests.unit.hybrid.relations import SCHEMA, batch_of, cut_rows, table

FREE = HybridCosts(fetch_ns=0, comparison_ns=0, row_ns=0, access_ms=0, disk_bytes_per_s=1e18)
CONFIG = HybridConfig(memory_bytes=3000, wait_bytes=40 * 64, block_bytes=64 * 4, invoke_rows=20, epoch_rows=50)
ALL = Span(start_ns=0, until_ns=1000 * SECOND)


def wide(batch: TupleBatch) -> TupleBatch:
    """The same rows with 64 bytes each, as the simulation takes them."""
    rows = batch.rows.append_column("payload", pa.array([b"x" * 48] * len(batch), pa.binary(48)))
    return replace(batch, rows=rows)


@pytest.mark.parametrize("invoke_rows", [5, 20, 1000])
def test_the_simulation_reads_as_often_and_keeps_as_much_as_the_join_itself(invoke_rows: int) -> None:
    config = replace(CONFIG, invoke_rows=invoke_rows)
    relation, segments = cut_rows(1, HashCut(16), table(list(range(600)), "r"))
    keys = (600 * np.random.default_rng(3).random(1500) ** 3).astype(np.int64)
    join = HybridJoin(config, SCHEMA)
    join.on_version(relation)
    reads, hot = 0, 0
    for place, key in enumerate(keys.tolist()):
        step = join.on_batch(wide(batch_of([key], place)), version=1, tag=0, now_ns=place)
        hot += sum(len(part) for part in step.results)
        reads += len(step.probes)
        for probe in step.probes:
            join.on_segment(segments[probe.segment])
    trace = Trace(np.arange(keys.size) * 1000, keys, np.ones(keys.size))
    of = relation.cut.segments_of(keys, hash_words(keys))
    run = replay_partitioned(trace, of, relation.sizes, config.rules(), config.memory_bytes, FREE, ALL)
    assert (reads, hot) == (run.reads, round(run.hot_share * run.processed))
    assert 10 < reads
    assert keys.size - join.waiting_rows == run.processed


def test_a_read_holds_the_processor_for_its_accesses_and_bytes() -> None:
    costs = replace(FREE, access_ms=8.0, disk_bytes_per_s=20e6)
    trace = Trace(np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1))
    rules = replace(CONFIG, invoke_rows=1).rules()
    sizes = np.array([3 * 2**20])
    run = replay_partitioned(trace, np.zeros(1, np.int32), sizes, rules, 0, costs, ALL)
    #  3 MB are two basic windows
    assert 2 * 0.008 + 3 * 2**20 / 20e6 == pytest.approx(run.disk_s)
    assert run.disk_s == pytest.approx(run.delay_s)
    assert run.disk_s * 1e9 == pytest.approx(costs.read_ns(3 * 2**20))


def test_a_block_of_rows_shares_what_is_fetched_and_a_row_in_tuple_mode_does_not() -> None:
    costs = replace(FREE, fetch_ns=10.0, comparison_ns=1.0)
    rows, sizes = 8, np.array([128 * 100])
    trace = Trace(np.arange(rows) * SECOND, np.zeros(rows, np.int64), np.ones(rows))
    #  4 rows wait (one block of 256 bytes), are joined in one pass, and the segment stays; 4 come one by one
    rules = replace(CONFIG, invoke_rows=4).rules()
    run = replay_partitioned(trace, np.zeros(rows, np.int32), sizes, rules, 10**6, costs, ALL)
    assert 100 * (10 + 4 * 1) + 4 * 100 * (10 + 1) == pytest.approx(run.cpu_s * 1e9)
    assert 1 == run.reads
    assert 0.5 == run.hot_share


def test_meshjoin_gives_each_row_its_results_over_a_cycle_of_reads() -> None:
    #  4 segments of 1000 bytes, pieces of (1000 + 4 * 640 - 1000) / 4 bytes: ten rows; a row per second
    rows = 200
    trace = Trace(np.arange(rows) * SECOND, np.zeros(rows, np.int64), np.ones(rows))
    run = replay_mesh(trace, 4000, 1000, 1000 + 4 * 640, 1, FREE, Span(start_ns=80 * SECOND, until_ns=160 * SECOND))
    #  a piece is read for when its last row comes (4.5 s after its rows in the mean), then after 10, 20 and 30 s more
    assert 4.5 + 15 == pytest.approx(run.delay_s, rel=0.01)
    assert 8 == run.reads
    assert 80 == run.processed
