"""Random choices in few words, from one numpy generator: the same seed gives the same schedule on every machine."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

V = TypeVar("V")


class Draw:
    """A seeded source of choices."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.Generator(np.random.PCG64(seed))

    def chance(self, share: float) -> bool:
        """True in that share of the draws."""
        return bool(self._rng.random() < share)

    def between(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return int(self._rng.integers(low, high + 1))

    def small(self, high: int) -> int:
        """1 .. high, the small ones more often."""
        return 1 + int(high * float(self._rng.random()) ** 2)

    def pick(self, values: Sequence[V]) -> V:
        """One of these, all alike."""
        return values[int(self._rng.integers(len(values)))]

    def weighted(self, weights: Mapping[V, float]) -> V:
        """One of these, by weight."""
        values = list(weights)
        shares = np.array([weights[value] for value in values])
        return values[int(self._rng.choice(len(values), p=shares / shares.sum()))]

    def shuffled(self, values: Sequence[V]) -> list[V]:
        """All of these in another order."""
        return [values[int(place)] for place in self._rng.permutation(len(values))]
