"""Zipf keys: the k-th hottest key has weight k^-s, for any exponent s >= 0 and any number of keys.

Theory of operation. A key is the inverse of the distribution function at a uniform number: the least k with H(k) >= u
H(n), where H(k) = 1^-s + ... + k^-s. Unlike rejection methods this takes one number per key, works for s <= 1, and
keeps row n at row n.

- Up to `HEAD` keys H is a table, which stays in the cache.
- Beyond it H is the Euler-Maclaurin sum of x^-s, which at x >= HEAD is exact to the last digit of a float; its
  inverse is found from the integral alone and mended by at most one step either way.

Key 0 is the hottest. Wrap in `ShuffledKeys` to spread the hot keys over the domain.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from joinery.generate.checks import want_real, want_whole
from joinery.generate.draws import FloatArray, IntArray

HEAD: Final = 4096
DOMAIN_MAX: Final = 2**40
EXPONENT_MAX: Final = 64.0


@dataclass(frozen=True, slots=True)
class ZipfKeys:
    """Keys 0 .. domain - 1, key k with a weight of (k + 1)^-exponent."""

    domain: int
    exponent: float

    def __post_init__(self) -> None:
        want_whole("domain", self.domain, 1, DOMAIN_MAX, "give the number of different keys")
        want_real("exponent", self.exponent, 0.0, EXPONENT_MAX, "0 is uniform, about 1 is common, more is hotter")

    def draw(self, rng: np.random.Generator, count: int) -> IntArray:
        return self.quantile(rng.random(count))

    def quantile(self, share: FloatArray) -> IntArray:
        """The key at each share in [0, 1) of the total weight."""
        head = self._head()
        total = head[-1] if self.domain <= HEAD else self._weight_until(np.array([self.domain]), head[-1])[0]
        weight = share * total
        ranks = np.searchsorted(head, weight, side="right") + 1
        beyond = np.flatnonzero(ranks > head.size)
        if beyond.size and self.domain > HEAD:
            ranks[beyond] = self._tail_rank(weight[beyond], head[-1])
        keys: IntArray = np.minimum(ranks, self.domain).astype(np.int64) - 1
        return keys

    def _head(self) -> FloatArray:
        """H(1) .. H(HEAD)."""
        return np.cumsum(np.arange(1, min(self.domain, HEAD) + 1, dtype=np.float64) ** -self.exponent)

    def _weight_until(self, ranks: IntArray, head: float) -> FloatArray:
        """H(k) for k >= HEAD by Euler and Maclaurin."""
        s, low, high = self.exponent, float(HEAD), ranks.astype(np.float64)
        growth = np.log(high / low)
        area = growth * low if s == 1 else low * np.expm1((1 - s) * growth) / (1 - s)
        ratio = low / high  # everything relative to low^-s, so that nothing underflows
        bend = s / 12 * (1 - ratio ** (s + 1)) / low
        weight: FloatArray = head + low**-s * (area - (1 - ratio**s) / 2 + bend)
        return weight

    def _tail_rank(self, weight: FloatArray, head: float) -> IntArray:
        """The least k > HEAD with H(k) > weight: first by the integral from HEAD + 1/2 to k + 1/2, then exactly."""
        s, low = self.exponent, HEAD + 0.5
        area = (weight - head) * low ** (s - 1)
        grown = np.exp(area) if s == 1 else np.exp(np.log1p(np.maximum((1 - s) * area, -1 + 1e-16)) / (1 - s))
        ranks: IntArray = np.clip(np.ceil(low * grown - 0.5), HEAD + 1, self.domain).astype(np.int64)
        ranks -= (ranks > HEAD + 1) & (self._weight_until(ranks - 1, head) > weight)
        ranks += self._weight_until(ranks, head) <= weight
        return ranks
