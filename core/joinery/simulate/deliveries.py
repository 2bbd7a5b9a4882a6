"""What subscribers see: rows of durable commits only, each once, in the order of the tokens, none left out.

What a commit holds is what its collector staged for it. A reader that was told `TokenTooOld` goes on at the token that
it was given; everything between is lost to it, and only then.
"""

from typing import Any

from joinery.join.results import Kind, ResultPart
from joinery.machine import messages, orders
from joinery.machine.messages import Token
from joinery.machine.totals import Totals
from joinery.model.errors import require
from joinery.simulate.process import Process

Rows = list[dict[str, Any]]


class Deliveries:
    """Where each subscriber stands."""

    def __init__(self) -> None:
        self._staged: dict[tuple[str, int], tuple[ResultPart, ...]] = {}
        self._commits: dict[int, tuple[ResultPart, ...]] = {}
        """The rows of each durable commit."""
        self.totals = Totals()
        """Rows of all durable commits."""
        self._at: dict[str, Token] = {}
        self.rows = 0

    def staged(self, process: Process, order: orders.StageResults) -> None:
        """A collector prepares a commit."""
        self._staged[process.instance, order.number] = order.parts

    def committed(self, process: Process, number: int) -> None:
        """It is durable."""
        parts = self._staged.pop((process.instance, number), ())
        self.totals = self.totals.after(parts)
        self._commits[number] = tuple(part for part in parts if part.kind is Kind.RESULT and part.times.size)

    def received(self, process: Process, message: messages.Message) -> None:
        """A subscriber hears something."""
        if isinstance(message, messages.TokenTooOld):
            before = self._at.get(process.instance)
            is_later = before is None or _place(message.oldest) > _place(before)
            require(is_later, f"{process} stands at {before} and is sent back to {message.oldest}")
            self._at[process.instance] = message.oldest
        elif isinstance(message, messages.Delivery):
            self._delivered(process, message)

    def _delivered(self, process: Process, delivery: messages.Delivery) -> None:
        token = delivery.token
        number = token.number if token.row else token.number - 1
        require(number in self._commits, f"{process} is given rows of commit {number}, which is not durable")
        found = _rows(delivery.parts)
        wanted = _rows(self._commits[number])
        end = token.row or len(wanted)
        start = end - len(found)
        require(found == wanted[start:end], f"{process} is given other rows than those of commit {number}")
        before = self._at.get(process.instance)
        if before is not None:
            wanted_at = self._next(before)
            require(
                (number, start) == wanted_at,
                f"{process} stands at {before} and is given {(number, start)}: wanted {wanted_at}",
            )
        self._at[process.instance] = token
        self.rows += len(found)

    def _next(self, token: Token) -> tuple[int, int]:
        """Commit and row of what comes after a token."""
        number, row = token.number, token.row
        while number in self._commits and row >= sum(part.times.size for part in self._commits[number]):
            number, row = number + 1, 0
        return number, row


def _rows(parts: tuple[ResultPart, ...]) -> Rows:
    return [row for part in parts for row in part.rows.to_pylist()]


def _place(token: Token) -> tuple[int, int]:
    return token.number, token.row
