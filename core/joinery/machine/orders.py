"""Orders out: what a machine wants done, in this order. The shell only carries them out.

Each order is one effect, and between any two of them a process may die: `Order.effect` names it, so that the
simulator can stop a process before each one, without knowing the machines. Where an order has an answer, it comes
back as the fact that its docstring names.
"""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from joinery.join.results import ResultPart
from joinery.join.state import Increment
from joinery.machine.effects import Effect
from joinery.machine.log import Head, Record, SpecChange
from joinery.machine.messages import Acknowledge, Exchange, Message, Refuse, Results
from joinery.machine.ports import Commit, Receipt
from joinery.machine.table_orders import AskTable, LookAfterWaiting, ReadTable, TakeTable
from joinery.model.ids import GroupId, MapVersion, Peer, RecordNo, Term
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import KeptSpec
from joinery.partition.map import StoredMap


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Tell me `Tick` at this time; replaces an earlier wish."""

    effect: ClassVar = Effect.TIMER
    at_ns: int


@dataclass(frozen=True, slots=True)
class Send:
    """A message to a connected peer; lost without a word if the connection is gone."""

    effect: ClassVar = Effect.SEND
    to: Peer
    message: Message


@dataclass(frozen=True, slots=True)
class SendAcknowledge:
    """Tell a producer that its batch is recorded."""

    effect: ClassVar = Effect.ACKNOWLEDGE
    to: Peer
    message: Acknowledge


@dataclass(frozen=True, slots=True)
class SendExchange:
    """A worker's message in its slot."""

    effect: ClassVar = Effect.EXCHANGE
    to: Peer
    message: Exchange


@dataclass(frozen=True, slots=True)
class Emit:
    """Results to the collector."""

    effect: ClassVar = Effect.EMIT
    to: Peer
    message: Results


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close the connection: the peer spoke out of turn, or is fenced."""

    effect: ClassVar = Effect.SEND
    peer: Peer


# --- gateway


@dataclass(frozen=True, slots=True)
class OpenLog:
    """Raise the term and read everything: `GatewayOpened`."""

    effect: ClassVar = Effect.OPEN
    first: Head
    instance: str
    spec: JoinQuerySpec | None = None
    """What a new log begins with."""


@dataclass(frozen=True, slots=True, eq=False)
class AppendRecord:
    """Make it durable: `Appended` or `Fenced`."""

    effect: ClassVar = Effect.APPEND
    term: Term
    number: RecordNo
    record: Record


@dataclass(frozen=True, slots=True)
class TrimLog:
    """Drop records; no answer."""

    effect: ClassVar = Effect.TRIM
    term: Term
    head: Head
    keep_from: RecordNo
    is_quiet: bool = False
    """Nothing moves: the store may tidy up, which can make it slow for a moment."""


@dataclass(frozen=True, slots=True)
class WriteMap:
    """Make the map durable: `MapWritten` or `Fenced`."""

    effect: ClassVar = Effect.MAP
    term: Term
    map: StoredMap


@dataclass(frozen=True, slots=True)
class WriteSpec:
    """Make the spec in force durable: `SpecWritten` or `Fenced`."""

    effect: ClassVar = Effect.MAP
    term: Term
    kept: KeptSpec


# --- collector


@dataclass(frozen=True, slots=True)
class OpenCommits:
    """Raise the term and read the last commit: `CollectorOpened`."""

    effect: ClassVar = Effect.OPEN
    instance: str


@dataclass(frozen=True, slots=True)
class RecoverSinks:
    """Undo what no commit made valid: `SinksReady`."""

    effect: ClassVar = Effect.OPEN
    term: Term
    receipts: tuple[Receipt, ...]


@dataclass(frozen=True, slots=True)
class KeepResults:
    """Somebody subscribes: results from this commit on must survive the collector: `ResultsKept`."""

    effect: ClassVar = Effect.STAGE
    first: int


@dataclass(frozen=True, slots=True)
class Take:
    """The results of these groups up to this record are taken; for whoever watches."""

    effect: ClassVar = Effect.TAKE
    groups: tuple[GroupId, ...]
    upto: RecordNo


@dataclass(frozen=True, slots=True, eq=False)
class StageResults:
    """Every sink stages these parts: `Staged`."""

    effect: ClassVar = Effect.STAGE
    number: int
    parts: tuple[ResultPart, ...]


@dataclass(frozen=True, slots=True, eq=False)
class WriteCommit:
    """The one write that makes a commit valid: `CommitWritten` or `Fenced`."""

    effect: ClassVar = Effect.COMMIT
    term: Term
    commit: Commit


@dataclass(frozen=True, slots=True)
class FinishSinks:
    """Complete every sink: `SinksFinished`."""

    effect: ClassVar = Effect.FINISH
    receipts: tuple[Receipt, ...]


# --- worker


@dataclass(frozen=True, slots=True)
class ReadCheckpoint:
    """Read a group's chain; with a version, claim it: `CheckpointRead` or `ClaimRefused`."""

    effect: ClassVar = Effect.READ
    group: GroupId
    version: MapVersion | None
    known: tuple[RecordNo, ...]


@dataclass(frozen=True, slots=True, eq=False)
class WriteBlocks:
    """Write increments: `BlocksWritten`."""

    effect: ClassVar = Effect.BLOCK
    number: int
    increments: tuple[Increment, ...]


@dataclass(frozen=True, slots=True)
class WriteHeads:
    """Make increments count: `HeadsWritten`. An entry is (group, version, since, tag)."""

    effect: ClassVar = Effect.HEAD
    number: int
    heads: tuple[tuple[GroupId, MapVersion, RecordNo, RecordNo], ...]


@dataclass(frozen=True, slots=True)
class TrimCheckpoint:
    """Drop a group's dead increments up to a tag; no answer."""

    effect: ClassVar = Effect.TRIM
    group: GroupId
    version: MapVersion
    base: RecordNo


# --- a worker's join module; it works through these one after the other


@dataclass(frozen=True, slots=True, eq=False)
class JoinBatch:
    """Join a message: `BatchJoined`, once per part; with a stored table `BatchTaken`, then `BatchJoined`."""

    effect: ClassVar = Effect.JOIN
    exchange: Exchange
    now_ns: int = 0
    behind_bytes: int = 0
    """Input that waits behind it."""


@dataclass(frozen=True, slots=True)
class TakeIncrements:
    """The state of these groups since their tags: `IncrementsTaken`."""

    effect: ClassVar = Effect.JOIN
    groups: tuple[GroupId, ...]
    whole: tuple[GroupId, ...] = ()
    """Those of them that are taken whole, since nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class PrepareGroup:
    """Put a group that another worker still owns in place, as far as its chain is known: `GroupPrepared`, by pieces."""

    effect: ClassVar = Effect.JOIN
    group: GroupId
    increments: tuple[Increment, ...]
    base: RecordNo | None
    changes: tuple[SpecChange, ...]


@dataclass(frozen=True, slots=True)
class PrepareMore:
    """Put the next piece of a group in place that is being prepared: `GroupPrepared`; no answer if none is."""

    effect: ClassVar = Effect.JOIN
    group: GroupId


@dataclass(frozen=True, slots=True, eq=False)
class RestoreGroup:
    """Put a group back from a chain (none: empty): `GroupRestored`."""

    effect: ClassVar = Effect.JOIN
    group: GroupId
    version: MapVersion
    increments: tuple[Increment, ...]
    base: RecordNo | None
    changes: tuple[SpecChange, ...]


@dataclass(frozen=True, slots=True)
class DropGroups:
    """Forget these groups; no answer."""

    effect: ClassVar = Effect.JOIN
    groups: tuple[GroupId, ...]


@dataclass(frozen=True, slots=True)
class MeasureState:
    """How much is held: `StateMeasured`."""

    effect: ClassVar = Effect.JOIN


@dataclass(frozen=True, slots=True)
class TuneJoin:
    """Mini-groups of this size from now on; None: groups are not split any more."""

    effect: ClassVar = Effect.JOIN
    theta_bytes: int | None


# --- everybody


@dataclass(frozen=True, slots=True)
class Stop:
    """The process is done: it was fenced, or the query has ended."""

    effect: ClassVar = Effect.STOP
    because: str


@dataclass(frozen=True, slots=True)
class SetReplicas:
    """The operator wants this many workers."""

    effect: ClassVar = Effect.SEND
    replicas: int
    because: str


ModuleOrder: TypeAlias = (
    JoinBatch
    | TakeIncrements
    | PrepareGroup
    | PrepareMore
    | RestoreGroup
    | DropGroups
    | MeasureState
    | TuneJoin
    | TakeTable
    | LookAfterWaiting
)

Order: TypeAlias = (
    WakeAt
    | Send
    | SendAcknowledge
    | SendExchange
    | Emit
    | Disconnect
    | OpenLog
    | AppendRecord
    | TrimLog
    | WriteMap
    | WriteSpec
    | OpenCommits
    | RecoverSinks
    | KeepResults
    | Take
    | StageResults
    | WriteCommit
    | FinishSinks
    | ReadCheckpoint
    | WriteBlocks
    | WriteHeads
    | TrimCheckpoint
    | ModuleOrder
    | AskTable
    | ReadTable
    | Stop
    | SetReplicas
)


def answer_to(peer: Peer, answer: Acknowledge | Refuse) -> Order:
    """The answer to a batch."""
    return SendAcknowledge(peer, answer) if isinstance(answer, Acknowledge) else Send(peer, answer)
