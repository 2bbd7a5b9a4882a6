"""One query's gateway, attended: the operator's machine of `core` on a connection to it, in a thread of its own.

The machine decides the number of workers (`SetReplicas`) and has them drained; here its orders and what the gateway
tells are kept for the reconciling loop, which is woken when something matters. A decision that changes the number is
logged with all its inputs: whoever doubts it can make it again (`elastic.guarded.replay`).
"""

import json
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from joinery.adapters.conversations import controlling
from joinery.adapters.dashboard.frames import in_words
from joinery.adapters.logs import is_json
from joinery.adapters.plain_values import Blobs, encode
from joinery.adapters.process import Process
from joinery.adapters.scaling_record import DecisionTeller
from joinery.adapters.security import Security
from joinery.elastic.beta import Decision
from joinery.join.plan import JoinPlan
from joinery.machine import orders
from joinery.machine.calls import Calls
from joinery.machine.facts import Connected, Disconnected, Fact, Received, ReplicasWanted
from joinery.machine.messages import ChangeQuery, ClusterReport, Overview, QueryChanged
from joinery.machine.operator import OperatorMachine
from joinery.machine.orders import Order
from joinery.model.ids import GATEWAY, OPERATOR
from joinery.model.spec import JoinQuerySpec

log = logging.getLogger(__name__)

JOIN_S: Final = 2.0


class Attendance:
    """A connection to one gateway, and what came of it."""

    def __init__(
        self, address: str, spec: JoinQuerySpec, replicas: int, security: Security, wake: Callable[[], None]
    ) -> None:
        self.machine = OperatorMachine(spec, replicas)
        self.view: Overview | None = None
        self.is_connected = False
        self.connections = 0
        """How many there have been."""
        self.has_ended = False
        self.replicas = replicas
        """What the machine asked for last."""
        self.scaled: deque[tuple[int, str]] = deque(maxlen=64)
        """Numbers of workers it asked for and why; whoever tells them takes them out."""
        self.answers: deque[QueryChanged] = deque(maxlen=8)
        """Of the gateway to changes of the query; whoever handles them takes them out."""
        self._wake, self._address = wake, address
        self._process = Process(self.machine, Calls(instance="operator"), recorder=self, security=security)
        self._process.shell.carrying({orders.SetReplicas: self._scale})
        self._teller = DecisionTeller(self.machine, lambda one: self._process.send(GATEWAY, one))
        self._process.dial(GATEWAY, lambda: address, controlling(JoinPlan.of(spec)), role=OPERATOR)
        self._thread = threading.Thread(target=self._process.run, name=f"attend {address}", daemon=True)
        self._thread.start()

    @property
    def last_decision(self) -> Decision | None:
        return self.machine.last_decision

    def want(self, replicas: int, until_ns: int, because: str) -> None:
        """A person wants so many workers until then."""
        self._process.shell.tell(ReplicasWanted(replicas, until_ns, because))

    def change(self, spec: JoinQuerySpec) -> None:
        """Tell the gateway; its answer comes into `answers`."""
        self._process.send(GATEWAY, ChangeQuery(spec))

    def close(self) -> None:
        """End the connection and its thread."""
        self._process.close()
        self._thread.join(JOIN_S)

    def _scale(self, order: orders.SetReplicas) -> None:
        self.replicas = order.replicas
        self.scaled.append((order.replicas, order.because))
        self._wake()

    def saw(self, now_ns: int, fact: Fact, made: list[Order]) -> None:
        """What the machine was told, and what it made of it."""
        self._teller.saw(now_ns, fact, made)
        if (
            isinstance(fact, Received)
            and isinstance(fact.message, ClusterReport)
            and made
            and self.machine.last_decision
        ):
            decision = encode(self.machine.last_decision, Blobs())
            text = in_words(self.machine.last_decision) if is_json() else f"decision {json.dumps(decision)}"
            query = self._address.partition("-gateway.")[0]
            told = {"event": "Decided", "query": query, "gateway": self._address, "decision": decision}
            log.info("%s: %s", self._address, text, extra={"told": told})
        if isinstance(fact, Connected | Disconnected) and fact.peer == GATEWAY:
            self.is_connected = isinstance(fact, Connected)
            self.connections += self.is_connected
            self._wake()
        if isinstance(fact, Received) and isinstance(fact.message, Overview):
            self.view = fact.message
            self.has_ended = self.has_ended or fact.message.is_last
        if isinstance(fact, Received) and isinstance(fact.message, QueryChanged):
            self.answers.append(fact.message)
            self._wake()
        if any(isinstance(order, orders.Stop) for order in made):
            self.has_ended = True
            self._wake()
