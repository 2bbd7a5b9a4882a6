"""What the machines say to each other, one section per conversation; each becomes a proto of its own.

Everything per group is a vector over groups (`I64Array`, `groups` sorted), never a message per group.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joinery.elastic.load import ClusterLoad, LoadReport
from joinery.join.results import ResultPart
from joinery.machine.log import SpecChange
from joinery.model.ids import GroupId, MapVersion, ProducerId, RecordNo, Term, WorkerId
from joinery.model.quantities import Window
from joinery.model.tuples import I64Array, TupleBatch
from joinery.window.sliding import Marks

# --- ingest: producer and gateway


@dataclass(frozen=True, slots=True)
class Open:
    """A producer asks for a session on one stream. Without a name it gets a fresh id."""

    stream: int
    name: ProducerId | None


@dataclass(frozen=True, slots=True)
class Opened:
    """The session; older ones of that name are fenced."""

    term: Term
    producer: ProducerId
    session: int
    expected: int | None
    """The sequence to go on with; None: free to choose."""
    ended: bool = False
    """This producer has already said that it will send no more."""


@dataclass(frozen=True, slots=True, eq=False)
class Push:
    """A batch: its sequence and the one after it; the last one says so."""

    session: int
    sequence: int
    next_sequence: int
    checksum: int
    rows: pa.RecordBatch
    end: bool = False


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """The batch is recorded; `record` is None if it was known already."""

    sequence: int
    record: RecordNo | None


@dataclass(frozen=True, slots=True)
class Refuse:
    """The batch, or the session, was not taken."""

    sequence: int | None
    reason: str
    expected: int | None = None
    """Go on with this sequence; None: do not go on."""


# --- exchange: gateway and worker


@dataclass(frozen=True, slots=True, eq=False)
class Holdings:
    """What a worker has of its groups."""

    groups: I64Array
    versions: I64Array
    """The map version under which it got each."""
    tags: I64Array
    """The newest checkpoint of each; -1: none."""
    received: I64Array
    """The last record of each that is joined or waits in the buffer."""
    silent: I64Array
    seen: I64Array
    """Where its batches must end, as its `Assign` said."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkerHello:
    """A worker introduces itself on a new connection, to the gateway and to the collector."""

    worker: WorkerId
    instance: str
    holdings: Holdings
    buffered_bytes: int = 0
    buffered_messages: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Assign:
    """These groups are yours under these map versions: load, join in silence up to `silent`, then emit."""

    term: Term
    groups: I64Array
    versions: I64Array
    silent: I64Array
    """committed(group)."""
    seen: I64Array
    """Where a batch must end besides (output in order); -1: nowhere."""
    changes: tuple[SpecChange, ...]
    """Every change of the spec so far: the state that is loaded may be from after some of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """These groups are no longer yours."""

    term: Term
    groups: I64Array


@dataclass(frozen=True, slots=True, eq=False)
class Holding:
    """Assigned groups are loaded; send me what follows `received`."""

    holdings: Holdings


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """The batch (after, upto] of some groups: rows of every stream ordered by group, and the marks at its end."""

    term: Term
    map_version: MapVersion
    groups: I64Array
    after: I64Array
    upto: RecordNo
    marks: Marks
    batches: tuple[TupleBatch, ...]
    changes: tuple[SpecChange, ...]
    """Every change of the spec that is in force for this batch."""

    @property
    def nbytes(self) -> int:
        """What it takes of a worker's buffer."""
        return sum(batch.rows.nbytes for batch in self.batches)


@dataclass(frozen=True, slots=True)
class Credit:
    """A message was joined: so many bytes of the buffer are free again."""

    nbytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Checkpointed:
    """The checkpoints of these groups are in the store, under these tags."""

    groups: I64Array
    versions: I64Array
    tags: I64Array


@dataclass(frozen=True, slots=True, eq=False)
class Trim:
    """Nobody will load these groups at a tag below these."""

    term: Term
    groups: I64Array
    tags: I64Array


@dataclass(frozen=True, slots=True, eq=False)
class CheckpointNow:
    """Write increments of these groups now: they are about to move."""

    term: Term
    groups: I64Array


@dataclass(frozen=True, slots=True, eq=False)
class Preload:
    """Read the checkpoints of these groups: they may become yours."""

    term: Term
    groups: I64Array


@dataclass(frozen=True, slots=True, eq=False)
class Preloaded:
    """These groups' checkpoints are read, up to these tags."""

    groups: I64Array
    tags: I64Array


@dataclass(frozen=True, slots=True, eq=False)
class ResultsLost:
    """A new collector asked for results of these groups that are no longer kept: recover the groups."""

    groups: I64Array
    versions: I64Array


@dataclass(frozen=True, slots=True)
class Load:
    """The worker's load over the last reorganization epoch; also a sign of life."""

    report: LoadReport


@dataclass(frozen=True, slots=True)
class Alive:
    """A sign of life."""


# --- collect: worker and collector


@dataclass(frozen=True, slots=True, eq=False)
class Resume:
    """Send what you keep of each group after these records."""

    term: Term
    taken: I64Array
    """One per group of the query."""


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """The results of the batch (after, upto] of some groups, whole if `last`."""

    groups: I64Array
    after: I64Array
    versions: I64Array
    upto: RecordNo
    marks: Marks
    part: int
    last: bool
    parts: tuple[ResultPart, ...]

    @property
    def nbytes(self) -> int:
        return sum(part.rows.nbytes for part in self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class Committed:
    """Commit c is durable; these groups are committed up to these records. To workers and gateway."""

    term: Term
    number: int
    groups: I64Array
    upto: I64Array


# --- control: gateway and collector, gateway and operator


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


# --- subscribe: collector and subscriber


@dataclass(frozen=True, slots=True)
class Token:
    """Where a subscriber stands: it has the rows of commit `number` before `row`, and every earlier commit."""

    number: int
    row: int


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Send committed results after the token; None: from the oldest one left."""

    token: Token | None


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """Committed results; the subscriber's next token is `token`."""

    parts: tuple[ResultPart, ...]
    token: Token


@dataclass(frozen=True, slots=True)
class TokenTooOld:
    """The results after the token are no longer kept; the oldest token that can be served."""

    oldest: Token


Message: TypeAlias = (
    Open
    | Opened
    | Push
    | Acknowledge
    | Refuse
    | WorkerHello
    | Assign
    | Release
    | Holding
    | Exchange
    | Credit
    | Checkpointed
    | Trim
    | CheckpointNow
    | Preload
    | Preloaded
    | ResultsLost
    | Load
    | Alive
    | Resume
    | Results
    | Committed
    | CollectorHello
    | Owners
    | Vector
    | Drained
    | Finished
    | ClusterReport
    | Drain
    | MoveGroup
    | Empty
    | ChangeSpec
    | Subscribe
    | Delivery
    | TokenTooOld
)


def mask_of(groups: I64Array, size: int) -> NDArray[np.bool_]:
    """Which of `size` groups are named."""
    mask = np.zeros(size, np.bool_)
    mask[groups] = True
    return mask
