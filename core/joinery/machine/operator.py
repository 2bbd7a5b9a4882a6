"""The operator: how many workers there should be, decided from the gateway's reports (docs/design.md §5).

Rule 1: the degree is what the operator itself asked for last, at first `spec.replicas`; it alone asks. The reports say
        who is Ready and how they fare.
Rule 2: a decision is made by `core/elastic` alone, with the query's rule, and is kept with its inputs; it can be made
        again from them (`guarded.replay`).
Rule 3: growing is asking for more workers; they come empty.
Rule 4: shrinking drains first: the workers with the highest ordinals, which are those that fewer replicas take away.
        Only when the gateway says that all of them are empty, are fewer asked for.
Rule 5: one thing at a time: while a drain is under way reports decide nothing. On a new connection the wish is told
        again, since the gateway may be a new one; telling it twice does no harm.
Rule 6: with `mode: Manual`, or a report of no worker at all, nothing is decided.
"""

from collections import deque
from dataclasses import replace
from typing import Final

from joinery.elastic import beta, guarded
from joinery.elastic.beta import BetaRule, Decision, Grow, Shrink
from joinery.elastic.guarded import Guards, Stabilization
from joinery.elastic.load import ClusterLoad
from joinery.machine import facts, messages, orders
from joinery.machine.facts import Fact
from joinery.machine.orders import Order, Send
from joinery.model.errors import require
from joinery.model.ids import GATEWAY, WorkerId
from joinery.model.spec import JoinQuerySpec

HISTORY: Final = 1024
"""Decisions that are kept; at the default t_r, those of half an hour."""


class OperatorMachine:
    """Decides the degree of one query."""

    def __init__(self, spec: JoinQuerySpec) -> None:
        scaling = spec.scaling
        self.spec = spec
        self.replicas: int = spec.replicas
        """How many workers were asked for."""
        self.last_decision: Decision | None = None
        self.history: deque[Decision] = deque(maxlen=HISTORY)
        self._rule = BetaRule(
            beta=scaling.beta,
            min_suppliers=scaling.min_suppliers,
            step=scaling.step,
            min_degree=scaling.min,
            max_degree=scaling.max,
        )
        self._guards = Guards(
            target=scaling.target,
            up_ns=scaling.scale_up.stabilization,
            down_ns=scaling.scale_down.stabilization,
        )
        self._state = Stabilization()
        self._shrink: Shrink | None = None
        """The decision whose drain is under way."""
        self._leaving: frozenset[WorkerId] = frozenset()
        """The workers of it that are not empty yet."""

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:
        """What to do about a fact."""
        if isinstance(fact, facts.Connected) and fact.peer == GATEWAY:
            return self._drain()
        if not isinstance(fact, facts.Received) or fact.peer != GATEWAY:
            return []
        match fact.message:
            case messages.ClusterReport():
                return self._report(fact.message.load, now_ns)
            case messages.Empty():
                return self._empty(fact.message.workers)
            case messages.Finished():
                return [orders.Stop("the query has ended")]
        return []

    def _report(self, load: ClusterLoad, now_ns: int) -> list[Order]:
        if self.spec.scaling.mode != "Auto" or self._shrink is not None or not load.reports:
            return []
        decision = self._decide(replace(load, degree=self.replicas), now_ns)
        self.last_decision = decision
        self.history.append(decision)
        if isinstance(decision, Grow):
            self.replicas += decision.by
            return [orders.SetReplicas(self.replicas, decision.because)]
        if isinstance(decision, Shrink):
            self._shrink = decision
            self._leaving = frozenset(_ordinals(self.replicas - decision.by, self.replicas))
            return self._drain()
        return []

    def _decide(self, load: ClusterLoad, now_ns: int) -> Decision:
        if self.spec.scaling.rule == "paper":
            return beta.decide_degree(load, self._rule)
        decision, self._state = guarded.decide_degree(load, self._rule, self._guards, self._state, now_ns)
        return decision

    def _drain(self) -> list[Order]:
        if self._shrink is None:
            return []
        return [Send(GATEWAY, messages.Drain(_ordinals(self.replicas - self._shrink.by, self.replicas)))]

    def _empty(self, workers: tuple[WorkerId, ...]) -> list[Order]:
        if self._shrink is None:
            return []
        self._leaving -= set(workers)
        if self._leaving:
            return []
        done, self._shrink = self._shrink, None
        self.replicas -= done.by
        return [orders.SetReplicas(self.replicas, done.because)]

    def check_invariants(self) -> None:
        """Stop with a `Bug` if the machine's state contradicts itself."""
        require(self.replicas >= 1, f"{self.replicas} workers were asked for")
        require(
            bool(self._leaving) == (self._shrink is not None), "a drain without workers, or workers without a drain"
        )
        require(self._shrink is None or self._shrink.by < self.replicas, "every worker is drained")
        require(not self.history or self.history[-1] is self.last_decision, "a decision was not kept")


def _ordinals(start: int, stop: int) -> tuple[WorkerId, ...]:
    """The workers with these ordinals, as a StatefulSet names them."""
    return tuple(WorkerId(f"worker-{ordinal}") for ordinal in range(start, stop))
