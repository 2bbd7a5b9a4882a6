"""The world of machines with the cost model: does this query keep up, asked of the machines themselves.

Everything that decides is real: gateway, workers with their join modules, collector, producers, and the operator's
machine, which grows and shrinks the cluster. Work and messages take virtual time by a `CostModel`
(`simulate.charges`), clocks agree, and nothing breaks. So occupancy, load reports, suppliers and consumers, plans,
moves, degree and delays come out of what the machines do with real rows.

What comes out has the form of the load simulator's runs (`simulate.load`), which answers the same questions by
counting instead of joining, a hundred times faster: `docs/adr/0008` says what each is for.

Rule 1: a delay counts from the stamp of the record that holds the later member to the moment at which the worker hands
        the result over. Results that a new owner makes again after a move are counted again.
Rule 2: a worker that is asked for is there after `ready_ns`; one that was drained is gone at once.
Rule 3: a sample is taken at each of the gateway's reports to the operator.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from joinery.elastic.beta import Grow, Shrink
from joinery.elastic.load import ClusterLoad, LoadReport
from joinery.machine import facts, messages, orders
from joinery.machine.facts import Fact
from joinery.machine.gateway import GatewayMachine
from joinery.machine.operator import OperatorMachine
from joinery.machine.orders import Order
from joinery.machine.placement import Phase
from joinery.model.errors import Bug
from joinery.model.ids import GroupId, WorkerId
from joinery.model.spec import JoinQuerySpec
from joinery.simulate.charges import STORE_NS, Charges
from joinery.simulate.costs import CostModel
from joinery.simulate.load_result import DecisionRow, LoadRun, MoveRow, Sample, WorkerSample
from joinery.simulate.load_settings import READY_NS, SpeedChange
from joinery.simulate.load_worker import Output
from joinery.simulate.outcome import Outcome
from joinery.simulate.process import START_NS, Process, State
from joinery.simulate.schedule import Role, Schedule, Timing
from joinery.simulate.world import Slot, World

STEADY: Final = Timing(
    message_ns=(STORE_NS, STORE_NS), store_ns=(STORE_NS, STORE_NS), notice_ns=(STORE_NS, STORE_NS),
    reconnect_ns=(STORE_NS, STORE_NS), join_ns=(0, 0),
)  # fmt: skip
"""Nothing is drawn: the cost model says how long things take."""


class TrueClock:
    """A clock without drift."""

    def now_ns(self, true: int) -> int:
        """What it shows at a moment."""
        return START_NS + true


class WatchedOperator:
    """The operator's machine, and who wants to know what it saw and asked for."""

    def __init__(self, spec: JoinQuerySpec, world: "CostedWorld") -> None:
        self.machine, self._world = OperatorMachine(spec), world
        self._is_shrinking = False

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:
        """What to do about a fact."""
        decided = self.machine.last_decision
        made = self.machine.handle(fact, now_ns)
        for order in made:
            if isinstance(order, orders.SetReplicas):
                self._is_shrinking = False
                self._world.scale(order.replicas)
        decision = self.machine.last_decision
        if isinstance(decision, Shrink) and decision is not decided:
            self._is_shrinking = True
        if isinstance(fact, facts.Received) and isinstance(fact.message, messages.ClusterReport):
            self._world.reported(fact.message.load, decision is not decided)
        return made

    @property
    def asked(self) -> int:
        """Workers asked for; those that are being drained no longer count."""
        decision = self.machine.last_decision
        leaving = decision.by if self._is_shrinking and isinstance(decision, Shrink) else 0
        return self.machine.replicas - leaving


class CostedWorld(World):
    """All processes of one query, charged for what they do."""

    max_events = 50_000_000

    def __init__(
        self, schedule: Schedule, costs: CostModel, *, speeds: Sequence[SpeedChange] = (), ready_ns: int = READY_NS
    ) -> None:
        super().__init__(replace(schedule, timing=STEADY))
        self.charges = Charges(self.spec, costs, speeds)
        self.shell.charge(self.charges)
        self._ready_ns = ready_ns
        self._watched = WatchedOperator(self.spec, self)
        self._operator.machine = self._watched
        self._operator.clock = TrueClock()  # type: ignore[assignment]
        self._born: dict[str, int] = {}
        self._owners: list[WorkerId] = []
        self._begun: dict[GroupId, int] = {}
        self._paused: dict[GroupId, tuple[int, int, WorkerId, WorkerId, int]] = {}
        self._rows = [
            [(batch.at_ns, 0 if batch.rows is None else batch.rows.num_rows) for batch in script.batches]
            for script in schedule.scripts
        ]
        self.samples: list[Sample] = []
        self.decisions: list[DecisionRow] = []
        self.moves: list[MoveRow] = []
        self.outputs: list[Output] = []

    def run(self) -> Outcome:
        """Until everything is committed."""
        outcome = super().run()
        if not outcome.ended:
            raise Bug(f"the simulated query did not end: {outcome.failed or outcome.stuck}")
        return outcome

    def story(self, until_ns: int) -> LoadRun:
        """What happened, as the load simulator tells it."""
        return LoadRun(
            samples=tuple(self.samples),
            decisions=tuple(self.decisions),
            moves=tuple(self.moves),
            outputs=tuple(sorted(self.outputs, key=lambda out: out.at_ns)),
            until_ns=max(until_ns, self.timeline.now),
            overruns=0,
        )

    # --- processes

    def _make(self, slot: Slot, number: int) -> Process:
        process = super()._make(slot, number)
        process.clock = TrueClock()  # type: ignore[assignment]
        self._born[process.peer] = self.timeline.now
        return process

    def scale(self, replicas: int) -> None:
        """So many workers are asked for."""
        for ordinal in range(replicas):
            slot = (Role.WORKER, ordinal)
            if slot not in self._slots:
                self._slots[slot] = None
                self.timeline.after(self._ready_ns, self._start, slot)
        for slot in [slot for slot in self._slots if slot[0] is Role.WORKER and slot[1] >= replicas]:
            process = self._slots.pop(slot)
            if process is not None and process.is_alive:
                self._note(process, "IS TAKEN AWAY: it is empty", "drains")
                self._end(process, State.STOPPED)

    # --- what is seen

    def _handled(self, process: Process) -> None:
        super()._handled(process)
        if process.role is Role.GATEWAY:
            self._watch_moves(process)
        elif process.role is Role.WORKER and isinstance(process.heard, facts.BatchJoined):
            self._hear(process.heard)

    def _hear(self, fact: facts.BatchJoined) -> None:
        now = self.timeline.now
        for stamp, rows in zip(fact.arrivals.stamps.tolist(), fact.arrivals.rows.tolist(), strict=True):
            if rows:
                self.outputs.append(Output(now, rows, max(0, START_NS + now - stamp), 0.0, 0.0))

    def _watch_moves(self, process: Process) -> None:
        gateway = process.machine
        pmap = gateway.placement.map if isinstance(gateway, GatewayMachine) else None
        if not isinstance(gateway, GatewayMachine) or pmap is None:
            return
        now, place = self.timeline.now, gateway.placement
        for group in gateway.moves.under_way:
            self._begun.setdefault(group, now)
        owners = [pmap.workers[owner] for owner in pmap.owners.tolist()]
        for number, (before, after) in enumerate(zip(self._owners, owners, strict=False)):
            if before != after:
                group = GroupId(number)
                size = self._state_bytes(gateway, before, group)
                self._paused[group] = (self._begun.pop(group, now), now, before, after, size)
        self._owners = owners
        for group, (begun, switched, source, target, size) in list(self._paused.items()):
            if place.phase[group] == Phase.SERVED:
                del self._paused[group]
                why = "drain" if source in gateway.reorganizing.draining else "balance"
                self.moves.append(MoveRow(begun, now, group, source, target, size, now - switched, why))

    def _state_bytes(self, gateway: GatewayMachine, worker: WorkerId, group: GroupId) -> int:
        hand = gateway.workforce.hands.get(worker)
        parts = () if hand is None or hand.report is None else hand.report.groups
        return next((part.memory_bytes for part in parts if part.group == group), 0)

    def reported(self, load: ClusterLoad, decided: bool) -> None:
        """The operator was told how the cluster fares."""
        now, decision = self.timeline.now, self._watched.machine.last_decision
        since = self.samples[-1].at_ns if self.samples else 0
        gateway = self._slots.get((Role.GATEWAY, 0))
        machine = gateway.machine if gateway is not None else None
        waiting = machine.serving.unsent_bytes(machine.backlog) if isinstance(machine, GatewayMachine) else 0
        hands = machine.workforce.hands.values() if isinstance(machine, GatewayMachine) else ()
        self.samples.append(
            Sample(
                at_ns=now,
                rates_hz=self._rates(since, now),
                degree=self._watched.asked,
                n_sup=load.n_sup,
                n_con=load.n_con,
                waiting_bytes=float(waiting),
                buffered_bytes=float(sum(hand.outstanding_bytes for hand in hands)),
                mini_groups=0,
                workers=tuple(self._worker_sample(report, now) for report in load.reports),
            )
        )
        if not decided or decision is None:
            action, by, because, blocked = "drain", 0, "waiting for a drain, or the degree is fixed", ()
        else:
            action = type(decision).__name__.lower()
            by = decision.by if isinstance(decision, Grow | Shrink) else 0
            because, blocked = decision.because, getattr(decision, "blocked_by", ())
        self.decisions.append(
            DecisionRow(
                at_ns=now,
                action=action,
                by=by,
                degree=self._watched.asked,
                ready=len(load.reports),
                n_sup=load.n_sup,
                n_con=load.n_con,
                beta=self.spec.scaling.beta,
                busy=load.busy,
                because=because,
                blocked_by=blocked,
            )
        )

    def _worker_sample(self, report: LoadReport, now: int) -> WorkerSample:
        instance = f"{report.worker}/{self._instances[Role.WORKER, _ordinal(report.worker)]}"
        return WorkerSample(
            worker=report.worker, occupancy=report.occupancy, busy=report.busy, groups=len(report.groups),
            window_bytes=report.memory_bytes, ready_ns=now - self._born[report.worker],
            busy_ns=self.charges.busy_ns[instance], cpu_ns=self.charges.cpu_ns[instance],
            communication_ns=self.charges.receiving_ns[instance], moving_ns=0.0,
        )  # fmt: skip

    def _rates(self, since: int, now: int) -> tuple[float, ...]:
        rates = np.zeros(len(self.spec.streams))
        for script, batches in zip(self.schedule.scripts, self._rows, strict=True):
            rows = sum(count for at_ns, count in batches if since <= at_ns < now)
            rates[script.stream] += rows * 1e9 / max(1, now - since)
        return tuple(rates.tolist())


def _ordinal(worker: WorkerId) -> int:
    return int(worker.rpartition("-")[2])
