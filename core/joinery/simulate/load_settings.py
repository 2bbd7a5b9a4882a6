"""What is simulated: the query's sizes, the epochs, the rules and their parameters.

`LoadSettings.paper` has the defaults of table 7.1 of the thesis, `LoadSettings.of_spec` what a query asks for.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from joinery.elastic.beta import BetaRule
from joinery.elastic.checks import check_settings
from joinery.elastic.classify import Thresholds
from joinery.elastic.guarded import Guards
from joinery.elastic.plan import Limits
from joinery.flow.minibuffer import MAX_EPOCH_NS, MIN_EPOCH_NS
from joinery.generate.bmodel import BModelKeys
from joinery.generate.keys import Keys
from joinery.model.time import NS_PER_UNIT

SECOND: Final = NS_PER_UNIT["s"]
PAPER_KEYS: Final = BModelKeys(10_000_000, 0.7)
TICKS_PER_EPOCH: Final = 10
"""How finely arrivals are known: in parts of a distribution epoch."""
READY_NS: Final = 5 * SECOND
"""From the decision to grow until the new worker is Ready: a container on a node that has the image."""


class Rule(StrEnum):
    """`spec.scaling.rule`."""

    PAPER = "paper"
    GUARDED = "guarded"


class Method(StrEnum):
    """`spec.join.method`."""

    NESTED_LOOP = "nested-loop"
    HASH = "hash"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedChange:
    """Other load on a node: from `at_ns` on the worker with this ordinal has `speed` (1 is a node of its own)."""

    ordinal: int
    at_ns: int
    speed: float

    def __post_init__(self) -> None:
        check_settings(
            (self.ordinal >= 0, "slow.worker", self.ordinal, "at least 0", "workers are numbered from 0"),
            (self.at_ns >= 0, "slow.at", f"{self.at_ns} ns", "at least 0", "say 60s"),
            (0 < self.speed <= 100, "slow.speed", self.speed, "0 < speed <= 100", "say 0.5 for half as fast"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSettings:
    """Everything but the rates and the costs."""

    windows_ns: tuple[int, ...] = (600 * SECOND, 600 * SECOND)
    """One per stream."""
    partitions: int = 60
    keys: Keys = PAPER_KEYS
    tuple_bytes: int = 64
    method: Method = Method.NESTED_LOOP
    theta_bytes: int | None = 3 << 19
    """None: no fine tuning."""
    buffer_bytes: int = 1 << 20
    memory_limit: int = 2 << 30
    epoch_ns: int = 2 * SECOND
    reorganization_ns: int = 20 * SECOND
    subgroups: int = 2
    degree: int = 4
    """Workers at the start."""
    adaptive: bool = False
    """Whether the degree follows the load; else it stays."""
    rule: Rule = Rule.GUARDED
    scaling: BetaRule = field(default_factory=BetaRule)
    guards: Guards = field(default_factory=Guards)
    thresholds: Thresholds = field(default_factory=Thresholds)
    limits: Limits = field(default_factory=Limits)
    ready_ns: int = READY_NS
    turns_known: bool = True
    """Workers know their turn in the slot and join until then; else they wait for it, as in the papers."""
    precopy: bool = True
    """A move copies while the supplier goes on, and only the switch pauses the group; else both wait for the copy."""
    speeds: tuple[SpeedChange, ...] = ()
    owners: tuple[int, ...] | None = None
    """Which ordinal owns each group at the start; left out: neighbouring groups together, in even parts."""
    until_ns: int = 1200 * SECOND
    seed: int = 0

    def __post_init__(self) -> None:
        pause = f"at least the distribution epoch ({self.epoch_ns} ns)"
        check_settings(
            (
                len(self.windows_ns) >= 2,
                "streams",
                len(self.windows_ns),
                "at least 2",
                "name the window of each stream",
            ),
            (min(self.windows_ns, default=0) >= 0, "window", self.windows_ns, "at least 0 ns", "say 10m"),
            (self.tuple_bytes >= 1, "tuple bytes", self.tuple_bytes, "at least 1", "say 64"),
            (self.buffer_bytes >= 1, "spec.worker.buffer", self.buffer_bytes, "at least 1 byte", "say 1Mi"),
            (self.epoch_ns >= 1000, "spec.epochs.distribution", f"{self.epoch_ns} ns", "at least 1us", "say 200ms"),
            (
                self.reorganization_ns >= self.epoch_ns,
                "spec.epochs.reorganization",
                f"{self.reorganization_ns} ns",
                pause,
                "say ten times as long",
            ),
            (self.degree >= 1, "degree", self.degree, "at least 1", "say 1"),
            (self.ready_ns >= 0, "start delay", f"{self.ready_ns} ns", "at least 0", "say 5s"),
            (self.until_ns > 0, "until", f"{self.until_ns} ns", "above 0", "say 600s"),
            (
                self.owners is None or (len(self.owners) == self.partitions and max(self.owners) < self.degree),
                "owners",
                self.owners,
                f"one of {self.degree} workers for each of {self.partitions} groups",
                "leave it out for even parts",
            ),
        )

    @property
    def tick_ns(self) -> int:
        """The resolution of arrivals."""
        return max(1, self.epoch_ns // TICKS_PER_EPOCH)


def paper_settings(
    workers: int, *, fine_tuning: bool = True, adaptive: bool = False, beta: float = 0.5, seed: int = 0
) -> LoadSettings:
    """The defaults of the papers (table 7.1), their bare rule, nodes that stand ready, and `workers` available."""
    return LoadSettings(
        theta_bytes=3 << 19 if fine_tuning else None,
        degree=workers,
        adaptive=adaptive,
        rule=Rule.PAPER,
        scaling=BetaRule(beta=beta, max_degree=workers),
        thresholds=Thresholds.paper(),
        ready_ns=0,
        turns_known=False,
        precopy=False,
        seed=seed,
    )


def auto_epoch_ns(buffer_bytes: int, peak_bytes_per_s: float) -> int:
    """`epochs.distribution: auto` as one length: a quarter of a buffer at the greatest rate, in its 5-200 ms."""
    quarter_ns = buffer_bytes / 4 / max(peak_bytes_per_s, 1.0) * SECOND
    return int(min(max(quarter_ns, MIN_EPOCH_NS), MAX_EPOCH_NS))
