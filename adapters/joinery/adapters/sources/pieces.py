"""What a source reads: pieces of its input, each with its place; and how large a piece is.

Rule 1: a piece's `sequence` is the place of its first row, `next_sequence` the place after its last. The same input
        read from a place gives the same rows from there on, so that a source that was stopped goes on (docs/design.md
        §3, producers). Pieces need not be cut alike.
Rule 2: a piece has at most 16,384 rows and about 1 MB. Nobody holds the whole input.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow as pa

from joinery.model.tuples import I64Array

MAX_ROWS: Final = 1 << 14
MAX_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Some rows, as they are pushed."""

    sequence: int
    next_sequence: int
    rows: pa.RecordBatch
    times: I64Array | None = None
    """When each row is due, in nanoseconds since any moment; None: at once."""


@dataclass(frozen=True, slots=True)
class Pause:
    """There is nothing to send for so long."""

    seconds: float


class Reader(Protocol):
    """An input that can be read from any of its places."""

    @property
    def title(self) -> str:
        """What errors call it."""
        ...

    def check(self) -> None:
        """Refuse, with the reason, an input that cannot be read or lacks a column."""
        ...

    def read(self, start: int | None) -> Iterator[Piece | Pause]:
        """The input from this place on (None: from where a first run begins) to its end."""
        ...


def cut(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Rows in batches of the size of a piece (rule 2); nothing is copied."""
    step = min(MAX_ROWS, max(1, rows.num_rows * MAX_BYTES // max(1, rows.nbytes)))
    for start in range(0, rows.num_rows, step):
        yield rows.slice(start, step)
