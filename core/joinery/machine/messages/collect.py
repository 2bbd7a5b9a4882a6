"""Collect: what worker and collector, and collector and subscriber, say to each other."""

from dataclasses import dataclass

from joinery.join.results import ResultPart
from joinery.model.ids import RecordNo, Term
from joinery.model.tuples import I64Array
from joinery.window.sliding import Marks


@dataclass(frozen=True, slots=True, eq=False)
class Resume:
    """Send what you keep of each group after these records."""

    term: Term
    taken: I64Array
    """One per group of the query."""


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """The results of the batch (after, upto] of some groups, whole if `last`."""

    groups: I64Array
    after: I64Array
    versions: I64Array
    upto: RecordNo
    marks: Marks
    part: int
    last: bool
    parts: tuple[ResultPart, ...]

    @property
    def nbytes(self) -> int:
        return sum(part.rows.nbytes for part in self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class Committed:
    """Commit c is durable; these groups are committed up to these records. To workers and gateway."""

    term: Term
    number: int
    groups: I64Array
    upto: I64Array


@dataclass(frozen=True, slots=True)
class Token:
    """Where a subscriber stands: it has the rows of commit `number` before `row`, and every earlier commit."""

    number: int
    row: int


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Send committed results after the token; None: from the oldest one left."""

    token: Token | None


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """Committed results; the subscriber's next token is `token`."""

    parts: tuple[ResultPart, ...]
    token: Token


@dataclass(frozen=True, slots=True)
class TokenTooOld:
    """The results after the token are no longer kept; the oldest token that can be served."""

    oldest: Token
