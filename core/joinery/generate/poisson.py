"""Poisson arrivals of any rate profile, with every row reachable in O(log n) steps.

Theory of operation. The n-th arrival of a Poisson process of rate 1 is a sum of n exponential gaps; to know it one
would have to add n numbers. Instead we draw the sums first and the gaps last, from large to small:

1. Chunks are put into blocks of 1, 2, 4 ... chunks. The length of a block of m rows is Gamma(m): one number per block.
2. A block is halved again and again. Given the length of 2m gaps, the first m of them have the share Beta(m, m) of it,
   independent of the length: one number per half, down to single chunks.
3. Given the length of a chunk, its gaps are exponential numbers scaled to that sum.

All three are identities of the gamma distribution, so the gaps are exactly independent and exponential, yet the start
of chunk c needs only log2(c) numbers. `time_of` of the rate profile then warps the process of rate 1 into one of rate
r(t).

Worked example, blocks of chunks: [0] [1 2] [3 4 5 6] [7 ... 14]; the start of chunk 5 is the first two blocks, plus
the first half of the third.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Self

import numpy as np

from joinery.generate.checks import want_whole
from joinery.generate.draws import CHUNK, FloatArray, IntArray, Lane, rng_at
from joinery.generate.profiles import Constant, RateProfile, want_length, want_profile


def chunk_start(seed: int, number: int) -> float:
    """Operational time of the last arrival before this chunk (0 for the first); grows with the number, exactly."""
    block = (number + 1).bit_length() - 1
    rows_of_blocks = CHUNK * 2.0 ** np.arange(block + 1)
    lengths = rng_at(seed, Lane.POISSON_BLOCKS, 0).standard_gamma(rows_of_blocks)
    ends = np.append(0.0, np.cumsum(lengths))
    low, high = float(ends[block]), float(ends[block + 1])
    chunks, offset, node = 2**block, number - (2**block - 1), 1
    while offset:
        chunks //= 2
        share = rng_at(seed, Lane.POISSON_SPLITS, node, block).beta(chunks * CHUNK, chunks * CHUNK)
        middle = min(low + share * (high - low), high)
        if offset < chunks:
            high, node = middle, 2 * node
        else:
            low, node, offset = middle, 2 * node + 1, offset - chunks
    return low


def unit_arrivals(seed: int, number: int, start: float, end: float) -> FloatArray:
    """Operational times of one chunk between its start and end; its last arrival is its end."""
    sums = np.cumsum(rng_at(seed, Lane.POISSON_GAPS, number).standard_exponential(CHUNK))
    times: FloatArray = start + (end - start) * (sums / sums[-1])
    return times


@dataclass(frozen=True, slots=True)
class PoissonArrivals:
    """Independent arrivals with the rate of a profile."""

    profile: RateProfile

    def __post_init__(self) -> None:
        want_profile(self.profile)

    @classmethod
    def at(cls, rate_hz: float) -> Self:
        """With a constant rate."""
        return cls(Constant(rate_hz=rate_hz))

    def chunks(self, seed: int, first: int) -> Iterator[IntArray]:
        return _warped(self.profile, seed, first)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedArrivals:
    """Poisson arrivals of a profile, given that exactly `rows` of them come before `until_ns`.

    Given where arrival number `rows` of a process of rate 1 lies, those before it are spread as ever; so the whole is
    stretched until that one lies at the end. A load that promises a number of rows in a time keeps it to the row.
    """

    profile: RateProfile
    rows: int
    until_ns: int

    def __post_init__(self) -> None:
        want_profile(self.profile)
        want_whole("rows", self.rows, 0, 2**53, "give the rows that come in this time")
        want_length("until_ns", self.until_ns)

    def chunks(self, seed: int, first: int) -> Iterator[IntArray]:
        number, place = divmod(self.rows, CHUNK)
        last = unit_arrivals(seed, number, chunk_start(seed, number), chunk_start(seed, number + 1))[place]
        expected = float(self.profile.count_until(np.array([self.until_ns]))[0])
        return _warped(self.profile, seed, first, expected / float(last))


def _warped(profile: RateProfile, seed: int, first: int, stretch: float = 1.0) -> Iterator[IntArray]:
    """The process of rate 1, stretched, in the profile's time."""
    start = chunk_start(seed, first)
    for number in count(first):
        end = chunk_start(seed, number + 1)
        times = profile.time_of(unit_arrivals(seed, number, start, end) * stretch)
        # the profile's formulas round; order holds inside the chunk and, by the shared bounds, between chunks
        bounds = profile.time_of(np.array([start, end]) * stretch)
        yield np.clip(np.maximum.accumulate(times), bounds[0], bounds[1])
        start = end
