"""A recorded run's load, told again to the operator's machine: the same decisions; and other ones, by other settings.

A recorded run is what the operator was told (load reports, drains that ended, changes of the spec, people's wishes),
when, and what it decided.

Rule 1: the same facts give the same decisions: `repeat` says where they do not.
Rule 2: `what_if` tells the same facts to a machine with other settings. Roles are made anew from what the workers
        reported, so another Th_sup counts. As long as both ask for the same workers, the reports are as recorded.
Rule 3: from the first time on that they do not, nobody knows what would have been reported. It is modelled: the whole
        demand of the recorded reports (the rows that came in; at least what the workers were busy with) is divided
        evenly over the workers there would be. u = demand / workers; f is 0 below u = 1, else 1; memory is divided,
        too. A new worker is Ready after `start_ns`, a drain takes until the next report. Moves are not played.
Rule 4: a longer t_r is the mean of the reports in it. A shorter one cannot be had from a recording.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from joinery.elastic.classify import Thresholds, classify_all
from joinery.elastic.guarded import Wish
from joinery.elastic.load import ClusterLoad, LoadReport
from joinery.machine import orders
from joinery.machine.facts import Fact, Received, ReplicasWanted
from joinery.machine.messages import ClusterReport, Decided, Drain, Empty, SpecNow
from joinery.machine.operator import OperatorMachine
from joinery.machine.orders import Order
from joinery.model.errors import BadSpec, Complaint
from joinery.model.ids import GATEWAY, WorkerId
from joinery.model.quantities import format_duration
from joinery.model.spec import JoinQuerySpec

START_NS: Final = 5_000_000_000
Change = Callable[[JoinQuerySpec], JoinQuerySpec]


@dataclass(frozen=True, slots=True)
class Step:
    """One fact that the operator was told."""

    at_ns: int
    fact: Fact
    decided: Decided | None = None
    """None: nothing was decided by it."""

    @property
    def load(self) -> ClusterLoad | None:
        """The report, if it is one."""
        is_report = isinstance(self.fact, Received) and isinstance(self.fact.message, ClusterReport)
        return self.fact.message.load if is_report else None  # type: ignore[union-attr]


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """What one operator was told, from its start on."""

    spec: JoinQuerySpec
    steps: tuple[Step, ...]
    replicas: int | None = None
    """Workers at the beginning, if other than the spec says."""

    @property
    def decisions(self) -> tuple[Decided, ...]:
        return tuple(step.decided for step in self.steps if step.decided is not None)

    def machine(self, change: Change = lambda spec: spec) -> OperatorMachine:
        """A fresh operator for it."""
        made = OperatorMachine(change(self.spec))
        made.replicas = made.replicas if self.replicas is None else self.replicas
        return made


@dataclass(frozen=True, slots=True)
class Difference:
    """A decision that came out otherwise."""

    at_ns: int
    recorded: Decided | None
    repeated: Decided | None


class Player:
    """Tells an operator's machine facts, and sees what it decides."""

    def __init__(self, machine: OperatorMachine) -> None:
        self.machine = machine

    def tell(self, fact: Fact, at_ns: int) -> tuple[Decided | None, list[Order]]:
        """What was decided by this fact, and ordered."""
        before = self.machine.last_decision
        made = self.machine.handle(fact, at_ns)
        decision = self.machine.last_decision
        if decision is None or decision is before:
            return None, made
        assert isinstance(fact, Received)  # noqa: S101 - only a report decides
        assert isinstance(fact.message, ClusterReport)  # noqa: S101
        return Decided.of(at_ns, fact.message.load, decision), made


def repeat(run: RecordedRun) -> list[Difference]:
    """Every decision made again; those that differ (rule 1)."""
    player = Player(run.machine())
    found = []
    for step in run.steps:
        decided, _ = player.tell(step.fact, step.at_ns)
        if decided != step.decided:
            found.append(Difference(step.at_ns, step.decided, decided))
    return found


def run_of(spec: JoinQuerySpec, decisions: Sequence[Decided]) -> RecordedRun:
    """The run that these decisions are the last part of, as far as they tell it: how it began is not known.

    Between two of them workers were drained, or a person has asked for another number.
    """
    steps: list[Step] = []
    asked, before = None, None
    for one in decisions:
        if before is not None and before.wish is Wish.SHRINK:
            gone = range(before.load.degree - before.by, before.load.degree)
            empty = Empty(tuple(WorkerId(f"worker-{ordinal}") for ordinal in gone))
            steps.append(Step(one.at_ns, Received(GATEWAY, empty)))
        if asked is not None and asked != one.load.degree:
            steps.append(Step(one.at_ns, ReplicasWanted(one.load.degree, 0, "a person asked for it")))
        steps.append(Step(one.at_ns, Received(GATEWAY, ClusterReport(one.load)), one))
        signed = {Wish.GROW: one.by, Wish.SHRINK: -one.by, Wish.KEEP: 0}[one.wish]
        asked, before = one.load.degree + signed, one
    return RecordedRun(spec, tuple(steps), decisions[0].load.degree if decisions else None)


# --- what another setting would have done


@dataclass(frozen=True, slots=True)
class Point:
    """One report of a run that was or might have been."""

    at_ns: int
    workers: int
    """That had been asked for, when it came."""
    demand: float
    """How many workers the load would fill."""
    decided: Decided | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What settings come to."""

    points: tuple[Point, ...]
    until_ns: int
    differs_ns: int | None = None
    """When other workers were asked for than in the recorded run; None: never."""

    def acts(self, wish: Wish) -> int:
        """How often it grew, or shrank."""
        return sum(one.decided is not None and one.decided.wish is wish for one in self.points)

    @property
    def worker_seconds(self) -> float:
        """Workers times the time they were asked for."""
        ends = [one.at_ns for one in self.points[1:]] + [self.until_ns]
        return sum(one.workers * (end - one.at_ns) for one, end in zip(self.points, ends, strict=True)) / 1e9

    @property
    def overloaded(self) -> float:
        """The share of reports at which the load would have filled more workers than there were."""
        return sum(one.demand > one.workers for one in self.points) / max(1, len(self.points))

    @property
    def mean(self) -> float:
        """Workers in the mean."""
        span_s = (self.until_ns - self.points[0].at_ns) / 1e9 if self.points else 0.0
        return self.worker_seconds / span_s if span_s > 0 else float(self.points[0].workers) if self.points else 0.0


def as_recorded(run: RecordedRun) -> Outcome:
    """What the recorded run itself came to."""
    return what_if(run, lambda spec: spec)


def what_if(run: RecordedRun, change: Change, *, start_ns: int = START_NS) -> Outcome:
    """What would have been decided with other settings (rules 2 to 4)."""
    every_ns = change(run.spec).epochs.reorganization
    if every_ns < run.spec.epochs.reorganization:
        found, low = format_duration(every_ns), format_duration(run.spec.epochs.reorganization)
        remedy = "record a run with a shorter spec.epochs.reorganization"
        raise BadSpec([Complaint("t_r", found, f"at least {low}, as recorded", remedy)])
    what = _WhatIf(run, change, start_ns, every_ns)
    for step in run.steps:
        what.tell(step)
    until_ns = run.steps[-1].at_ns if run.steps else 0
    return Outcome(tuple(what.points), until_ns, what.differs_ns)


class _WhatIf:
    """Two operators side by side: one with the recorded settings, one with others."""

    def __init__(self, run: RecordedRun, change: Change, start_ns: int, every_ns: int) -> None:
        self._change, self._start_ns = change, start_ns
        self._own, self._recorded = Player(run.machine(change)), Player(run.machine())
        self._every_ns = every_ns if every_ns > run.spec.epochs.reorganization else 0
        """0: every report counts."""
        self._held: list[ClusterLoad] = []
        """Reports of the t_r that has not ended."""
        self._began_ns: int | None = None
        """When it began."""
        self._ready_ns: list[int] = []
        """When each worker that there would be is Ready, once this is modelled."""
        self._drained: tuple[WorkerId, ...] = ()
        """Those that are empty at the next report."""
        self.points: list[Point] = []
        self.differs_ns: int | None = None

    def tell(self, step: Step) -> None:
        """One more fact of the recorded run."""
        self._recorded.tell(step.fact, step.at_ns)
        if step.load is not None:
            self._report(step.load, step.at_ns)
        elif isinstance(step.fact, Received) and isinstance(step.fact.message, SpecNow):
            now = replace(step.fact.message, spec=self._change(step.fact.message.spec))
            self._act(Received(GATEWAY, now), step.at_ns)
        elif isinstance(step.fact, ReplicasWanted) or not self._is_modelled:
            self._act(step.fact, step.at_ns)
        self._compare(step.at_ns)

    @property
    def _is_modelled(self) -> bool:
        return self.differs_ns is not None

    def _report(self, load: ClusterLoad, at_ns: int) -> None:
        if self._every_ns:
            self._began_ns = at_ns if self._began_ns is None else self._began_ns
            self._held.append(load)
            if at_ns < self._began_ns + self._every_ns:
                return
            load, self._began_ns, self._held = _mean_of(self._held), at_ns, []
        if self._drained:
            gone, self._drained = self._drained, ()
            self._act(Received(GATEWAY, Empty(gone)), at_ns)
        workers, demand = self._own.machine.replicas, _demand(load)
        seen = self._modelled(load, at_ns) if self._is_modelled else load.reports
        told = classify_all(seen, Thresholds.of(self._own.machine.spec.scaling), degree=load.degree)
        decided = self._act(Received(GATEWAY, ClusterReport(told)), at_ns)
        self.points.append(Point(at_ns, workers, demand, decided))

    def _modelled(self, load: ClusterLoad, at_ns: int) -> tuple[LoadReport, ...]:
        """Rule 3."""
        ready = max(1, sum(since_ns <= at_ns for since_ns in self._ready_ns))
        share = _demand(load) / ready
        each = LoadReport(
            worker=WorkerId(""),
            occupancy=0.0 if share < 1 else 1.0,
            busy=min(1.0, share),
            memory_bytes=sum(one.memory_bytes for one in load.reports) // ready,
            memory_limit=load.reports[0].memory_limit,
            back_pressure=share > 1,
            demand=share,
        )
        return tuple(replace(each, worker=WorkerId(f"worker-{ordinal}")) for ordinal in range(ready))

    def _act(self, fact: Fact, at_ns: int) -> Decided | None:
        decided, made = self._own.tell(fact, at_ns)
        if self._is_modelled:
            self._follow(made, at_ns)
        return decided

    def _follow(self, made: list[Order], at_ns: int) -> None:
        for order in made:
            if isinstance(order, orders.SetReplicas):
                new = [at_ns + self._start_ns] * max(0, order.replicas - len(self._ready_ns))
                self._ready_ns = [*self._ready_ns, *new][: order.replicas]
            elif isinstance(order, orders.Send) and isinstance(order.message, Drain):
                self._drained = order.message.workers

    def _compare(self, at_ns: int) -> None:
        """Whether both still ask for the same; from the first difference on it is modelled."""
        own, recorded = self._own.machine, self._recorded.machine
        if self._is_modelled or (own.replicas, own.leaving) == (recorded.replicas, recorded.leaving):
            return
        self.differs_ns = at_ns
        there = min(own.replicas, recorded.replicas)
        self._ready_ns = [at_ns] * there + [at_ns + self._start_ns] * (own.replicas - there)
        self._drained = tuple(sorted(own.leaving))


def _demand(load: ClusterLoad) -> float:
    """How many workers the load would fill: by what came in, and at least by what they were busy with."""
    return sum(max(one.load, one.busy) for one in load.reports)


def _mean_of(loads: Sequence[ClusterLoad]) -> ClusterLoad:
    """Rule 4; of the workers that are there in the end."""
    found = []
    for last in loads[-1].reports:
        own = [one for load in loads for one in load.reports if one.worker == last.worker]
        demands = [one.load for one in own]
        found.append(
            replace(
                last,
                occupancy=sum(one.occupancy for one in own) / len(own),
                busy=sum(one.busy for one in own) / len(own),
                back_pressure=any(one.back_pressure for one in own),
                demand=sum(demands) / len(own),
            )
        )
    return replace(loads[-1], reports=tuple(found))
