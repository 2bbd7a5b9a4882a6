"""Rate profiles: the three answers agree with each other and with the formula of the rate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from joinery.generate.phases import HighLow
from joinery.generate.profiles import Burst, Constant, Ramp, RateProfile, Sine, Step

SECOND = 1_000_000_000
PROFILES: dict[str, RateProfile] = {
    "constant": Constant(rate_hz=1500),
    "step": Step(before_hz=100, after_hz=2000, at_ns=3 * SECOND),
    "step from silence": Step(before_hz=0, after_hz=50, at_ns=SECOND),
    "ramp up": Ramp(from_hz=0, to_hz=1000, start_ns=SECOND, end_ns=5 * SECOND),
    "ramp down": Ramp(from_hz=1000, to_hz=10, start_ns=0, end_ns=5 * SECOND),
    "sine": Sine(mean_hz=500, amplitude_hz=400, period_ns=4 * SECOND),
    "sine to zero": Sine(mean_hz=500, amplitude_hz=500, period_ns=4 * SECOND),
    "one burst": Burst(base_hz=100, burst_hz=5000, start_ns=2 * SECOND, length_ns=SECOND),
    "bursts": Burst(base_hz=100, burst_hz=5000, start_ns=SECOND, length_ns=SECOND // 2, every_ns=3 * SECOND),
    "high and low": HighLow(high_hz=900, low_hz=100, high_ns=SECOND, low_ns=2 * SECOND),
    "on and off": HighLow(high_hz=900, low_hz=0, high_ns=SECOND, low_ns=2 * SECOND),
}
every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES.keys())


def at(*seconds: float) -> np.ndarray:
    return (np.array(seconds) * SECOND).astype(np.int64)


@every_profile
def test_the_count_is_the_integral_of_the_rate(profile: RateProfile) -> None:
    ticks = np.arange(0, 12 * SECOND, SECOND // 2000)
    by_summing = integrate.cumulative_trapezoid(profile.rate_at(ticks), ticks / SECOND, initial=0)
    np.testing.assert_allclose(profile.count_until(ticks), by_summing, atol=10)


@every_profile
def test_the_time_of_a_count_is_the_inverse_of_the_count(profile: RateProfile) -> None:
    counts = np.random.default_rng(1).uniform(0, 5000, 10_000)
    np.testing.assert_allclose(profile.count_until(profile.time_of(counts)), counts, atol=1e-4)


@every_profile
def test_times_of_growing_counts_never_go_back(profile: RateProfile) -> None:
    assert np.all(np.diff(profile.time_of(np.linspace(0, 20_000, 100_001))) >= 0)


@settings(deadline=None)
@given(count=st.floats(0, 1e9))
def test_a_constant_rate_spaces_counts_evenly(count: float) -> None:
    assert int(count * SECOND / 1000) == pytest.approx(PROFILE_1000.time_of(np.array([count]))[0], abs=1, rel=1e-15)


PROFILE_1000 = Constant(rate_hz=1000)


def test_a_step_changes_the_rate_at_its_moment() -> None:
    assert [100, 100, 2000, 2000] == PROFILES["step"].rate_at(at(0, 2.999, 3, 9)).tolist()
    assert [300, 2300] == PROFILES["step"].count_until(at(3, 4)).tolist()


def test_a_ramp_is_straight_between_its_ends_and_level_outside() -> None:
    np.testing.assert_allclose([0, 0, 250, 500, 1000, 1000], PROFILES["ramp up"].rate_at(at(0, 1, 2, 3, 5, 100)))
    np.testing.assert_allclose([0, 125, 2000, 3000], PROFILES["ramp up"].count_until(at(1, 2, 5, 6)))


def test_a_sine_swings_around_its_mean() -> None:
    np.testing.assert_allclose([500, 900, 500, 100, 500], PROFILES["sine"].rate_at(at(0, 1, 2, 3, 4)), atol=1e-6)
    np.testing.assert_allclose([2000, 20_000], PROFILES["sine"].count_until(at(4, 40)))


def test_a_sine_is_drawn_finely_enough() -> None:
    ticks = np.arange(0, 4 * SECOND, SECOND // 1000)
    smooth = 500 + 400 * np.sin(2 * np.pi * ticks / (4 * SECOND))
    np.testing.assert_allclose(PROFILES["sine"].rate_at(ticks), smooth, atol=400 * 1e-4)


def test_bursts_come_again_every_period() -> None:
    assert [100, 5000, 100, 100, 5000] == PROFILES["bursts"].rate_at(at(0, 1.2, 1.5, 3, 4.2)).tolist()
    assert [100, 5000, 100, 100] == PROFILES["one burst"].rate_at(at(1, 2.5, 3, 100)).tolist()


def test_no_row_falls_into_a_silence() -> None:
    times = PROFILES["on and off"].time_of(np.linspace(0.5, 5000, 10_000))
    assert 0 == np.count_nonzero(times % (3 * SECOND) > SECOND)
