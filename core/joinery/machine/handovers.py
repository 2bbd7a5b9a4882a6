"""Groups that change owners, for whoever looks: from whom to whom, and for how long the group was not served.

The pause begins when the map that names the new owner is durable, since the old one is not served from then on, and
ends when the new owner holds the group. A worker that was killed and started again takes its groups back: that is a
handover to itself. An owner that gets its own group again for another reason (it never got it, or its results were
asked for in vain) is none.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from joinery.flow.delays import Delays
from joinery.machine.messages import MoveView
from joinery.machine.workforce import Workforce
from joinery.model.ids import GroupId, WorkerId
from joinery.partition.map import PartitionMap

KEPT: Final = 64


class Handovers:
    """Those under way, and the newest that ended."""

    def __init__(self, workforce: Workforce) -> None:
        self._workforce = workforce
        self.changing: dict[GroupId, MoveView] = {}
        self._back: set[GroupId] = set()
        """Groups that a new instance of their owner is about to get."""
        self.done: deque[MoveView] = deque(maxlen=KEPT)
        self.count = 0
        self.pauses = {True: Delays(), False: Delays()}
        """Of all that ended: of planned ones, and of those whose owner was lost."""

    def taken_back(self, groups: Iterable[int]) -> None:
        """The owner of these groups held them, and is here anew without them: the next map gives them to it again."""
        self._back.update(GroupId(int(group)) for group in groups)

    def began(self, old: PartitionMap | None, new: PartitionMap, groups: Iterable[int], now_ns: int) -> None:
        """A map is durable in which these groups have new terms; one that changes again keeps its first owner."""
        for number in groups if old is not None else ():
            group = GroupId(int(number))
            source, target = old.owner(group) if old else None, new.owner(group)
            known, is_back = self.changing.get(group), group in self._back
            self._back.discard(group)
            if known is not None:
                self.changing[group] = replace(known, target=target)
            elif source is not None and (source != target or is_back):
                self.changing[group] = MoveView(
                    group=group, source=source, target=target, nbytes=self.bytes_of(source, group),
                    is_planned=self._workforce.is_up(source) and not is_back, begun_ns=now_ns,
                )  # fmt: skip

    def ended(self, groups: Iterable[int], now_ns: int) -> None:
        """These groups are served again."""
        for number in groups:
            if (move := self.changing.pop(GroupId(int(number)), None)) is not None:
                pause_ns = max(0, now_ns - move.begun_ns)
                self.done.append(replace(move, pause_ns=pause_ns))
                self.pauses[move.is_planned] += Delays.of(np.array([pause_ns]), np.ones(1, np.int64))
                self.count += 1

    def bytes_of(self, worker: WorkerId, group: GroupId) -> int:
        """A group's window, as its owner reported it last; 0: not known."""
        hand = self._workforce.hands.get(worker)
        report = hand.report or hand.before if hand is not None else None
        parts = report.groups if report is not None else ()
        return next((part.memory_bytes for part in parts if part.group == group), 0)
