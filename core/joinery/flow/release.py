"""Rows in order, for queries with a count window (docs/design.md §2): held until every watermark has passed them.

Rule 1: a row is released once every stream's watermark is above its time; one with an equal time may still come.
Rule 2: released rows stand in one order: by time; ties by the stream's place in the spec, then by position. Each
carries its rank in that order and every stream's count at its place.
Rule 3: late rows pass through at once; they have no rank.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from joinery.model.time import FOREVER
from joinery.model.tuples import Order, TupleBatch, concat


@dataclass(slots=True)
class Release:
    """What is held back of every stream, and how many rows have been released."""

    streams: int
    counts: tuple[int, ...] = ()
    _held: dict[int, TupleBatch] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.counts = self.counts or (0,) * self.streams

    def hold(self, batch: TupleBatch) -> None:
        """Take in rows that are not late and not released by anything so far."""
        held = self._held.get(batch.stream)
        self._held[batch.stream] = batch if held is None else concat([held, batch])

    def admit(self, batches: Sequence[TupleBatch], watermarks: tuple[int, ...]) -> list[TupleBatch]:
        """Take in the rows of a record and its watermarks; the rows that it releases, late ones among them."""
        late = []
        for batch in batches:
            if batch.late is not None and batch.late.any():
                late.append(self._without_rank(batch.take(batch.late)))
                batch = batch.take(~batch.late)
            self.hold(batch)
        return late + self._in_order(min(watermarks))

    def _in_order(self, frontier: int) -> list[TupleBatch]:
        going = []
        for stream, held in self._held.items():
            free = held.times < frontier if frontier < FOREVER else np.ones(len(held), np.bool_)
            going.append(held.take(free))
            self._held[stream] = held.take(~free)
        if not going:
            return []
        times, places = (np.concatenate([getattr(batch, name) for batch in going]) for name in ("times", "places"))
        of = np.repeat([batch.stream for batch in going], [len(batch) for batch in going])
        order = np.lexsort((places, of, times))
        first = sum(self.counts)
        counts = np.array(self.counts) + np.cumsum(of[order][:, None] == np.arange(self.streams), axis=0)
        self.counts = tuple(counts[-1].tolist()) if order.size else self.counts
        ends = np.cumsum([len(batch) for batch in going])
        ranks = np.empty(order.size, np.int64)
        ranks[order] = np.arange(order.size)
        released = []
        for batch, end in zip(going, ends, strict=True):
            own = np.sort(ranks[end - len(batch) : end])
            arranged = batch.take(np.argsort(ranks[end - len(batch) : end]))
            released.append(arranged.with_order(Order(first + own, counts[own])))
        return released

    def _without_rank(self, batch: TupleBatch) -> TupleBatch:
        none = np.zeros((len(batch), self.streams), np.int64)
        return batch.with_order(Order(np.full(len(batch), -1, np.int64), none))
