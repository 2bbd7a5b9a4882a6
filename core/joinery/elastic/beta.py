"""The beta-rule: how many workers there should be. This is `scaling.rule: paper`, bare, without damping.

Source: seed 000, V.A; S_low and delta from thesis 7.5.1.

Rule 1: grow by delta when N_sup > beta * N_con. It is tested first: without it S_low > 1 could shrink an overloaded
        cluster.
Rule 2: else shrink by delta when N_sup < S_low. At least S_low suppliers keep the system minimally overloaded.
Rule 3: the degree stays in min..max. If those changed and it is outside, it returns into them at once.

A decision is a value: what to do, why, what stood in the way, and the inputs, from which `decide` makes it again. The
guarded rule (`elastic.guarded`) starts from this one.
"""

from dataclasses import dataclass
from typing import TypeAlias

from joinery.elastic.checks import check_settings
from joinery.elastic.load import ClusterLoad
from joinery.model.words import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaRule:
    """The parameters of the rule. The papers give none for beta and delta; these are ours."""

    beta: float = 0.5
    """How many suppliers for each consumer are too many; 0 < beta < 1."""
    min_suppliers: int = 1
    """S_low; 0 means never shrink."""
    step: int = 1
    """delta: workers added or removed by one decision."""
    min_degree: int = 1
    max_degree: int = 8

    def __post_init__(self) -> None:
        low = f"at least min ({self.min_degree})"
        check_settings(
            (0 < self.beta < 1, "spec.scaling.beta", self.beta, "0 < beta < 1", "leave it out for 0.5"),
            (
                self.min_suppliers >= 0,
                "spec.scaling.minSuppliers",
                self.min_suppliers,
                "at least 0",
                "leave it out for 1",
            ),
            (self.step >= 1, "spec.scaling.step", self.step, "at least 1", "leave it out for 1"),
            (self.min_degree >= 1, "spec.scaling.min", self.min_degree, "at least 1", "leave it out for 1"),
            (self.max_degree >= self.min_degree, "spec.scaling.max", self.max_degree, low, "raise max or lower min"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DegreeInputs:
    """All that a decision about the degree was made from."""

    rule: BetaRule
    degree: int
    """Workers asked for."""
    ready: int
    """Workers that reported."""
    n_sup: int
    n_con: int
    busy: float
    """The sum of the busy shares u."""
    memory: float
    """The sum of the memory shares."""
    back_pressure: bool

    @classmethod
    def of(cls, load: ClusterLoad, rule: BetaRule) -> "DegreeInputs":
        """The inputs as a cluster reports them."""
        return cls(
            rule=rule,
            degree=load.degree,
            ready=len(load.reports),
            n_sup=load.n_sup,
            n_con=load.n_con,
            busy=load.busy,
            memory=load.memory,
            back_pressure=load.back_pressure,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Grow:
    """Add workers; they start empty, and so are consumers from the next epoch on."""

    by: int
    because: str
    inputs: DegreeInputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrink:
    """Drain and remove the workers with the highest ordinals."""

    by: int
    because: str
    inputs: DegreeInputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Leave the degree as it is."""

    because: str
    inputs: DegreeInputs
    blocked_by: tuple[str, ...] = ()
    """What alone stood in the way of another decision; empty if none was wanted."""
    blocked_until_ns: int | None = None
    """When that ends by itself, if it does."""


Decision: TypeAlias = Grow | Shrink | Keep


def decide_degree(load: ClusterLoad, rule: BetaRule) -> Decision:
    """The bare rule on a cluster's load."""
    return decide(DegreeInputs.of(load, rule))


def decide(inputs: DegreeInputs) -> Decision:
    """The bare rule on recorded inputs: the same decision every time."""
    if outside := return_into_bounds(inputs):
        return outside
    rule, n_sup, n_con = inputs.rule, inputs.n_sup, inputs.n_con
    suppliers, consumers = counted(n_sup, "supplier"), counted(n_con, "consumer")
    if n_sup > rule.beta * n_con:
        because = f"{suppliers} > {rule.beta} x {consumers}"
        by = min(rule.step, rule.max_degree - inputs.degree)
        if by == 0:
            return Keep(because=because, inputs=inputs, blocked_by=("max",))
        return Grow(by=by, because=because, inputs=inputs)
    if n_sup < rule.min_suppliers:
        because = f"{suppliers} < {rule.min_suppliers}"
        by = min(rule.step, inputs.degree - rule.min_degree)
        if by == 0:
            return Keep(because=because, inputs=inputs, blocked_by=("min",))
        return Shrink(by=by, because=because, inputs=inputs)
    because = f"{rule.min_suppliers} <= {suppliers} <= {rule.beta} x {consumers}"
    return Keep(because=because, inputs=inputs)


def return_into_bounds(inputs: DegreeInputs) -> Grow | Shrink | None:
    """Rule 3: what brings the degree back into min..max, if it is outside."""
    low, high, degree = inputs.rule.min_degree, inputs.rule.max_degree, inputs.degree
    if degree < low:
        return Grow(by=low - degree, because=f"degree {degree} < min {low}", inputs=inputs)
    if degree > high:
        return Shrink(by=degree - high, because=f"degree {degree} > max {high}", inputs=inputs)
    return None
