"""The hybrid join's core alone: a stream of which 80 % of the rows have hot keys, a relation of 3.6 times its memory.

Segments are read from memory at once, so that what is measured is the join: finding segments, deciding, waiting,
matching and making result rows. Every row has one partner; the number of results is checked before anything is timed.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from bench.answer import BenchError
from bench.lab import Lab
from bench.measure import Sample, seconds
from bench.report import Metric
from joinery.hybrid.config import HybridConfig
from joinery.hybrid.hybrid import HybridJoin, Step
from joinery.hybrid.segments import Relation, Segment, cut_relation, range_cut, row_bytes
from joinery.model.tuples import I64Array, TupleBatch
from joinery.partition.hashing import hash_words

NAMES: Final = ("hybrid.core.tuples_per_s",)
KEYS: Final = 1_000_000
ROWS: Final = 4_000_000
BATCH: Final = 1 << 14
HOT_SHARE: Final = 0.8
HOT_KEYS: Final = 0.1
"""Of all keys: their segments fit in memory."""
THETA: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Inputs:
    """The relation on its disk, and the stream in batches."""

    relation: Relation
    segments: tuple[Segment, ...]
    batches: list[TupleBatch]

    @property
    def schema(self) -> pa.Schema:
        return self.segments[0].rows.schema


def core(lab: Lab) -> list[Metric]:
    """Stream rows per second on one core."""
    config = HybridConfig(memory_bytes=34 * THETA // lab.scale, wait_bytes=4 * THETA // lab.scale)
    inputs = made(KEYS // lab.scale, ROWS // lab.scale, THETA // lab.scale)
    rows = sum(map(len, inputs.batches))
    if (found := joined(config, inputs)) != rows:
        raise BenchError(f"hybrid core: found {found} results, wanted {rows}: every key is in the relation once")
    times = [seconds(lambda: joined(config, inputs)) for _ in range(lab.reps)]
    sample = Sample(tuple(rows / one for one in times))
    lab.say(f"hybrid core: {sample.median:,.0f} tuples/s")
    return [Metric.rate(NAMES[0], sample)]


def made(keys: int, rows: int, theta: int) -> Inputs:
    """A relation of 128-byte rows, a row per key, and 64-byte stream rows."""
    words = np.arange(keys)
    table = pa.record_batch({"key": words, "payload": _payload(keys, 120)})
    cut = range_cut(words, row_bytes(table), theta)
    relation, segments = cut_relation(1, cut, words, hash_words(words), table, None)
    rng = np.random.default_rng(8)
    drawn = np.where(
        rng.random(rows) < HOT_SHARE, rng.integers(0, int(keys * HOT_KEYS), rows), rng.integers(0, keys, rows)
    )
    cuts = range(0, rows, BATCH)
    return Inputs(relation, segments, [_batch(drawn[start : start + BATCH], start) for start in cuts])


def joined(config: HybridConfig, inputs: Inputs) -> int:
    """Join it all; the number of results."""
    join = HybridJoin(config, inputs.schema)
    join.on_version(inputs.relation)
    found = 0

    def count(step: Step) -> int:
        total = sum(map(len, step.results))
        return total + sum(count(join.on_segment(inputs.segments[probe.segment])) for probe in step.probes)

    for number, batch in enumerate(inputs.batches):
        found += count(join.on_batch(batch, version=1, tag=number, now_ns=number))
    return found + count(join.on_end())


def _batch(words: I64Array, first: int) -> TupleBatch:
    places = np.arange(first, first + words.size)
    rows = pa.record_batch({"key": words, "payload": _payload(words.size, 48), "ts": places})
    return TupleBatch(
        stream=0, times=places, hashes=hash_words(words), words=words, keyed=None, places=places, rows=rows
    )


def _payload(count: int, width: int) -> pa.Array:
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, [None, pa.py_buffer(bytes(count * width))])
