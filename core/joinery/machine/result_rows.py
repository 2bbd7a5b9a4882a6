"""Rows of result parts chosen, cut and brought into another order; columns stay columns.

A part that was put together from several (`arranged`) has rows of different origins: its `stream` is `SEVERAL`, its
`origin` is None, and a row without a member of a stream has the place `NOBODY` there if others of the part have one.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joinery.join.results import ResultPart
from joinery.model.tuples import I64Array

SEVERAL: Final = -1
"""Stream of a part whose rows were made by the batches of several streams."""
NOBODY: Final = -1
"""Place of a member that a row does not have, in a part where others have one."""
_PIECE_BYTES: Final = 1 << 28
"""About how much is put together at once: a text column of an Arrow batch ends at 2 GB, and rows differ in length."""


def size(part: ResultPart) -> int:
    """Bytes that a part takes; more than none if it has rows."""
    return int(part.rows.nbytes + part.times.nbytes + part.groups.nbytes)


def keep(part: ResultPart, mask: NDArray[np.bool_]) -> ResultPart:
    """The rows where the mask is true; the part itself if it is true everywhere."""
    return part if mask.all() else part.take(mask)


def cut(part: ResultPart, start: int, stop: int) -> ResultPart:
    """The rows from `start` to before `stop`, without a copy."""
    return ResultPart(
        kind=part.kind,
        rows=part.rows.slice(start, stop - start),
        groups=part.groups[start:stop],
        times=part.times[start:stop],
        stream=part.stream,
        origin=None if part.origin is None else part.origin[start:stop],
        members=tuple(None if places is None else places[start:stop] for places in part.members),
    )


def without_first(parts: Sequence[ResultPart], rows: int) -> tuple[ResultPart, ...]:
    """What is left of parts after their first rows."""
    left = []
    for part in parts:
        skipped = min(rows, part.times.size)
        rows -= skipped
        if skipped < part.times.size:
            left.append(cut(part, skipped, part.times.size) if skipped else part)
    return tuple(left)


def pieces(parts: Sequence[ResultPart], nbytes: int) -> Iterator[tuple[ResultPart, ...]]:
    """All rows in their order, in pieces of about so many bytes."""
    chosen, left = list[ResultPart](), nbytes
    for part in parts:
        step = max(1, part.times.size * nbytes // size(part))
        for start in range(0, part.times.size, step):
            chosen.append(part if step >= part.times.size else cut(part, start, min(start + step, part.times.size)))
            left -= size(chosen[-1])
            if left <= 0:
                yield tuple(chosen)
                chosen, left = [], nbytes
    if chosen:
        yield tuple(chosen)


def by_time(parts: Sequence[ResultPart]) -> tuple[ResultPart, ...]:
    """All rows sorted by time, equal times as they came; in few parts, each of a bounded size."""
    if not parts:
        return ()
    order = np.argsort(np.concatenate([part.times for part in parts]), kind="stable")
    pieces = max(1, -(-sum(size(part) for part in parts) // _PIECE_BYTES))
    return tuple(arranged(parts, places) for places in np.array_split(order, pieces) if places.size)


def arranged(parts: Sequence[ResultPart], places: I64Array) -> ResultPart:
    """One part: the rows at these places in the row of all parts, in this order."""
    if len(parts) == 1:
        return parts[0].take(places)
    ends = np.cumsum([part.times.size for part in parts])
    owner = np.searchsorted(ends, places, side="right")
    chosen = [(part, places[owner == k] - ends[k] + part.times.size) for k, part in enumerate(parts)]
    taken = [part.take(index) for part, index in chosen if index.size]
    back = np.empty(places.size, np.intp)
    back[np.argsort(owner, kind="stable")] = np.arange(places.size)
    rows = pa.concat_batches([part.rows for part in taken]) if len(taken) > 1 else taken[0].rows
    return ResultPart(
        kind=taken[0].kind,
        rows=rows.take(pa.array(back)),
        groups=np.concatenate([part.groups for part in taken])[back],
        times=np.concatenate([part.times for part in taken])[back],
        stream=taken[0].stream if len({part.stream for part in taken}) == 1 else SEVERAL,
        origin=None,
        members=tuple(_members(taken, stream, back) for stream in range(len(taken[0].members))),
    )


def _members(parts: Sequence[ResultPart], stream: int, back: NDArray[np.intp]) -> I64Array | None:
    columns = [(part.members[stream], part.times.size) for part in parts]
    if all(places is None for places, _ in columns):
        return None
    whole = [np.full(rows, NOBODY, np.int64) if places is None else places for places, rows in columns]
    return np.concatenate(whole)[back]
