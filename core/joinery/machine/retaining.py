"""Results kept for subscribers who come back: what is kept, and what of it a store holds (`ports.Retained`).

Rule 1: until somebody subscribes, results are kept in memory only: writing every result once more costs as much as the
        sinks do, and nobody has a token. `keep` writes what is here, and from then on every commit is written when it
        is staged. It is for ever: a token may come back at any time.
Rule 2: a commit is staged when the one before it has been written. So what is here of commits before it is valid, and
        what is beyond `retain` bytes of that can go; the commit itself is not counted before it is valid.
Rule 3: a receipt is the number of a commit. Of what a store holds only commits up to the receipt are valid; a store
        without a receipt holds nothing that can be relied on, since commits may have been made without it.
Rule 4: a commit that is larger than all that may be kept is noted, and not written. Whoever reads begins after the last
        one of which rows are missing.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from joinery.join.results import Kind, ResultPart
from joinery.machine import result_rows
from joinery.machine.ports import Kept, Receipt, Stale
from joinery.model.errors import require
from joinery.model.ids import Term


@dataclass(slots=True, eq=False)
class Entry:
    """The results of one commit."""

    number: int
    term: Term
    """Of the collector that staged it."""
    rows: int
    nbytes: int
    parts: tuple[ResultPart, ...] = ()
    """Until they are written."""
    is_written: bool = False


def results_of(parts: Sequence[ResultPart]) -> tuple[ResultPart, ...]:
    """Those that a subscriber gets."""
    return tuple(part for part in parts if part.kind is Kind.RESULT and part.times.size)


def kept_of(first: int, commits: Sequence[tuple[int, int, tuple[ResultPart, ...]]]) -> Kept:
    """What can be relied on of commits with their number, how many rows they had, and what is there of them."""
    found: list[tuple[int, tuple[ResultPart, ...]]] = []
    for number, rows, parts in sorted(commits, key=lambda one: one[0]):
        if rows == sum(part.times.size for part in parts):
            found.append((number, parts))
        else:  # rule 4
            first, found = max(first, number + 1), []
    return Kept(first, tuple(one for one in found if one[0] >= first))


class Window:
    """What one collector keeps, and what of it is still to be written or removed."""

    def __init__(self, retain: int) -> None:
        self._retain = retain
        self.first: int | None = None
        """No row of this commit or of a later one is missing; None: nothing was staged yet."""
        self.entries: deque[Entry] = deque()
        self.gone: list[Entry] = []
        """Written once, no longer needed."""

    def stage(self, number: int, term: Term, parts: Sequence[ResultPart]) -> None:
        """One more commit; the same number again replaces it."""
        while self.entries and self.entries[-1].number >= number:
            self.entries.pop()
        self.first = number if self.first is None else self.first
        while sum(entry.nbytes for entry in self.entries) > self._retain:  # rule 2
            self._forget()
        results = results_of(parts)
        if results:
            rows, nbytes = sum(part.times.size for part in results), sum(result_rows.size(part) for part in results)
            self.entries.append(Entry(number, term, rows, nbytes, results if nbytes <= self._retain else ()))

    def begin_with(self, first: int) -> None:
        """Nothing before this commit is needed."""
        self.first = max(first, self.first or first)
        while self.entries and self.entries[0].number < self.first:
            self._forget()

    def _forget(self) -> None:
        entry = self.entries.popleft()
        self.first = entry.number + 1 if self.first is None else max(self.first, entry.number + 1)
        if entry.is_written:
            self.gone.append(entry)

    @property
    def unwritten(self) -> list[Entry]:
        """What a store lacks."""
        return [entry for entry in self.entries if not entry.is_written]

    def written(self) -> None:
        """The store has all of it, and nothing else."""
        self.gone.clear()
        for entry in self.entries:
            entry.parts, entry.is_written = (), True


@dataclass(slots=True)
class RetainedShelf:
    """What outlives the collectors: all handles of one twin share it."""

    term: Term | None = None
    first: int | None = None
    """None: nobody has subscribed."""
    commits: dict[int, tuple[int, tuple[ResultPart, ...]]] = field(default_factory=dict)
    """How many rows each had, and what is kept of them."""


class MemoryRetained:
    """Twin of `ports.Retained`: one collector process's handle on a shelf."""

    name = "retained"

    def __init__(self, retain: int, shelf: RetainedShelf | None = None) -> None:
        self._retain, self._window = retain, Window(retain)
        self.shelf = RetainedShelf() if shelf is None else shelf
        self._term: Term | None = None

    def again(self) -> "MemoryRetained":
        """The same one as another process opens it."""
        return MemoryRetained(self._retain, self.shelf)

    def recover(self, term: Term, valid: Receipt | None) -> None:
        shelf = self.shelf
        self._check(term)
        shelf.term = self._term = term
        shelf.first = None if valid is None else shelf.first
        upto = 0 if valid is None else valid.valid
        shelf.commits = {number: held for number, held in shelf.commits.items() if number <= upto}
        self._window = Window(self._retain)
        self._window.first = shelf.first
        for number, (rows, parts) in shelf.commits.items():
            nbytes = sum(result_rows.size(part) for part in parts)
            self._window.entries.append(Entry(number, term, rows, nbytes, is_written=True))

    def stage(self, number: int, parts: Sequence[ResultPart]) -> Receipt:
        term = self._own()
        self._window.stage(number, term, parts)
        if self.shelf.first is not None:
            self._write()
        return Receipt(self.name, number)

    def keep(self, first: int) -> None:
        self._own()
        self._window.begin_with(first)
        self._write()

    def read(self) -> Kept | None:
        held = [(number, rows, parts) for number, (rows, parts) in self.shelf.commits.items()]
        return None if self.shelf.first is None else kept_of(self.shelf.first, held)

    def finish(self, valid: Receipt | None) -> None:  # noqa: ARG002 - what is kept can be asked for until the very end
        self._own()

    def _write(self) -> None:
        window, commits = self._window, self.shelf.commits
        for entry in window.gone:
            commits.pop(entry.number, None)
        for entry in window.unwritten:
            commits[entry.number] = (entry.rows, entry.parts)
        self.shelf.first = window.first
        window.written()

    def _own(self) -> Term:
        require(self._term is not None, "retained results were used before recover told the term")
        self._check(Term(self._term or 0))
        return Term(self._term or 0)

    def _check(self, term: Term) -> None:
        if self.shelf.term is not None and self.shelf.term > term:
            raise Stale(self.shelf.term, term)
