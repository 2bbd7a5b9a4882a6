"""Facts in: what a machine can be told, besides the messages of others (`machine.messages`).

Every machine has one door, `handle(fact, now_ns) -> list[Order]`. A fact is something that has happened: a connection
came or went, a message arrived, a clock rang, a store answered. Nothing else enters a machine, so what it did can be
repeated from its facts. Orders that ask for an answer name the fact that brings it (`machine.orders`).
"""

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from joinery.flow.stamps import NO_ARRIVALS, Arrivals
from joinery.hybrid.hybrid import Probe
from joinery.hybrid.segments import Relation, Segment
from joinery.join.results import ResultPart
from joinery.join.state import Increment
from joinery.machine.log import Head, Record
from joinery.machine.messages import Exchange, Message
from joinery.machine.ports import Chain, Commit, Kept, Receipt
from joinery.model.ids import GroupId, MapVersion, Peer, RecordNo, Term
from joinery.model.spec_change import KeptSpec
from joinery.partition.map import StoredMap


@dataclass(frozen=True, slots=True)
class Started:
    """The process is up, with an instance id drawn just now."""

    instance: str


@dataclass(frozen=True, slots=True)
class Tick:
    """The clock rang: at a time that the machine asked for with `WakeAt`, or later."""


@dataclass(frozen=True, slots=True)
class Connected:
    """A connection to a peer is up; if there was an older one it is gone, with all that was still on its way."""

    peer: Peer


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection to a peer is gone; what was sent last may or may not have arrived."""

    peer: Peer
    hung_up: bool = False
    """Whether the other side has closed it in order; False: it broke, or nobody knows."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message came; messages of one connection keep their order."""

    peer: Peer
    message: Message


@dataclass(frozen=True, slots=True, eq=False)
class Offered:
    """The program that uses the client wants this sent; `rows` None: nothing but the end."""

    rows: pa.RecordBatch | None
    end: bool = False


@dataclass(frozen=True, slots=True)
class ReplicasWanted:
    """A person says how many workers there should be, and until when reports decide nothing."""

    replicas: int
    until_ns: int
    because: str


@dataclass(frozen=True, slots=True)
class Consumed:
    """The program that uses the client has taken so many deliveries."""

    deliveries: int


# --- answers of the stores


@dataclass(frozen=True, slots=True)
class GatewayOpened:
    """The term is raised, and this is what the log and the map hold."""

    term: Term
    head: Head
    records: tuple[tuple[RecordNo, Record], ...]
    map: StoredMap | None
    spec: KeptSpec | None = None
    """The spec in force; None: it was never changed."""


@dataclass(frozen=True, slots=True)
class Appended:
    """The record is durable."""

    record: RecordNo


@dataclass(frozen=True, slots=True)
class MapWritten:
    """The map of this version is durable."""

    version: MapVersion


@dataclass(frozen=True, slots=True)
class TableIs:
    """The newest version of the stored table; 0: none is cut yet."""

    version: int


@dataclass(frozen=True, slots=True)
class StoreMeasured:
    """The store of the log takes so many bytes, with all that is in it."""

    nbytes: int


@dataclass(frozen=True, slots=True)
class SpecWritten:
    """The spec in force is durable."""

    kept: KeptSpec


@dataclass(frozen=True, slots=True)
class Fenced:
    """A newer instance has the role: this one must stop."""

    by: int


@dataclass(frozen=True, slots=True)
class CollectorOpened:
    """The term is raised, and this is the last commit (None: there was none)."""

    term: Term
    commit: Commit | None


@dataclass(frozen=True, slots=True)
class SinksReady:
    """Every sink holds exactly what the last commit says is valid."""

    kept: Kept | None = None
    """What subscribers may still ask for; None: nobody has ever subscribed."""


@dataclass(frozen=True, slots=True)
class ResultsKept:
    """Whatever subscribers are told from now on can be asked for again, of the next collector too."""


@dataclass(frozen=True, slots=True)
class Staged:
    """Every sink has staged this commit."""

    number: int
    receipts: tuple[Receipt, ...]


@dataclass(frozen=True, slots=True)
class CommitWritten:
    """The commit is durable: its results count from now on."""

    number: int


@dataclass(frozen=True, slots=True)
class SinksFinished:
    """Every sink is complete and closed."""


@dataclass(frozen=True, slots=True)
class CheckpointRead:
    """What the store holds of a group: its increments after the tags that were known already."""

    group: GroupId
    version: MapVersion | None
    """The claim that was made by the read; None: a preload, which claims nothing."""
    chain: Chain


@dataclass(frozen=True, slots=True)
class ClaimRefused:
    """A newer map version owns the group's checkpoint."""

    group: GroupId
    version: MapVersion


@dataclass(frozen=True, slots=True)
class BlocksWritten:
    """The increments of this batch are in the store; not valid before their heads are."""

    number: int


@dataclass(frozen=True, slots=True)
class HeadsWritten:
    """The heads of this batch of increments are in the store, except of groups that a newer map version owns."""

    number: int
    refused: tuple[GroupId, ...]


# --- answers of a worker's join module (`machine.join_module`)


@dataclass(frozen=True, slots=True, eq=False)
class BatchJoined:
    """A message is joined; its results, or some of them if it is not the last part."""

    exchange: Exchange
    parts: tuple[ResultPart, ...]
    last: bool
    comparisons: int = 0
    busy_ns: int = 0
    """How long the join took; measured by the shell."""
    arrivals: Arrivals = NO_ARRIVALS
    """When the later members of these results arrived."""


@dataclass(frozen=True, slots=True)
class BatchTaken:
    """A message is no longer in the buffer, but some of its rows wait: `BatchJoined` comes later, in the same order."""

    comparisons: int = 0
    busy_ns: int = 0


@dataclass(frozen=True, slots=True)
class TableWanted:
    """The join module needs a version of the stored table, or segments of it."""

    version: int | None = None
    probes: tuple[Probe, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class TableRead:
    """What was asked for of the stored table."""

    relation: Relation | None
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True, eq=False)
class IncrementsTaken:
    """The state of these groups since their last tags, in one batch to be written."""

    increments: tuple[Increment, ...]


@dataclass(frozen=True, slots=True)
class GroupPrepared:
    """The group is in place up to this tag, should it be assigned; or, if not `is_whole`, a piece of it is."""

    group: GroupId
    tag: RecordNo
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class GroupRestored:
    """A group is here, as it was at a tag (-1: empty, before the first record)."""

    group: GroupId
    version: MapVersion
    tag: RecordNo


@dataclass(frozen=True, slots=True)
class StateMeasured:
    """What the join module holds, for the load report."""

    bytes_held: int
    bytes_by_group: tuple[tuple[GroupId, int], ...]
    cpu_ns: int = 0
    """CPU time of the process since it started; measured by the shell."""
    waiting_rows: int = 0
    """Of a stored table's join: rows that wait for segments."""
    oldest_ns: int | None = None
    """The smallest time of a row that may still match; None: there is no such row, or it is not known."""


Fact: TypeAlias = (
    Started
    | Tick
    | Connected
    | Disconnected
    | Received
    | Offered
    | ReplicasWanted
    | Consumed
    | GatewayOpened
    | Appended
    | MapWritten
    | SpecWritten
    | TableIs
    | StoreMeasured
    | Fenced
    | CollectorOpened
    | SinksReady
    | ResultsKept
    | Staged
    | CommitWritten
    | SinksFinished
    | CheckpointRead
    | ClaimRefused
    | BlocksWritten
    | HeadsWritten
    | BatchJoined
    | BatchTaken
    | TableWanted
    | TableRead
    | IncrementsTaken
    | GroupPrepared
    | GroupRestored
    | StateMeasured
)
