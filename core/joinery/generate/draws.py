"""Where every random number comes from: a counter, never a state that somebody carries along.

Theory of operation. Rows are made in chunks of `CHUNK`. The numbers of one chunk come from a Philox generator (Salmon
et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) whose key is (seed, lane) and whose counter starts at
(number of the chunk, sub-lane). So:

Rule 1: what stands in row n depends on the configuration, the seed and n alone, not on how many rows were asked for
at once.
Rule 2: every use of randomness has its own `Lane`; no two lanes of one seed, and no two seeds, share a number.
Rule 3: a chunk is always made whole and then sliced; an iteration holds one chunk, not the stream.

Philox' bits are the same everywhere; the distributions made of them are numpy's. The frozen checksums in the tests
tell when a release of numpy changes one.
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
WordArray = NDArray[np.uint64]

CHUNK: Final = 1 << 14
"""Rows made in one go: small enough for the cache, large enough that the cost of a new generator (11 µs) vanishes."""


class Lane(IntEnum):
    """What a random number is used for. A number here is for ever: changing one changes every stream."""

    KEYS = 1
    NULLS = 2
    PAYLOAD = 3
    DISORDER = 4
    POISSON_BLOCKS = 5
    POISSON_SPLITS = 6
    POISSON_GAPS = 7
    BMODEL_SIDES = 8
    BMODEL_SPREAD = 9
    PQRS = 10
    PARETO_PERIODS = 11
    PARETO_BURSTS = 12
    SHUFFLE = 13
    LINEAR_ROAD = 14


def rng_at(seed: int, lane: Lane, number: int, sub: int = 0) -> np.random.Generator:
    """The generator of one chunk of one lane; 2^128 numbers before it meets the next."""
    key = np.array([seed, lane], dtype=np.uint64)
    counter = np.array([0, 0, sub, number], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def hash_words(seed: int, lane: Lane, sub: int, numbers: IntArray) -> WordArray:
    """A 64-bit hash of every number: randomness by place, where no chunk can be made whole (SplitMix64's finalizer)."""
    start = rng_at(seed, lane, 0, sub).integers(0, 2**64, dtype=np.uint64)
    words = (numbers.astype(np.uint64) + start) * np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def hash_below(seed: int, lane: Lane, sub: int, numbers: IntArray, bound: IntArray | int) -> IntArray:
    """A whole number in [0, bound) for every number, by its hash; bound < 2^31."""
    high = (hash_words(seed, lane, sub, numbers) >> np.uint64(32)).astype(np.int64)
    return (high * bound) >> 32


def recut(pieces: Iterable[IntArray], size: int, *, skip: int = 0) -> Iterator[IntArray]:
    """Cut a sequence of arrays anew, `size` columns each (the last may be shorter), leaving out the first `skip`."""
    held: list[IntArray] = []
    waiting = 0
    for piece in pieces:
        dropped = min(skip, piece.shape[-1])
        skip -= dropped
        held.append(piece[..., dropped:])
        waiting += piece.shape[-1] - dropped
        if waiting < size:
            continue
        joined = np.concatenate(held, axis=-1)
        whole = waiting - waiting % size
        yield from (joined[..., at : at + size] for at in range(0, whole, size))
        held, waiting = [joined[..., whole:]], waiting - whole
    if waiting:
        yield np.concatenate(held, axis=-1)
