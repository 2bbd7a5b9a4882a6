"""The guarded rule: the beta-rule, made safe to leave alone. This is `scaling.rule: guarded`, the default.

Why: f is near 0 until a worker is busy all the time. So the bare rule sees no supplier, shrinks, overloads the rest,
grows, and so on. The busy share u tells before a shrink whether the rest could bear the load.

Rule 1: shrink only if the rest would stay below `target`: sum(u) / (degree - by) < target; the same for memory.
Rule 2: never shrink while there is a supplier (f > Th_sup, or short of memory) or rows are held back.
Rule 3: neither grow nor shrink while workers that were asked for are not Ready: the last decision has not taken
        effect.
Rule 4: act only on a wish that lasted `up_ns` (`down_ns`) without a break; after acting the wait starts anew. A wish
        that comes and goes never acts; growing and shrinking wait separately.
Rule 5: a decision moves the degree by delta at most; a shrink by as much of it as rule 1 allows.
Rule 6: outside min..max the degree returns at once: the user has asked for it.

Time is an argument, and what must be remembered is a value that goes in and comes out, so every decision can be
replayed.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from joinery.elastic import beta
from joinery.elastic.beta import BetaRule, Decision, DegreeInputs, Grow, Keep, Shrink
from joinery.elastic.checks import check_settings
from joinery.elastic.classify import MEMORY_HIGH
from joinery.elastic.load import ClusterLoad
from joinery.model.errors import require
from joinery.model.quantities import format_duration
from joinery.model.time import NS_PER_UNIT

SECOND: Final = NS_PER_UNIT["s"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """What the guarded rule adds to the bare one."""

    target: float = 0.8
    """The mean busy share that the workers left by a shrink must stay below."""
    memory: float = MEMORY_HIGH
    """The same for the mean share of their memory."""
    up_ns: int = 10 * SECOND
    """How long growing must be wanted."""
    down_ns: int = 60 * SECOND
    """How long shrinking must be wanted."""

    def __post_init__(self) -> None:
        scaling = "spec.scaling"
        check_settings(
            (0 < self.target <= 1, f"{scaling}.target", self.target, "0 < target <= 1", "leave it out for 0.8"),
            (0 < self.memory <= 1, "memory threshold", self.memory, "0 < share <= 1", f"use {MEMORY_HIGH}"),
            (self.up_ns >= 0, f"{scaling}.scaleUp.stabilization", f"{self.up_ns} ns", "at least 0", "say 10s"),
            (self.down_ns >= 0, f"{scaling}.scaleDown.stabilization", f"{self.down_ns} ns", "at least 0", "say 60s"),
        )


class Wish(StrEnum):
    """Which way the degree should go."""

    GROW = "grow"
    SHRINK = "shrink"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Stabilization:
    """What is remembered between decisions: which way the degree should go, and since when without a break."""

    wish: Wish = Wish.KEEP
    since_ns: int = 0

    def seeing(self, decision: Decision, now_ns: int) -> "Stabilization":
        """The memory after one more look; a clock that went back starts the wait anew."""
        wish = Wish.GROW if isinstance(decision, Grow) else Wish.SHRINK if isinstance(decision, Shrink) else Wish.KEEP
        return self if wish is self.wish and self.since_ns <= now_ns else Stabilization(wish, now_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedInputs(DegreeInputs):
    """All that a guarded decision was made from."""

    guards: Guards
    state: Stabilization
    now_ns: int


def decide_degree(
    load: ClusterLoad, rule: BetaRule, guards: Guards, state: Stabilization, now_ns: int
) -> tuple[Decision, Stabilization]:
    """The guarded rule on a cluster's load: the decision, and what to remember for the next."""
    seen = DegreeInputs.of(load, rule)
    return decide(
        GuardedInputs(
            rule=rule,
            degree=seen.degree,
            ready=seen.ready,
            n_sup=seen.n_sup,
            n_con=seen.n_con,
            busy=seen.busy,
            memory=seen.memory,
            back_pressure=seen.back_pressure,
            guards=guards,
            state=state,
            now_ns=now_ns,
        )
    )


def decide(inputs: GuardedInputs) -> tuple[Decision, Stabilization]:
    """The guarded rule on recorded inputs: the same decision every time."""
    if outside := beta.return_into_bounds(inputs):
        return outside, Stabilization(Wish.KEEP, inputs.now_ns)
    wish = _guard(beta.decide(inputs), inputs)
    state = inputs.state.seeing(wish, inputs.now_ns)
    if isinstance(wish, Keep):
        return wish, state
    wait_ns = inputs.guards.up_ns if isinstance(wish, Grow) else inputs.guards.down_ns
    until_ns = state.since_ns + wait_ns
    if inputs.now_ns < until_ns:
        lasted = format_duration(inputs.now_ns - state.since_ns)
        because = f"{wish.because}; wanted for {lasted} of {format_duration(wait_ns)}"
        return Keep(because=because, inputs=inputs, blocked_by=("stabilization",), blocked_until_ns=until_ns), state
    return wish, Stabilization(Wish.KEEP, inputs.now_ns)


def replay(decision: Decision) -> Decision:
    """Make a recorded decision again from its inputs, with the rule that made it."""
    inputs = decision.inputs
    return decide(inputs)[0] if isinstance(inputs, GuardedInputs) else beta.decide(inputs)


def _guard(wish: Decision, inputs: GuardedInputs) -> Decision:
    if isinstance(wish, Keep):
        return wish
    missing = inputs.degree - inputs.ready
    blocked = ["workers not ready"] if missing > 0 else []
    if isinstance(wish, Grow):
        return Keep(because=wish.because, inputs=inputs, blocked_by=tuple(blocked)) if blocked else wish
    blocked += ["suppliers"] if inputs.n_sup > 0 else []
    blocked += ["back-pressure"] if inputs.back_pressure else []
    steps = [by for by in range(wish.by, 0, -1) if not _overloads(inputs, by)]
    blocked += [] if steps else _overloads(inputs, 1)
    if blocked:
        return Keep(because=wish.because, inputs=inputs, blocked_by=tuple(blocked))
    rest = inputs.degree - steps[0]
    because = f"{wish.because}, and busy {inputs.busy:.3g} / {rest} < target {inputs.guards.target}"
    return Shrink(by=steps[0], because=because, inputs=inputs)


def _overloads(inputs: GuardedInputs, by: int) -> list[str]:
    """Which of rule 1's bounds a shrink by `by` would break."""
    rest = inputs.degree - by
    require(rest > 0, f"a shrink by {by} would leave no worker of {inputs.degree}")
    bounds = (("target", inputs.busy, inputs.guards.target), ("memory", inputs.memory, inputs.guards.memory))
    return [name for name, total, bound in bounds if total / rest >= bound]
