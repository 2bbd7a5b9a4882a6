"""How a rate changes over time: step, ramp, sine, burst.

Theory of operation. A profile is a rate r(t) >= 0 in rows per second over the nanoseconds t >= 0 of a stream. It
answers three questions, each for a whole vector: `rate_at(t)`; `count_until(t)`, the expected rows of [0, t), that is
the integral of r; and `time_of(n)`, its inverse. The inverse is what makes arrivals: a process of rate 1 has its n-th
arrival at "operational time" N_n, and `time_of(N_n)` is the n-th arrival of the process with rate r(t) (time warping;
exact for Poisson processes, cheaper than thinning, and nothing is thrown away, so row n stays row n).

Rule 1: every profile is straight pieces between knots (`Pieces`), so that all three answers are closed formulas.
Rule 2: two knots at one time are a jump. After its last knot a profile repeats or stays where it is.
Rule 3: the next row always comes: a profile that ends in silence for ever is refused.

Times are exact up to 2^53 ns (104 days) after the start of a stream and good to 16 digits beyond.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from joinery.generate.checks import want, want_real, want_whole
from joinery.generate.draws import FloatArray, IntArray
from joinery.model.time import TIME_MAX

RATE_MAX: Final = 1e12
LENGTH_MAX: Final = 2**53
"""Longest ramp, period or pause in nanoseconds; up to here a float counts them one by one."""
SINE_PIECES: Final = 256
_NS_PER_S: Final = 1e9


def want_rate(field: str, rate_hz: object) -> None:
    """Refuse what is not a rate: rows per second, zero allowed."""
    want_real(field, rate_hz, 0.0, RATE_MAX, "give rows per second")


def want_length(field: str, length_ns: object, *, low: int = 1) -> None:
    """Refuse what is not a length of time in nanoseconds."""
    want_whole(field, length_ns, low, LENGTH_MAX, "give nanoseconds")


@dataclass(frozen=True, slots=True)
class Pieces:
    """Straight pieces of a rate: piece i starts at `starts[i]` ns with `rates[i]` rows/ns, after `counts[i]` rows."""

    starts: FloatArray
    lengths: FloatArray
    rates: FloatArray
    slopes: FloatArray
    counts: FloatArray
    period_ns: float
    """inf: the last piece never ends."""
    period_count: float

    @classmethod
    def through(cls, knots: Sequence[tuple[int, float]], *, repeat: bool) -> Self:
        """The rate that goes straight from knot (ns, rows per second) to knot; the first is at 0."""
        at = np.array([ns for ns, _ in knots], dtype=np.float64)
        rate = np.array([hz for _, hz in knots], dtype=np.float64) / _NS_PER_S
        if not repeat:
            want(rate[-1] > 0, "rate", knots[-1][1], "more than 0 at the end", "a stream must not fall silent for ever")
            at, rate = np.append(at, np.inf), np.append(rate, rate[-1])
        lengths, rises = np.diff(at), np.diff(rate)
        slopes = np.divide(rises, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        counts = np.append(0.0, np.cumsum(lengths * (rate[:-1] + rate[1:]) / 2))
        want(counts[-1] > 0, "rate", [hz for _, hz in knots], "more than 0 somewhere", "raise one of the rates")
        real = lengths > 0
        starts, rates, before = at[:-1][real], rate[:-1][real], counts[:-1][real]
        return cls(starts, lengths[real], rates, slopes[real], before, float(at[-1]), float(counts[-1]))

    def rate_at(self, ns: IntArray) -> FloatArray:
        _, piece, into = self._locate(ns)
        return (self.rates[piece] + self.slopes[piece] * into) * _NS_PER_S

    def count_until(self, ns: IntArray) -> FloatArray:
        cycles, piece, into = self._locate(ns)
        inside = self.counts[piece] + into * (self.rates[piece] + self.slopes[piece] * into / 2)
        return inside if math.isinf(self.period_ns) else cycles * self.period_count + inside

    def time_of(self, count: FloatArray) -> IntArray:
        """The time by which `count` rows are expected; where the rate is 0, the end of that silence."""
        cycles, rest = np.zeros_like(count), count
        if not math.isinf(self.period_ns):
            cycles = np.floor(count / self.period_count)
            rest = np.clip(count - cycles * self.period_count, 0, None)
        piece = np.searchsorted(self.counts, rest, side="right") - 1
        more, rate = rest - self.counts[piece], self.rates[piece]
        # more = rate * x + slope / 2 * x^2, solved for x without cancellation for rising, level and falling pieces
        sum_of_rates = rate + np.sqrt(np.maximum(rate * rate + 2 * self.slopes[piece] * more, 0))
        into = np.divide(2 * more, sum_of_rates, out=np.zeros_like(more), where=sum_of_rates > 0)
        start = self.starts[piece] if math.isinf(self.period_ns) else cycles * self.period_ns + self.starts[piece]
        return np.minimum(start + np.minimum(into, self.lengths[piece]), float(TIME_MAX)).astype(np.int64)

    def _locate(self, ns: IntArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """For each time: full periods before it, its piece, nanoseconds since that piece began."""
        time = np.maximum(ns, 0).astype(np.float64)
        cycles = np.floor(time / self.period_ns)
        phase = time if math.isinf(self.period_ns) else np.clip(time - cycles * self.period_ns, 0, None)
        piece = (np.searchsorted(self.starts, phase, side="right") - 1).astype(np.int64)
        return cycles, piece, phase - self.starts[piece]


class RateProfile(ABC):
    """A rate over time; a concrete one says its pieces, and is checked by making them once at birth."""

    __slots__ = ()

    @abstractmethod
    def pieces(self) -> Pieces:
        """The straight pieces of this rate."""

    def rate_at(self, ns: IntArray) -> FloatArray:
        """Rows per second at each time."""
        return self.pieces().rate_at(ns)

    def count_until(self, ns: IntArray) -> FloatArray:
        """Expected rows in [0, t) for each time t."""
        return self.pieces().count_until(ns)

    def time_of(self, count: FloatArray) -> IntArray:
        """The time until which each count is expected: the inverse of `count_until`."""
        return self.pieces().time_of(count)


def want_profile(found: object) -> None:
    """Refuse what is not a rate profile."""
    want(isinstance(found, RateProfile), "profile", found, "a RateProfile", "for one rate give Constant(rate_hz=...)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(RateProfile):
    """The same rate for ever."""

    rate_hz: float

    def __post_init__(self) -> None:
        want_rate("rate_hz", self.rate_hz)
        self.pieces()

    def pieces(self) -> Pieces:
        return Pieces.through([(0, self.rate_hz)], repeat=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(RateProfile):
    """One rate until a moment, another one from then on."""

    before_hz: float
    after_hz: float
    at_ns: int

    def __post_init__(self) -> None:
        want_rate("before_hz", self.before_hz)
        want_rate("after_hz", self.after_hz)
        want_length("at_ns", self.at_ns, low=0)
        self.pieces()

    def pieces(self) -> Pieces:
        return Pieces.through(
            [(0, self.before_hz), (self.at_ns, self.before_hz), (self.at_ns, self.after_hz)], repeat=False
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp(RateProfile):
    """A straight way from one rate to another, level before and after."""

    from_hz: float
    to_hz: float
    start_ns: int
    end_ns: int

    def __post_init__(self) -> None:
        want_rate("from_hz", self.from_hz)
        want_rate("to_hz", self.to_hz)
        want_length("start_ns", self.start_ns, low=0)
        want_length("end_ns", self.end_ns)
        want(self.start_ns < self.end_ns, "end_ns", self.end_ns, f"more than start_ns = {self.start_ns}", "or use Step")
        self.pieces()

    def pieces(self) -> Pieces:
        return Pieces.through(
            [(0, self.from_hz), (self.start_ns, self.from_hz), (self.end_ns, self.to_hz)], repeat=False
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sine(RateProfile):
    """A wave around a mean, at first rising, drawn by 256 straight pieces (off by less than 0.0001 amplitudes)."""

    mean_hz: float
    amplitude_hz: float
    period_ns: int

    def __post_init__(self) -> None:
        want_rate("mean_hz", self.mean_hz)
        want_rate("amplitude_hz", self.amplitude_hz)
        below = f"at most mean_hz = {self.mean_hz}"
        want(self.amplitude_hz <= self.mean_hz, "amplitude_hz", self.amplitude_hz, below, "a rate is never below 0")
        want_length("period_ns", self.period_ns, low=SINE_PIECES)
        self.pieces()

    def pieces(self) -> Pieces:
        turns = np.arange(SINE_PIECES + 1) / SINE_PIECES
        rates = np.maximum(self.mean_hz + self.amplitude_hz * np.sin(2 * np.pi * turns), 0.0)
        times = np.round(turns * self.period_ns)
        return Pieces.through([(int(at), float(hz)) for at, hz in zip(times, rates, strict=True)], repeat=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst(RateProfile):
    """A base rate with a burst of another rate: once, or every `every_ns`, each time `start_ns` into the period."""

    base_hz: float
    burst_hz: float
    start_ns: int
    length_ns: int
    every_ns: int | None = None

    def __post_init__(self) -> None:
        want_rate("base_hz", self.base_hz)
        want_rate("burst_hz", self.burst_hz)
        want_length("start_ns", self.start_ns, low=0)
        want_length("length_ns", self.length_ns)
        if self.every_ns is not None:
            want_length("every_ns", self.every_ns, low=self.start_ns + self.length_ns)
        self.pieces()

    def pieces(self) -> Pieces:
        end_ns = self.start_ns + self.length_ns
        knots = [(0, self.base_hz), (self.start_ns, self.base_hz), (self.start_ns, self.burst_hz)]
        knots += [(end_ns, self.burst_hz), (end_ns, self.base_hz)]
        if self.every_ns is None:
            return Pieces.through(knots, repeat=False)
        return Pieces.through([*knots, (self.every_ns, self.base_hz)], repeat=True)
