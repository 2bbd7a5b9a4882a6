"""The wait buffer's rows: what `policy` counts in blocks, kept as columns in the pieces in which it came.

A piece is a batch and which of its rows still wait. Rows are taken by unit; a piece of which few rows are left is
copied, and many small pieces become one, so that memory follows what waits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joinery.model.tuples import I64Array, TupleBatch, concat

I32Array = NDArray[np.int32]
_PIECES: Final = 32


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Stream rows with what the join knows about each: unit, version of the relation, tag, when it came, bytes."""

    batch: TupleBatch
    units: I32Array
    versions: I64Array
    tags: I64Array
    """End of the batch (a, b] in which the row came."""
    since: I64Array
    sizes: I64Array

    def __len__(self) -> int:
        return len(self.batch)

    def take(self, index: I64Array) -> "Rows":
        """The chosen rows, in their order."""
        others = (column[index] for column in (self.versions, self.tags, self.since, self.sizes))
        return Rows(self.batch.take(index), self.units[index], *others)

    def renumbered(self, units: I32Array) -> "Rows":
        """The same rows under other units."""
        return Rows(self.batch, units, self.versions, self.tags, self.since, self.sizes)

    @staticmethod
    def together(parts: Sequence["Rows"]) -> "Rows":
        """One of several."""
        if len(parts) == 1:
            return parts[0]
        columns = zip(*((part.versions, part.tags, part.since, part.sizes) for part in parts), strict=True)
        units = np.concatenate([part.units for part in parts])
        return Rows(concat([part.batch for part in parts]), units, *(np.concatenate(column) for column in columns))


@dataclass(slots=True)
class _Piece:
    rows: Rows
    live: I64Array


@dataclass(slots=True)
class WaitBuffer:
    """Rows that wait for their segment."""

    _pieces: list[_Piece] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(piece.live.size for piece in self._pieces)

    def add(self, rows: Rows) -> None:
        """More rows wait."""
        if len(rows):
            self._pieces.append(_Piece(rows, np.arange(len(rows))))
        if len(self._pieces) > _PIECES:
            whole = self.all()
            self._pieces = [_Piece(whole, np.arange(len(whole)))] if whole else []

    def take(self, wanted: NDArray[np.bool_]) -> Rows | None:
        """Take the rows of these units out, in the order in which they came; None: there are none."""
        taken = []
        for piece in self._pieces:
            is_taken = wanted[piece.rows.units[piece.live]]
            if not is_taken.any():
                continue
            taken.append(piece.rows.take(piece.live[is_taken]))
            piece.live = piece.live[~is_taken]
            if piece.live.size < len(piece.rows) // 2:
                piece.rows, piece.live = piece.rows.take(piece.live), np.arange(piece.live.size)
        self._pieces = [piece for piece in self._pieces if piece.live.size]
        return Rows.together(taken) if taken else None

    def all(self) -> Rows | None:
        """Every waiting row, in the order in which they came; they go on waiting."""
        parts = [piece.rows.take(piece.live) for piece in self._pieces if piece.live.size]
        return Rows.together(parts) if parts else None

    def column(self, name: str) -> I64Array:
        """One column of all waiting rows."""
        parts = [getattr(piece.rows, name)[piece.live] for piece in self._pieces]
        return np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64)
