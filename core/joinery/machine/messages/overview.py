"""Overview: what the gateway tells whoever looks at a running query. Nothing is decided by it.

Lists of what has happened (moves, events) hold the newest; how many there were in all stands beside, so a reader that
sees every overview can number them.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from joinery.elastic.load import LoadReport, Role
from joinery.flow.delays import Delays
from joinery.model.ids import GroupId, MapVersion, RecordNo, WorkerId
from joinery.model.quantities import Window

NO_MAP: Final = MapVersion(0)


class EventKind(StrEnum):
    """What can happen to a query that a person wants to know."""

    WORKER_JOINED = "WorkerJoined"
    WORKER_LEFT = "WorkerLeft"
    WORKER_LOST = "WorkerLost"
    DATA_LOST = "DataLost"
    STATE_LOST = "StateLost"
    CHECKPOINT_DAMAGED = "CheckpointDamaged"
    STATE_TOO_LARGE = "StateTooLarge"
    STATE_FITS_AGAIN = "StateFitsAgain"
    SPEC_CHANGED = "SpecChanged"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened."""

    at_ns: int
    kind: EventKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamView:
    """One stream."""

    rows: int
    """Recorded so far, late ones included."""
    late: int
    rows_per_s: float
    """Over the last reorganization epoch."""
    watermark_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    """One worker of the map."""

    worker: WorkerId
    is_up: bool
    groups: int
    """How many it owns."""
    role: Role | None = None
    """None: it has not reported yet."""
    report: LoadReport | None = None
    clock_ahead_ns: int = 0
    slot: int | None = None
    """In which slot of an epoch it is served, with the others of its sub-group; None: in none yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveView:
    """A group that changes, or has changed, its owner; from a worker to itself if a new instance of it took it back."""

    group: GroupId
    source: WorkerId
    target: WorkerId
    nbytes: int
    """Its window, as its former owner reported it last."""
    is_planned: bool
    """False: its owner was lost."""
    begun_ns: int
    pause_ns: int | None = None
    """How long it was not served; None: it is still under way."""

    @property
    def why(self) -> str:
        """Why it moved, if that was not planned."""
        if self.is_planned:
            return ""
        return "its worker was lost and came back" if self.source == self.target else "its worker was lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsView:
    """What may be changed while the query runs, as it is now."""

    changes: int
    """Changes of windows, lateness and idle timeouts in the log."""
    windows: tuple[Window, ...]
    replicas: int
    beta: float
    supplier_threshold: float
    consumer_threshold: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """A query as its gateway sees it."""

    at_ns: int
    records: RecordNo
    """How many were written."""
    streams: tuple[StreamView, ...]
    workers: tuple[WorkerView, ...] = ()
    degree: int = 0
    """Workers in the map."""
    n_sup: int = 0
    n_con: int = 0
    map_version: MapVersion = NO_MAP
    results: int = 0
    """Committed."""
    late: int = 0
    """Late rows that are committed."""
    produced: Delays = field(default_factory=Delays)
    """Arrival of the later member -> result produced by a worker: the production delay of the papers."""
    delivered: Delays = field(default_factory=Delays)
    """Arrival of the later member -> result committed."""
    moves: tuple[MoveView, ...] = ()
    moves_done: int = 0
    under_way: tuple[MoveView, ...] = ()
    events: tuple[Event, ...] = ()
    events_seen: int = 0
    unsent_bytes: int = 0
    unsent_peak_bytes: int = 0
    """The most that waited in the mini-buffers."""
    replay_bytes: int = 0
    """Kept for workers that may ask again, sent or not."""
    epoch_ns: int = 0
    """t_d."""
    is_last: bool = False
    """The query has ended."""
    uncommitted: int = 0
    """Number of the first record that is not committed for every group."""
    rejected: int = 0
    """Batches that were refused."""
    checkpointed_ns: int = 0
    """When an increment of a group was written last; 0: never."""
    stored_bytes: int = 0
    """What Redis takes, with all that is in it; 0: not known."""
    settings: SettingsView | None = None
    """None: not told."""
