"""Collect: what worker and collector, and collector and subscriber, say to each other."""

from dataclasses import dataclass, field

import pyarrow as pa

from joinery.flow.delays import Delays
from joinery.flow.stamps import NO_ARRIVALS, Arrivals
from joinery.join.results import ResultPart
from joinery.machine.totals import Totals
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
    produced_ns: int = 0
    """When this part was made, by the gateway's clock; 0: not known."""
    arrivals: Arrivals = NO_ARRIVALS
    """When the later members of its results arrived."""

    @property
    def nbytes(self) -> int:
        return sum(part.rows.nbytes for part in self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """How long the results took that were committed since the gateway was told last."""

    produced: Delays = field(default_factory=Delays)
    delivered: Delays = field(default_factory=Delays)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.produced + other.produced, self.delivered + other.delivered)


@dataclass(frozen=True, slots=True, eq=False)
class Committed:
    """Commit c is durable; these groups are committed up to these records. To workers and gateway."""

    term: Term
    number: int
    groups: I64Array
    upto: I64Array
    tally: Tally | None = None
    totals: Totals | None = None
    """Both for the gateway."""


@dataclass(frozen=True, slots=True)
class Token:
    """Where a subscriber stands: it has the rows of commit `number` before `row`, and every earlier commit."""

    number: int
    row: int


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Send committed results after the token; None: from the oldest one left."""

    token: Token | None
    credit: int | None = None
    """Send so many deliveries, then wait for `Grant`; None: send all as it comes."""
    only_kept: bool = False
    """End when all that is there now was delivered."""


@dataclass(frozen=True, slots=True)
class Grant:
    """So many deliveries more may be sent."""

    credit: int


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """Committed results; the subscriber's next token is `token`."""

    parts: tuple[ResultPart, ...]
    token: Token


@dataclass(frozen=True, slots=True)
class TokenTooOld:
    """The results after the token are no longer kept; the oldest token that can be served."""

    oldest: Token


@dataclass(frozen=True, slots=True)
class Ended:
    """Every result was delivered; no more will come, as the query has ended or only what was there was wanted."""

    token: Token
    schema: pa.Schema
