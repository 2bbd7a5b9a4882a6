"""The sections of a query spec that only a cluster reads: its pods, their volumes, and who may talk to them."""

from fractions import Fraction
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from joinery.model.complaints import BadValue
from joinery.model.quantities import Bytes, format_size
from joinery.model.spec_fields import (
    Count,
    FullText,
    Labels,
    Natural,
    Quantities,
    Section,
    Size,
    Text,
    exactly_one,
)

_FACTORS: Final = {"m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(1000)} | {
    letter + ending: Fraction(base**power)
    for power, letter in enumerate("KMGT", 1)
    for base, ending in ((1000, ""), (1024, "i"))
    if letter + ending != "K"
}
MAX_EXECUTORS: Final = 32
"""Pods of one Spark application."""
LEAST_HEAP: Final = Bytes(450 * 2**20)
"""Of a driver or an executor: Spark refuses to start with less."""
OWN_LABELS: Final = ("app.kubernetes.io/", "joinery.dev/")
"""Prefixes of the labels by which the operator finds its pods."""


def amount(quantity: str) -> Fraction:
    """The number that a Kubernetes quantity stands for."""
    number = quantity.rstrip("mkKMGTi")
    return Fraction(number) * _FACTORS[quantity[len(number) :]]


class VolumeSpec(Section):
    """Where a file lies in a cluster: exactly one of the two."""

    claim: FullText | None = Field(None, examples=["my-claim"])
    """Name of a PersistentVolumeClaim."""
    config_map: FullText | None = Field(None, alias="configMap", examples=["my-files"])
    """Name of a ConfigMap."""

    @model_validator(mode="after")
    def _one(self) -> "VolumeSpec":
        exactly_one(self, ("claim", "config_map"), "write volume: {claim: my-claim}")
        return self


class ResourcesSpec(Section):
    """Kubernetes resources of a container."""

    requests: Quantities = ()
    """What is reserved."""
    limits: Quantities = ()
    """What is never exceeded."""

    @model_validator(mode="after")
    def _requests_fit(self) -> "ResourcesSpec":
        limits = dict(self.limits)
        for name, asked in self.requests:
            if name in limits and amount(asked) > amount(limits[name]):
                raise BadValue(
                    f"requests of {asked} {name} and limits of {limits[name]}",
                    "requests at most the limits",
                    f"write limits: {{{name}: {asked}}}",
                )
        return self


class PodSpec(Section):
    """One pod."""

    resources: ResourcesSpec = ResourcesSpec()
    """Resources of its container."""


class TolerationSpec(Section):
    """A taint of nodes that the pods bear, as Kubernetes writes it."""

    key: Text = Field("", examples=["dedicated"])
    """Key of the taint; left out, with Exists: all of them."""
    operator: Literal["Equal", "Exists"] = "Equal"
    """Whether the value counts."""
    value: Text = Field("", examples=["streams"])
    """Value of the taint, with Equal."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Which effect; left out: all of them."""
    toleration_seconds: Natural | None = Field(None, alias="tolerationSeconds", examples=[60])
    """How long, with NoExecute; left out: for ever."""

    @model_validator(mode="after")
    def _as_the_server_wants_it(self) -> "TolerationSpec":
        if self.operator == "Equal" and not self.key:
            raise BadValue("Equal without a key", "a key, or operator Exists", "write {key: dedicated, value: streams}")
        if self.operator == "Exists" and self.value:
            raise BadValue(f"Exists with the value {self.value}", "no value", "leave value out, or write Equal")
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise BadValue("tolerationSeconds", "it only with effect NoExecute", "leave tolerationSeconds out")
        return self


class SparkVolumeSpec(Section):
    """The claim that driver and executors share: segments of a table, or what Spark keeps while it joins."""

    size: Size = Bytes(10 * 2**30)
    """What is asked for."""
    storage_class: Text = Field("", alias="storageClass", examples=["fast"])
    """A StorageClass; left out: the cluster's own."""
    access_mode: Literal["ReadWriteOnce", "ReadWriteMany"] = Field("ReadWriteOnce", alias="accessMode")
    """ReadWriteOnce: executors run on the driver's node. ReadWriteMany: on any."""


class SparkPodsSpec(Section):
    """The Spark of a query with a stored table, or with engine: spark."""

    executors: Annotated[Count, Field(le=MAX_EXECUTORS)] = 1
    """Executor pods."""
    cores: Annotated[Count, Field(le=MAX_EXECUTORS)] = 2
    """Tasks that an executor runs at once."""
    memory: Size = Bytes(512 * 2**20)
    """Java's heap in the driver and in each executor; their Python comes on top."""
    volume: SparkVolumeSpec = SparkVolumeSpec()
    """Where they keep their files; it goes with the query."""

    @model_validator(mode="after")
    def _java_starts(self) -> "SparkPodsSpec":
        if self.memory < LEAST_HEAP:
            found, wanted = f"memory {format_size(self.memory)}", f"at least {format_size(LEAST_HEAP)}: Spark wants it"
            raise BadValue(found, wanted, "leave it out for 512Mi")
        return self


class PodsSpec(Section):
    """The pods of the query, where it runs in a cluster; what a worker gets is `worker.resources`."""

    labels: Labels = ()
    """Labels beside ours."""
    annotations: Labels = ()
    """Annotations beside ours."""
    node_selector: Labels = Field((), alias="nodeSelector", examples=[{"disk": "fast"}])
    """Labels that a node must have."""
    tolerations: Annotated[tuple[TolerationSpec, ...], Field(max_length=16)] = ()
    """Taints that the pods bear."""
    priority_class_name: Text = Field("", alias="priorityClassName", examples=["high"])
    """A PriorityClass."""
    gateway: PodSpec = PodSpec()
    """The gateway's pod."""
    collector: PodSpec = PodSpec()
    """The collector's pod."""
    spark: SparkPodsSpec = SparkPodsSpec()
    """Spark's pods, if the query needs them."""

    @model_validator(mode="after")
    def _ours_stay(self) -> "PodsSpec":
        for name, _ in self.labels:
            if name.startswith(OWN_LABELS):
                raise BadValue(f"the label {name}", "labels of your own", "choose another prefix: the operator uses it")
        return self


class AccessSpec(Section):
    """Who may push and subscribe."""

    secret_name: Text = Field("", alias="secretName", examples=["my-token"])
    """Secret whose key `token` producers and subscribers must show; left out: the one of the chart."""
