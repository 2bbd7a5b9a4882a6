"""Which keys rows carry: the interface of key distributions, uniform keys, and a shuffle that spreads hot keys.

A distribution draws whole chunks from the generator that it is given; it has no seed of its own, so two streams with
different seeds have independent keys of one distribution. The shuffle is different: it is part of the configuration,
because a join needs the *same* hot keys in both streams.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from joinery.generate.checks import want_rows, want_seed, want_whole
from joinery.generate.draws import CHUNK, IntArray, Lane, WordArray, rng_at

DOMAIN_MAX: Final = 2**62
_ROUNDS: Final = 4


class Keys(Protocol):
    """A distribution over the keys 0 .. domain - 1."""

    @property
    def domain(self) -> int:
        """Number of possible keys."""
        ...

    def draw(self, rng: np.random.Generator, count: int) -> IntArray:
        """As many independent keys."""
        ...


@dataclass(frozen=True, slots=True)
class UniformKeys:
    """Every key alike."""

    domain: int

    def __post_init__(self) -> None:
        want_whole("domain", self.domain, 1, DOMAIN_MAX, "give the number of different keys")

    def draw(self, rng: np.random.Generator, count: int) -> IntArray:
        return rng.integers(0, self.domain, size=count, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class ShuffledKeys:
    """Another distribution with its keys renamed by a permutation, so that hot keys are not neighbours.

    The permutation is a bijection of w-bit words (multiply by an odd number, xor with the own upper half, add), w the
    bits of the domain. A word that falls outside the domain is sent on until it is inside (cycle walking): at most
    half are, so that two passes are the mean, and no table is needed.
    """

    keys: Keys
    seed: int

    def __post_init__(self) -> None:
        want_seed(self.seed)
        want_whole("domain", self.keys.domain, 1, DOMAIN_MAX, "give the number of different keys")

    @property
    def domain(self) -> int:
        return self.keys.domain

    def draw(self, rng: np.random.Generator, count: int) -> IntArray:
        return self.rename(self.keys.draw(rng, count))

    def rename(self, keys: IntArray) -> IntArray:
        """The permutation itself."""
        bits = max(1, (self.domain - 1).bit_length())
        constants = rng_at(self.seed, Lane.SHUFFLE, 0).integers(0, 2**64, (_ROUNDS, 2), dtype=np.uint64)
        words = _mix(keys.astype(np.uint64), bits, constants)
        outside = np.flatnonzero(words >= np.uint64(self.domain))
        while outside.size:
            words[outside] = _mix(words[outside], bits, constants)
            outside = outside[words[outside] >= np.uint64(self.domain)]
        return words.astype(np.int64)


def _mix(words: WordArray, bits: int, constants: WordArray) -> WordArray:
    """One pass of the bijection of `bits`-bit words."""
    mask, half = np.uint64(2**bits - 1), np.uint64((bits + 1) // 2)
    for factor, summand in constants:
        words = (words * (factor | np.uint64(1)) + summand) & mask
        words ^= words >> half
    return words


def keys_between(keys: Keys, seed: int, start: int, stop: int) -> IntArray:
    """The keys of rows [start, stop) of a stream with this seed, as one array."""
    want_seed(seed)
    want_rows(start, stop)
    first, last = start // CHUNK, -(-stop // CHUNK)
    chunks = [key_chunk(keys, seed, number) for number in range(first, last)]
    return np.concatenate([np.empty(0, np.int64), *chunks])[start - first * CHUNK : stop - first * CHUNK]


def key_chunk(keys: Keys, seed: int, number: int) -> IntArray:
    """The keys of one chunk of a stream."""
    return keys.draw(rng_at(seed, Lane.KEYS, number), CHUNK)
