"""The subscriber's end of results: every committed row once, in order, whatever becomes of connections.

Rule 1: on every new connection it subscribes from the token of the last delivery that came: nothing is missed, nothing
        comes twice.
Rule 2: at most `CREDIT` deliveries are on their way or wait to be read. Who reads slowly is sent slowly; who does not
        read holds up nobody else.
Rule 3: nothing is swallowed. A token that is no longer kept is `failed`, with the oldest one that is.
"""

from collections import deque
from typing import Final

from joinery.machine import facts, messages, orders
from joinery.machine.facts import Fact
from joinery.machine.messages import Delivery, Ended, Token
from joinery.machine.orders import Order, Send
from joinery.model.errors import require
from joinery.model.ids import COLLECTOR

CREDIT: Final = 8


class SubscriberMachine:
    """One subscriber. The program takes from `deliveries` and says so with the fact `Consumed`."""

    def __init__(self, token: Token | None, *, only_kept: bool = False) -> None:
        self.deliveries: deque[Delivery] = deque()
        self.ended: Ended | None = None
        self.failed: str | None = None
        self._token, self._only_kept = token, only_kept
        self._credit = 0
        """Deliveries that the collector may still send on this connection."""

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:  # noqa: ARG002
        """What to do about a fact."""
        if self.ended is not None or self.failed is not None:
            return []
        match fact:
            case facts.Connected() if fact.peer == COLLECTOR:
                self._credit = max(1, CREDIT - len(self.deliveries))
                return [Send(COLLECTOR, messages.Subscribe(self._token, self._credit, self._only_kept))]
            case facts.Disconnected() if fact.peer == COLLECTOR:
                self._credit = 0
            case facts.Received() if fact.peer == COLLECTOR:
                return self._received(fact.message)
            case facts.Consumed():
                return self._grant()
        return []

    def _received(self, message: messages.Message) -> list[Order]:
        match message:
            case Delivery():
                self.deliveries.append(message)
                self._token, self._credit = message.token, self._credit - 1
                return self._grant()
            case messages.TokenTooOld():
                at = "the oldest result" if self._token is None else f"the results after {token_text(self._token)}"
                oldest = token_text(message.oldest)
                self.failed = (
                    f"found that {at} are no longer kept (or never were, in this query), wanted {oldest} or later; "
                    f"subscribe from {oldest}, read faster, or raise spec.results.retain"
                )
            case Ended():
                self.ended = message
            case _:
                return []
        return [orders.Stop(self.failed or "every result is here")]

    def _grant(self) -> list[Order]:
        """More, once half of the credit is used up."""
        more = CREDIT - self._credit - len(self.deliveries)
        if self._credit <= 0 and more <= 0:
            return []
        if more < CREDIT // 2 and self._credit > 0:
            return []
        self._credit += max(0, more)
        return [Send(COLLECTOR, messages.Grant(more))] if more > 0 else []

    def check_invariants(self) -> None:
        """Stop with a `Bug` if the machine's state contradicts itself."""
        require(self._credit + len(self.deliveries) <= CREDIT + 1, "more is granted than there is room for")


def token_text(token: Token) -> str:
    """A token as users see it."""
    return f"{token.number}:{token.row}"
