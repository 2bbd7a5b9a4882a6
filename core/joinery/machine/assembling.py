"""Results that come in parts: a message of a worker is held until its last part is here (`collector`, rules 1 and 5).

Rule 1: parts follow each other on one connection; a part without its forerunners means that a message got lost.
Rule 2: a group is whole iff every part of the message is about it: one that left between two parts is not.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from joinery.join.results import ResultPart
from joinery.machine.messages import Results, mask_of
from joinery.model.ids import Peer, RecordNo


@dataclass(slots=True, eq=False)
class Partial:
    """A message so far."""

    upto: RecordNo
    whole: NDArray[np.bool_]
    """Groups that every part so far is about."""
    parts: list[ResultPart] = field(default_factory=list)
    next_part: int = 0
    messages: list[Results] = field(default_factory=list)


class Assembling(dict[Peer, Partial]):
    """The messages of which the last part is missing, by their senders."""

    def add(self, peer: Peer, message: Results, groups: int) -> Partial | None:
        """The message with one more part; None: a part of it is missing (rule 1)."""
        own = mask_of(message.groups, groups)
        if message.part == 0:
            self[peer] = Partial(message.upto, own)
        partial = self.get(peer)
        if partial is None or (partial.upto, partial.next_part) != (message.upto, message.part):
            return None
        partial.whole &= own
        partial.parts += message.parts
        partial.messages.append(message)
        partial.next_part += 1
        return partial
