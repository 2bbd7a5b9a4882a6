"""A schedule: everything that happens to a simulated query from the outside, as one value.

The machines, the network's delays and the faults follow from it alone, so a schedule that fails fails every time. It
is made from a seed (tests/simulation), replayed by that number, and shrunk by leaving out parts of it.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

import pyarrow as pa

from joinery.machine.effects import Effect
from joinery.machine.messages import ChangeSpec
from joinery.model.ids import Peer, ProducerId

MS: Final = 1_000_000


class Role(StrEnum):
    """Who can be hit by a fault."""

    GATEWAY = "gateway"
    COLLECTOR = "collector"
    WORKER = "worker"
    PRODUCER = "producer"


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What a producer wants to send at a time; `rows` None: only the end."""

    at_ns: int
    rows: pa.RecordBatch | None
    end: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """One producer: the process opens its session when its first batch is due."""

    stream: int
    name: ProducerId
    batches: tuple[Batch, ...]
    is_named: bool = True
    """Whether the gateway is told the name; without one a producer is not started again."""
    again: tuple[Batch, ...] = ()
    """What a later instance offers in place of these batches, if it has other rows; at the same times."""


# --- what an operator does


@dataclass(frozen=True, slots=True)
class AddWorker:
    """A worker process starts; its name is worker-<ordinal>, the lowest one that is free."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class DrainLast:
    """The worker with the highest ordinal is drained, then stopped; nothing happens if it is the only one."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class MoveGroup:
    """A planned move of one group to the worker with this ordinal; nothing happens if that worker is not there."""

    at_ns: int
    group: int
    ordinal: int


@dataclass(frozen=True, slots=True)
class Change:
    """Windows, lateness and idle timeouts change."""

    at_ns: int
    spec: ChangeSpec


Step: TypeAlias = AddWorker | DrainLast | MoveGroup | Change

# --- faults


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """Just before the `count`-th effect of this kind (None: of any kind) by processes of the role (and ordinal)."""

    role: Role
    ordinal: int
    """Of a worker or of a producer's script; 0 for the others."""
    effect: Effect | None
    count: int
    message: str | None = None
    """Count only messages of this kind, by its name: `Vector`, `Owners` ..."""


@dataclass(frozen=True, slots=True)
class Crash:
    """The process dies, with all that it had in memory, and is started again after a while."""

    at: CrashPoint
    down_ns: int


@dataclass(frozen=True, slots=True)
class Pause:
    """The process stands still (SIGSTOP); a pause that outlives its replacement goes on as a zombie."""

    at: CrashPoint
    for_ns: int
    replaced_after_ns: int | None
    """When a new instance of the same role is started although the old one still exists; None: never."""


@dataclass(frozen=True, slots=True)
class BreakConnection:
    """The connection between two peers breaks; both notice it some time later, and connect again."""

    at_ns: int
    one: str
    other: str


@dataclass(frozen=True, slots=True)
class StoreDown:
    """Redis dies and comes back; what it had answered is there, what it had not may or may not be."""

    at_ns: int
    for_ns: int


Fault: TypeAlias = Crash | Pause | BreakConnection | StoreDown


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Delays of the simulated world, in virtual nanoseconds; each is drawn anew between these bounds."""

    message_ns: tuple[int, int] = (MS // 20, 3 * MS)
    store_ns: tuple[int, int] = (MS // 10, 4 * MS)
    notice_ns: tuple[int, int] = (MS, 20 * MS)
    """Until a side notices that its connection broke."""
    reconnect_ns: tuple[int, int] = (MS, 20 * MS)
    join_ns: tuple[int, int] = (MS // 20, 5 * MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """All of it."""

    seed: int
    query: dict[str, Any]
    """The spec of the query, as YAML would hold it."""
    scripts: tuple[Script, ...]
    workers: int
    steps: tuple[Step, ...] = ()
    faults: tuple[Fault, ...] = ()
    retain_bytes: int = 1 << 25
    """How many bytes of results a worker keeps for a new collector (`WorkerMachine(spec, worker, retain_bytes)`)."""
    subscribers: int = 0
    """Who reads committed results."""
    is_operated: bool = False
    """Whether the operator's machine decides the degree, besides what the steps ask for."""
    jump_ns: int = 3 * MS
    """How far a clock jumps at most, forward or back."""
    timing: Timing = field(default_factory=Timing)
    deadline_ns: int = 600_000 * MS
    """A run that has not ended by then is stuck."""


def producer_peers(schedule: Schedule) -> list[Peer]:
    """A name for each producer's connection; producers of different streams may have the same name."""
    names = Counter(script.name for script in schedule.scripts)
    return [
        Peer(script.name if names[script.name] == 1 else f"{script.name}@{script.stream}")
        for script in schedule.scripts
    ]
