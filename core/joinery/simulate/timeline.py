"""Virtual time: what happens next, and how long things take.

Rule 1: events happen in the order of (time, order of planning); nothing else decides, so a run repeats exactly.
Rule 2: every process and every direction of every connection has dice of its own, made from the seed and its name. So
        leaving out a fault or a batch changes the draws of those it concerns, and leaves the others' as they were.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final
from zlib import crc32

import numpy as np

_AHEAD: Final = 32
"""Numbers drawn at once: a single draw costs as much as many."""


class Dice:
    """Random numbers of one name."""

    __slots__ = ("_drawn", "_key", "_rng")

    def __init__(self, seed: int, name: str) -> None:
        self._key = (seed, crc32(name.encode()))
        self._rng: np.random.Generator | None = None
        self._drawn: list[float] = []

    def draw(self) -> float:
        """A number in [0, 1)."""
        if not self._drawn:
            if self._rng is None:
                self._rng = np.random.Generator(np.random.PCG64(self._key))
            self._drawn = self._rng.random(_AHEAD).tolist()
        return self._drawn.pop()

    def between(self, bounds: tuple[int, int]) -> int:
        """A whole number between bounds, both included."""
        low, high = bounds
        return low + int(self.draw() * (high - low + 1))


class Timeline:
    """What is planned, by time."""

    __slots__ = ("_count", "_planned", "now")

    def __init__(self) -> None:
        self.now = 0
        self._count = 0
        self._planned: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []

    @property
    def count(self) -> int:
        """How many events were ever planned."""
        return self._count

    def at(self, when: int, do: Callable[..., None], *arguments: Any) -> None:
        """Plan an event; one whose time has passed happens next."""
        self._count += 1
        heappush(self._planned, (max(when, self.now), self._count, do, arguments))

    def after(self, delay: int, do: Callable[..., None], *arguments: Any) -> None:
        """Plan an event after a delay."""
        self.at(self.now + delay, do, *arguments)

    def step(self, until: int) -> bool:
        """Let the next event happen; False if there is none up to that time."""
        if not self._planned or self._planned[0][0] > until:
            return False
        self.now, _, do, arguments = heappop(self._planned)
        do(*arguments)
        return True
