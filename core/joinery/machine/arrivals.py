"""Which results of a batch are due to which arrivals: the first half of the production delay (`flow.delays`).

A result appears with its member that stands later in the log, and that member is in the batch: its position names its
record, and the record its stamp (`flow.stamps`). A row that closes without a partner appears with the watermark of the
newest record: it counts from there. Late rows are no results.
"""

from collections.abc import Iterable

import numpy as np

from joinery.flow.stamps import NO_ARRIVALS, Arrivals, Steps
from joinery.join.results import Kind, ResultPart
from joinery.machine.messages import Exchange
from joinery.model.tuples import I64Array


def arrivals_of(parts: Iterable[ResultPart], exchange: Exchange) -> Arrivals:
    """The results in these parts by the arrival of their later members; none if the exchange does not tell it."""
    if not exchange.stamp_ns:
        return NO_ARRIVALS
    tables = {batch.stream: steps for batch, steps in zip(exchange.batches, exchange.steps, strict=False)}
    stamps: list[I64Array] = []
    rows: list[I64Array] = []
    for part in parts:
        if part.kind is Kind.RESULT and part.times.size:
            table, found = _of_part(part, tables.get(part.stream), exchange.stamp_ns)
            stamps.append(table)
            rows.append(found)
    return Arrivals(np.concatenate(stamps), np.concatenate(rows)) if stamps else NO_ARRIVALS


def _of_part(part: ResultPart, steps: Steps | None, newest_ns: int) -> tuple[I64Array, I64Array]:
    places = None if part.origin is None else part.members[part.stream]
    if places is None or steps is None or not steps.ends.size:
        return np.array([newest_ns], np.int64), np.array([part.times.size], np.int64)
    rows = steps.rows_at(places)
    return steps.stamps[rows > 0], rows[rows > 0]
