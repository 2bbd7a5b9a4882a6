"""Producers' scripts of a simulated workload: rows with their times, sent in small batches as time goes by."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from joinery.model.ids import ProducerId
from joinery.model.tuples import I64Array
from joinery.simulate.schedule import Batch, Script


def script_of(
    stream: int, name: str, pieces: Iterable[tuple[pa.RecordBatch, I64Array]], *, until_ns: int, batch_ns: int
) -> Script:
    """One producer of a stream: pieces of rows and when each row comes, ascending from 0; it ends at `until_ns`.

    Rows of (k-1, k] batch times are sent together at the end of it, as a client does that collects for a while.
    """
    batches: list[Batch] = []
    for rows, times in pieces:
        edges = np.searchsorted(times, np.arange(0, until_ns + batch_ns, batch_ns), side="left")
        for number in np.flatnonzero(np.diff(edges)).tolist():
            first, last = int(edges[number]), int(edges[number + 1])
            batches.append(Batch(min(until_ns, (number + 1) * batch_ns), rows.slice(first, last - first)))
        if len(times) and int(times[-1]) >= until_ns:
            break
    return Script(stream, ProducerId(name), (*batches, Batch(until_ns, None, end=True)))
