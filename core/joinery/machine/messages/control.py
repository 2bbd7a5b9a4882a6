"""Control: what gateway and collector, and gateway and operator, say to each other."""

from dataclasses import dataclass

from joinery.elastic.load import ClusterLoad
from joinery.machine.totals import Totals
from joinery.model.ids import GroupId, Term, WorkerId
from joinery.model.quantities import Window
from joinery.model.tuples import I64Array


@dataclass(frozen=True, slots=True, eq=False)
class CollectorHello:
    """A collector introduces itself; the gateway answers with `Owners`."""

    term: Term


@dataclass(frozen=True, slots=True, eq=False)
class Owners:
    """The map version that gave each group its owner; a greater one than before is a new owner."""

    term: Term
    versions: I64Array
    """One per group of the query."""


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """The answer to `Owners`: up to where each group is committed, under these versions."""

    term: Term
    versions: I64Array
    committed: I64Array
    seen: I64Array
    """A batch made again must end here: what came before was partly given out (output in order). -1: nowhere."""
    totals: Totals | None = None
    """What the last commit holds and all before it; None: not told."""


@dataclass(frozen=True, slots=True)
class Drained:
    """Every stream has ended and everything is committed: finish the sinks."""

    term: Term


@dataclass(frozen=True, slots=True)
class Finished:
    """The sinks are complete. From the collector to the gateway, and from there to the workers."""


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """What the gateway saw in a reorganization epoch, for the operator's decision."""

    load: ClusterLoad


@dataclass(frozen=True, slots=True)
class Drain:
    """The operator wants these workers empty."""

    workers: tuple[WorkerId, ...]


@dataclass(frozen=True, slots=True)
class MoveGroup:
    """The operator, or a test, wants one group to move to this worker."""

    group: GroupId
    to: WorkerId


@dataclass(frozen=True, slots=True)
class Empty:
    """These workers own nothing any more and are out of the map."""

    workers: tuple[WorkerId, ...]


@dataclass(frozen=True, slots=True)
class ChangeSpec:
    """New windows, lateness and idle timeouts for a running query; the version grows by one."""

    version: int
    windows: tuple[Window, ...]
    lateness_ns: tuple[int, ...]
    idle_timeout_ns: tuple[int, ...]
