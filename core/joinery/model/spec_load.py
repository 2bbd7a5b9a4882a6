"""A load test, as a file or an object in a cluster describes it: what is sent to a query, how fast, for how long.

    apiVersion: joinery.dev/v1alpha1
    kind: LoadTest
    metadata: {name: evening}
    spec:
      query: orders
      profile: {step: {before: 500, after: 3000, at: 20s}}
      duration: 60s
      producers: 2
      executors: 2
      workload: {keys: {distribution: zipf, range: 5000, skew: 1.1}}

Rates are rows per second of each stream, all its producers together.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from joinery.model.errors import Complaint
from joinery.model.spec_fields import (
    Count,
    Flag,
    Identifier,
    ObjectName,
    PositiveDuration,
    Rate,
    Section,
    Seed,
    exactly_one,
)
from joinery.model.spec_lookup import Place
from joinery.model.spec_parsing import parse_section
from joinery.model.spec_pods import MAX_EXECUTORS
from joinery.model.spec_profiles import BurstSpec, RampSpec, SineSpec, StepSpec
from joinery.model.spec_sections import KeysSpec

MAX_PRODUCERS = 64


class ConstantSpec(Section):
    """The same rate all the time."""

    rate: Rate = Field(examples=[1000])
    """Rows per second."""


class LoadProfileSpec(Section):
    """The rate over time: exactly one of constant, step, ramp, sine, burst."""

    constant: ConstantSpec | None = None
    """The same all the time."""
    step: StepSpec | None = None
    """One rate, then another."""
    ramp: RampSpec | None = None
    """From one rate to another, little by little."""
    sine: SineSpec | None = None
    """Up and down."""
    burst: BurstSpec | None = None
    """More, or less, for a while."""

    @model_validator(mode="after")
    def _one(self) -> "LoadProfileSpec":
        names = ("constant", "step", "ramp", "sine", "burst")
        exactly_one(self, names, "write {constant: {rate: 1000}}")
        return self


class WorkloadSpec(Section):
    """How rows are made up; what is left out is as the query's own generator says, or as its defaults."""

    keys: KeysSpec | None = Field(None, examples=[{"distribution": "uniform", "range": 5000}])
    """How keys are drawn."""
    arrivals: Literal["poisson", "constant"] = "poisson"
    """How the rows are spread in time."""


class LoadTestSpec(Section):
    """One load test."""

    query: ObjectName = Field(examples=["orders"])
    """Name of the JoinQuery, in the same namespace."""
    streams: Annotated[tuple[Identifier, ...], Field(max_length=8)] = ()
    """Which of its streams get rows; left out: all."""
    profile: LoadProfileSpec = Field(examples=[{"constant": {"rate": 1000}}])
    """Rows per second over time, of each stream."""
    duration: PositiveDuration = Field(examples=["60s"])
    """How long."""
    producers: Annotated[Count, Field(le=MAX_PRODUCERS)] = 1
    """Of each stream; they share its rate."""
    seed: Seed = 0
    """Seed of everything random; the same one makes the same rows."""
    workload: WorkloadSpec = WorkloadSpec()
    """The rows."""
    paced: Flag = True
    """Whether rows come when they are due; false: as fast as the query takes them."""
    end: Flag = False
    """Whether the producers end their streams when they are through."""
    executors: Annotated[Count, Field(le=MAX_EXECUTORS)] = 1
    """Pods that share the producers."""

    @classmethod
    def parse(cls, mapping: object) -> "LoadTestSpec":
        """The spec that a mapping describes; `BadSpec` with every complaint."""
        return parse_section(cls, mapping, ("spec",), _check)

    def to_dict(self) -> dict[str, Any]:
        """The whole spec with every default, as YAML would hold it."""
        return self.model_dump(by_alias=True, mode="json", exclude_none=True)


def _check(spec: LoadTestSpec, broken: list[Place]) -> list[Complaint]:
    """Names that are there twice would send everything twice."""
    del broken
    return [
        Complaint(f"spec.streams[{place}]", name, "each stream once", "take it out")
        for place, name in enumerate(spec.streams)
        if name in spec.streams[:place]
    ]
