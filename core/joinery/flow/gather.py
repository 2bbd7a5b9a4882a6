"""The rows of some groups out of recorded batches, as one message: ordered by group, inside a group as recorded.

A batch stays where it is when it is recorded; only the group of each row is noted. A message is written by one pass
over each batch per column: read in the order in which the rows lie, written to the place of each row's group. Reading
in the order of the groups instead would wait for memory at every row (measured: three to ten times as long).
Columns of a fixed width without nulls (most of all bytes) are moved by a compiled loop, the others by Arrow. The loops
keep the GIL: they take some 10 us, and getting it back from a thread that encodes may take longer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from joinery.flow.words import words_of, words_wide
from joinery.model.tuples import I64Array, Order, TupleBatch
from joinery.model.views import readonly
from joinery.partition.hashing import groups_of

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """A batch, and the group of each row."""

    batch: TupleBatch
    groups: NDArray[np.uint16]
    counts: I64Array
    """Rows of each group."""

    @staticmethod
    def of(batch: TupleBatch, partitions: int) -> "Grouped":
        """Note the groups of a batch's rows."""
        groups = groups_of(batch.hashes, partitions)
        return Grouped(batch, groups, np.bincount(groups, minlength=partitions))


def gather(sources: Sequence[tuple[Grouped, Flags]]) -> TupleBatch | None:
    """One batch of the rows of several, of each those of the groups whose flag is set; None: there are none."""
    counts = np.stack([np.where(wanted, source.counts, 0) for source, wanted in sources])
    total = int(counts.sum())
    if total == 0:
        return None
    ends = np.cumsum(counts.T.ravel()).reshape(counts.T.shape).T
    pieces = [
        _Piece.of(source, wanted, end - count)
        for (source, wanted), end, count in zip(sources, ends, counts, strict=True)
        if count.any()
    ]
    return _assembled(pieces, total)


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """What goes from one batch into a message, and where to."""

    batch: TupleBatch
    rows: I64Array
    """Which rows, ascending."""
    to: I64Array
    """Their places in the message."""

    @staticmethod
    def of(source: Grouped, wanted: Flags, at: I64Array) -> "_Piece":
        size = len(source.batch)
        rows, to = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)  # one more: written, then not counted
        found = _choose(source.groups, wanted, at, rows, to)
        return _Piece(source.batch, rows[:found], to[:found])


def _assembled(pieces: list[_Piece], total: int) -> TupleBatch:
    """Every column of a message."""
    batches = [piece.batch for piece in pieces]
    stream, schema = batches[0].stream, batches[0].rows.schema

    def moved(columns: Sequence[I64Array], width: int = 1) -> I64Array:
        out = np.empty(total * width, np.int64)
        for piece, column in zip(pieces, columns, strict=True):
            _move(readonly(column), piece.rows, piece.to, width, out)
        return out

    def flags(columns: Sequence[Flags | None], *, missing: bool) -> Flags | None:
        """`missing` is what a batch without the column means: keyed, or not late."""
        if all(column is None for column in columns):
            return None
        out = np.full(total, missing)
        for piece, column in zip(pieces, columns, strict=True):
            if column is not None:
                out[piece.to] = column[piece.rows]
        return out

    def column(number: int) -> pa.Array:
        parts = [batch.rows.column(number) for batch in batches]
        words = words_wide(parts[0].type)
        if not words or any(part.null_count for part in parts):
            return _taken(parts, pieces, total)
        whole = moved([words_of(part, words) for part in parts], words)
        return pa.Array.from_buffers(parts[0].type, total, [None, pa.py_buffer(whole)])

    orders = [batch.order for batch in batches if batch.order is not None]
    return TupleBatch(
        stream=stream,
        times=moved([batch.times for batch in batches]),
        hashes=moved([batch.hashes.view(np.int64) for batch in batches]).view(np.uint64),
        words=moved([batch.words for batch in batches]),
        keyed=flags([batch.keyed for batch in batches], missing=True),
        places=moved([batch.places for batch in batches]),
        rows=pa.RecordBatch.from_arrays([column(number) for number in range(len(schema))], schema=schema),
        late=flags([batch.late for batch in batches], missing=False),
        order=_ordered(orders, moved) if orders else None,
    )


def _ordered(orders: Sequence[Order], moved: Callable[[Sequence[I64Array], int], I64Array]) -> Order:
    streams = orders[0].counts.shape[1]
    counts = moved([np.ascontiguousarray(order.counts).ravel() for order in orders], streams)
    return Order(moved([order.ranks for order in orders], 1), counts.reshape(-1, streams))


def _taken(columns: list[pa.Array], pieces: list[_Piece], total: int) -> pa.Array:
    """A column that Arrow must move: of texts, of bits, or with nulls."""
    index, first = np.empty(total, np.int64), 0
    for piece in pieces:
        index[piece.to] = piece.rows + first
        first += len(piece.batch)
    return pa.concat_arrays(columns).take(pa.array(index))


@njit(cache=True)
def _choose(groups: NDArray[np.uint16], wanted: Flags, at: I64Array, rows: I64Array, to: I64Array) -> int:
    """The rows of the wanted groups and where they go; `at` says where each group begins, and is moved on.

    Without a branch: which group comes next is as good as random.
    """
    count = 0
    for row in range(groups.size):
        group = groups[row]
        rows[count], to[count] = row, at[group]
        count += wanted[group]
        at[group] += wanted[group]
    return count


@njit(cache=True)
def _move(source: I64Array, rows: I64Array, to: I64Array, width: int, out: I64Array) -> None:
    """Values of `width` words each to their places."""
    if width == 1:
        for k in range(rows.size):
            out[to[k]] = source[rows[k]]
        return
    for k in range(rows.size):
        into, out_of = to[k] * width, rows[k] * width
        for word in range(width):
            out[into + word] = source[out_of + word]
