"""A generator's rate over time, as a query writes it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.generate.from_spec import keys_of, points_of, profile_of, rate_of
from joinery.generate.keys import UniformKeys
from joinery.generate.profiles import Burst, Constant, Ramp, Sine, Step
from joinery.model.errors import BadSpec
from joinery.model.quantities import format_duration
from joinery.model.spec import JoinQuery, JoinQuerySpec
from joinery.model.spec_profiles import ProfileSpec
from joinery.model.spec_sections import GeneratorSpec
from joinery.simulate.load_spec import profiles_of

SECOND = 1_000_000_000
STEP = {"step": {"before": 500, "after": 2000, "at": "60s"}}


def query(**generator: Any) -> dict[str, Any]:
    streams = [
        {"name": name, "schema": {"k": "int64"}, "window": "1s", "source": {"generator": generator}} for name in "ab"
    ]
    return {"streams": streams, "join": {"on": ["k"]}}


def generator(**wanted: Any) -> GeneratorSpec:
    source = JoinQuerySpec.parse(query(**wanted)).streams[0].source
    assert source is not None
    assert source.generator is not None
    return source.generator


@pytest.mark.parametrize(
    ("written", "made"),
    [
        (STEP, Step(before_hz=500, after_hz=2000, at_ns=60 * SECOND)),
        (
            {"ramp": {"before": 500, "after": 2000, "start": "100s", "end": "400s"}},
            Ramp(from_hz=500, to_hz=2000, start_ns=100 * SECOND, end_ns=400 * SECOND),
        ),
        (
            {"sine": {"mean": 1500, "amplitude": 1000, "period": "10m"}},
            Sine(mean_hz=1500, amplitude_hz=1000, period_ns=600 * SECOND),
        ),
        (
            {"burst": {"base": 500, "burst": 2000, "start": "200s", "length": "60s"}},
            Burst(base_hz=500, burst_hz=2000, start_ns=200 * SECOND, length_ns=60 * SECOND),
        ),
        (
            {"burst": {"base": 0, "burst": 2000, "start": "0s", "length": "1s", "every": "5s"}},
            Burst(base_hz=0, burst_hz=2000, start_ns=0, length_ns=SECOND, every_ns=5 * SECOND),
        ),
    ],
)
def test_a_profile_is_the_rate_that_it_says(written: dict[str, Any], made: object) -> None:
    assert made == rate_of(generator(profile=written))
    assert [made, made] == profiles_of(JoinQuerySpec.parse(query(profile=written)))


def test_without_a_profile_the_rate_is_constant() -> None:
    assert Constant(rate_hz=1500) == rate_of(generator())
    assert Constant(rate_hz=10) == rate_of(generator(rate=10))


def test_rows_follow_the_profile() -> None:
    points = points_of(generator(profile={"step": {"before": 1000, "after": 4000, "at": "5s"}}, arrivals="constant"))
    times = next(points.chunks(0, 0))[0]
    assert [5000, 4000] == np.histogram(times, [0, 5 * SECOND, 6 * SECOND])[0].tolist()


def test_keys_are_those_of_the_spec() -> None:
    assert UniformKeys(7) == keys_of(generator(keys={"distribution": "uniform", "range": 7}).keys)


def test_a_profile_survives_being_written_out_and_reads_well_in_yaml() -> None:
    spec = JoinQuerySpec.parse(query(profile=STEP))
    assert spec == JoinQuerySpec.parse(spec.to_dict())
    assert "1m" == spec.to_dict()["streams"][0]["source"]["generator"]["profile"]["step"]["at"]
    text = (
        "apiVersion: joinery.dev/v1alpha1\nkind: JoinQuery\nmetadata: {name: q}\nspec:\n  join: {on: [k]}\n  streams:\n"
        + "".join(
            f"    - {{name: {name}, schema: {{k: int64}}, window: 1s, source: {{generator: "
            "{profile: {step: {before: 500, after: 2000, at: 60s}}}}}\n"
            for name in "ab"
        )
    )
    assert spec == JoinQuery.parse_yaml(text).spec


@pytest.mark.parametrize(
    ("written", "below", "told"),
    [
        ({}, "", "exactly one of step, ramp, sine, burst"),
        ({**STEP, "sine": {"mean": 1, "amplitude": 0, "period": "1s"}}, "", "step and sine"),
        ({"step": {"before": 500, "after": 0, "at": "60s"}}, ".step", "more than 0"),
        ({"step": {"before": 500, "after": 5}}, ".step.at", "add at: 60s"),
        ({"step": {"before": -1, "after": 5, "at": "1s"}}, ".step.before", "at least 0"),
        ({"step": {"before": 1, "after": 5, "at": "200d"}}, ".step", "at most 104 days"),
        ({"ramp": {"before": 1, "after": 2, "start": "2s", "end": "2s"}}, ".ramp", "later than start, 2s"),
        ({"sine": {"mean": 1, "amplitude": 2, "period": "1s"}}, ".sine", "at most mean, 1"),
        ({"sine": {"mean": 0, "amplitude": 0, "period": "1s"}}, ".sine", "more than 0"),
        ({"sine": {"mean": 2, "amplitude": 1, "period": "200ns"}}, ".sine", "1us or longer"),
        ({"burst": {"base": 0, "burst": 2, "start": "1s", "length": "1s"}}, ".burst", "more than 0"),
        (
            {"burst": {"base": 1, "burst": 2, "start": "1s", "length": "1s", "every": "1s"}},
            ".burst",
            "at least start and length, 2s",
        ),
        ({"steps": STEP["step"]}, ".steps", "did you mean step?"),
        ("step:500,2000", "", "write for example {step: {before: 500, after: 2000, at: 60s}}"),
    ],
)
def test_a_profile_that_cannot_be_is_refused_with_a_remedy(written: object, below: str, told: str) -> None:
    with pytest.raises(BadSpec) as refused:
        JoinQuerySpec.parse(query(profile=written))
    complaint = refused.value.complaints[0]
    assert f"spec.streams[0].source.generator.profile{below}" == complaint.field
    assert told in str(complaint)


def test_a_rate_beside_a_profile_is_refused_because_one_of_them_would_be_ignored() -> None:
    with pytest.raises(BadSpec, match=r"rate 800 and a profile.*leave rate out"):
        JoinQuerySpec.parse(query(profile=STEP, rate=800))


RATES = st.one_of(st.just(0.0), st.floats(1e-3, 1e6))
TIMES = st.one_of(st.just(0), st.integers(1, 2**60)).map(format_duration)
FIELDS = {
    "step": {"before": RATES, "after": RATES, "at": TIMES},
    "ramp": {"before": RATES, "after": RATES, "start": TIMES, "end": TIMES},
    "sine": {"mean": RATES, "amplitude": RATES, "period": TIMES},
    "burst": {"base": RATES, "burst": RATES, "start": TIMES, "length": TIMES, "every": st.one_of(st.none(), TIMES)},
}


@given(
    st.sampled_from(sorted(FIELDS)).flatmap(
        lambda kind: st.fixed_dictionaries({kind: st.fixed_dictionaries(FIELDS[kind])})
    )
)
def test_every_profile_that_is_taken_can_be_made(written: dict[str, Any]) -> None:
    try:
        parsed = JoinQuerySpec.parse(query(profile=written)).streams[0].source
    except BadSpec:
        return
    assert parsed is not None
    assert parsed.generator is not None
    assert isinstance(parsed.generator.profile, ProfileSpec)
    times = profile_of(parsed.generator.profile).time_of(np.array([0.5, 1.5, 100.5]))
    assert times.tolist() == sorted(times.tolist())
