"""What comes in: rows per tick, stream and partition-group, drawn once and before the run.

Because arrivals are drawn first, two rules see exactly the same rows. They are a Poisson process with the rate of a
profile (or of a recorded trace), divided over the groups by the shares of the real key distribution under the real
hash. `Arrivals.counts[t, s, g]` are the rows of stream s and group g before tick t, so the rows of any time and the
window at any time are differences of two of its rows: no tuple is ever made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joinery.generate.bmodel import BModelKeys, scale_bits
from joinery.generate.checks import want
from joinery.generate.draws import FloatArray, IntArray
from joinery.generate.keys import Keys, UniformKeys
from joinery.generate.profiles import Pieces, RateProfile, want_length, want_rate
from joinery.partition.hashing import groups_of, hash_words
from joinery.simulate.load_settings import LoadSettings

CLASS_BITS: Final = 10
"""How many directory bits are told apart: fine tuning can make 1024 mini-groups of a group, more than it ever needs."""
_EXACT_BITS: Final = 24
_CHUNK: Final = 1 << 20
_SAMPLES: Final = 1 << 21
_SILENCE_HZ: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Recorded(RateProfile):
    """A trace: from each of its times on the rate is what was recorded there; the last one goes on."""

    knots: tuple[tuple[int, float], ...]
    """(nanoseconds since the start, rows per second), ascending."""

    def __post_init__(self) -> None:
        want(len(self.knots) > 0, "trace", "no row", "at least one time and rate", "record something first")
        for at_ns, rate_hz in self.knots:
            want_length("trace time", at_ns, low=0)
            want_rate("trace rate", rate_hz)
        times = [at_ns for at_ns, _ in self.knots]
        ascending = all(earlier < later for earlier, later in pairwise(times))
        want(ascending, "trace times", "not ascending", "each time once, in order", "sort the trace by time")

    def pieces(self) -> Pieces:
        first = [(0, self.knots[0][1])] if self.knots[0][0] > 0 else []
        steps: list[tuple[int, float]] = list(first)
        for at_ns, rate_hz in self.knots:
            steps += [(at_ns, steps[-1][1])] if steps else []
            steps.append((at_ns, rate_hz))
        steps[-1] = (steps[-1][0], max(steps[-1][1], _SILENCE_HZ))
        return Pieces.through(steps, repeat=False)


@dataclass(frozen=True, slots=True)
class KeyShares:
    """How rows spread: over the groups, and inside each group over the classes of its directory's low bits."""

    group: FloatArray
    """[G], sums to 1."""
    inside: FloatArray
    """[G, 2^CLASS_BITS], each row sums to 1."""


def key_shares(keys: Keys, partitions: int) -> KeyShares:
    """The shares of a key distribution under the real hash: exact for the b-model and uniform keys, else sampled."""
    return _key_shares(keys, partitions)  # type: ignore[arg-type]  # distributions are frozen, so they can be hashed


@lru_cache(maxsize=8)
def _key_shares(keys: Keys, partitions: int) -> KeyShares:
    cells = np.zeros((partitions, 1 << CLASS_BITS))
    if isinstance(keys, BModelKeys) and (levels := (keys.domain - 1).bit_length()) <= _EXACT_BITS:
        for start in range(0, 1 << levels, _CHUNK):
            falls = np.arange(start, min(start + _CHUNK, 1 << levels), dtype=np.int64)
            ones = np.bitwise_count(falls).astype(np.float64)
            _add(cells, scale_bits(falls, levels, keys.domain), keys.b ** (levels - ones) * (1 - keys.b) ** ones)
    elif isinstance(keys, UniformKeys) and keys.domain <= 1 << _EXACT_BITS:
        for start in range(0, keys.domain, _CHUNK):
            _add(cells, np.arange(start, min(start + _CHUNK, keys.domain), dtype=np.int64), None)
    else:
        _add(cells, keys.draw(np.random.Generator(np.random.PCG64(0)), _SAMPLES), None)
    by_group = cells.sum(axis=1)
    inside = np.divide(cells, by_group[:, None], out=np.full_like(cells, 2.0**-CLASS_BITS), where=by_group[:, None] > 0)
    shares = KeyShares(by_group / by_group.sum(), inside)
    shares.group.flags.writeable = shares.inside.flags.writeable = False
    return shares


def _add(cells: FloatArray, keys: IntArray, weights: FloatArray | None) -> None:
    hashes = hash_words(keys)
    low = (hashes & np.uint64((1 << CLASS_BITS) - 1)).astype(np.int64)
    place = (groups_of(hashes, cells.shape[0]).astype(np.int64) << CLASS_BITS) | low
    cells += np.bincount(place, weights, minlength=cells.size).reshape(cells.shape)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """All rows of a run, counted."""

    counts: NDArray[np.int64]
    """[T+1, S, G]: rows before each tick."""
    tick_ns: int
    window_ticks: IntArray
    """[S]"""

    @classmethod
    def drawn(cls, settings: LoadSettings, profiles: Sequence[RateProfile]) -> "Arrivals":
        """Poisson arrivals of one profile per stream."""
        tick_ns = settings.tick_ns
        ticks = -(-settings.until_ns // tick_ns)
        edges = np.arange(ticks + 1, dtype=np.int64) * tick_ns
        expected = np.stack([np.diff(profile.count_until(edges)) for profile in profiles], axis=1)
        shares = key_shares(settings.keys, settings.partitions).group
        rng = np.random.Generator(np.random.PCG64(settings.seed))
        counts = np.zeros((ticks + 1, len(profiles), settings.partitions), np.int64)
        np.cumsum(rng.poisson(expected[:, :, None] * shares), axis=0, out=counts[1:])
        windows = np.array([min(window_ns // tick_ns, ticks) for window_ns in settings.windows_ns], np.int64)
        return cls(counts, tick_ns, windows)

    def tick_at(self, now_ns: float) -> int:
        """The last tick that is not after `now_ns`."""
        return min(int(now_ns // self.tick_ns), len(self.counts) - 1)

    def window_rows(self, tick: int) -> IntArray:
        """[S, G]: the rows in each window at a tick."""
        first = np.maximum(tick - self.window_ticks, 0)
        gone = self.counts[first, np.arange(len(first))]
        rows: IntArray = self.counts[tick] - gone
        return rows

    def rates_hz(self, from_tick: int, to_tick: int) -> tuple[float, ...]:
        """Rows per second of each stream, as they came."""
        span_s = max(1, to_tick - from_tick) * self.tick_ns / 1e9
        rows = (self.counts[to_tick] - self.counts[from_tick]).sum(axis=1)
        return tuple(float(count) / span_s for count in rows)
