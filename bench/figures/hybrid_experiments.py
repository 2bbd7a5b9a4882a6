"""The experiments of thesis 6.4, each point one simulated run, made once; nothing is tuned per figure.

The scale is the thesis' own: table 6.2, runs of 0.8 hours measured after six minutes. Chosen, because the thesis
does not say:

- the quadrants of PQRS: nine of ten rows fall into the lower half of the keys, on every level;
- the relation's keys: all alike. With the stream's own skew every segment of equal size would get equally many rows,
  and nothing could be worth keeping;
- tau (`HybridConfig.epoch_rows`), and the disk (`HybridCosts`).

Traces of all rates are one trace, thinned at random: the bursts are the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joinery.generate.bmodel import BModelVolumes, levels_for
from joinery.generate.pqrs import PqrsPoints, Quadrants
from joinery.hybrid.config import HybridConfig
from joinery.hybrid.costs import MIB, R_BYTES, HybridCosts
from joinery.hybrid.replay import SECOND, Replay, Span, Trace, replay_mesh, replay_partitioned
from joinery.hybrid.segments import Cut, HashCut, range_cut
from joinery.partition.hashing import hash_words

METHODS: Final = ("range", "hash", "meshjoin")
RATES: Final = (500.0, 750.0, 1000.0, 1250.0, 1500.0, 1750.0, 2000.0)
"""From where MESHJOIN's queue is full for at least half of the run."""
TOP_HZ: Final = 2000.0
RELATION_BYTES: Final = 200 * MIB
THETA: Final = MIB
BUCKETS: Final = 89
DOMAIN: Final = 1_000_000
QUADRANTS: Final = Quadrants(0.7, 0.2, 0.05, 0.05)
MEMORY_MB: Final = 40
MEASURED_S: Final = 2520.0
_FULLEST: Final = 70_000
"""Rows of the fullest mini-interval at 1000/s (6.4.1)."""


@dataclass(frozen=True, slots=True)
class Stored:
    """How a relation was cut, and the bytes of its segments."""

    cut: Cut
    sizes: NDArray[np.int64]


@cache
def relation_keys(scale: int = 1) -> NDArray[np.int64]:
    """The key of every row of the relation; `scale`: memory, time and keys are divided by it."""
    return np.random.default_rng(6).integers(0, DOMAIN // scale, RELATION_BYTES // R_BYTES // scale)


@cache
def stored(method: str, scale: int = 1) -> Stored:
    """The relation, cut."""
    keys = relation_keys(scale)
    cut: Cut = HashCut(BUCKETS) if method == "hash" else range_cut(keys, np.full(keys.size, R_BYTES), THETA // scale)
    of = cut.segments_of(keys, hash_words(keys))
    return Stored(cut, np.bincount(of, minlength=cut.segments) * R_BYTES)


def made_trace(rate_hz: float, bias: float, length_ns: int, scale: int = 1) -> Trace:
    """PQRS points in mini-intervals whose volumes follow the b-model."""
    seconds, domain = length_ns / SECOND, DOMAIN // scale
    levels = levels_for(int(1000 * seconds), bias, _FULLEST // scale)
    volumes = BModelVolumes(total=int(rate_hz * seconds), levels=levels, b=bias)
    points = PqrsPoints(volumes=volumes, quadrants=QUADRANTS, duration_ns=length_ns, domain=domain)
    times, keys = np.concatenate(list(points.chunks(7, 0)), axis=1)
    copies = np.bincount(relation_keys(scale), minlength=domain).astype(np.float64)
    return Trace(times, keys, copies[keys])


def thinned(whole: Trace, share: float) -> Trace:
    """So many of its rows, chosen at random: the bursts are the same."""
    kept = np.random.default_rng(1).random(whole.arrivals.size) < share
    return Trace(*(column[kept] for column in whole))


@lru_cache(maxsize=2)
def _whole(rate_hz: float, bias: float) -> Trace:
    return made_trace(rate_hz, bias, Span().until_ns)


@lru_cache(maxsize=2)
def trace_of(rate_hz: float, bias: float) -> Trace:
    """The stream of a rate: where the bias is the usual one, rows of the one trace of the highest rate."""
    return _whole(rate_hz, bias) if bias != 0.6 else thinned(_whole(TOP_HZ, bias), rate_hz / TOP_HZ)


@cache
def point(
    method: str,
    rate_hz: float = 1000.0,
    *,
    bias: float = 0.6,
    memory_mb: int = MEMORY_MB,
    read_mb: float = 1.0,
    costs: HybridCosts | None = None,
) -> Replay:
    """One run."""
    trace, costs = trace_of(float(rate_hz), bias), costs or HybridCosts()
    if method == "meshjoin":
        return replay_mesh(trace, RELATION_BYTES, int(read_mb * MIB), memory_mb * MIB, BUCKETS, costs, Span())
    relation = stored(method)
    config = replace(HybridConfig(), memory_bytes=memory_mb * MIB - HybridConfig().wait_bytes - 2 * THETA)
    of = relation.cut.segments_of(trace.keys, hash_words(trace.keys))
    return replay_partitioned(trace, of, relation.sizes, config.rules(), config.memory_bytes, costs, Span())


def curve(method: str, rates: Sequence[float] = RATES) -> list[Replay]:
    """One run per rate."""
    return [point(method, rate) for rate in rates]


def backlog_of_minutes(run: Replay) -> NDArray[np.int64]:
    """The least number of buffered rows in each minute: what remains when bursts have been worked off."""
    return run.buffered[: run.buffered.size // 60 * 60].reshape(-1, 60).min(axis=1)
