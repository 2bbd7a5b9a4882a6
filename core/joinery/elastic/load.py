"""What the workers report about a reorganization epoch, and what the rules see of it.

Source: seed 000, IV.C. The load of a worker is its mean buffer occupancy f. Ours also reports the busy share u,
because f stays near 0 until a worker is busy all the time and so cannot tell a half idle worker from one at its
limit; its memory, which the paper names as an extension; and, for each group, its part of both, so that a plan knows
what a move brings.

Only Ready workers report; a new one that had nothing to do yet reports zeros, and so is a consumer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from joinery.model.errors import BadSpec, Complaint, require
from joinery.model.ids import GroupId, WorkerId


def occupancy(samples_bytes: Sequence[int] | NDArray[np.int64], buffer_bytes: int) -> float:
    """f: the mean of the bytes still unprocessed just before each message, over the buffer; 0 if no message came."""
    if buffer_bytes < 1:
        raise BadSpec([Complaint("spec.worker.buffer", str(buffer_bytes), "at least 1 byte", "leave it out for 1Mi")])
    samples = np.asarray(samples_bytes, np.int64)
    require(not (samples < 0).any(), "a sample of the buffer is negative")
    return float(samples.mean()) / buffer_bytes if len(samples) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLoad:
    """One group's part of its worker's load."""

    group: GroupId
    weight: float = 0.0
    """Its part of the work in any unit that is the same for all groups of the worker: comparisons, or rows."""
    memory_bytes: int = 0

    def __post_init__(self) -> None:
        require(isfinite(self.weight) and self.weight >= 0, f"group {self.group}: weight {self.weight}, want >= 0")
        require(self.memory_bytes >= 0, f"group {self.group}: memory_bytes {self.memory_bytes}, want >= 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """One worker's load over a reorganization epoch."""

    worker: WorkerId
    occupancy: float
    """f, see `occupancy`."""
    busy: float
    """u: the share of the epoch's wall time in which it had rows to join; other load on its node makes it longer."""
    memory_bytes: int = 0
    memory_limit: int = 1 << 31
    """`spec.worker.memory`."""
    groups: tuple[GroupLoad, ...] = ()
    back_pressure: bool = False
    """Whether the gateway held rows back for want of this worker's credit or memory."""
    elapsed_s: float = 0.0
    """Length of the epoch; with it what follows, none of which decides anything."""
    cpu_s: float = 0.0
    idle_s: float = 0.0
    """In which there was nothing to join."""
    comm_s: float = 0.0
    """From the start of its slots to the last message of each decoded."""
    comparisons: int = 0
    """Rows that probing rows were compared with, in the other windows."""
    demand: float | None = None
    """The busy share that all rows which came in for its groups would take, 2 for twice what it bears; the gateway
    adds it (`elastic.demand`). None: not known, and u stands for it."""

    def __post_init__(self) -> None:
        for name, value in (("occupancy", self.occupancy), ("busy", self.busy), ("memory_bytes", self.memory_bytes)):
            require(isfinite(value) and value >= 0, f"worker {self.worker}: {name} {value}, want >= 0")
        require(self.load >= 0 and isfinite(self.load), f"worker {self.worker}: demand {self.demand}, want >= 0")
        require(self.memory_limit > 0, f"worker {self.worker}: memory_limit {self.memory_limit}, want > 0")
        owned = {part.group for part in self.groups}
        require(len(owned) == len(self.groups), f"worker {self.worker} reports a group twice")

    @property
    def window_bytes(self) -> int:
        """What its windows and their index take: all the memory that counts."""
        return self.memory_bytes

    @property
    def memory_share(self) -> float:
        """Its memory over its limit."""
        return self.memory_bytes / self.memory_limit

    @property
    def load(self) -> float:
        """What a plan counts with: the demand, or u where that is all that is known."""
        return self.busy if self.demand is None else self.demand

    def load_by_group(self) -> dict[GroupId, float]:
        """The load divided over the groups by their weights; evenly if nothing is known of them."""
        total = sum(part.weight for part in self.groups)
        if total == 0:
            return {part.group: self.load / len(self.groups) for part in self.groups}
        return {part.group: self.load * (part.weight / total) for part in self.groups}


class Role(StrEnum):
    """What a worker is in a reorganization; `elastic.classify` decides it."""

    SUPPLIER = "supplier"
    CONSUMER = "consumer"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLoad:
    """The reports of all Ready workers, in the order of their ordinals, each with its role."""

    reports: tuple[LoadReport, ...]
    roles: tuple[Role, ...]
    degree: int
    """How many workers were asked for; more than reports while some are not Ready."""

    def __post_init__(self) -> None:
        require(len(self.reports) == len(self.roles), f"{len(self.reports)} reports, {len(self.roles)} roles")
        require(self.degree >= 0, f"degree {self.degree}, want >= 0")
        require(len({report.worker for report in self.reports}) == len(self.reports), "a worker reports twice")
        groups = [part.group for report in self.reports for part in report.groups]
        require(
            len(set(groups)) == len(groups), "two workers report the same group; wait for reports of one map version"
        )

    def having(self, role: Role) -> tuple[LoadReport, ...]:
        """The reports of the workers with this role."""
        return tuple(report for report, own in zip(self.reports, self.roles, strict=True) if own is role)

    @property
    def n_sup(self) -> int:
        """How many suppliers there are."""
        return self.roles.count(Role.SUPPLIER)

    @property
    def n_con(self) -> int:
        """How many consumers there are."""
        return self.roles.count(Role.CONSUMER)

    @property
    def busy(self) -> float:
        """The sum of all busy shares: how many workers the load would fill."""
        return sum(report.busy for report in self.reports)

    @property
    def memory(self) -> float:
        """The sum of all memory shares: how many workers' memory the state would fill."""
        return sum(report.memory_share for report in self.reports)

    @property
    def back_pressure(self) -> bool:
        """Whether rows were held back for any worker."""
        return any(report.back_pressure for report in self.reports)
