"""Rows on demand: everything that makes Arrow rows in chunks can give any range of them, and any size of batch."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import pyarrow as pa

from joinery.generate.checks import want_rows, want_whole
from joinery.generate.draws import CHUNK


class Chunked(ABC):
    """A source of rows numbered 0, 1 ...; the same rows however they are asked for."""

    __slots__ = ()

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Columns of every batch."""

    @abstractmethod
    def chunks(self, first: int = 0) -> Iterator[pa.RecordBatch]:
        """Rows from first * CHUNK on, CHUNK at a time; a source that ends ends with a shorter batch."""

    def rows(self, start: int, stop: int) -> pa.RecordBatch:
        """Rows [start, stop) in one batch; fewer where the source ends before, as with a slice."""
        want_rows(start, stop)
        nothing = _joined([], self.schema)
        return next(self._cut(start, stop - start), nothing) if start < stop else nothing

    def batches(self, start: int = 0, rows_per_batch: int = 4 * CHUNK) -> Iterator[pa.RecordBatch]:
        """Rows from `start` on in batches of one size (the last may be smaller): to the end, or for ever."""
        want_whole("rows_per_batch", rows_per_batch, 1, 2**31, "give the rows of one batch")
        want_rows(start, 2**62)
        return self._cut(start, rows_per_batch)

    def _cut(self, start: int, size: int) -> Iterator[pa.RecordBatch]:
        """Batches of `size` rows; each chunk is made once and sliced without copying."""
        held: list[pa.RecordBatch] = []
        missing, skip = size, start % CHUNK
        for chunk in self.chunks(start // CHUNK):
            at, skip = skip, 0
            while at < chunk.num_rows:
                held.append(piece := chunk.slice(at, missing))
                at, missing = at + piece.num_rows, missing - piece.num_rows
                if not missing:
                    yield _joined(held, self.schema)
                    held, missing = [], size
        if held:
            yield _joined(held, self.schema)


def _joined(pieces: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    if len(pieces) == 1:
        return pieces[0]
    empty = [pa.array([], type=field.type) for field in schema]
    columns = [pa.concat_arrays([none, *(piece.column(at) for piece in pieces)]) for at, none in enumerate(empty)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
