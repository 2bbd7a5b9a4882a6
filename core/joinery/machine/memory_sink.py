"""Memory twin of a sink that writes a part per collector term, as the file sinks do (docs/design.md §3, commit).

Rule 1: a term writes only its own part; what a former collector still writes goes into a part of which nothing counts
        any more.
Rule 2: a receipt counts parts of results over all terms: `base` of a term is what counted when it began. So what a
        later term found valid also says how much of every earlier term's part is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from joinery.join.results import ResultPart
from joinery.machine.ports import Receipt, Stale
from joinery.model.errors import require
from joinery.model.ids import Term


@dataclass(slots=True)
class TermPart:
    """What one collector wrote."""

    base: int
    """How much counted before it."""
    staged: list[tuple[int, ResultPart]] = field(default_factory=list)
    """Each with the number of its commit."""


@dataclass(slots=True)
class Shelf:
    """What of a sink outlives the collectors: all handles of one sink share it."""

    parts: dict[Term, TermPart] = field(default_factory=dict)
    finished: list[ResultPart] | None = None
    """The whole output, once it is complete."""


class MemorySink:
    """Twin of `ports.Sink`: one collector process's handle on a shelf."""

    def __init__(self, name: str, shelf: Shelf | None = None) -> None:
        self.name = name
        self.shelf = Shelf() if shelf is None else shelf
        self._term: Term | None = None

    def again(self) -> "MemorySink":
        """The same sink as another process opens it."""
        return MemorySink(self.name, self.shelf)

    def recover(self, term: Term, valid: Receipt | None) -> None:
        self._check_name(valid)
        self._term = term
        self.shelf.parts[term] = TermPart(0 if valid is None else valid.valid)

    def stage(self, number: int, parts: Sequence[ResultPart]) -> Receipt:
        own = self._own()
        own.staged = [entry for entry in own.staged if entry[0] < number]
        own.staged += [(number, part) for part in parts]
        return Receipt(self.name, own.base + len(own.staged))

    def finish(self, valid: Receipt | None) -> None:
        self._check_name(valid)
        self._own()
        newest = max(self.shelf.parts)
        if self._term != newest:
            raise Stale(newest, int(self._term or 0))
        self.shelf.finished = self.valid_parts(valid)

    def valid_parts(self, valid: Receipt | None) -> list[ResultPart]:
        """What counts, given the last commit's receipt, in the order in which it was committed."""
        found: list[ResultPart] = []
        wanted = 0 if valid is None else valid.valid
        parts = [self.shelf.parts[term] for term in sorted(self.shelf.parts)]
        for part, later in zip(parts, [*parts[1:], None], strict=False):
            end = wanted if later is None else later.base
            found += [rows for _, rows in part.staged[: max(0, end - part.base)]]
        require(len(found) == wanted, f"sink {self.name} holds {len(found)} valid parts, its receipt says {wanted}")
        return found

    def _own(self) -> TermPart:
        require(self._term is not None, f"sink {self.name} was used before recover told it the term")
        return self.shelf.parts[Term(self._term or 0)]

    def _check_name(self, valid: Receipt | None) -> None:
        named = self.name if valid is None else valid.sink
        require(named == self.name, f"sink {self.name} was given the receipt of {named}")
