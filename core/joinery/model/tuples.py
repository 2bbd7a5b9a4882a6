"""A batch of tuples of one stream, as columns: never a list of rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joinery.model.errors import require

I64Array = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Order:
    """What released rows of a query with a count window carry: their place in the order of all rows."""

    ranks: I64Array
    """Place in the order of all rows of the query: by time, stream, position."""
    counts: I64Array
    """One column per stream: rows of that stream at or before this place."""

    def take(self, index: NDArray[np.integer]) -> "Order":
        """The chosen rows, in their order."""
        return Order(self.ranks[index], self.counts[index])


@dataclass(frozen=True, slots=True, eq=False)
class TupleBatch:
    """Rows of one stream on their way: times, hashed keys, and every column as it came."""

    stream: int
    times: I64Array
    """Nanoseconds."""
    hashes: NDArray[np.uint64]
    """Of the key in its canonical form; equal keys have equal hashes in every stream and process."""
    words: I64Array
    """What the join compares: the key itself if it is one integer, else the bits of its hash."""
    keyed: NDArray[np.bool_] | None
    """False where a key column is null (such a row matches nothing); None: no such row."""
    places: I64Array
    """Position of each row in its stream."""
    rows: pa.RecordBatch
    """Every column of the stream, key columns as they came, ordered by name."""
    late: NDArray[np.bool_] | None = None
    """Rows that must not be joined; None: no such row."""
    order: Order | None = None

    def __post_init__(self) -> None:
        sizes = {self.times.size, self.hashes.size, self.words.size, self.places.size, self.rows.num_rows}
        require(len(sizes) == 1, f"columns of one batch differ in length: {sorted(sizes)}")

    def __len__(self) -> int:
        return int(self.times.size)

    def take(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> "TupleBatch":
        """The chosen rows (a mask or indexes), in their order."""
        index: NDArray[np.intp] = (
            np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.intp, copy=False)
        )
        return TupleBatch(
            stream=self.stream,
            times=self.times[index],
            hashes=self.hashes[index],
            words=self.words[index],
            keyed=None if self.keyed is None else self.keyed[index],
            places=self.places[index],
            rows=self.rows.take(pa.array(index)),
            late=None if self.late is None else self.late[index],
            order=None if self.order is None else self.order.take(index),
        )

    def slice(self, start: int, stop: int) -> "TupleBatch":
        """The rows from `start` to before `stop`, without a copy."""
        cut = slice(start, stop)
        return TupleBatch(
            stream=self.stream,
            times=self.times[cut],
            hashes=self.hashes[cut],
            words=self.words[cut],
            keyed=None if self.keyed is None else self.keyed[cut],
            places=self.places[cut],
            rows=self.rows.slice(start, stop - start),
            late=None if self.late is None else self.late[cut],
            order=None if self.order is None else Order(self.order.ranks[cut], self.order.counts[cut]),
        )

    def with_order(self, order: Order) -> "TupleBatch":
        """The same rows with their places in the order of all rows."""
        return replace(self, order=order)

    @property
    def serials(self) -> I64Array:
        """A number per row that only grows in the order in which workers get the rows of a stream."""
        return self.places if self.order is None else self.order.ranks


def concat(batches: Sequence[TupleBatch]) -> TupleBatch:
    """One batch of the rows of several of the same stream."""
    first = batches[0]
    if len(batches) == 1:
        return first
    keyed = late = None
    if any(batch.keyed is not None for batch in batches):
        keyed = np.concatenate([np.ones(len(b), np.bool_) if b.keyed is None else b.keyed for b in batches])
    if any(batch.late is not None for batch in batches):
        late = np.concatenate([np.zeros(len(b), np.bool_) if b.late is None else b.late for b in batches])
    orders = [batch.order for batch in batches if batch.order is not None]
    order = (
        Order(np.concatenate([o.ranks for o in orders]), np.concatenate([o.counts for o in orders])) if orders else None
    )
    table = pa.Table.from_batches([batch.rows for batch in batches]).combine_chunks()
    rows = table.to_batches()[0] if table.num_rows else first.rows
    return replace(
        first,
        times=np.concatenate([batch.times for batch in batches]),
        hashes=np.concatenate([batch.hashes for batch in batches]),
        words=np.concatenate([batch.words for batch in batches]),
        keyed=keyed,
        places=np.concatenate([batch.places for batch in batches]),
        rows=rows,
        late=late,
        order=order,
    )


def as_vector(numbers: Iterable[int]) -> I64Array:
    """Numbers as a vector."""
    return np.fromiter(numbers, np.int64)
