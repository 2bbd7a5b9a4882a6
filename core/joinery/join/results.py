"""Results on their way out: combinations of rows while conditions are tried on them, and the parts that leave.

A combination names rows; columns are gathered late, once, and only those that a condition or the output asks for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from typing import Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from joinery.join.kernels.found import Found
from joinery.join.plan import JoinPlan
from joinery.model.errors import require
from joinery.model.expression_arrow import Predicate
from joinery.model.tuples import I64Array, TupleBatch
from joinery.window.arrays import pick
from joinery.window.store import PLACE, TIME, WORD, RowStore

_TEXT_LIMIT: Final = 1 << 30


class Kind(StrEnum):
    """What a part holds."""

    RESULT = "result"
    LATE = "late"


@dataclass(frozen=True, slots=True, eq=False)
class ResultPart:
    """A bounded part of the results of a batch."""

    kind: Kind
    rows: pa.RecordBatch
    groups: NDArray[np.uint16]
    """Partition-group of each row."""
    times: I64Array
    """Time of each result: of its latest member; of a row that closed without a partner, its closing time."""
    stream: int
    """The stream whose batch or watermark made the part."""
    origin: NDArray[np.int32] | None
    """Place in that batch of the member that made each result; None for closed rows."""
    members: tuple[I64Array | None, ...]
    """Per stream: position of each result's member in its stream; None where results have no member of it."""

    def take(self, chosen: NDArray[np.bool_] | I64Array) -> "ResultPart":
        """The chosen rows (a mask, or places in order)."""
        index = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        return ResultPart(
            self.kind,
            self.rows.take(pa.array(index)),
            self.groups[index],
            self.times[index],
            self.stream,
            None if self.origin is None else self.origin[index],
            tuple(None if places is None else places[index] for places in self.members),
        )


class Combination:
    """Rows that belong together, one column of row numbers per stream; one member may still be in its batch."""

    def __init__(
        self, stores: tuple[RowStore, ...], rows: dict[int, I64Array], batch: TupleBatch | None = None,
        by: NDArray[np.int32] | None = None, batch_groups: NDArray[np.uint16] | None = None,
    ) -> None:  # fmt: skip
        self._stores, self.rows, self.batch, self.by, self._batch_groups = stores, rows, batch, by, batch_groups
        self._columns: dict[tuple[int, int], pa.Array] = {}
        self._lanes: dict[tuple[int, int], I64Array] = {}
        """Times and places of stored members, as far as they are known."""

    def __len__(self) -> int:
        return int(self.by.size) if self.by is not None else int(next(iter(self.rows.values())).size)

    def origin(self) -> tuple[TupleBatch, NDArray[np.int32]]:
        """The batch of the newest member, and where it stands there."""
        require(self.batch is not None and self.by is not None, "rows that closed have no batch")
        return cast("TupleBatch", self.batch), cast("NDArray[np.int32]", self.by)

    @property
    def is_whole_batch(self) -> bool:
        """Whether these are just the rows of the batch, none left out, none with a partner yet."""
        return self.batch is not None and not self.rows and len(self) == len(self.batch)

    def with_member(self, stream: int, found: Found) -> "Combination":
        """Grown by a member: the combinations that met a row of that stream, each with it."""
        known = {other: rows[found.probe] for other, rows in self.rows.items()}
        by = self.by if self.by is None else found.probe if self.is_whole_batch else self.by[found.probe]
        grown = Combination(self._stores, {**known, stream: found.row}, self.batch, by, self._batch_groups)
        grown._lanes = {name: lane[found.probe] for name, lane in self._lanes.items()}
        grown._lanes[stream, TIME], grown._lanes[stream, PLACE] = found.time, found.place
        return grown

    def column(self, stream: int, number: int) -> pa.Array:
        """One column of one member, in the order of the combinations; nulls where there is no member."""
        found = self._columns.get((stream, number))
        if found is None:
            found = self._columns[stream, number] = self._gather(stream, number)
        return found

    def _gather(self, stream: int, number: int) -> pa.Array:
        if self.batch is not None and self.by is not None and stream == self.batch.stream:
            return self.batch.rows.column(number).take(pa.array(self.by))
        if stream in self.rows:
            return self._stores[stream].column(number, self.rows[stream], lambda lane: self._lane(stream, lane))
        return pa.nulls(len(self), self._stores[stream].layout.fields[number].type)

    def keep(self, chosen: NDArray[np.bool_] | I64Array) -> "Combination":
        """Only the chosen ones (a mask, or places in order)."""
        index = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        kept = Combination(
            self._stores,
            {stream: rows[index] for stream, rows in self.rows.items()},
            self.batch,
            None if self.by is None else self.by[index],
            self._batch_groups,
        )
        take = pa.array(index)
        kept._columns = {name: column.take(take) for name, column in self._columns.items()}
        kept._lanes = {name: lane[index] for name, lane in self._lanes.items()}
        return kept

    def keep_if(self, mask: NDArray[np.bool_]) -> "Combination":
        """Only those where the mask is true; itself if it is true everywhere."""
        return self if mask.all() else self.keep(mask)

    def holding(self, condition: Predicate | None, plan: JoinPlan) -> "Combination":
        """Those for which a condition is true (not false, not unknown)."""
        if condition is None or len(self) == 0:
            return self
        columns = {}
        for stream, name in condition.columns:
            form = next(form for form in plan.formats if form.name == stream)
            columns[stream, name] = self.column(form.index, form.schema.get_field_index(name))
        return self.keep_if(condition.mask(columns, len(self)))

    def times(self) -> I64Array:
        """Time of the latest member."""
        known = [self._lane(stream, TIME) for stream in self.rows]
        if self.batch is not None and self.by is not None:
            known.append(pick(self.batch.times, self.by))
        return reduce(np.maximum, known)

    def places(self) -> tuple[I64Array | None, ...]:
        """Per stream: position of every member in its stream."""
        out = [self._lane(stream, PLACE) if stream in self.rows else None for stream in range(len(self._stores))]
        if self.batch is not None and self.by is not None:
            out[self.batch.stream] = pick(self.batch.places, self.by)
        return tuple(out)

    def _lane(self, stream: int, lane: int) -> I64Array:
        known = self._lanes.get((stream, lane))
        if known is None and lane == WORD and self.batch is not None and self.by is not None:
            known = pick(self.batch.words, self.by)  # they have met, so their words are equal
        return self._stores[stream].lane(self.rows[stream], lane) if known is None else known

    def groups(self) -> NDArray[np.uint16]:
        """Partition-group of every combination (all members have the same)."""
        if self._batch_groups is not None and self.by is not None:
            return pick(self._batch_groups, self.by)
        stream, rows = next(iter(self.rows.items()))
        return self._stores[stream].groups[rows]

    def pieces(self) -> Iterator["Combination"]:
        """Itself, or smaller ones if its texts would not fit an Arrow array."""
        if len(self) < 2 or self._text_bytes() < _TEXT_LIMIT:
            yield self
            return
        places = np.arange(len(self))
        for half in np.array_split(places, 2):
            yield from self.keep(half).pieces()

    def _text_bytes(self) -> int:
        sizes = [self._stores[stream].heap_bytes(rows) for stream, rows in self.rows.items()]
        if self.batch is not None and self._stores[self.batch.stream].heap is not None:
            sizes.append(self.batch.rows.nbytes * len(self))  # a bound: no row is longer than its batch
            if sizes[-1] >= _TEXT_LIMIT:
                sizes[-1] = _longest_text(self.batch.rows) * len(self)
        return max(sizes, default=0)


def _longest_text(rows: pa.RecordBatch) -> int:
    texts = [column for column in rows.columns if pa.types.is_string(column.type) or pa.types.is_binary(column.type)]
    return max((pc.max(pc.binary_length(column)).as_py() or 0 for column in texts), default=0)
