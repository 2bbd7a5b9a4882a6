"""Producers in threads: they push what the plan says, as fast as its times say, and come back when they have left."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from joinery.client import Query, connect
from tests.chaos.clock import Clock
from tests.chaos.plans import Feed, Plan

PATIENCE_S = 90.0
LOOK_S = 0.05
CLOSE_S = 3.0
"""A producer whose query has failed waits for a gateway until its patience ends; it is left alone."""
_MOST_PRODUCERS = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """All rows of one producer, and which of them are late."""

    feed: Feed
    table: pa.Table
    late: np.ndarray
    """By its own sequence alone (docs/design.md §2): all producers are there before the first row."""

    @property
    def chunks(self) -> list[pa.Table]:
        return [self.table.slice(at, self.feed.chunk) for at in range(0, self.table.num_rows, self.feed.chunk)]


def rows_of(plan: Plan, feed: Feed) -> Rows:
    """In the order of their times, but for some that are behind, a few of them too far."""
    rng = np.random.default_rng(feed.seed)
    times = np.sort(rng.integers(0, plan.span_ms, feed.rows))
    behind = rng.random(feed.rows) < 0.05
    times[behind] -= rng.integers(0, 2 * plan.lateness_ms + 20, int(behind.sum()))
    greatest = np.maximum.accumulate(times)
    late = np.zeros(feed.rows, np.bool_)
    late[1:] = times[1:] < greatest[:-1] - plan.lateness_ms
    number = int(feed.name.rpartition("-")[2]) * _MOST_PRODUCERS + np.arange(feed.rows)
    table = pa.table(
        {
            "k": pa.array(rng.integers(0, plan.keys, feed.rows), mask=rng.random(feed.rows) < 0.01),
            "n": number,
            "s": pa.array([f"{feed.name} {one}" for one in range(feed.rows)]),
            "ts": times,
        }
    )
    return Rows(feed, table, late)


class Feeding:
    """All producers of a run, between `start` and `join`."""

    def __init__(self, plan: Plan, address: str, clock: Clock) -> None:
        self.rows = [rows_of(plan, feed) for feed in plan.feeds]
        self.failed: list[str] = []
        self._address, self._clock = address, clock
        self.subscriber = Subscriber(address, self._wait_for_all) if plan.subscribes else None
        self._all_there = threading.Barrier(len(self.rows) + plan.subscribes)
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._feed, args=(rows,), daemon=True) for rows in self.rows]

    def start(self) -> None:
        if self.subscriber is not None:
            self.subscriber.start()
        for thread in self._threads:
            thread.start()

    def _wait_for_all(self) -> None:
        """Nobody pushes before everybody is there, who reads too."""
        self._all_there.wait(PATIENCE_S)

    @property
    def is_done(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads)

    def close(self) -> None:
        """Give up, or see that it is done."""
        self._stopped.set()
        self._all_there.abort()
        until_s = time.monotonic() + CLOSE_S
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, until_s - time.monotonic()))

    def _feed(self, rows: Rows) -> None:
        try:
            self._push(rows)
        except Exception as error:
            if not self._stopped.is_set():
                self.failed.append(f"producer {rows.feed.name}: {type(error).__name__}: {error}")

    def _push(self, rows: Rows) -> None:
        feed, chunks = rows.feed, rows.chunks
        cuts = [*(int(share * len(chunks)) for share in feed.leaves), len(chunks)]
        for part, until in enumerate(cuts):
            query = connect(self._address, timeout=PATIENCE_S, patience=PATIENCE_S)
            producer = query.producer(feed.stream, feed.name)
            if part == 0:
                self._wait_for_all()
                self._clock.start()
            producer.push(self._paced(chunks[:until]), skip=producer.recorded)
            if part == len(cuts) - 1:
                producer.end()
            query.close()  # what was not recorded is lost here, and pushed again by the next

    def _paced(self, chunks: list[pa.Table]) -> Iterator[pa.Table]:
        """Each at its time; what was pushed before is due already."""
        for chunk in chunks:
            due_s = chunk["ts"][-1].as_py() / 1000
            while (left_s := due_s - self._clock.now_s()) > 0:
                if self._stopped.wait(min(LOOK_S, left_s)):
                    return
            yield chunk


class Subscriber:
    """Reads all results while they are committed."""

    def __init__(self, address: str, wait_for_all: Callable[[], None]) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.failed: str | None = None
        self._address, self._wait_for_all = address, wait_for_all
        self._query: Query | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self.start = self._thread.start

    def _read(self) -> None:
        try:
            self._query = connect(self._address, timeout=PATIENCE_S, patience=PATIENCE_S)
            results = self._query.results()
            self._wait_for_all()
            for batch in results:
                self.batches.append(batch)
        except Exception as error:
            self.failed = f"subscriber: {type(error).__name__}: {error}"

    def close(self, seconds: float) -> None:
        """It ends when the query has; what it waits for then is too long."""
        if self._thread.ident is not None:
            self._thread.join(seconds)
        if self._thread.is_alive():
            self.failed = self.failed or f"subscriber: the query has ended, and it still waits after {seconds:g} s"
        if self._query is not None:
            self._query.close()
