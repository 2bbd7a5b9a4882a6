"""Rows as far apart in wall time as their times (`pace: time`), from the first row of this run on.

Rule 1: no row is sent before it is due. A row that is older than one before it is due at once.
Rule 2: rows that are due are sent together, about every `TICK_S`: a row waits no longer than that because of us.
Rule 3: if the query cannot follow, rows are sent as late as it takes them; they catch up when it can.
"""

import time
from collections.abc import Callable, Iterator
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
        first, began_s = None, 0.0
        for piece in self._reader.read(start):
            if isinstance(piece, Pause):
                yield piece
                continue
            times = ingest.times(self._form, piece.rows, 0) if piece.times is None else piece.times
            if first is None:
                first, began_s = int(times[0]), self._now_s()
            due_s = np.maximum.accumulate(times - first) / 1e9
            yield from self._in_time(piece, due_s, began_s)

    def _in_time(self, piece: Piece, due_s: NDArray[np.float64], began_s: float) -> Iterator[Piece | Pause]:
        at, rows = 0, piece.rows.num_rows
        while at < rows:
            upto = int(np.searchsorted(due_s, self._now_s() - began_s, side="right"))
            if upto > at:
                yield Piece(piece.sequence + at, piece.sequence + upto, piece.rows.slice(at, upto - at))
                at = upto
            if at < rows:
                yield Pause(max(TICK_S, float(due_s[at]) - (self._now_s() - began_s)))
