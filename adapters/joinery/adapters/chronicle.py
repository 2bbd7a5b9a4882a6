"""What a process has lived through, as few lines of its log (`logs`): seen beside its machine, which is not touched.

Told are: a term begun, connections to peers that it dials, workers that come and go, moves with their pauses, changes
of the spec, decisions that change the degree, and the end. Nothing is told per row, record or message.
"""

import logging
from typing import Final

from joinery.adapters import logs
from joinery.adapters.shell import Machine, Recorder
from joinery.elastic.guarded import Wish
from joinery.machine.facts import CollectorOpened, Connected, Disconnected, Fact, GatewayOpened, Received
from joinery.machine.gateway import GatewayMachine
from joinery.machine.messages import Decided, EventKind, MoveView
from joinery.machine.orders import Order, Stop
from joinery.model.ids import COLLECTOR, GATEWAY
from joinery.model.words import counted

_SERIOUS: Final = (
    EventKind.WORKER_LOST,
    EventKind.DATA_LOST,
    EventKind.STATE_LOST,
    EventKind.CHECKPOINT_DAMAGED,
    EventKind.STATE_TOO_LARGE,
)
_DIALLED: Final = (GATEWAY, COLLECTOR)


class Chronicle:
    """Sees what a machine is told and orders (`shell.Recorder`), and passes it on to another who does."""

    def __init__(self, machine: Machine, then: Recorder | None = None) -> None:
        self._gateway = machine if isinstance(machine, GatewayMachine) else None
        self._then = then
        self._events = self._moves = 0

    def saw(self, now_ns: int, fact: Fact, orders: list[Order]) -> None:
        """One fact and what was ordered."""
        if self._then is not None:
            self._then.saw(now_ns, fact, orders)
        if isinstance(fact, Connected | Disconnected):
            self._connection(fact)
        elif isinstance(fact, GatewayOpened | CollectorOpened):
            self._opened(fact)
        elif isinstance(fact, Received) and isinstance(fact.message, Decided) and fact.message.wish is not Wish.KEEP:
            logs.tell(f"decided: {fact.message.words()}", event="Decided")
        if self._gateway is not None:
            self._happened(self._gateway)
        for order in orders:
            if isinstance(order, Stop):
                logs.tell(f"stops: {order.because}", event="Stops")

    def _connection(self, fact: Connected | Disconnected) -> None:
        if fact.peer in _DIALLED:
            is_up = isinstance(fact, Connected)
            text = f"connected to the {fact.peer}" if is_up else f"the connection to the {fact.peer} is gone"
            logs.tell(text, event="Connected" if is_up else "Disconnected", peer=fact.peer)

    def _opened(self, fact: GatewayOpened | CollectorOpened) -> None:
        logs.of_term(fact.term)
        if isinstance(fact, GatewayOpened):
            text = (
                f"the log is open: {counted(fact.head.next_record, 'record')}, {len(fact.records)} of them read again"
            )
            logs.tell(text, event="Opened", records=fact.head.next_record)
        else:
            logs.tell("the commits are read", event="Opened")

    def _happened(self, gateway: GatewayMachine) -> None:
        watch, handovers = gateway.watch, gateway.placement.handovers
        if fresh := watch.events_seen - self._events:
            self._events = watch.events_seen
            for event in list(watch.events)[-fresh:]:
                # on a terminal the runner tells it; only a cluster's log must say how serious it is
                level = logging.WARNING if event.kind in _SERIOUS and logs.is_json() else logging.INFO
                logs.tell(event.text, level=level, event=event.kind.value)
        if fresh := handovers.count - self._moves:
            self._moves = handovers.count
            for move in list(handovers.done)[-fresh:]:
                logs.tell(
                    _moved(move), event="GroupMoved", group=move.group, pause_ms=round((move.pause_ns or 0) / 1e6)
                )


def _moved(move: MoveView) -> str:
    why = f", {move.why}" if move.why else ""
    return f"group {move.group} moved from {move.source} to {move.target}, {move.nbytes} bytes{why}"
