"""Plans are data: which group goes from whom to whom, why, from which inputs and seed; and the book they are made with.

A plan changes nothing. The gateway starts its moves, never more than `max_parallel` at once (`Plan.startable`), and
raises the map version for each as it completes. The same inputs and seed give the same plan
(`migration_plan.replan`).
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum

from joinery.elastic.checks import check_settings
from joinery.elastic.classify import MEMORY_HIGH
from joinery.elastic.load import ClusterLoad
from joinery.model.errors import require
from joinery.model.ids import GroupId, WorkerId


@dataclass(frozen=True, slots=True)
class Move:
    """One group goes from `source` to `target`."""

    group: GroupId
    source: WorkerId
    target: WorkerId

    def __post_init__(self) -> None:
        require(self.source != self.target, f"group {self.group} would move from {self.source} to itself")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What bounds a plan."""

    max_parallel: int = 8
    """`spec.scaling.maxParallelMoves`: moves under way at once."""
    memory: float = MEMORY_HIGH
    """A worker takes a group only if it stays at or below this share of its memory."""

    def __post_init__(self) -> None:
        check_settings(
            (self.max_parallel >= 1, "spec.scaling.maxParallelMoves", self.max_parallel, "at least 1", "say 8"),
            (0 < self.memory <= 1, "memory threshold", self.memory, "0 < share <= 1", f"use {MEMORY_HIGH}"),
        )


class Kind(StrEnum):
    """Which planner made a plan."""

    PAPER = "paper"
    GUARDED = "guarded"
    DRAIN = "drain"
    SPREAD = "spread"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInputs:
    """All that a plan was made from, except its seed."""

    kind: Kind
    load: ClusterLoad
    limits: Limits = field(default_factory=Limits)
    in_flight: tuple[Move, ...] = ()
    """Moves under way: counted as done for the load, and their groups are left alone."""
    leaving: tuple[WorkerId, ...] = ()
    """Workers that must own nothing in the end: drained, or lost."""
    orphans: tuple[tuple[GroupId, WorkerId], ...] = ()
    """The groups of lost workers and who owned each, by the map."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Moves, in the order in which to start them."""

    moves: tuple[Move, ...]
    because: str
    inputs: PlanInputs
    seed: int
    left_out: tuple[GroupId, ...] = ()
    """Groups that should have moved and found no place."""
    notes: tuple[str, ...] = ()
    """What did not take part, or fits badly, and why."""

    def __post_init__(self) -> None:
        groups = [move.group for move in self.moves]
        require(len(set(groups)) == len(groups), "a plan moves a group twice")

    def startable(self, started: Collection[GroupId], in_flight: int) -> tuple[Move, ...]:
        """The moves to start now, when `started` were started before and `in_flight` of any plan are under way."""
        waiting = [move for move in self.moves if move.group not in started]
        return tuple(waiting[: max(0, self.inputs.limits.max_parallel - in_flight)])


@dataclass(frozen=True, slots=True)
class Part:
    """What a group takes of a worker, wherever it is."""

    busy: float
    memory_bytes: int


class Book:
    """The loads as they will be once the moves so far are done. A planner's working copy: it changes in place."""

    __slots__ = ("busy", "fixed", "limit", "memory", "parts")

    def __init__(self, load: ClusterLoad, in_flight: Collection[Move]) -> None:
        self.busy: dict[WorkerId, float] = {}
        self.memory: dict[WorkerId, int] = {}
        self.limit: dict[WorkerId, int] = {}
        self.parts: dict[WorkerId, dict[GroupId, Part]] = {}
        self.fixed: set[GroupId] = {move.group for move in in_flight}
        """Groups on their way; they are not moved again."""
        for report in load.reports:
            shares = report.load_by_group()
            self.busy[report.worker], self.memory[report.worker] = report.load, report.memory_bytes
            self.limit[report.worker] = report.memory_limit
            self.parts[report.worker] = {
                part.group: Part(shares[part.group], part.memory_bytes) for part in report.groups
            }
        for move in in_flight:
            if move.group in self.parts.get(move.source, ()):
                self.apply(move)

    def movable(self, worker: WorkerId) -> list[GroupId]:
        """The groups that a plan may take from `worker`, ascending."""
        return sorted(group for group in self.parts[worker] if group not in self.fixed)

    def memory_share(self, worker: WorkerId) -> float:
        return self.memory[worker] / self.limit[worker]

    def fits(self, part: Part, worker: WorkerId, limits: Limits) -> bool:
        """Whether `worker` may take it without coming above its memory bound."""
        return self.memory[worker] + part.memory_bytes <= limits.memory * self.limit[worker]

    def apply(self, move: Move) -> None:
        """Write a move down as done; a target that has not reported is not kept."""
        part = self.parts[move.source].pop(move.group)
        self.busy[move.source] = max(0.0, self.busy[move.source] - part.busy)
        self.memory[move.source] = max(0, self.memory[move.source] - part.memory_bytes)
        if move.target in self.parts:
            self.give(move.group, part, move.target)

    def give(self, group: GroupId, part: Part, target: WorkerId) -> None:
        """Write down that `target` has one group more."""
        self.parts[target][group] = part
        self.busy[target] += part.busy
        self.memory[target] += part.memory_bytes
