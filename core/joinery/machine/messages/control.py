"""Control: what gateway and collector, and gateway and operator, say to each other."""

from dataclasses import dataclass

from joinery.elastic.load import ClusterLoad
from joinery.machine.totals import Totals
from joinery.model.ids import GroupId, RecordNo, Term, WorkerId
from joinery.model.quantities import Window
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import SpecChanges
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


@dataclass(frozen=True, slots=True)
class ChangeQuery:
    """Somebody wants the running query to be this one; the gateway answers with `QueryChanged`."""

    spec: JoinQuerySpec


@dataclass(frozen=True, slots=True)
class QueryChanged:
    """What was changed, all of it or, if anything is refused, nothing."""

    changes: SpecChanges
    record: RecordNo | None = None
    """What is logged holds after this record."""


@dataclass(frozen=True, slots=True)
class SpecNow:
    """To workers and the operator: the spec in force. What is logged of it comes with the batches, not by this."""

    term: Term
    spec: JoinQuerySpec


@dataclass(frozen=True, slots=True)
class EndStreams:
    """Somebody wants every stream to end where it is, so that the query does when all of it is joined."""


@dataclass(frozen=True, slots=True)
class StreamsEnded:
    """The answer: no stream has rows after this record."""

    record: RecordNo
