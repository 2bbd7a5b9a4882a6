"""Subscribers: who reads committed results, and how far back they can be read again (docs/design.md §3, commit).

Rule 1: a subscriber gets rows of committed results only, each once, in the order of the commits; late rows are not
        among them.
Rule 2: a token (c, row) says: I have every commit before c, and of c the rows before `row`. A delivery of all of commit
        c carries (c + 1, 0), which is good for as long as nothing after c has been thrown away, even if c has.
Rule 3: the last `retain` bytes are kept, in whole commits. A token before them is refused with the oldest good one, and
        so is one that was never given out (its commit is still to come, or has fewer rows): it is another query's.
Rule 4: what is kept is kept in memory. A collector that starts anew is given what its forerunner had kept in the store
        (`retaining`), if there is one; without, it serves tokens of the commit after the last, and refuses older ones.
Rule 5: a delivery is about `PIECE_BYTES` at most, of one commit. A subscriber with a credit gets so many and then waits
        for a grant: all that is held for it is where it stands. One that falls behind what is kept is refused by
        rule 3, however long it has been there; so a slow reader costs nobody anything.
Rule 6: after the last commit of a query whoever has every row is told so (`Ended`). The collector waits with its own
        end for those who read on, but not longer than `PATIENCE_NS` for somebody who does not. A subscriber who wants
        only what is there is told when it has that.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from joinery.join.results import ResultPart
from joinery.machine import result_rows
from joinery.machine.messages import Delivery, Ended, Subscribe, Token, TokenTooOld
from joinery.machine.ports import Kept
from joinery.machine.retaining import results_of
from joinery.model.errors import require
from joinery.model.ids import Peer

PIECE_BYTES: Final = 1 << 20
PATIENCE_NS: Final = 5_000_000_000

Answer = Delivery | TokenTooOld | Ended


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """One commit that had rows."""

    number: int
    parts: tuple[ResultPart, ...]
    rows: int
    nbytes: int


@dataclass(slots=True)
class _Reader:
    """Where a subscriber stands."""

    at: Token
    credit: int | None
    """Deliveries that it still takes; None: any number."""
    last: int | None = None
    """The last commit that it wants; None: all."""


class Subscriptions:
    """Who subscribes, and what is kept for them."""

    def __init__(self, retain: int, last: int, schema: pa.Schema, kept: Kept | None = None) -> None:
        self._retain, self._schema = retain, schema
        self._last = last
        """The last commit."""
        self._first = last + 1
        """No row of this commit, or of one after it, has been thrown away."""
        self._kept: deque[_Kept] = deque()
        self._nbytes = 0
        self._readers: dict[Peer, _Reader] = {}
        self._has_ended = False
        self._behind: dict[Peer, Token] = {}
        """Who did not have everything when that was looked at last, and where they stood."""
        self._until_ns = 0
        if kept is not None:
            self._first = min(kept.first, self._first)
            for number, parts in kept.commits:
                self._keep(number, parts)
            self._throw_away()

    @property
    def first(self) -> int:
        """The oldest commit of which nothing is missing, nor of those after it."""
        return self._first

    def wait_until_ns(self, now_ns: int) -> int | None:
        """How long to wait with the end for subscribers that do not have everything; None: no longer (rule 6)."""
        last = self._last_with_rows
        behind = {peer: reader.at for peer, reader in self._readers.items() if reader.at.number <= last}
        if behind != self._behind:
            self._behind, self._until_ns = behind, now_ns + PATIENCE_NS
        return self._until_ns if behind and now_ns < self._until_ns else None

    def subscribe(self, peer: Peer, message: Subscribe) -> list[Answer]:
        """The answer to a subscriber: what is kept after its token, or why that is not possible."""
        start = message.token or Token(self._first, 0)
        self._readers[peer] = _Reader(start, message.credit, self._last if message.only_kept else None)
        if not self._is_good(start):
            return self._refuse(peer)
        return self._advance(peer)

    def grant(self, peer: Peer, credit: int) -> list[Answer]:
        """The subscriber takes so many deliveries more."""
        reader = self._readers.get(peer)
        if reader is None:
            return []
        if reader.credit is not None:
            reader.credit += credit
        return self._advance(peer)

    def leave(self, peer: Peer) -> None:
        """The subscriber's connection is gone."""
        self._readers.pop(peer, None)

    def committed(self, number: int, parts: tuple[ResultPart, ...]) -> list[tuple[Peer, Answer]]:
        """One more commit: keep it, and tell everybody who has a credit left."""
        require(number == self._last + 1, f"commit {number} after commit {self._last}")
        self._last = number
        results = results_of(parts)
        if not results:
            return []
        self._keep(number, results)
        told = [(peer, answer) for peer in list(self._readers) for answer in self._advance(peer)]
        return told + self._throw_away()

    def _keep(self, number: int, results: tuple[ResultPart, ...]) -> None:
        rows, nbytes = sum(part.times.size for part in results), sum(result_rows.size(part) for part in results)
        self._kept.append(_Kept(number, results, rows, nbytes))
        self._nbytes += nbytes

    def end(self) -> list[tuple[Peer, Answer]]:
        """There will be no more commits."""
        self._has_ended = True
        return [(peer, answer) for peer in list(self._readers) for answer in self._advance(peer)]

    @property
    def _last_with_rows(self) -> int:
        return self._kept[-1].number if self._kept else self._first - 1

    def _throw_away(self) -> list[tuple[Peer, Answer]]:
        """Keep no more than the limit (rule 3), and tell who has lost the thread by that (rule 5)."""
        while self._nbytes > self._retain:
            gone = self._kept.popleft()
            self._nbytes, self._first = self._nbytes - gone.nbytes, gone.number + 1
        lost = [peer for peer, reader in self._readers.items() if reader.at.number < self._first]
        return [(peer, answer) for peer in lost for answer in self._refuse(peer)]

    def _refuse(self, peer: Peer) -> list[Answer]:
        del self._readers[peer]
        return [TokenTooOld(Token(self._first, 0))]

    def _is_good(self, token: Token) -> bool:
        if not self._first <= token.number <= self._last + 1:
            return False
        rows = next((kept.rows for kept in self._kept if kept.number == token.number), 0)
        return 0 <= token.row <= rows

    def _advance(self, peer: Peer) -> list[Answer]:
        """All that the subscriber lacks and has credit for; then, if no more will come, that."""
        reader, found = self._readers[peer], list[Answer]()
        wanted = self._last if reader.last is None else reader.last
        for kept in self._kept:
            while reader.at.number <= kept.number <= wanted and (reader.credit is None or reader.credit > 0):
                parts = _piece(kept, reader.at.row if reader.at.number == kept.number else 0)
                reader.at = _after(kept, reader.at, parts)
                if parts:
                    found.append(Delivery(parts, reader.at))
                    reader.credit = None if reader.credit is None else reader.credit - 1
        if not any(reader.at.number <= kept.number <= wanted for kept in self._kept):
            reader.at = Token(wanted + 1, 0)
            if self._has_ended or reader.last is not None:
                del self._readers[peer]
                found.append(Ended(reader.at, self._schema))
        return found

    def check(self) -> None:
        """Stop with a `Bug` if this contradicts itself."""
        require(self._nbytes == sum(kept.nbytes for kept in self._kept) <= max(0, self._retain), "bytes are miscounted")
        numbers = [kept.number for kept in self._kept]
        require(numbers == sorted(set(numbers)), f"commits {numbers} are not in order")
        require(all(self._first <= number <= self._last for number in numbers), "a commit is kept that was thrown away")
        for peer, reader in self._readers.items():
            require(self._first <= reader.at.number <= self._last + 1, f"{peer} stands at {reader.at}")
            require(reader.credit is None or reader.credit >= 0, f"{peer} got more than it had credit for")


def _piece(kept: _Kept, row: int) -> tuple[ResultPart, ...]:
    """The next rows of a commit, about as many as a delivery holds; none: there are no more."""
    left, chosen = PIECE_BYTES, list[ResultPart]()
    for part in result_rows.without_first(kept.parts, row):
        rows = max(1, part.times.size * left // result_rows.size(part))
        chosen.append(part if rows >= part.times.size else result_rows.cut(part, 0, rows))
        left -= result_rows.size(chosen[-1])
        if left <= 0 or rows < part.times.size:
            break
    return tuple(chosen)


def _after(kept: _Kept, at: Token, parts: tuple[ResultPart, ...]) -> Token:
    row = (at.row if at.number == kept.number else 0) + sum(part.times.size for part in parts)
    return Token(kept.number, row) if row < kept.rows and parts else Token(kept.number + 1, 0)
