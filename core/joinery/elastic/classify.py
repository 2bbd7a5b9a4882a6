"""Supplier, consumer or neutral: what a worker is in a reorganization.

Source: seed 000, IV.C. A supplier has f > Th_sup, a consumer f < Th_con, a neutral neither; 0 <= Th_con < Th_sup < 1.
On a threshold a worker is neutral. Ours, for `rule: guarded`, and left out by `Thresholds.paper()`:

- A worker above `memory` of its limit is a supplier whatever its f, so it neither takes a group nor keeps all of its
  own.
- A worker that was busy for more than `busy` of the epoch is a supplier. f alone tells late: it is near 0 until a
  worker is busy all the time, and then a buffer of 1 MB takes half a minute to fill to Th_sup at 10 % of overload.
  `busy` lies half way between the target of a shrink and 1 (`Thresholds.guarded`), so that a cluster that has just
  grown for it is not idle enough to shrink again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from joinery.elastic.checks import check_settings
from joinery.elastic.load import ClusterLoad, LoadReport, Role
from joinery.model.spec_sections import ScalingSpec

MEMORY_HIGH: Final = 0.8
"""Above this share of its memory limit a worker gives groups away, and no plan fills one above it."""
BUSY_HIGH: Final = 0.9
"""Above this busy share a worker gives groups away: half way between the default target 0.8 and 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Th_sup and Th_con, and above which share of its memory or its time a worker is a supplier too (None: never)."""

    supplier: float = 0.5
    consumer: float = 0.01
    memory: float | None = MEMORY_HIGH
    busy: float | None = BUSY_HIGH

    def __post_init__(self) -> None:
        below = f"0 <= consumerThreshold < supplierThreshold ({self.supplier})"
        in_memory = self.memory is None or 0 < self.memory <= 1
        in_time = self.busy is None or 0 < self.busy <= 1
        check_settings(
            (
                0 < self.supplier < 1,
                "spec.scaling.supplierThreshold",
                self.supplier,
                "0 < supplierThreshold < 1",
                "leave it out for 0.5",
            ),
            (
                0 <= self.consumer < self.supplier,
                "spec.scaling.consumerThreshold",
                self.consumer,
                below,
                "leave it out for 0.01",
            ),
            (in_memory, "memory threshold", self.memory, "0 < share <= 1", f"use {MEMORY_HIGH}"),
            (in_time, "busy threshold", self.busy, "0 < share <= 1", f"use {BUSY_HIGH}"),
        )

    @classmethod
    def of(cls, scaling: ScalingSpec) -> "Thresholds":
        """As a query says."""
        high, low = scaling.supplier_threshold, scaling.consumer_threshold
        if scaling.rule == "paper":
            return cls.paper(supplier=high, consumer=low)
        return cls.guarded(supplier=high, consumer=low, target=scaling.target)

    @classmethod
    def guarded(cls, *, supplier: float = 0.5, consumer: float = 0.01, target: float = 0.8) -> "Thresholds":
        """With what guards add, for a given `spec.scaling.target`."""
        return cls(supplier=supplier, consumer=consumer, busy=(1 + target) / 2)

    @classmethod
    def paper(cls, *, supplier: float = 0.5, consumer: float = 0.01) -> "Thresholds":
        """The bare rule: occupancy alone."""
        return cls(supplier=supplier, consumer=consumer, memory=None, busy=None)


@dataclass(frozen=True, slots=True)
class Classified:
    """A role and why."""

    role: Role
    because: str


def classify(report: LoadReport, thresholds: Thresholds) -> Classified:
    """The role of one worker."""
    f = report.occupancy
    if f > thresholds.supplier:
        return Classified(Role.SUPPLIER, f"f = {f:.3g} > {thresholds.supplier}")
    if thresholds.memory is not None and report.memory_share > thresholds.memory:
        return Classified(Role.SUPPLIER, f"memory {report.memory_share:.3g} > {thresholds.memory} of its limit")
    if thresholds.busy is not None and report.busy > thresholds.busy:
        return Classified(Role.SUPPLIER, f"busy {report.busy:.3g} > {thresholds.busy} of the epoch")
    if f < thresholds.consumer:
        return Classified(Role.CONSUMER, f"f = {f:.3g} < {thresholds.consumer}")
    return Classified(Role.NEUTRAL, f"{thresholds.consumer} <= f = {f:.3g} <= {thresholds.supplier}")


def classify_all(reports: Iterable[LoadReport], thresholds: Thresholds, *, degree: int | None = None) -> ClusterLoad:
    """The cluster's load with everybody's role; `degree` is how many workers were asked for, if not all are Ready."""
    seen = tuple(reports)
    roles = tuple(classify(report, thresholds).role for report in seen)
    return ClusterLoad(reports=seen, roles=roles, degree=len(seen) if degree is None else degree)
