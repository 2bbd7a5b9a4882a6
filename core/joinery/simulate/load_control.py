"""Reorganization: every t_r the workers report, groups move from suppliers to consumers, and the degree is decided.

All rules are those of `joinery.elastic`; here they are only fed. Moves are planned before the degree changes, as in
algorithm 1. While a shrink drains its workers nothing else is decided: the drain is planned again for what is left.
"""

import numpy as np

from joinery.elastic import beta, guarded
from joinery.elastic.beta import Decision, Grow, Keep, Shrink
from joinery.elastic.classify import classify_all
from joinery.elastic.demand import with_demand
from joinery.elastic.drain_plan import highest_ordinals, plan_drain
from joinery.elastic.guarded import Stabilization
from joinery.elastic.load import ClusterLoad, GroupLoad, LoadReport, occupancy
from joinery.elastic.migration_plan import plan_guarded, plan_paper
from joinery.elastic.plan import Plan
from joinery.model.ids import GroupId
from joinery.simulate.load_cluster import Cluster
from joinery.simulate.load_result import DecisionRow, LoadRun, Sample, WorkerSample
from joinery.simulate.load_settings import LoadSettings, Rule
from joinery.simulate.load_worker import SimWorker


class Control:
    """The rules' memory, and the story so far."""

    def __init__(self, settings: LoadSettings, cluster: Cluster) -> None:
        self._settings, self._cluster = settings, cluster
        self._degree = settings.degree
        self._state = Stabilization()
        self._samples: list[Sample] = []
        self._decisions: list[DecisionRow] = []

    def reorganize(self, now_ns: int) -> None:
        """One reorganization."""
        cluster = self._cluster
        for worker in cluster.workers.values():
            worker.advance(float(now_ns))
        reports = self._reports(now_ns)
        everybody = classify_all(reports, self._settings.thresholds, degree=self._degree)
        self._sample(now_ns, everybody)
        self._cluster.gateway.offered_ns[:] = 0
        if cluster.leaving:
            self._drain(everybody, now_ns)
            self._note(now_ns, "drain", 0, everybody, f"waiting for {', '.join(cluster.leaving)} to be empty", ())
            return
        plan = self._plan(everybody, len(self._samples))
        cluster.start_plan(plan, now_ns, "balance")
        if self._settings.adaptive:
            self._apply(self._decide(everybody, now_ns), everybody, now_ns)

    def story(self) -> LoadRun:
        """What happened."""
        cluster = self._cluster
        outputs = cluster.retired + [out for worker in cluster.workers.values() for out in worker.outputs]
        return LoadRun(
            samples=tuple(self._samples),
            decisions=tuple(self._decisions),
            moves=tuple(cluster.moves),
            outputs=tuple(sorted(outputs, key=lambda out: out.at_ns)),
            until_ns=self._settings.until_ns,
            overruns=cluster.overruns,
        )

    # --- what is seen

    def _reports(self, now_ns: int) -> list[LoadReport]:
        window, arrivals = self._cluster.gateway.window_bytes(), self._cluster.gateway.arrivals
        workers = self._cluster.workers
        made = [self._report(workers[name], window, now_ns) for name in self._cluster.pmap.workers]
        if self._settings.rule is Rule.PAPER:
            return [report for report, _ in made]
        since, until = (arrivals.tick_at(at) for at in (now_ns - self._settings.reorganization_ns, now_ns))
        came = (arrivals.counts[until] - arrivals.counts[since]).sum(axis=0) * float(self._settings.tuple_bytes)
        joined = {report.worker: joined for report, joined in made}
        return with_demand([report for report, _ in made], joined, came.tolist())

    def _report(self, worker: SimWorker, window: np.ndarray, now_ns: int) -> tuple[LoadReport, float]:
        """What it reports, and the bytes that it joined."""
        settings, offered = self._settings, self._cluster.gateway.offered_ns
        samples, busy_ns, held_back, joined = worker.report_epoch()
        groups = self._cluster.groups_of(worker.worker).tolist()
        span_ns = min(float(settings.reorganization_ns), now_ns - worker.ready_since_ns)
        parts = tuple(
            GroupLoad(group=GroupId(group), weight=float(offered[group]), memory_bytes=int(window[group]))
            for group in groups
        )
        report = LoadReport(
            worker=worker.worker,
            occupancy=occupancy(samples, settings.buffer_bytes),
            busy=busy_ns / span_ns if span_ns > 0 else 0.0,
            memory_bytes=int(window[groups].sum() + worker.bytes_waiting),
            memory_limit=settings.memory_limit,
            groups=parts,
            back_pressure=held_back,
        )
        return report, joined

    def _sample(self, now_ns: int, load: ClusterLoad) -> None:
        cluster, arrivals = self._cluster, self._cluster.gateway.arrivals
        since = arrivals.tick_at(now_ns - self._settings.reorganization_ns)
        seen = [cluster.workers[report.worker] for report in load.reports]
        self._samples.append(
            Sample(
                at_ns=now_ns,
                rates_hz=arrivals.rates_hz(since, arrivals.tick_at(now_ns)),
                degree=self._degree,
                n_sup=load.n_sup,
                n_con=load.n_con,
                waiting_bytes=cluster.gateway.waiting_bytes(now_ns),
                buffered_bytes=sum(worker.bytes_waiting for worker in seen),
                mini_groups=cluster.gateway.tuning.mini_groups(slice(None)),
                workers=tuple(
                    WorkerSample(
                        worker=report.worker,
                        occupancy=report.occupancy,
                        busy=report.busy,
                        groups=len(report.groups),
                        window_bytes=sum(part.memory_bytes for part in report.groups),
                        ready_ns=now_ns - worker.ready_since_ns,
                        busy_ns=worker.busy_ns,
                        cpu_ns=worker.cpu_ns,
                        communication_ns=worker.communication_ns,
                        moving_ns=worker.moving_ns,
                    )
                    for report, worker in zip(load.reports, seen, strict=True)
                ),
            )
        )

    # --- what is done

    def _plan(self, load: ClusterLoad, number: int) -> Plan:
        seed, in_flight = self._settings.seed * 100_003 + number, self._cluster.moving
        if self._settings.rule is Rule.PAPER:
            return plan_paper(load, seed=seed, in_flight=in_flight)
        return plan_guarded(load, seed=seed, limits=self._settings.limits, in_flight=in_flight)

    def _decide(self, load: ClusterLoad, now_ns: int) -> Decision:
        if self._settings.rule is Rule.PAPER:
            return beta.decide_degree(load, self._settings.scaling)
        decision, self._state = guarded.decide_degree(
            load, self._settings.scaling, self._settings.guards, self._state, now_ns
        )
        return decision

    def _apply(self, decision: Decision, load: ClusterLoad, now_ns: int) -> None:
        match decision:
            case Grow(by=by, because=because):
                self._degree += by
                self._cluster.start_workers(by, now_ns)
                self._note(now_ns, "grow", by, load, because, ())
            case Shrink(by=by, because=because):
                self._degree -= by
                self._cancel_or_leave(by)
                self._drain(load, now_ns)
                self._note(now_ns, "shrink", by, load, because, ())
            case Keep(because=because, blocked_by=blocked_by):
                self._note(now_ns, "keep", 0, load, because, blocked_by)

    def _cancel_or_leave(self, by: int) -> None:
        """Workers that are not Ready yet are called off first; the others with the highest ordinals leave."""
        cluster = self._cluster
        for _ in range(min(by, len(cluster.starting))):
            cluster.starting.remove(max(cluster.starting, key=lambda one: one[1]))
            by -= 1
        if by:
            cluster.leaving = highest_ordinals(cluster.pmap.workers, by)

    def _drain(self, load: ClusterLoad, now_ns: int) -> None:
        cluster = self._cluster
        if not cluster.leaving:
            return
        busy = {move.group for move in cluster.moving}
        plan = plan_drain(load, cluster.leaving, limits=self._settings.limits, in_flight=cluster.moving)
        moves = tuple(move for move in plan.moves if move.group not in busy)
        if moves:
            cluster.start_plan(plan, now_ns, "drain")

    def _note(
        self, now_ns: int, action: str, by: int, load: ClusterLoad, because: str, blocked_by: tuple[str, ...]
    ) -> None:
        self._decisions.append(
            DecisionRow(
                at_ns=now_ns,
                action=action,
                by=by,
                degree=self._degree,
                ready=len(load.reports),
                n_sup=load.n_sup,
                n_con=load.n_con,
                beta=self._settings.scaling.beta,
                busy=load.busy,
                because=because,
                blocked_by=blocked_by,
            )
        )
