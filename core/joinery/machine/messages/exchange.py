"""Exchange: what gateway and worker say to each other."""

from dataclasses import dataclass
from typing import Final

from joinery.elastic.load import LoadReport
from joinery.flow.stamps import Steps
from joinery.machine.log import SpecChange
from joinery.model.ids import GroupId, MapVersion, RecordNo, Term, WorkerId
from joinery.model.tuples import I64Array, TupleBatch
from joinery.window.sliding import Marks

UNCLAIMED: Final = MapVersion(0)
"""Of a checkpoint that was read ahead, by a worker that does not own the group."""


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
    steps: tuple[Steps, ...] = ()
    """When the rows of each batch arrived, one for each of `batches`; none: not known."""
    stamp_ns: int = 0
    """When the newest record of the batch was cut, whose marks close rows; 0: not known."""
    slot_ns: int = 0
    """When the worker's slot began, by the gateway's clock; 0: not known."""
    table: int = 0
    """The version of the stored table that all its rows are joined with; 0: there is no table."""

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
    whole: bool = False
    """Each as a whole state, which needs nothing of what was written before: that is damaged."""


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


@dataclass(frozen=True, slots=True)
class CheckpointDamaged:
    """A group's checkpoint is not what was written; of a group that is the worker's own: it was put back at `tag`."""

    group: GroupId
    version: MapVersion
    """Under which the group was claimed, or `UNCLAIMED`."""
    tag: RecordNo
    """The newest one that can be loaded; -1: none."""
    key: str
    """What is damaged, in the store's own words."""
    reason: str
    rows: int
    """Of the state that cannot be loaded, as far as they can be counted."""


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
