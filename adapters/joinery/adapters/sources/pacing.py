"""Rows as far apart in wall time as their times (`pace: time`), from the first row of this run on.

Rule 1: no row is sent before it is due. A row that is older than one before it is due at once.
Rule 2: rows that are due are sent together, about every `TICK_S`: a row waits no longer than that because of us.
Rule 3: if the query cannot follow, rows are sent as late as it takes them; they catch up when it can.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joinery.adapters.sources.pieces import Pause, Piece, Reader
from joinery.flow import ingest
from joinery.partition.format import StreamFormat

TICK_S: Final = 0.01


class PacedReader:
    """A reader whose rows come when they are due; each row is one step of its sequence."""

    def __init__(self, reader: Reader, form: StreamFormat, now_s: Callable[[], float] = time.monotonic) -> None:
        self._reader, self._form, self._now_s = reader, form, now_s

    @property
    def title(self) -> str:
        return self._reader.title

    def check(self) -> None:
        self._reader.check()

    def read(self, start: int | None) -> Iterator[Piece | Pause]:
        """Pieces when they are due, cut where needed."""
        return paced(self._reader.read(start), self._form, now_s=self._now_s)


def paced(
    pieces: Iterable[Piece | Pause],
    form: StreamFormat,
    start: tuple[int, float] | None = None,
    now_s: Callable[[], float] = time.monotonic,
) -> Iterator[Piece | Pause]:
    """The pieces when they are due; `start`: a time of the rows, and the moment at which it is due.

    Without `start` the first row is due at once.
    """
    for piece in pieces:
        if isinstance(piece, Pause):
            yield piece
            continue
        times = ingest.times(form, piece.rows, 0) if piece.times is None else piece.times
        if start is None:
            start = (int(times[0]), now_s())
        due_s = np.maximum.accumulate(times - start[0]) / 1e9
        yield from _in_time(piece, due_s, start[1], now_s)


def _in_time(
    piece: Piece, due_s: NDArray[np.float64], began_s: float, now_s: Callable[[], float]
) -> Iterator[Piece | Pause]:
    at, rows = 0, piece.rows.num_rows
    while at < rows:
        upto = int(np.searchsorted(due_s, now_s() - began_s, side="right"))
        if upto > at:
            yield Piece(piece.sequence + at, piece.sequence + upto, piece.rows.slice(at, upto - at))
            at = upto
        if at < rows:
            yield Pause(max(TICK_S, float(due_s[at]) - (now_s() - began_s)))
