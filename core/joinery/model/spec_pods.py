"""The sections of a query spec that only a cluster reads: its pods, and who may talk to them."""

from fractions import Fraction
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from joinery.model.complaints import BadValue
from joinery.model.spec_fields import Labels, Natural, Quantities, Section, Text

_FACTORS: Final = {"m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(1000)} | {
    letter + ending: Fraction(base**power)
    for power, letter in enumerate("KMGT", 1)
    for base, ending in ((1000, ""), (1024, "i"))
    if letter + ending != "K"
}
OWN_LABELS: Final = ("app.kubernetes.io/", "joinery.dev/")
"""Prefixes of the labels by which the operator finds its pods."""


def amount(quantity: str) -> Fraction:
    """The number that a Kubernetes quantity stands for."""
    number = quantity.rstrip("mkKMGTi")
    return Fraction(number) * _FACTORS[quantity[len(number) :]]


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
