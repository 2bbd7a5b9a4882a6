"""The time of a run: it stands still while a run that was harmed takes longer than planned to come back.

So rows are still coming when the next fault is due, on a slow machine as on a fast one.
"""

import threading
import time


class Clock:
    """Seconds since the first rows were pushed, by the plan."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began_s: float | None = None
        self._lost_s = 0.0
        """How long it stood still."""
        self._most_s = float("inf")

    def start(self) -> None:
        with self._lock:
            self._began_s = self._began_s or time.monotonic()

    @property
    def is_running(self) -> bool:
        return self._began_s is not None

    def now_s(self) -> float:
        """0 before the start."""
        with self._lock:
            return self._now_s()

    def hold(self, most_s: float) -> None:
        """Go no further than this, until `release`."""
        with self._lock:
            self._most_s = most_s

    def release(self) -> None:
        with self._lock:
            self._now_s()
            self._most_s = float("inf")

    def _now_s(self) -> float:
        if self._began_s is None:
            return 0.0
        gone_s = time.monotonic() - self._began_s - self._lost_s
        if gone_s > self._most_s:
            self._lost_s += gone_s - self._most_s
        return min(gone_s, self._most_s)
