"""The spec of a load test: read strictly, written back the same, made into a profile."""

from typing import Any

import numpy as np
import pytest

from joinery.generate.from_spec import load_profile_of
from joinery.model.errors import BadSpec
from joinery.model.spec_load import LoadTestSpec

LOAD: dict[str, Any] = {"query": "orders", "profile": {"constant": {"rate": 1000}}, "duration": "30s"}
SECOND = 1_000_000_000


def test_what_is_left_out_has_its_default_and_a_spec_is_written_as_it_was_read() -> None:
    spec = LoadTestSpec.parse(LOAD)
    assert (1, 1, 0, True, False, ()) == (
        spec.producers, spec.executors, spec.seed, spec.paced, spec.end, spec.streams,
    )  # fmt: skip
    assert spec == LoadTestSpec.parse(spec.to_dict())


@pytest.mark.parametrize(
    ("profile", "rows"),
    [
        ({"constant": {"rate": 100}}, 1000),
        ({"step": {"before": 100, "after": 200, "at": "5s"}}, 1500),
        ({"ramp": {"before": 100, "after": 200, "start": "0s", "end": "10s"}}, 1500),
        ({"sine": {"mean": 100, "amplitude": 50, "period": "10s"}}, 1000),
        ({"burst": {"base": 100, "burst": 300, "start": "1s", "length": "2s"}}, 1400),
    ],
)
def test_every_profile_has_as_many_rows_as_it_says(profile: dict[str, Any], rows: int) -> None:
    made = load_profile_of(LoadTestSpec.parse({**LOAD, "profile": profile}).profile)
    assert rows == pytest.approx(made.count_until(np.array([10 * SECOND]))[0])


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"profile": {}}, "spec.profile"),
        ({"profile": {"constant": {"rate": 1}, "step": {"before": 1, "after": 1, "at": "1s"}}}, "spec.profile"),
        ({"profile": {"constant": {"rate": 0}}}, "spec.profile.constant.rate"),
        ({"duration": "0s"}, "spec.duration"),
        ({"duration": 30}, "spec.duration"),
        ({"producers": 65}, "spec.producers"),
        ({"executors": 0}, "spec.executors"),
        ({"query": "Not A Name"}, "spec.query"),
        ({"streams": ["a", "a"]}, "spec.streams[1]"),
        ({"workload": {"keys": {"distribution": "flat"}}}, "spec.workload.keys.distribution"),
        ({"rate": 5}, "spec.rate"),
    ],
)
def test_what_is_wrong_is_told_by_its_field(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(BadSpec) as refused:
        LoadTestSpec.parse({**LOAD, **changed})
    assert [field] == [one.field for one in refused.value.complaints]
