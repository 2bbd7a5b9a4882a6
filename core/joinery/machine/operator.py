"""The operator: how many workers there should be, decided from the gateway's reports (docs/design.md §5).

Rule 1: the degree is what the operator itself asked for last, at first `spec.replicas`, within min..max; it alone
        asks. The reports say who is Ready and how they fare.
Rule 2: a decision is made by `core/elastic` alone, with the query's rule, and is kept with its inputs; it can be made
        again from them (`guarded.replay`).
Rule 3: growing is asking for more workers; they come empty.
Rule 4: shrinking drains first: the workers with the highest ordinals, which are those that fewer replicas take away.
        Only when the gateway says that all of them are empty, are fewer asked for.
Rule 5: one thing at a time: while a drain is under way reports decide nothing. On a new connection the wish is told
        again, since the gateway may be a new one; telling it twice does no harm.
Rule 6: with `mode: Manual`, or a report of no worker at all, nothing is decided.
Rule 7: a person may say how many there should be (`ReplicasWanted`): that is done in the same way, a drain first, and
        until the time that comes with it reports decide nothing. A drain that is under way ends first.
Rule 8: the gateway tells what was changed of the running query (`SpecNow`): the next decision goes by it, and another
        number of `replicas` is a wish as in rule 7; but not where people say it to the operator itself.
"""

from collections import deque
from dataclasses import dataclass, replace
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


@dataclass(frozen=True, slots=True)
class _Shrinking:
    """A drain that is under way."""

    to: int
    """How many workers stay."""
    because: str


class OperatorMachine:
    """Decides the degree of one query."""

    def __init__(self, spec: JoinQuerySpec, replicas: int | None = None) -> None:
        self._use(spec)
        self.replicas: int = spec.asked_workers if replicas is None else replicas
        """How many workers were asked for; a new operator goes on with what the last one had asked for."""
        self._hears_of_replicas = replicas is None
        """Whether the gateway's spec says how many there should be; in a cluster the object does."""
        self.held_until_ns = 0
        """A person decides until then."""
        self.last_decision: Decision | None = None
        self.history: deque[Decision] = deque(maxlen=HISTORY)
        self._state = Stabilization()
        self._shrink: _Shrinking | None = None
        """The drain under way."""
        self._leaving: frozenset[WorkerId] = frozenset()
        """The workers of it that are not empty yet."""
        self._wanted: facts.ReplicasWanted | None = None
        """What a person said while workers were being drained."""

    @property
    def leaving(self) -> frozenset[WorkerId]:
        """Workers that are being drained."""
        return self._leaving

    def _use(self, spec: JoinQuerySpec) -> None:
        self.spec, scaling = spec, spec.scaling
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

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:
        """What to do about a fact."""
        if isinstance(fact, facts.Connected) and fact.peer == GATEWAY:
            return self._drain()
        if isinstance(fact, facts.ReplicasWanted):
            self.held_until_ns, self._wanted = fact.until_ns, fact
            return self._as_wanted()
        if not isinstance(fact, facts.Received) or fact.peer != GATEWAY:
            return []
        match fact.message:
            case messages.ClusterReport():
                return self._report(fact.message.load, now_ns)
            case messages.Empty():
                return self._empty(fact.message.workers)
            case messages.SpecNow():
                return self._changed(fact.message.spec)
            case messages.Finished():
                return [orders.Stop("the query has ended")]
        return []

    def _changed(self, spec: JoinQuerySpec) -> list[Order]:
        """Rule 8."""
        before = self.spec.replicas
        self._use(spec)
        if self._hears_of_replicas and spec.replicas != before:
            because = f"replicas was changed to {spec.replicas}"
            self._wanted = facts.ReplicasWanted(spec.asked_workers, self.held_until_ns, because)
        return self._as_wanted()

    def _report(self, load: ClusterLoad, now_ns: int) -> list[Order]:
        is_held = self.spec.scaling.mode != "Auto" or now_ns < self.held_until_ns
        if is_held or self._shrink is not None or not load.reports:
            return []
        decision = self._decide(replace(load, degree=self.replicas), now_ns)
        self.last_decision = decision
        self.history.append(decision)
        if isinstance(decision, Grow):
            return self._go_to(self.replicas + decision.by, decision.because)
        if isinstance(decision, Shrink):
            return self._go_to(self.replicas - decision.by, decision.because)
        return []

    def _go_to(self, replicas: int, because: str) -> list[Order]:
        """Rules 3 and 4."""
        if replicas >= self.replicas:
            self.replicas = replicas
            return [orders.SetReplicas(replicas, because)]
        self._shrink = _Shrinking(replicas, because)
        self._leaving = frozenset(_ordinals(replicas, self.replicas))
        return self._drain()

    def _decide(self, load: ClusterLoad, now_ns: int) -> Decision:
        if self.spec.scaling.rule == "paper":
            return beta.decide_degree(load, self._rule)
        decision, self._state = guarded.decide_degree(load, self._rule, self._guards, self._state, now_ns)
        return decision

    def _drain(self) -> list[Order]:
        if self._shrink is None:
            return []
        return [Send(GATEWAY, messages.Drain(_ordinals(self._shrink.to, self.replicas)))]

    def _empty(self, workers: tuple[WorkerId, ...]) -> list[Order]:
        if self._shrink is None:
            return []
        self._leaving -= set(workers)
        if self._leaving:
            return []
        done, self._shrink = self._shrink, None
        self.replicas = done.to
        return [orders.SetReplicas(self.replicas, done.because), *self._as_wanted()]

    def _as_wanted(self) -> list[Order]:
        """Rule 7."""
        if self._wanted is None or self._shrink is not None:
            return []
        wanted, self._wanted = self._wanted, None
        return [] if wanted.replicas == self.replicas else self._go_to(wanted.replicas, wanted.because)

    def check_invariants(self) -> None:
        """Stop with a `Bug` if the machine's state contradicts itself."""
        require(self.replicas >= 1, f"{self.replicas} workers were asked for")
        require(
            bool(self._leaving) == (self._shrink is not None), "a drain without workers, or workers without a drain"
        )
        require(self._shrink is None or 1 <= self._shrink.to < self.replicas, "every worker is drained, or none")
        require(not self.history or self.history[-1] is self.last_decision, "a decision was not kept")


def _ordinals(start: int, stop: int) -> tuple[WorkerId, ...]:
    """The workers with these ordinals, as a StatefulSet names them."""
    return tuple(WorkerId(f"worker-{ordinal}") for ordinal in range(start, stop))
