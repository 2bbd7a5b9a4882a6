"""Semi joins: of each row's partners in a batch the one that stands first in its stream.

A semi row is told once, with the time of the later of the two: output in order needs that this time follows from the
recorded input alone, however batches are cut. The partner with the smallest serial number (position; rank in order) is
the first that the row meets when every record is a batch of its own, so it is the one with every other cut too. All
partners in a batch must be looked at before one is chosen; what cannot be chosen any more is dropped on the way.
"""

from typing import Final

import numpy as np

from joinery.join.results import Combination
from joinery.model.tuples import I64Array
from joinery.window.store import MATCHED, RowStore

_ENOUGH: Final = 1 << 18
"""Pairs that are kept before those that lost against others are dropped."""


class FirstMatches:
    """Pairs of one batch, from which each row of stream 0 keeps one."""

    def __init__(self, stores: tuple[RowStore, ...]) -> None:
        self._stores = stores
        self._parts: list[Combination] = []
        self._held = 0

    def add(self, part: Combination) -> None:
        """More pairs; those of rows that matched in an earlier batch are old news."""
        batch, _ = part.origin()
        if batch.stream != 0:
            part = part.keep_if((self._stores[0].flags[part.rows[0]] & MATCHED) == 0)
        if len(part):
            self._parts.append(part)
            self._held += len(part)
        if self._held > _ENOUGH:
            self._settle()
            self._held = 0  # of what is left, not counted again: one pair per row at most

    def parts(self) -> list[Combination]:
        """Each row of stream 0 with its first partner."""
        self._settle()
        return self._parts

    def _settle(self) -> None:
        if not self._parts:
            return
        rows = np.concatenate([_rows(part) for part in self._parts])
        partners = np.concatenate([self._partners(part) for part in self._parts])
        order = np.lexsort((partners, rows))
        is_first = np.ones(order.size, np.bool_)
        is_first[1:] = rows[order][1:] != rows[order][:-1]
        chosen = np.sort(order[is_first])
        ends = np.cumsum([len(part) for part in self._parts])
        starts = ends - [len(part) for part in self._parts]
        kept = []
        for part, start, end in zip(self._parts, starts, ends, strict=True):
            own = chosen[(chosen >= start) & (chosen < end)] - start
            if own.size:
                kept.append(part.keep(own))
        self._parts = kept

    def _partners(self, part: Combination) -> I64Array:
        """Serial number of each pair's row of stream 1."""
        batch, by = part.origin()
        if batch.stream == 1:
            return batch.serials[by]
        if batch.order is not None:
            return self._stores[1].order_of(part.rows[1]).ranks
        places = part.places()[1]
        return np.empty(0, np.int64) if places is None else places


def _rows(part: Combination) -> I64Array:
    """Which row of stream 0 each pair is of: its place in the batch, or in the store."""
    batch, by = part.origin()
    return by.astype(np.int64) if batch.stream == 0 else part.rows[0].astype(np.int64)
