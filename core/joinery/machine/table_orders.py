"""Orders about a stored table: what a gateway and a worker want of it (docs/hybrid.md)."""

from dataclasses import dataclass
from typing import ClassVar

from joinery.hybrid.hybrid import Probe
from joinery.machine.effects import Effect
from joinery.machine.facts import TableRead


@dataclass(frozen=True, slots=True)
class AskTable:
    """Which version of the stored table there is: `TableIs`; none older than `oldest` is needed."""

    effect: ClassVar = Effect.READ
    oldest: int


@dataclass(frozen=True, slots=True)
class ReadTable:
    """Read a version of the stored table, and segments: `TableRead`."""

    effect: ClassVar = Effect.READ
    version: int | None
    probes: tuple[Probe, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TakeTable:
    """Join what has waited for these segments: `BatchJoined`."""

    effect: ClassVar = Effect.JOIN
    read: TableRead
    now_ns: int


@dataclass(frozen=True, slots=True)
class LookAfterWaiting:
    """Time has passed for rows that wait for segments: `TableWanted`."""

    effect: ClassVar = Effect.JOIN
    now_ns: int
