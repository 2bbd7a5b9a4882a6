"""MESHJOIN, what the hybrid join is compared with (thesis 6.2, figure 6.2).

The relation is scanned for ever, a segment of d bytes at a time, k = |R| / d of them. The queue of stream rows is cut
into pieces of w = (M - d) / k bytes. When a piece is full the next segment is read and joined with the whole queue; a
piece that has met k segments has met the relation and leaves. So a row waits for k reads, each of which waits for w
bytes of input. The relation must not change: a second version is refused.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joinery.hybrid.config import Kind
from joinery.hybrid.hybrid import Probe, Step
from joinery.hybrid.matching import NOBODY, Condition, Joined, Pairs, Shelf
from joinery.hybrid.segments import Relation, Segment, row_bytes
from joinery.model.errors import UserMustAct, require
from joinery.model.tuples import I64Array, TupleBatch


@dataclass(slots=True)
class _Piece:
    batch: TupleBatch
    left: int
    """Segments that it has still to meet."""
    has_partner: NDArray[np.bool_]


class MeshJoin:
    """The state of one MESHJOIN."""

    def __init__(
        self, *, memory_bytes: int, schema: pa.Schema, kind: Kind = Kind.INNER, condition: Condition | None = None
    ) -> None:
        self.memory_bytes, self.schema, self.kind, self.condition = memory_bytes, schema, kind, condition
        self._relation: Relation | None = None
        self._head: list[TupleBatch] = []
        self._head_bytes = 0
        self._filled: list[list[TupleBatch]] = []
        self._queue: list[_Piece] = []
        self._shelf = Shelf(schema)
        """With the segment that was read last."""
        self._next = 0
        self._is_asked = self._has_ended = False

    @property
    def waiting_rows(self) -> int:
        """Rows that have not met the whole relation."""
        unread = [*self._head, *(batch for batches in self._filled for batch in batches)]
        return sum(map(len, unread)) + sum(len(piece.batch) for piece in self._queue)

    @property
    def piece_bytes(self) -> int:
        """w, at least one byte: with less memory than a segment every row is a piece."""
        relation = self._known()
        segment = int(relation.sizes.max(initial=0))
        return max(1, (self.memory_bytes - segment) // max(1, relation.cut.segments))

    def on_version(self, relation: Relation) -> None:
        """The relation, once."""
        if self._relation is not None and self._relation.version != relation.version:
            raise UserMustAct(
                f"MESHJOIN found version {relation.version} after {self._relation.version}, wanted a relation "
                "that does not change; use the hybrid join"
            )
        self._relation = relation

    def on_batch(self, batch: TupleBatch, *, version: int, tag: int, now_ns: int, behind_bytes: int = 0) -> Step:
        """Rows that arrive."""
        del tag, now_ns, behind_bytes
        require(version == self._known().version, f"a batch names version {version}")
        if not self._known().cut.segments:
            return Step(tuple(self._expired([_Piece(batch, 0, np.zeros(len(batch), np.bool_))])))
        ends = np.cumsum(row_bytes(batch.rows)) + self._head_bytes
        start = 0
        while start < len(batch):
            stop = int(np.searchsorted(ends, self.piece_bytes)) + 1
            self._head.append(batch.slice(start, min(stop, len(batch))))
            if stop > len(batch):
                self._head_bytes = int(ends[-1])
                break
            ends, start = ends - ends[stop - 1], stop
            self._close()
        return self._read_on()

    def on_segment(self, segment: Segment) -> Step:
        """The next segment of the scan, joined with the whole queue; one that was not asked for is passed over."""
        if not self._is_asked or segment.number != self._next:
            return Step()
        self._is_asked, self._next = False, (self._next + 1) % self._known().cut.segments
        results = []
        for batch in self._filled.pop(0) if self._filled else ():
            self._queue.append(_Piece(batch, self._known().cut.segments, np.zeros(len(batch), np.bool_)))
        self._shelf.put(0, segment)
        for piece in self._queue:
            units = np.zeros(len(piece.batch), np.int32)
            pairs = self._shelf.pairs_of(piece.batch, units, _matchable(piece.batch), self.condition, keeps_all=False)
            piece.has_partner[pairs.stream] = True
            piece.left -= 1
            results += self._made(piece.batch, pairs)
        gone = [piece for piece in self._queue if not piece.left]
        self._queue = [piece for piece in self._queue if piece.left]
        results += self._expired(gone)
        return Step(tuple(results), self._read_on().probes)

    def on_end(self) -> Step:
        """The source has ended: the scan goes on until the queue is empty."""
        self._has_ended = True
        if self._head:
            self._close()
        return self._read_on()

    def _close(self) -> None:
        """The head piece is full: it enters the queue with the next segment."""
        self._filled.append(self._head)
        self._head, self._head_bytes = [], 0

    def _read_on(self) -> Step:
        """A read is due for every piece that was filled, and after the end while anybody waits."""
        is_due = bool(self._filled) or (self._has_ended and bool(self._queue))
        if self._is_asked or not is_due:
            return Step()
        self._is_asked = True
        return Step((), (Probe(int(self._known().stamps[self._next]), self._next),))

    def _expired(self, pieces: list[_Piece]) -> list[Joined]:
        if self.kind is not Kind.LEFT:
            return []
        return [made for one in pieces for made in self._made(one.batch, _alone(np.flatnonzero(~one.has_partner)))]

    def _made(self, batch: TupleBatch, pairs: Pairs) -> list[Joined]:
        versions = np.full(len(batch), self._known().version, np.int64)
        return list(self._shelf.results_of(batch, versions, np.zeros(len(batch), np.int64), pairs))

    def _known(self) -> Relation:
        require(self._relation is not None, "no version of the relation has been told")
        assert self._relation is not None  # noqa: S101 - for the type
        return self._relation


def _matchable(batch: TupleBatch) -> I64Array:
    """Rows with a key."""
    return np.arange(len(batch)) if batch.keyed is None else np.flatnonzero(batch.keyed)


def _alone(rows: I64Array) -> Pairs:
    """Rows without a partner."""
    return Pairs(rows, np.zeros(rows.size, np.int32), np.full(rows.size, NOBODY, np.int64))
