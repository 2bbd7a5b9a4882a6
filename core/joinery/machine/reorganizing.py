"""Every t_r: who is overloaded, what moves, who is lost or drained (core/elastic decides; here it is applied).

Every decision keeps its inputs and its seed, so that it can be made again (`elastic.migration_plan.replan`).
"""

from collections import deque
from dataclasses import replace

import numpy as np

from joinery.elastic.classify import MEMORY_HIGH, Thresholds, classify_all
from joinery.elastic.demand import with_demand
from joinery.elastic.drain_plan import plan_drain, plan_spread
from joinery.elastic.load import ClusterLoad, GroupLoad, LoadReport
from joinery.elastic.migration_plan import plan_guarded, plan_paper
from joinery.elastic.plan import Limits, Move, Plan
from joinery.machine.messages import ClusterReport, Drain, Empty, MoveGroup
from joinery.machine.moving import Moves
from joinery.machine.orders import Order, Send
from joinery.machine.placement import Placement
from joinery.model.ids import OPERATOR, GroupId, Term, WorkerId
from joinery.model.spec import JoinQuerySpec
from joinery.model.tuples import I64Array, as_vector


class Reorganizing:
    """The gateway's side of elasticity."""

    memory_high = MEMORY_HIGH

    def __init__(self, spec: JoinQuerySpec, placement: Placement, moves: Moves) -> None:
        self._place, self._moves = placement, moves
        self.retune(spec)
        self._epoch = 0
        self.next_ns = 0
        self._total_bytes: I64Array | None = None
        """Recorded for each group, at the last look; None: this is the first."""
        self._looked_ns = 0
        self._came_bytes: list[float] | None = None
        """Recorded for each group in the last epoch; None: not known yet."""
        self.plans: deque[Plan] = deque(maxlen=100)
        self.draining: set[WorkerId] = set()
        self._leaving: set[WorkerId] = set()
        """Drained, and on their way out of the map."""

    def retune(self, spec: JoinQuerySpec) -> None:
        """Thresholds and limits from the next plan on."""
        self._spec, scaling = spec, spec.scaling
        self._paper = scaling.rule == "paper"
        self._thresholds = Thresholds.of(scaling)
        self._limits = Limits(max_parallel=scaling.max_parallel_moves)

    @property
    def memory_share(self) -> float:
        """The fullest worker's memory over its limit."""
        reports = [hand.report for hand in self._place.workforce.hands.values() if hand.report is not None]
        return max((report.memory_share for report in reports), default=0.0)

    def reported(self, worker: WorkerId, report: LoadReport) -> None:
        """A worker's load."""
        hand = self._place.workforce.hands[worker]
        hand.report, hand.reported_bytes, hand.joined_bytes = report, hand.joined_bytes, 0

    def came(self, total_bytes: I64Array, now_ns: int) -> None:
        """What was recorded for each group so far; called before a `tick`, it counts once per epoch."""
        if now_ns < self.next_ns:
            return
        elapsed, before = now_ns - self._looked_ns, self._total_bytes
        self._total_bytes, self._looked_ns, self._came_bytes = total_bytes.copy(), now_ns, None
        if before is not None and elapsed > 0:
            grown = np.maximum(0, total_bytes - before) * (self._spec.epochs.reorganization / elapsed)
            self._came_bytes = grown.tolist()

    def load(self) -> ClusterLoad | None:
        """The cluster as it reported, as far as the reports fit the map; None: nobody has."""
        if self._place.map is None:
            return None
        reports = []
        for worker in self._place.map.workers:
            hand = self._place.workforce.hands.get(worker)
            if hand is None or not hand.is_up or hand.report is None:
                continue
            held = self._place.groups_of(worker)
            own = set(held[~self._place.stopped[held]].tolist())
            groups = self._newcomers(tuple(part for part in hand.report.groups if part.group in own), own)
            held_back = hand.report.back_pressure or hand.was_held_back
            reports.append(replace(hand.report, groups=groups, back_pressure=held_back))
        if self._came_bytes is not None and not self._paper:
            joined = {worker: float(hand.reported_bytes) for worker, hand in self._place.workforce.hands.items()}
            reports = with_demand(reports, joined, self._came_bytes)
        return classify_all(reports, self._thresholds, degree=len(self._place.map.workers)) if reports else None

    def _newcomers(self, groups: tuple[GroupLoad, ...], own: set[int]) -> tuple[GroupLoad, ...]:
        """With the groups that came after the report: they count by what came in for them, and so do the others."""
        came, missing = self._came_bytes, own - {part.group for part in groups}
        if came is None or self._paper or not missing:
            return groups
        hands = self._place.workforce.hands.values()
        known = {part.group: part for hand in hands if hand.report is not None for part in hand.report.groups}
        new = [known.get(GroupId(group), GroupLoad(group=GroupId(group))) for group in sorted(missing)]
        return tuple(replace(part, weight=came[part.group]) for part in (*groups, *new))

    def tick(self, term: Term, now_ns: int) -> list[Order]:
        """If an epoch has ended: plan, start moves, tell the operator."""
        if now_ns < self.next_ns:
            return []
        self.next_ns = now_ns + self._spec.epochs.reorganization
        self._epoch += 1
        self._moves.epoch_ended()
        made: list[Order] = []
        load = self.load()
        if load is not None and self._place.is_settled:
            if not self.draining:
                plan = self._plan(load, term)
                self.plans.append(plan)
                made += self._moves.start(plan.moves, term)
            made.append(Send(OPERATOR, ClusterReport(load)))
            for hand in self._place.workforce.hands.values():
                hand.was_held_back = False
        return made

    def _plan(self, load: ClusterLoad, term: Term) -> Plan:
        seed = int(term) << 32 | self._epoch
        if self._paper:
            return plan_paper(load, seed=seed, in_flight=self._moves.planned)
        return plan_guarded(load, seed=seed, limits=self._limits, in_flight=self._moves.planned)

    # --- drains and ordered moves

    def asked(self, message: Drain | MoveGroup, term: Term) -> list[Order]:
        """The operator wants workers empty, or one group moved."""
        if isinstance(message, MoveGroup):
            source = self._place.owner(message.group)
            if source is None or source == message.to:
                return []
            return self._moves.start((Move(message.group, source, message.to),), term)
        known = self._place.workers
        self.draining |= set(message.workers) & known
        self._moves.close(self.draining | self._leaving)
        gone = set(message.workers) - known - self._leaving
        for worker in gone:
            self._place.workforce.retire(worker)
        return [*self.drain(term), *_empty(gone)]

    def drain(self, term: Term) -> list[Order]:
        """Move on with draining; workers that own nothing leave the map, and then the operator is told."""
        if self._place.map is None or not (self.draining or self._leaving):
            return []
        left = {worker for worker in self._leaving if worker not in self._place.map.workers}
        for worker in left:
            self._place.workforce.retire(worker)
        self._leaving -= left
        caught = {worker for worker in self._leaving if self._place.groups_of(worker).size}
        self._leaving -= caught  # was empty, but the map that was being written gave it a group
        self.draining |= caught
        self._moves.close(self.draining | self._leaving)
        made = _empty(left)
        empty = {worker for worker in self.draining if not self._place.groups_of(worker).size}
        self.draining -= empty
        self._leaving |= empty
        if self._leaving and self._place.is_settled and len(self._leaving) < len(self._place.map.workers):
            made += self._place.propose({}, part=self._leaving)  # again if it came back while it was written
        made += self._hand_on_stopped()
        for worker in sorted(self.draining) if not self._moves.under_way else ():
            made += self._moves.start(self._drain_plan(worker), term)
        return made

    def _hand_on_stopped(self) -> list[Order]:
        """Groups whose state is lost need no preparation: only their names change hands."""
        held = [self._place.groups_of(worker) for worker in sorted(self.draining)]
        stopped = [group for groups in held for group in groups[self._place.stopped[groups]].tolist()]
        if not stopped or not self._place.is_settled:
            return []
        return self._place.propose(self._evenly(as_vector(stopped)))

    def _drain_plan(self, worker: WorkerId) -> tuple[Move, ...]:
        """By load, or evenly if not everybody has reported yet."""
        load = self.load()
        reported = {report.worker for report in load.reports} if load else set()
        if load is not None and {worker} | (set(self._stayers()) & reported) <= reported and len(reported) > 1:
            plan = plan_drain(load, sorted(self.draining & reported), limits=self._limits,
                              in_flight=self._moves.in_flight)  # fmt: skip
            self.plans.append(plan)
            return plan.moves
        return tuple(Move(group, worker, to) for group, to in self._evenly(self._place.groups_of(worker)).items())

    def _stayers(self) -> list[WorkerId]:
        known = self._place.map.workers if self._place.map else ()
        away = self.draining | self._leaving
        return [worker for worker in self._place.workforce.up() if worker in known and worker not in away]

    def _evenly(self, groups: I64Array) -> dict[GroupId, WorkerId]:
        """Groups dealt out to those who stay, the one with the fewest first."""
        count = {worker: int(self._place.groups_of(worker).size) for worker in self._stayers()}
        dealt: dict[GroupId, WorkerId] = {}
        for group in groups.tolist() if count else ():
            to = min(count, key=lambda worker: (count[worker], worker))
            dealt[GroupId(group)] = to
            count[to] += 1
        return dealt

    # --- who comes and who is lost

    def welcome(self, *, has_rows: bool) -> list[Order]:
        """Whoever is there belongs in the map: a worker may have said hello while the first one was being written.

        As long as no row has come everybody gets a share of the groups, as if all had been there from the start: they
        are empty, and without load nothing would move later. The paper's rule moves groups by load only.
        """
        place = self._place
        if place.map is None or not place.is_settled:
            return []
        new = set(place.workforce.up()) - set(place.map.workers) - self._leaving
        is_early = not (has_rows or self._paper or self.draining or self._leaving or self._moves.planned)
        moves = self._shares(new) if is_early else {}
        return place.propose(moves, join=new) if moves or new else []

    def _shares(self, new: set[WorkerId]) -> dict[GroupId, WorkerId]:
        """The fewest moves after which the workers' shares differ by one group at most."""
        held = {worker: self._place.groups_of(worker).tolist() for worker in (*self._stayers(), *sorted(new))}
        moves: dict[GroupId, WorkerId] = {}
        while held:
            most, least = max(held, key=lambda one: len(held[one])), min(held, key=lambda one: len(held[one]))
            if len(held[most]) - len(held[least]) <= 1:
                break
            held[least].append(held[most].pop())
            moves[GroupId(held[least][-1])] = least
        return moves

    def lose(self, worker: WorkerId) -> list[Order]:
        """A worker is lost: its groups are spread over the others, and it leaves the map."""
        place = self._place
        if worker not in place.workers:
            place.workforce.hands.pop(worker, None)
            return []
        if place.map is None:
            return []
        stayers = [one for one in self._stayers() if one != worker]
        if not stayers or not place.is_settled:
            return []
        load = self.load()
        groups = place.groups_of(worker)
        if load is not None and {report.worker for report in load.reports} >= set(stayers):
            plan = plan_spread(load, [worker], place.map, limits=self._limits, in_flight=())
            self.plans.append(plan)
            moves = {move.group: move.target for move in plan.moves if move.target in stayers}
        else:
            moves = {}
        missing = np.array([group for group in groups.tolist() if GroupId(group) not in moves], np.int64)
        moves |= self._evenly(missing)
        if worker in self.draining:  # the operator waits for it to be empty, and will be
            self.draining.discard(worker)
            self._leaving.add(worker)
        self._moves.close(self.draining | self._leaving)
        self._moves.forget(groups)
        return place.propose(moves, part=[worker])

    def recover(self, worker: WorkerId, groups: I64Array) -> list[Order]:
        """Results of these groups are lost: made again by giving them to their owner under a new term."""
        self._moves.forget(groups)
        return self._place.propose({GroupId(int(group)): worker for group in groups})


def _empty(workers: set[WorkerId]) -> list[Order]:
    return [Send(OPERATOR, Empty(tuple(sorted(workers))))] if workers else []
