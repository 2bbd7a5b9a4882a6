"""Stream rows against one segment: which pairs match, and what comes out of them.

Rows of a segment lie in the order of their words, so a stream row's partners are one run, found by halving. Keys that
are not one integer meet here by the bits of their hash; whether they are really equal, and whether `where` holds, is
asked of the `Condition`, once for all candidates of a segment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from joinery.hybrid.segments import Segment
from joinery.model.tuples import I64Array, TupleBatch
from joinery.model.views import readonly

I32Array = NDArray[np.int32]


class Condition(Protocol):
    """What else must hold for a pair, as columns: real keys where words are hashes, `where`."""

    def __call__(self, stream: pa.RecordBatch, relation: pa.RecordBatch) -> NDArray[np.bool_]:
        """One answer per pair of rows that stand at the same place."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Result rows: stream row, relation row (all null where a left join found none) and the version of the relation."""

    stream: TupleBatch
    relation: pa.RecordBatch
    versions: I64Array
    tags: I64Array
    """Of the batch in which each stream row came."""

    def __len__(self) -> int:
        return len(self.stream)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Places of partners in a batch of stream rows and in a segment."""

    stream: I64Array
    relation: I64Array


def pairs_of(batch: TupleBatch, chosen: I64Array, segment: Segment, condition: Condition | None) -> Pairs:
    """All partners of the chosen rows in a segment."""
    words = batch.words[chosen]
    low, high = np.empty(words.size, np.int64), np.empty(words.size, np.int64)
    total = _runs(readonly(words), readonly(segment.words), low, high)
    at, row = np.empty(total, np.int64), np.empty(total, np.int64)
    _fill(low, high, at, row)
    pairs = Pairs(chosen[at], row)
    if condition is None or not total:
        return pairs
    holds = condition(batch.rows.take(pa.array(pairs.stream)), segment.rows.take(pa.array(pairs.relation)))
    return Pairs(pairs.stream[holds], pairs.relation[holds])


def results_of(
    batch: TupleBatch,
    versions: I64Array,
    tags: I64Array,
    found: Sequence[tuple[Segment, Pairs]],
    missing: I64Array,
    schema: pa.Schema,
) -> Joined:
    """The result rows of pairs, and of stream rows without a partner (`missing`) with nulls beside them."""
    parts = [segment.rows.take(pa.array(pairs.relation)) for segment, pairs in found]
    if missing.size:
        parts.append(_nulls(schema, missing.size))
    index = np.concatenate([*(pairs.stream for _, pairs in found), missing, np.empty(0, np.int64)])
    same = [part if part.schema.equals(schema) else part.cast(schema) for part in parts]
    table = pa.Table.from_batches(same, schema).combine_chunks()
    rows = table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], schema)
    return Joined(batch.take(index), rows, versions[index], tags[index])


def without_partner(rows: I64Array, found: Sequence[tuple[Segment, Pairs]], size: int) -> I64Array:
    """Those of the rows that no pair names."""
    seen = np.zeros(size, np.bool_)
    for _, pairs in found:
        seen[pairs.stream] = True
    return rows[~seen[rows]]


def by_unit(units: I32Array, count: int) -> tuple[I64Array, I64Array]:
    """Places of rows ordered by unit, and where each unit's begin (one more at the end); none below 0."""
    order, edges = np.empty(units.size, np.int64), np.zeros(count + 1, np.int64)
    used = _scatter(readonly(units), order, edges)
    return order[:used], edges


def _nulls(schema: pa.Schema, count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(count, field.type) for field in schema], schema=schema)


@njit(cache=True, nogil=True)
def _scatter(units: I32Array, order: I64Array, edges: I64Array) -> int:
    for i in range(units.size):
        if units[i] >= 0:
            edges[units[i] + 1] += 1
    for k in range(1, edges.size):
        edges[k] += edges[k - 1]
    at = edges.copy()
    for i in range(units.size):
        if units[i] >= 0:
            order[at[units[i]]] = i
            at[units[i]] += 1
    return int(edges[-1])


@njit(cache=True, nogil=True)
def _runs(words: I64Array, stored: I64Array, low: I64Array, high: I64Array) -> int:
    """Begin and end of the run of each word in the sorted column; the number of pairs."""
    total = 0
    for i in range(words.size):
        begin, length = 0, stored.size
        while length > 0:
            half = length >> 1
            if stored[begin + half] < words[i]:
                begin += half + 1
                length -= half + 1
            else:
                length = half
        end = begin
        while end < stored.size and stored[end] == words[i]:
            end += 1
        low[i], high[i] = begin, end
        total += end - begin
    return total


@njit(cache=True, nogil=True)
def _fill(low: I64Array, high: I64Array, at: I64Array, row: I64Array) -> None:
    count = 0
    for i in range(low.size):
        for k in range(low[i], high[i]):
            at[count], row[count] = i, k
            count += 1
