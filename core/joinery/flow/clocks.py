"""How far another process's clock is ahead, as NTP finds it: from pings, of which the quickest is the best.

A ping leaves at t0, is answered at t1 by the other clock, and is back at t2. If both ways took equally long the other
clock is ahead by t1 - (t0 + t2) / 2; the error is at most half of the round trip t2 - t0, whatever the ways took. So of
the last `KEPT` pings the one with the shortest round trip counts, and old ones go, because clocks drift.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

KEPT: Final = 32


@dataclass(frozen=True, slots=True)
class Ping:
    """One round trip."""

    ahead_ns: int
    round_trip_ns: int


class ClockOffset:
    """What is known of one other clock."""

    def __init__(self) -> None:
        self._pings: deque[Ping] = deque(maxlen=KEPT)

    def add(self, sent_ns: int, theirs_ns: int, back_ns: int) -> None:
        """A ping came back; one that came back before it left (our clock was set back) says nothing."""
        if back_ns >= sent_ns:
            self._pings.append(Ping(theirs_ns - (sent_ns + back_ns) // 2, back_ns - sent_ns))
        else:
            self._pings.clear()

    @property
    def ahead_ns(self) -> int:
        """How far the other clock is ahead of ours; 0 as long as nothing is known."""
        return min(self._pings, key=lambda ping: ping.round_trip_ns).ahead_ns if self._pings else 0

    @property
    def error_ns(self) -> int | None:
        """By how much `ahead_ns` may be wrong; None: nothing is known."""
        return min(ping.round_trip_ns for ping in self._pings) // 2 if self._pings else None
