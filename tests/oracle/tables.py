"""The slow oracle of a query with a stored table: every row against every row of its version, one by one."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Pair = tuple[Row, Row | None, int]


def joined(
    rows: Sequence[tuple[Row, int]],
    versions: Mapping[int, Sequence[Row]],
    on: Mapping[str, str],
    *,
    left: bool,
    where: Callable[[Row, Row], bool] = lambda *_: True,
) -> list[Pair]:
    """Pairs of (row, its version of the table); `on`: the table's column for each of the stream's."""
    found: list[Pair] = []
    for row, version in rows:
        partners = [
            other
            for other in versions[version]
            if all(row[own] is not None and row[own] == other[its] for own, its in on.items()) and where(row, other)
        ]
        found += [(row, other, version) for other in partners]
        if left and not partners:
            found.append((row, None, version))
    return found


def counted(pairs: Sequence[Pair], show: Callable[[Row, Row | None, int], tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Results as they are shown, and how often each is there."""
    return Counter(show(*pair) for pair in pairs)
