"""What the machines say to each other, one module per conversation; each becomes a proto of its own.

Everything per group is a vector over groups (`I64Array`, `groups` sorted), never a message per group.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from joinery.machine.messages.clock import Ping, Pong
from joinery.machine.messages.collect import (
    Committed,
    Delivery,
    Ended,
    Grant,
    Results,
    Resume,
    Subscribe,
    Tally,
    Token,
    TokenTooOld,
)
from joinery.machine.messages.control import (
    ChangeQuery,
    ChangeSpec,
    ClusterReport,
    CollectorHello,
    Drain,
    Drained,
    Empty,
    EndStreams,
    Finished,
    MoveGroup,
    Owners,
    QueryChanged,
    SpecNow,
    StreamsEnded,
    Vector,
)
from joinery.machine.messages.exchange import (
    UNCLAIMED,
    Alive,
    Assign,
    CheckpointDamaged,
    Checkpointed,
    CheckpointNow,
    Credit,
    Exchange,
    Holding,
    Holdings,
    Load,
    Preload,
    Preloaded,
    Release,
    ResultsLost,
    Trim,
    WorkerHello,
)
from joinery.machine.messages.ingest import Acknowledge, Describe, Description, Open, Opened, Push, Refuse
from joinery.machine.messages.looking import Decided, GroupPlace, Look, Looked, RecordPlace, Station, last_act
from joinery.machine.messages.overview import Event, EventKind, MoveView, Overview, SettingsView, StreamView, WorkerView
from joinery.model.tuples import I64Array

__all__ = [
    "UNCLAIMED",
    "Acknowledge",
    "Alive",
    "Assign",
    "ChangeQuery",
    "ChangeSpec",
    "CheckpointDamaged",
    "CheckpointNow",
    "Checkpointed",
    "ClusterReport",
    "CollectorHello",
    "Committed",
    "Credit",
    "Decided",
    "Delivery",
    "Describe",
    "Description",
    "Drain",
    "Drained",
    "Empty",
    "EndStreams",
    "Ended",
    "Event",
    "EventKind",
    "Exchange",
    "Finished",
    "Grant",
    "GroupPlace",
    "Holding",
    "Holdings",
    "Load",
    "Look",
    "Looked",
    "Message",
    "MoveGroup",
    "MoveView",
    "Open",
    "Opened",
    "Overview",
    "Owners",
    "Ping",
    "Pong",
    "Preload",
    "Preloaded",
    "Push",
    "QueryChanged",
    "RecordPlace",
    "Refuse",
    "Release",
    "Results",
    "ResultsLost",
    "Resume",
    "SettingsView",
    "SpecNow",
    "Station",
    "StreamView",
    "StreamsEnded",
    "Subscribe",
    "Tally",
    "Token",
    "TokenTooOld",
    "Trim",
    "Vector",
    "WorkerHello",
    "WorkerView",
    "last_act",
    "mask_of",
]

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
    | CheckpointDamaged
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
    | ChangeQuery
    | QueryChanged
    | SpecNow
    | EndStreams
    | StreamsEnded
    | Subscribe
    | Delivery
    | TokenTooOld
    | Grant
    | Ended
    | Describe
    | Description
    | Ping
    | Pong
    | Overview
    | Look
    | Looked
    | Decided
)


def mask_of(groups: I64Array, size: int) -> NDArray[np.bool_]:
    """Which of `size` groups are named."""
    mask = np.zeros(size, np.bool_)
    mask[groups] = True
    return mask
