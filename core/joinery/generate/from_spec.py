"""A generator as a query describes it (`model.spec_sections.GeneratorSpec`): its rates and keys."""

from joinery.generate.arrivals import Arrivals, EvenArrivals
from joinery.generate.bmodel import BModelKeys
from joinery.generate.keys import Keys, UniformKeys
from joinery.generate.points import Independent, PointProcess
from joinery.generate.poisson import PoissonArrivals
from joinery.generate.profiles import Burst, Constant, Ramp, RateProfile, Sine, Step
from joinery.generate.zipf import ZipfKeys
from joinery.model.spec_load import LoadProfileSpec
from joinery.model.spec_profiles import ProfileSpec
from joinery.model.spec_sections import GeneratorSpec, KeysSpec


def points_of(wanted: GeneratorSpec) -> PointProcess:
    """When rows come, and with which keys."""
    profile = rate_of(wanted)
    arrivals: Arrivals = EvenArrivals(profile) if wanted.arrivals == "constant" else PoissonArrivals(profile)
    return Independent(arrivals, keys_of(wanted.keys))


def rate_of(wanted: GeneratorSpec) -> RateProfile:
    """The rate over time: `profile`, or `rate` for ever."""
    return Constant(rate_hz=wanted.rate) if wanted.profile is None else profile_of(wanted.profile)


def profile_of(wanted: ProfileSpec) -> RateProfile:
    """The profile that a query writes as a mapping."""
    if (step := wanted.step) is not None:
        return Step(before_hz=step.before, after_hz=step.after, at_ns=step.at)
    if (ramp := wanted.ramp) is not None:
        return Ramp(from_hz=ramp.before, to_hz=ramp.after, start_ns=ramp.start, end_ns=ramp.end)
    if (sine := wanted.sine) is not None:
        return Sine(mean_hz=sine.mean, amplitude_hz=sine.amplitude, period_ns=sine.period)
    if (burst := wanted.burst) is not None:
        rates = {"base_hz": burst.base, "burst_hz": burst.burst}
        return Burst(**rates, start_ns=burst.start, length_ns=burst.length, every_ns=burst.every)
    raise AssertionError("a profile has one of its forms")


def load_profile_of(wanted: LoadProfileSpec) -> RateProfile:
    """The profile of a load test."""
    if wanted.constant is not None:
        return Constant(rate_hz=wanted.constant.rate)
    return profile_of(ProfileSpec(step=wanted.step, ramp=wanted.ramp, sine=wanted.sine, burst=wanted.burst))


def keys_of(wanted: KeysSpec) -> Keys:
    """The distribution of the keys."""
    match wanted.distribution:
        case "b-model":
            return BModelKeys(wanted.range, wanted.skew)
        case "uniform":
            return UniformKeys(wanted.range)
        case "zipf":
            return ZipfKeys(wanted.range, wanted.skew)
