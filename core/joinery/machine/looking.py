"""Answers to who looks at a running query (`messages.looking`), from what the gateway knows; to look changes nothing.

Rule 1: rows of a record for a group are joined when no message that holds them is with the worker any more: a worker
        joins messages in their order, and gives credit for each when it is done (`workforce`).
Rule 2: what is committed is committed, whoever owns the group now and wherever it stands.
"""

from collections import Counter, deque
from typing import TYPE_CHECKING, Final

import numpy as np

from joinery.elastic.guarded import Wish
from joinery.machine.messages import Decided, GroupPlace, Look, Looked, RecordPlace, Station
from joinery.machine.orders import Order, Send
from joinery.machine.placement import Phase
from joinery.model.ids import GroupId, Peer, RecordNo

if TYPE_CHECKING:
    from joinery.machine.gateway import GatewayMachine

KEPT: Final = 64
"""Decisions of the operator that are kept; at the default t_r, those of two minutes."""


class Looking:
    """What is kept for who looks, and the answers."""

    def __init__(self, gateway: "GatewayMachine") -> None:
        self._gateway = gateway
        self.decisions: deque[Decided] = deque(maxlen=KEPT)
        self.outcomes: Counter[tuple[Wish, str]] = Counter()
        """Decisions by what was done, and by the first thing that held it back."""

    def asked(self, peer: Peer, message: Look | Decided, now_ns: int) -> list[Order]:
        """Somebody looks, or the operator tells what it decided."""
        if isinstance(message, Decided):
            self.decisions.append(message)
            self.outcomes[message.wish, next(iter(message.blocked_by), "")] += 1
            return []
        gateway = self._gateway
        answer = Looked(
            term=gateway.term,
            spec=gateway.spec,
            view=gateway.overview(now_ns),
            decisions=tuple(self.decisions),
            place=None if message.record is None else self.place(message.record),
        )
        return [Send(peer, answer)]

    def place(self, record: RecordNo) -> RecordPlace:
        """Where a record is."""
        backlog = self._gateway.backlog
        if record > backlog.last:
            return RecordPlace(record=record, is_recorded=False)
        rows = backlog.rows_by_group(record)
        if rows is None:
            return RecordPlace(record=record, is_recorded=True)
        groups = tuple(self._group(record, int(group), int(rows[group])) for group in np.flatnonzero(rows))
        return RecordPlace(record=record, is_recorded=True, is_kept=True, groups=groups)

    def _group(self, record: RecordNo, group: int, rows: int) -> GroupPlace:
        place = self._gateway.placement
        return GroupPlace(
            group=GroupId(group),
            rows=rows,
            station=self._station(record, group),
            worker=place.owner(group),
            sent=int(place.sent[group]),
            committed=int(place.committed[group]),
        )

    def _station(self, record: RecordNo, group: int) -> Station:
        place = self._gateway.placement
        if place.committed[group] >= record:
            return Station.COMMITTED
        if place.phase[group] == Phase.STOPPED:
            return Station.LOST
        worker = place.owner(group)
        if place.phase[group] != Phase.SERVED or worker is None:
            return Station.MOVING
        if place.sent[group] < record:
            return Station.WAITING
        return Station.SENT if place.workforce.is_joining(worker, group, record) else Station.JOINED
