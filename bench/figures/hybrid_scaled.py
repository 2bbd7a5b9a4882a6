"""The experiments of thesis 6.4 at the scale at which real processes make a point of figures 6.7 and 6.8.

Time, memory and keys are the thesis' divided by 64 (`SCALE`), the blocks of the wait buffer too; rates and tuples stay,
and so does the disk: 8 ms / 64 for an access, 20 MB/s. A run takes 20 s, 21 minutes of the thesis' time, measured after
a sixth. The processor is not slowed down: the simulation beside a real point charges `ROW_NS` per row and nothing for a
scan.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from bench.figures.hybrid_experiments import MEMORY_MB, THETA, TOP_HZ, made_trace, stored, thinned
from joinery.hybrid.config import HybridConfig
from joinery.hybrid.costs import MIB, HybridCosts
from joinery.hybrid.replay import SECOND, Replay, Span, Trace, replay_partitioned
from joinery.partition.hashing import hash_words

SCALE: Final = 64
SPAN: Final = Span(start_ns=20 * SECOND // 6, until_ns=20 * SECOND)
ROW_NS: Final = 300.0
"""What our kernels take for a row (docs/hybrid.md)."""
BIAS: Final = 0.6


def disk() -> HybridCosts:
    """The thesis' disk in scaled time, beside a processor that is not slowed down."""
    usual = HybridCosts()
    return replace(
        usual, fetch_ns=0.0, comparison_ns=0.0, row_ns=ROW_NS, access_ms=usual.access_ms / SCALE,
        basic_window_bytes=usual.basic_window_bytes // SCALE,
    )  # fmt: skip


def config() -> HybridConfig:
    """Table 6.2, scaled."""
    usual = HybridConfig()
    return replace(
        usual,
        memory_bytes=(MEMORY_MB * MIB - usual.wait_bytes - 2 * THETA) // SCALE,
        wait_bytes=usual.wait_bytes // SCALE,
        block_bytes=usual.block_bytes // SCALE,
        invoke_rows=usual.invoke_rows // SCALE,
        epoch_rows=usual.epoch_rows // SCALE,
    )


@cache
def _whole() -> Trace:
    return made_trace(TOP_HZ, BIAS, SPAN.until_ns, SCALE)


@cache
def trace(rate_hz: float) -> Trace:
    """The stream."""
    return thinned(_whole(), rate_hz / TOP_HZ)


@cache
def simulated(method: str, rate_hz: float) -> Replay:
    """What the simulator says about the same rows, table and disk."""
    rows, relation, settings = trace(rate_hz), stored(method, SCALE), config()
    of = relation.cut.segments_of(rows.keys, hash_words(rows.keys))
    return replay_partitioned(rows, of, relation.sizes, settings.rules(), settings.memory_bytes, disk(), SPAN)


def notes_of(words: Sequence[str], name: str) -> Path:
    """Where a process of a run leaves its notes: beside the query file that it was told."""
    return Path(words[list(words).index("--query") + 1]).with_name(name)


def read_notes(folder: Path, name: str) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
    """Pairs of a moment and what was noted of it; none if nothing was."""
    path = folder / name
    return np.fromfile(path, np.int64).reshape(-1, 2) if path.exists() else np.empty((0, 2), np.int64)
