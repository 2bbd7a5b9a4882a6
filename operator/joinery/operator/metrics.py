"""The operator's own figures, for Prometheus: how many queries, how often and how long it looks after them."""

import threading
from collections import Counter
from typing import Final

BUCKETS_S: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0)
_PREFIX: Final = "joinery_operator"


class Metrics:
    """Counted by many threads, read by one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._seconds = [0] * (len(BUCKETS_S) + 1)
        self._total_s = 0.0
        self.queries = 0

    def reconciled(self, seconds: float, *, failed: bool) -> None:
        """One step of one query."""
        place = next((number for number, bound in enumerate(BUCKETS_S) if seconds <= bound), len(BUCKETS_S))
        with self._lock:
            self._seconds[place] += 1
            self._total_s += seconds
            self._counts["reconcile_errors_total", ""] += failed

    def told(self, reason: str) -> None:
        """One event was posted."""
        with self._lock:
            self._counts["events_total", f'reason="{reason}"'] += 1

    def text(self) -> str:
        """In Prometheus' own format."""
        with self._lock:
            counts, seconds, total_s = dict(self._counts), list(self._seconds), self._total_s
        lines = [
            f"# HELP {_PREFIX}_joinqueries JoinQueries that are looked after.",
            f"# TYPE {_PREFIX}_joinqueries gauge",
            f"{_PREFIX}_joinqueries {self.queries}",
        ]
        for name, about in _ABOUT.items():
            lines += [f"# HELP {_PREFIX}_{name} {about}", f"# TYPE {_PREFIX}_{name} counter"]
            lines += [
                f"{_PREFIX}_{held}{{{labels}}} {count}" for (held, labels), count in counts.items() if held == name
            ]
        name, below = f"{_PREFIX}_reconcile_duration_seconds", 0
        lines += [f"# HELP {name} One look at one JoinQuery, with all that it led to.", f"# TYPE {name} histogram"]
        for bound, count in zip((*BUCKETS_S, "+Inf"), seconds, strict=True):
            below += count
            lines.append(f'{name}_bucket{{le="{bound}"}} {below}')
        return "\n".join([*lines, f"{name}_sum {total_s:.6f}", f"{name}_count {below}"])


_ABOUT: Final = {
    "reconcile_errors_total": "Looks that failed, and were repeated.",
    "events_total": "Events that were posted, by reason.",
}
