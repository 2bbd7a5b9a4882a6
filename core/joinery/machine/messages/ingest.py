"""Ingest: what producer and gateway say to each other."""

from dataclasses import dataclass

import pyarrow as pa

from joinery.model.ids import ProducerId, RecordNo, Term
from joinery.partition.format import StreamFormat


@dataclass(frozen=True, slots=True)
class Open:
    """A producer asks for a session on one stream. Without a name it gets a fresh id."""

    stream: int
    name: ProducerId | None


@dataclass(frozen=True, slots=True)
class Opened:
    """The session; older ones of that name are fenced."""

    term: Term
    producer: ProducerId
    session: int
    expected: int | None
    """The sequence to go on with; None: free to choose."""
    ended: bool = False
    """This producer has already said that it will send no more."""


@dataclass(frozen=True, slots=True, eq=False)
class Push:
    """A batch: its sequence and the one after it; the last one says so."""

    session: int
    sequence: int
    next_sequence: int
    checksum: int
    rows: pa.RecordBatch
    end: bool = False


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """The batch is recorded; `record` is None if it was known already."""

    sequence: int
    record: RecordNo | None


@dataclass(frozen=True, slots=True)
class Refuse:
    """The batch, or the session, was not taken."""

    sequence: int | None
    reason: str
    expected: int | None = None
    """Go on with this sequence; None: do not go on."""


@dataclass(frozen=True, slots=True)
class Describe:
    """What does this query want, and what does it give?"""


@dataclass(frozen=True, slots=True)
class Description:
    """The streams of a query, and its results."""

    formats: tuple[StreamFormat, ...]
    results: pa.Schema
    results_address: str | None
    """Where results can be subscribed to; None: not known here."""
