"""From nanoseconds since the start of a stream to its time column: origin, unit, and the end of time."""

import numpy as np

from joinery.generate.checks import BadParameter, want, want_whole
from joinery.generate.draws import IntArray
from joinery.model.time import NS_PER_UNIT, TIME_MAX, TIME_MIN


def want_clock(time_unit: object, origin_ns: object) -> None:
    """Refuse an unknown unit or an origin outside of time."""
    units = list(NS_PER_UNIT)
    want(time_unit in units, "time_unit", time_unit, f"one of {units}", "choose the unit of the time column")
    want_whole("origin_ns", origin_ns, TIME_MIN + 1, TIME_MAX - 1, "give nanoseconds since 1970")


def stamps(since_start_ns: IntArray, time_unit: str, origin_ns: int) -> IntArray:
    """The time column; a stream that runs past the last time says so instead of wrapping around."""
    latest = TIME_MAX - 1 - max(origin_ns, 0)
    if int(np.max(since_start_ns)) > latest:
        remedy = "raise the rate, or ask for fewer rows"
        raise BadParameter("time", f"more than {latest} ns after the start", "times below 2^62 ns", remedy)
    return (since_start_ns + origin_ns) // NS_PER_UNIT[time_unit]
