"""Heavy tails: Pareto ON/OFF periods and Pareto bursts.

- `BoundedPareto`: the Pareto distribution of shape alpha on [low, high): P(X > x) falls like x^-alpha and ends at
  `high`, so that every moment exists and no period overflows.
- `OnOffArrivals`: ON and OFF periods with bounded Pareto lengths, a constant rate while ON, nothing while OFF. Summed
  over many sources such traffic is self-similar (Willinger et al., 1997), which a Poisson process is not.
- `ParetoBursts` (Hammad et al., "Scheduling for shared window joins over data streams", section 5.2): at Poisson
  moments whole bursts arrive, their sizes Pareto with b = 1, bounded to 1..k; the moments are so much rarer that the
  overall rate holds.

Both processes must add up periods (or sizes) from the beginning to know where row n stands, as heavy-tailed sums have
no short cut. Starting at row n costs a scan of the periods before it (some 20 ns each); going on from there costs
nothing more.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final, NamedTuple, Self

import numpy as np

from joinery.generate.checks import want, want_real, want_whole
from joinery.generate.draws import CHUNK, FloatArray, IntArray, Lane, recut, rng_at
from joinery.generate.poisson import PoissonArrivals
from joinery.generate.profiles import RATE_MAX
from joinery.model.time import TIME_MAX

ALPHA_MIN: Final = 0.01
ALPHA_MAX: Final = 64.0
BOUND_MAX: Final = 2**46
"""As a period 19 hours: the periods of a block still fit into 64 bits."""
LARGEST_BURST: Final = 10_000
_CYCLES: Final = 4096
_NS_PER_S: Final = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedPareto:
    """The Pareto distribution with shape alpha, cut off at `high`."""

    alpha: float
    low: int
    high: int

    def __post_init__(self) -> None:
        want_real("alpha", self.alpha, ALPHA_MIN, ALPHA_MAX, "1 to 2 is heavy-tailed, more is tame")
        want_whole("low", self.low, 1, BOUND_MAX - 1, "give the least value")
        want_whole("high", self.high, self.low + 1, BOUND_MAX, "give the bound, above low")

    @property
    def mean(self) -> float:
        """The expected value, before rounding down."""
        a, log_ratio = self.alpha, math.log(self.low / self.high)
        over = -log_ratio if a == 1 else -math.expm1((a - 1) * log_ratio) / (a - 1)
        return self.low * a * over / -math.expm1(a * log_ratio)

    def draw(self, rng: np.random.Generator, count: int) -> IntArray:
        """Values rounded down to whole numbers in [low, high)."""
        mass = 1 - (self.low / self.high) ** self.alpha
        values: FloatArray = self.low * (1 - mass * rng.random(count)) ** (-1 / self.alpha)
        return np.minimum(values.astype(np.int64), self.high - 1)


class _Cycles(NamedTuple):
    """Consecutive ON/OFF cycles: when each ON ends on the clock that runs only while ON, and the silence before it."""

    ends: IntArray
    silences: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class OnOffArrivals:
    """One source that is ON and OFF in turns, ON first; `on` and `off` are lengths in nanoseconds."""

    rate_hz: float
    """Rows per second while ON."""
    on: BoundedPareto
    off: BoundedPareto

    def __post_init__(self) -> None:
        least = _NS_PER_S / self.on.low
        want_real("rate_hz", self.rate_hz, least, RATE_MAX, "every ON period has a row: raise the rate or on.low")

    @property
    def mean_rate_hz(self) -> float:
        """Rows per second in the long run."""
        return self.rate_hz * self.on.mean / (self.on.mean + self.off.mean)

    def chunks(self, seed: int, first: int) -> Iterator[IntArray]:
        blocks = self._cycles(seed)
        cycles = next(blocks)
        for number in count(first):
            rows = np.arange(number * CHUNK, (number + 1) * CHUNK)
            on_clock = np.minimum((rows + 0.5) * (_NS_PER_S / self.rate_hz), float(TIME_MAX)).astype(np.int64)
            while cycles.ends[-1] <= on_clock[-1]:
                past = int(np.searchsorted(cycles.ends, on_clock[0], side="right"))
                more = next(blocks)
                cycles = _Cycles(*(np.append(old[past:], new) for old, new in zip(cycles, more, strict=True)))
            yield on_clock + cycles.silences[np.searchsorted(cycles.ends, on_clock, side="right")]

    def _cycles(self, seed: int) -> Iterator[_Cycles]:
        """All cycles from the first on, a block at a time; whole nanoseconds, so that the sums are exact.

        Past the greatest time the sums stand still, one just above and one just below it, so that they never overflow.
        """
        on_sum = off_sum = 0
        for number in count():
            rng = rng_at(seed, Lane.PARETO_PERIODS, number)
            on, off = self.on.draw(rng, _CYCLES), self.off.draw(rng, _CYCLES)
            ends = np.minimum(on_sum + np.cumsum(on), TIME_MAX + 1)
            silences = np.minimum(off_sum + np.cumsum(off) - off, TIME_MAX - 1)
            yield _Cycles(ends, silences)
            on_sum, off_sum = int(ends[-1]), int(min(silences[-1] + off[-1], TIME_MAX))


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstSizes:
    """Sizes 1..largest with P(size >= m) falling like m^-alpha."""

    alpha: float
    largest: int

    def __post_init__(self) -> None:
        want_real("alpha", self.alpha, ALPHA_MIN, ALPHA_MAX, "less makes larger bursts")
        want_whole("largest", self.largest, 1, LARGEST_BURST, "give the bound of a burst")

    @classmethod
    def with_mean(cls, mean: float, largest: int) -> Self:
        """The shape whose bursts have this expected size (the paper varies it from 1 to 5)."""
        low, high = ALPHA_MIN, ALPHA_MAX
        reach = cls(alpha=low, largest=largest).mean
        want_real("mean", mean, 1.0, reach, f"with largest = {largest} no shape has a larger mean: raise largest")
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if cls(alpha=middle, largest=largest).mean > mean else (low, middle)
        return cls(alpha=high, largest=largest)

    @property
    def mean(self) -> float:
        """The exact expected size: the sum of P(size >= m)."""
        least = np.arange(1, self.largest + 1, dtype=np.float64)
        cut = (self.largest + 1.0) ** -self.alpha
        return float(np.sum((least**-self.alpha - cut) / (1 - cut)))

    def draw(self, rng: np.random.Generator, count: int) -> IntArray:
        return BoundedPareto(alpha=self.alpha, low=1, high=self.largest + 1).draw(rng, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParetoBursts:
    """Bursts at Poisson moments; the rows of a burst share its time."""

    rate_hz: float
    """Rows per second in the long run."""
    sizes: BurstSizes

    def __post_init__(self) -> None:
        want_real("rate_hz", self.rate_hz, 0.0, RATE_MAX, "give rows per second")
        want(self.rate_hz > 0, "rate_hz", self.rate_hz, "more than 0", "give rows per second")

    def chunks(self, seed: int, first: int) -> Iterator[IntArray]:
        before, block = 0, 0
        while before + (inside := int(self._sizes(seed, block).sum())) <= first * CHUNK:
            before, block = before + inside, block + 1
        return recut(self._bursts(seed, block), CHUNK, skip=first * CHUNK - before)

    def _bursts(self, seed: int, first: int) -> Iterator[IntArray]:
        moments = PoissonArrivals.at(self.rate_hz / self.sizes.mean)
        for number, times in zip(count(first), moments.chunks(seed, first), strict=False):
            yield np.repeat(times, self._sizes(seed, number))

    def _sizes(self, seed: int, number: int) -> IntArray:
        return self.sizes.draw(rng_at(seed, Lane.PARETO_BURSTS, number), CHUNK)
