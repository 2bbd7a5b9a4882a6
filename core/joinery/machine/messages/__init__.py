"""What the machines say to each other, one module per conversation; each becomes a proto of its own.

Everything per group is a vector over groups (`I64Array`, `groups` sorted), never a message per group.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from joinery.machine.messages.collect import Committed, Delivery, Results, Resume, Subscribe, Token, TokenTooOld
from joinery.machine.messages.control import (
    ChangeSpec,
    ClusterReport,
    CollectorHello,
    Drain,
    Drained,
    Empty,
    Finished,
    MoveGroup,
    Owners,
    Vector,
)
from joinery.machine.messages.exchange import (
    Alive,
    Assign,
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
from joinery.machine.messages.ingest import Acknowledge, Open, Opened, Push, Refuse
from joinery.model.tuples import I64Array

__all__ = [
    "Acknowledge",
    "Alive",
    "Assign",
    "ChangeSpec",
    "CheckpointNow",
    "Checkpointed",
    "ClusterReport",
    "CollectorHello",
    "Committed",
    "Credit",
    "Delivery",
    "Drain",
    "Drained",
    "Empty",
    "Exchange",
    "Finished",
    "Holding",
    "Holdings",
    "Load",
    "Message",
    "MoveGroup",
    "Open",
    "Opened",
    "Owners",
    "Preload",
    "Preloaded",
    "Push",
    "Refuse",
    "Release",
    "Results",
    "ResultsLost",
    "Resume",
    "Subscribe",
    "Token",
    "TokenTooOld",
    "Trim",
    "Vector",
    "WorkerHello",
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
