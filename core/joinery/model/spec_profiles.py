"""How a generator's rate changes over time, as a query writes it: step, ramp, sine, burst.

    profile: {step: {before: 500, after: 2000, at: 60s}}
    profile: {ramp: {before: 500, after: 2000, start: 100s, end: 400s}}
    profile: {sine: {mean: 1500, amplitude: 1000, period: 10m}}
    profile: {burst: {base: 500, burst: 2000, start: 200s, length: 60s, every: 5m}}

Rates are rows per second and may be 0 for a while, but no stream falls silent for ever: it would never end. Times count
from the start of the stream, in the time of its rows. Whatever is taken here `generate.profiles` can make (tested).
"""

from typing import Annotated, Final

from pydantic import Field, Strict, model_validator

from joinery.model.complaints import BadValue
from joinery.model.quantities import Nanoseconds, format_duration
from joinery.model.spec_fields import Duration, PositiveDuration, Section, exactly_one

LONGEST_NS: Final = 2**53
SHORTEST_WAVE_NS: Final = 1_000
"""A wave is drawn by 256 pieces, each of which has a length."""

Level = Annotated[float, Strict(), Field(ge=0, le=1e12, allow_inf_nan=False)]


class StepSpec(Section):
    """One rate until a moment, another one from then on."""

    before: Level = Field(examples=[500])
    """Rows per second until then."""
    after: Level = Field(examples=[2000])
    """Rows per second from then on."""
    at: Duration = Field(examples=["60s"])
    """When the rate changes."""

    @model_validator(mode="after")
    def _sound(self) -> "StepSpec":
        _short(at=self.at)
        _goes_on(after=self.after)
        return self


class RampSpec(Section):
    """A straight way from one rate to another, level before and after."""

    before: Level = Field(examples=[500])
    """Rows per second until `start`."""
    after: Level = Field(examples=[2000])
    """Rows per second from `end` on."""
    start: Duration = Field(examples=["100s"])
    """When the rate begins to change."""
    end: Duration = Field(examples=["400s"])
    """When it has changed."""

    @model_validator(mode="after")
    def _sound(self) -> "RampSpec":
        _short(start=self.start, end=self.end)
        _goes_on(after=self.after)
        if self.end <= self.start:
            wanted = f"later than start, {format_duration(self.start)}"
            raise BadValue(f"end {format_duration(self.end)}", wanted, "write a later end, or use step")
        return self


class SineSpec(Section):
    """A wave around a mean, at first rising."""

    mean: Level = Field(examples=[1500])
    """Rows per second on average."""
    amplitude: Level = Field(examples=[1000])
    """How far the rate goes up and down; at most the mean."""
    period: PositiveDuration = Field(examples=["10m"])
    """Length of a wave."""

    @model_validator(mode="after")
    def _sound(self) -> "SineSpec":
        _short(period=self.period)
        _goes_on(mean=self.mean)
        if self.amplitude > self.mean:
            found = f"amplitude {self.amplitude:g}"
            raise BadValue(found, f"at most mean, {self.mean:g}", "write a smaller one: a rate is never below 0")
        if self.period < SHORTEST_WAVE_NS:
            raise BadValue(f"period {format_duration(self.period)}", "1us or longer", "write for example 10m")
        return self


class BurstSpec(Section):
    """A base rate with a burst of another one: once, or again and again."""

    base: Level = Field(examples=[500])
    """Rows per second outside of a burst."""
    burst: Level = Field(examples=[2000])
    """Rows per second within a burst."""
    start: Duration = Field(examples=["200s"])
    """When the burst begins; with `every`, counted from the begin of each period."""
    length: PositiveDuration = Field(examples=["60s"])
    """How long it lasts."""
    every: PositiveDuration | None = Field(None, examples=["5m"])
    """Length of a period; left out: one burst only."""

    @model_validator(mode="after")
    def _sound(self) -> "BurstSpec":
        _short(start=self.start, length=self.length)
        if self.every is None:
            _goes_on(base=self.base)
            return self
        _short(every=self.every)
        _goes_on(burst=max(self.base, self.burst))
        if self.every < self.start + self.length:
            wanted = f"at least start and length, {format_duration(self.start + self.length)}"
            raise BadValue(f"every {format_duration(self.every)}", wanted, "write a longer period")
        return self


class ProfileSpec(Section):
    """A rate that changes over time: exactly one of step, ramp, sine, burst."""

    step: StepSpec | None = None
    """One rate, then another."""
    ramp: RampSpec | None = None
    """From one rate to another, little by little."""
    sine: SineSpec | None = None
    """Up and down."""
    burst: BurstSpec | None = None
    """More, or less, for a while."""

    @model_validator(mode="after")
    def _one(self) -> "ProfileSpec":
        exactly_one(self, ("step", "ramp", "sine", "burst"), "write {step: {before: 500, after: 2000, at: 60s}}")
        return self


def _short(**times: Nanoseconds) -> None:
    for name, length in times.items():
        if length > LONGEST_NS:
            raise BadValue(f"{name} {format_duration(length)}", "at most 104 days", "write a shorter time")


def _goes_on(**rates: float) -> None:
    for name, rate in rates.items():
        if rate == 0:
            wanted = "more than 0: the next row must come some day"
            raise BadValue(f"{name} 0", wanted, "write a rate, or end the stream with rows")
