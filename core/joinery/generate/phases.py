"""HIGH/LOW phases: a rate that alternates between two levels.

Gu et al., "Adaptive load diffusion for multiway windowed stream joins", section 5: in a bursty stream a burst of data
is generated in the HIGH period and zero or few in the LOW period. With the burst ratio θ in [0, 1] and the stream's
rate r the two rates are (1 + θ)/2 r and (1 - θ)/2 r: θ = 0 is a plain stream of rate r/2, θ = 1 is ON/OFF.
"""

from dataclasses import dataclass
from typing import Self

from joinery.generate.checks import want_real
from joinery.generate.profiles import Pieces, RateProfile, want_length, want_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class HighLow(RateProfile):
    """`high_ns` at the high rate, then `low_ns` at the low one, and again."""

    high_hz: float
    low_hz: float
    high_ns: int
    low_ns: int

    def __post_init__(self) -> None:
        want_rate("high_hz", self.high_hz)
        want_rate("low_hz", self.low_hz)
        want_length("high_ns", self.high_ns)
        want_length("low_ns", self.low_ns)
        self.pieces()

    @classmethod
    def of_burst_ratio(cls, rate_hz: float, theta: float, *, high_ns: int, low_ns: int) -> Self:
        """The two rates of the paper's burst ratio θ."""
        want_rate("rate_hz", rate_hz)
        want_real("theta", theta, 0.0, 1.0, "0 is a plain stream, 1 is ON/OFF")
        high_hz, low_hz = (1 + theta) / 2 * rate_hz, (1 - theta) / 2 * rate_hz
        return cls(high_hz=high_hz, low_hz=low_hz, high_ns=high_ns, low_ns=low_ns)

    def pieces(self) -> Pieces:
        end_ns = self.high_ns + self.low_ns
        high, low = (
            [(0, self.high_hz), (self.high_ns, self.high_hz)],
            [(self.high_ns, self.low_hz), (end_ns, self.low_hz)],
        )
        return Pieces.through(high + low, repeat=True)
