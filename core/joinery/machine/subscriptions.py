"""Subscribers: who reads committed results, and how far back they can be read again (docs/design.md §3, commit).

Rule 1: a subscriber gets rows of committed results only, each once, in the order of the commits; late rows are not
        among them.
Rule 2: a token (c, row) says: I have every commit before c, and of c the rows before `row`. A delivery of all of commit
        c carries (c + 1, 0), which is good for as long as nothing after c has been thrown away, even if c has.
Rule 3: the last `retain` bytes are kept, in whole commits. A token before them is refused with the oldest good one, and
        so is one that was never given out (its commit is still to come, or has fewer rows): it is another query's.
Rule 4: what is kept is kept in memory. A collector that starts anew keeps nothing: it serves tokens of the commit
        after the last, and refuses older ones. (A retained sink in the store would serve them; that is not here.)
"""

from collections import deque
from dataclasses import dataclass

from joinery.join.results import Kind, ResultPart
from joinery.machine import result_rows
from joinery.machine.messages import Delivery, Token, TokenTooOld
from joinery.model.errors import require
from joinery.model.ids import Peer


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """One commit that had rows."""

    number: int
    parts: tuple[ResultPart, ...]
    rows: int
    nbytes: int


class Subscriptions:
    """Who subscribes, and what is kept for them."""

    def __init__(self, retain: int, last: int) -> None:
        self._retain = retain
        self._last = last
        """The last commit."""
        self._first = last + 1
        """No row of this commit, or of one after it, has been thrown away."""
        self._kept: deque[_Kept] = deque()
        self._nbytes = 0
        self._readers: dict[Peer, None] = {}

    def subscribe(self, peer: Peer, token: Token | None) -> list[Delivery | TokenTooOld]:
        """The answer to a subscriber: all that is kept after its token, or why that is not possible."""
        start = token or Token(self._first, 0)
        if not self._is_good(start):
            self._readers.pop(peer, None)
            return [TokenTooOld(Token(self._first, 0))]
        self._readers[peer] = None
        found: list[Delivery | TokenTooOld] = []
        for kept in self._kept:
            if kept.number >= start.number:
                parts = result_rows.without_first(kept.parts, start.row if kept.number == start.number else 0)
                if parts:
                    found.append(Delivery(parts, Token(kept.number + 1, 0)))
        return found

    def _is_good(self, token: Token) -> bool:
        if not self._first <= token.number <= self._last + 1:
            return False
        rows = next((kept.rows for kept in self._kept if kept.number == token.number), 0)
        return 0 <= token.row <= rows

    def leave(self, peer: Peer) -> None:
        """The subscriber's connection is gone."""
        self._readers.pop(peer, None)

    def committed(self, number: int, parts: tuple[ResultPart, ...]) -> list[tuple[Peer, Delivery]]:
        """One more commit: keep it, and tell everybody."""
        require(number == self._last + 1, f"commit {number} after commit {self._last}")
        self._last = number
        results = tuple(part for part in parts if part.kind is Kind.RESULT and part.times.size)
        if not results:
            return []
        rows, nbytes = sum(part.times.size for part in results), sum(result_rows.size(part) for part in results)
        self._kept.append(_Kept(number, results, rows, nbytes))
        self._nbytes += nbytes
        while self._nbytes > self._retain:
            gone = self._kept.popleft()
            self._nbytes, self._first = self._nbytes - gone.nbytes, gone.number + 1
        return [(peer, Delivery(results, Token(number + 1, 0))) for peer in self._readers]

    def check(self) -> None:
        """Stop with a `Bug` if this contradicts itself."""
        require(self._nbytes == sum(kept.nbytes for kept in self._kept) <= max(0, self._retain), "bytes are miscounted")
        numbers = [kept.number for kept in self._kept]
        require(numbers == sorted(set(numbers)), f"commits {numbers} are not in order")
        require(all(self._first <= number <= self._last for number in numbers), "a commit is kept that was thrown away")
