"""Time is int64 nanoseconds, everywhere; these are its edges.

A time lies strictly between `TIME_MIN` and `TIME_MAX` (the years 1824 to 2116), so that time + window never overflows.
Above it `FOREVER` is the watermark of a stream that ended; below it `DEAD` marks a stored row that matches nothing.
"""

from typing import Final

TIME_MIN: Final = -(2**62)
TIME_MAX: Final = 2**62
FOREVER: Final = 2**63 - 1
DEAD: Final = -(2**63)
UNBOUNDED: Final = 2**62
"""A window that never ends: longer than any two times can be apart from the first to the last that matter."""

NS_PER_UNIT: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
