"""Production delay (seed 000, VI): a result's production time minus the arrival of its later member, in one clock.

Delays are counted in fixed buckets, eight for each doubling, so that a bucket is 9 % wide, counts of any two processes
can be added, and what is kept does not grow with the number of results. A percentile is the upper end of its bucket,
never above the greatest delay seen; mean and maximum are exact.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from joinery.model.errors import require
from joinery.model.tuples import I64Array

PER_DOUBLING: Final = 8
BUCKETS: Final = 64 * PER_DOUBLING
"""From 1 ns to more than any clock can count."""


def _nothing() -> I64Array:
    return np.zeros(BUCKETS, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Delays:
    """How many results had which delay."""

    counts: I64Array = field(default_factory=_nothing)
    """One per bucket."""
    total_ns: float = 0.0
    max_ns: int = 0

    @classmethod
    def of(cls, delays_ns: I64Array, rows: I64Array) -> "Delays":
        """So many rows of each delay; a delay below 0, which only clocks that disagree can show, counts as 0."""
        require(delays_ns.shape == rows.shape, f"{delays_ns.size} delays of {rows.size} counts of rows")
        seen = np.maximum(delays_ns[rows > 0], 0)
        rows = rows[rows > 0]
        if not seen.size:
            return cls()
        counts = np.bincount(_bucket(seen), weights=rows, minlength=BUCKETS).astype(np.int64)
        return cls(counts, float(seen @ rows.astype(np.float64)), int(seen.max()))

    @property
    def rows(self) -> int:
        """How many results were counted."""
        return int(self.counts.sum())

    @property
    def mean_ns(self) -> float:
        """0 if there was none."""
        return self.total_ns / max(1, self.rows)

    def percentile_ns(self, share: float) -> int:
        """The delay that this share of the results did not exceed; 0 if there was none."""
        rows = self.rows
        if not rows:
            return 0
        rank = max(1, int(np.ceil(share * rows)))
        bucket = int(np.searchsorted(np.cumsum(self.counts), rank))
        return min(self.max_ns, int(2 ** ((bucket + 1) / PER_DOUBLING)))

    def __add__(self, other: "Delays") -> "Delays":
        """Both together."""
        return Delays(self.counts + other.counts, self.total_ns + other.total_ns, max(self.max_ns, other.max_ns))


def _bucket(delays_ns: I64Array) -> I64Array:
    """Delays of 0 and 1 ns are the first bucket."""
    found: I64Array = np.floor(np.log2(np.maximum(delays_ns, 1)) * PER_DOUBLING).astype(np.int64)
    return found
