"""Many rows: what comes out of a join as two columns of places, and what should, by sorting."""

from collections.abc import Iterable

import numpy as np

from joinery.join.results import Kind, ResultPart

Pairs = tuple[np.ndarray, np.ndarray]


def found(parts: Iterable[ResultPart]) -> Pairs:
    """Places of both members of every pair, in order; rows without a partner are left out."""
    both = [part.members for part in parts if part.kind is Kind.RESULT]
    pairs = [(one, other) for one, other in both if one is not None and other is not None]
    return ordered(_joined([one for one, _ in pairs]), _joined([other for _, other in pairs]))


def unmatched(parts: Iterable[ResultPart], stream: int) -> list[int]:
    """Places of the rows of a stream that were told without a partner, in order."""
    alone = [p.members[stream] for p in parts if p.kind is Kind.RESULT and p.members[1 - stream] is None]
    return sorted(_joined([one for one in alone if one is not None]).tolist())


def wanted(keys: Pairs, times: Pairs, windows: tuple[int, int], places: Pairs | None = None) -> Pairs:
    """The truth: per key, all pairs within the windows."""
    left, right = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for key in np.intersect1d(*keys):
        one, other = np.flatnonzero(keys[0] == key), np.flatnonzero(keys[1] == key)
        apart = times[1][other][None, :] - times[0][one][:, None]
        a, b = np.nonzero((apart <= windows[0]) & (-apart <= windows[1]))
        left.append(one[a])
        right.append(other[b])
    a, b = _joined(left), _joined(right)
    return ordered(a, b) if places is None else ordered(places[0][a], places[1][b])


def ordered(left: np.ndarray, right: np.ndarray) -> Pairs:
    order = np.lexsort((right, left))
    return left[order], right[order]


def assert_same(truth: Pairs, result: Pairs) -> None:
    assert truth[0].size == result[0].size
    assert np.array_equal(truth[0], result[0])
    assert np.array_equal(truth[1], result[1])


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
