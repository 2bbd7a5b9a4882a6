"""The processor time of our own kernels on the trace of figure 6.10, at a scale: real joins, nothing charged.

Time, memory and keys are the thesis' divided by `SCALE`; the processor is ours. A batch is what arrives in a thousandth
of the run, segments lie in memory, results are made as rows. What is measured is the processor time of this process,
from the first row to the end of the source, and not how long it took. Only the disk of figure 6.11 is modelled.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import median
from typing import Final

import numpy as np
import pyarrow as pa

from bench.answer import BenchError
from bench.figures.hybrid_experiments import MEMORY_MB, TOP_HZ, made_trace, relation_keys, stored, thinned
from joinery.hybrid.config import HybridConfig
from joinery.hybrid.costs import MIB, R_BYTES, S_BYTES, HybridCosts
from joinery.hybrid.hybrid import HybridJoin, Step
from joinery.hybrid.meshjoin import MeshJoin
from joinery.hybrid.replay import Span, Trace
from joinery.hybrid.segments import Relation, Segment, cut_relation
from joinery.model.tuples import I64Array, TupleBatch
from joinery.partition.hashing import hash_words

SCALE: Final = 32
BATCHES: Final = 1000
TURNS: Final = 3


@cache
def trace(rate_hz: float) -> Trace:
    """The stream."""
    return thinned(made_trace(TOP_HZ, 0.6, Span().until_ns // SCALE, SCALE), rate_hz / TOP_HZ)


@dataclass(frozen=True, slots=True)
class Kernels:
    """What a method took."""

    cpu_s: float
    """Of the median turn."""
    turns: tuple[float, ...]
    reads: int
    disk_s: float
    """Modelled, in scaled time."""


@cache
def measured_cpu(method: str, rate_hz: float, turns: int = TURNS) -> Kernels:
    """So many turns, after the first rows have warmed up."""
    rows = trace(rate_hz)
    batches, (relation, segments) = _batches(rows), _relation(method)
    wanted, times = int(rows.weights.sum()), []
    _joined(_join(method, segments[0].rows.schema), relation, segments, batches[: BATCHES // 20])
    for _ in range(turns):
        join, begun = _join(method, segments[0].rows.schema), time.process_time()
        found, reads = _joined(join, relation, segments, batches)
        times.append(time.process_time() - begun)
        if found != wanted:
            raise BenchError(f"{method}: found {found} results, wanted {wanted}")
    usual = HybridCosts()
    disk = replace(usual, access_ms=usual.access_ms / SCALE, basic_window_bytes=usual.basic_window_bytes // SCALE)
    disk_s = sum(disk.read_ns(segments[one].size) for one in reads) / 1e9
    return Kernels(median(times), tuple(times), len(reads), disk_s)


def _relation(method: str) -> tuple[Relation, tuple[Segment, ...]]:
    """MESHJOIN reads the same segments as range does."""
    keys, cut = relation_keys(SCALE), stored(method, SCALE).cut
    table = pa.record_batch({"key": keys, "info": _filled(keys.size, R_BYTES - 8)})
    return cut_relation(1, cut, keys, hash_words(keys), table, None)


def _join(method: str, schema: pa.Schema) -> HybridJoin | MeshJoin:
    if method == "meshjoin":
        return MeshJoin(memory_bytes=MEMORY_MB * MIB // SCALE, schema=schema)
    usual = HybridConfig()
    scaled = {
        name: getattr(usual, name) // SCALE
        for name in ("memory_bytes", "wait_bytes", "block_bytes", "invoke_rows", "epoch_rows")
    }
    return HybridJoin(replace(usual, **scaled), schema)


def _joined(
    join: HybridJoin | MeshJoin, relation: Relation, segments: Sequence[Segment], batches: Sequence[TupleBatch]
) -> tuple[int, list[int]]:
    """How many results, and which segments were read."""
    join.on_version(relation)
    found, reads = 0, list[int]()

    def carry_out(step: Step) -> None:
        nonlocal found
        steps = [step]
        while steps:
            one = steps.pop()
            found += sum(map(len, one.results))
            reads.extend(probe.segment for probe in one.probes)
            steps += [join.on_segment(segments[probe.segment]) for probe in one.probes]

    for number, batch in enumerate(batches):
        carry_out(join.on_batch(batch, version=1, tag=number, now_ns=number))
    carry_out(join.on_end())
    return found, reads


def _batches(rows: Trace) -> list[TupleBatch]:
    edges = np.searchsorted(rows.arrivals, np.linspace(0, Span().until_ns // SCALE, BATCHES + 1))
    spans = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    return [_batch(rows.keys[begin:end], begin) for begin, end in spans if end > begin]


def _batch(keys: I64Array, first: int) -> TupleBatch:
    places = np.arange(first, first + keys.size)
    rows = pa.record_batch({"key": keys, "body": _filled(keys.size, S_BYTES - 8)})
    return TupleBatch(stream=0, times=places, hashes=hash_words(keys), words=keys, keyed=None, places=places, rows=rows)


def _filled(count: int, width: int) -> pa.Array:
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, [None, pa.py_buffer(bytes(count * width))])
