"""What it costs to survive: pauses of moves, recovery, checkpoints, the log on disk.

Moves are ordered one after another while rows come in steadily, between two workers; the window is filled first, as
fast as the gateway takes it. A pause is what the gateway measures: from the moment the new owner is written down until
it is served (`machine.handovers`). Recovery is from kill -9 of a worker until all of its groups are served again.
"""

import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bench.answer import BenchError
from bench.lab import Lab
from bench.measure import in_turns
from bench.report import Metric
from bench.service import NO_CHECKPOINT, throughput
from joinery.adapters.tuning import settle
from joinery.cli.local import LocalRun
from joinery.cli.query_file import read_query
from joinery.client import Producer, connect
from joinery.machine.messages import MoveView

GROUPS: Final = 4
GROUP_BYTES: Final = 10_000_000
ROW_BYTES: Final = 109
"""Of a row as a worker holds it: two numbers, a text of 16 bytes, and what finds them again."""
ROWS_PER_S: Final = 50_000
"""Of both streams together, while groups move."""
STEP_S: Final = 0.02
LIMIT_S: Final = 300.0
_LOOK_S: Final = 0.02
CHECKPOINTS: Final = {"durability": "memory", "interval": "2s"}
WAL: Final = {"durability": "wal", "interval": "2s"}
"""The defaults of a query."""


@dataclass(slots=True)
class Feed:
    """Rows of both streams: a full window at once, then steadily until it is closed."""

    producers: tuple[Producer, Producer]
    window_us: int
    rows_in_window: int
    _closed: threading.Event

    def fill(self) -> None:
        """As fast as they are taken."""
        piece = 20_000
        step = max(1, self.window_us // (self.rows_in_window // 2))
        for first in range(0, self.rows_in_window // 2, piece):
            self._push(np.arange(first, first + piece, dtype=np.int64) * step)
        for producer in self.producers:
            producer.flush()

    def go_on(self) -> None:
        """Event time follows the clock from where the filling ended."""
        begun, at_us = time.monotonic(), self.window_us
        while not self._closed.wait(STEP_S):
            now_us = self.window_us + int(1e6 * (time.monotonic() - begun))
            rows = max(1, int(ROWS_PER_S / 2 * (now_us - at_us) / 1e6))
            self._push(np.linspace(at_us, now_us, rows, endpoint=False).astype(np.int64))
            at_us = now_us
        for producer in self.producers:
            producer.end()

    def _push(self, times: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        text = pa.array([b"0123456789abcdef"], pa.binary(16))
        for salt, producer in enumerate(self.producers):
            keys = (times * 2_654_435_761 + salt) % (1 << 40)
            payload = pa.repeat(text[0], times.size)
            producer.push(pa.RecordBatch.from_arrays([pa.array(times), pa.array(keys), payload], ["ts", "key", "text"]))


@contextmanager
def _loaded(factor: int, scale: int) -> Iterator[LocalRun]:
    """A query with two workers whose groups are as large as they should be, under load."""
    rows = factor * GROUPS * GROUP_BYTES // ROW_BYTES // scale
    window_us = int(1e6 * rows / ROWS_PER_S)
    settle()
    with tempfile.TemporaryDirectory(prefix="joinery-bench-") as folder:
        path = Path(folder) / "query.yaml"
        path.write_text(json.dumps(_query(window_us)))
        with LocalRun(path, read_query(path)) as run, connect(run.gateway) as query:
            closed = threading.Event()
            feed = Feed((query.producer("a", "a"), query.producer("b", "b")), window_us, rows, closed)
            feed.fill()
            load = threading.Thread(target=feed.go_on)
            load.start()
            try:
                _until(run, lambda: _is_steady(run), "a full window")
                yield run
            finally:
                closed.set()
                load.join()


def _query(window_us: int) -> dict[str, object]:
    schema = {"ts": "int64", "key": "int64", "text": "binary(16)"}
    streams = [
        {"name": name, "schema": schema, "window": f"{window_us}us", "time": {"column": "ts", "unit": "us"}}
        for name in "ab"
    ]
    spec = {
        "streams": streams,
        "join": {"on": ["key"]},
        "replicas": 2,
        "partitions": GROUPS,
        "scaling": {"mode": "Manual"},
        "checkpoint": WAL,
        "sinks": [{"count": {}}],
    }
    return {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": "bench"}, "spec": spec}


def _is_steady(run: LocalRun) -> bool:
    view = run.progress.last
    if view is None or view.degree < 2 or view.unsent_bytes > 1_000_000:
        return False
    return all(one.report is not None and one.report.window_bytes > 0 for one in view.workers)


def _until(run: LocalRun, is_so: Callable[[], bool], what: str) -> None:
    """Look after the run until something is so."""
    end = time.monotonic() + LIMIT_S
    done = threading.Event()

    def look(one: LocalRun) -> None:
        if is_so():
            done.set()
        elif time.monotonic() > end:
            one.failed = f"found no {what} after {LIMIT_S:g} s, wanted it"

    while not done.is_set():
        run.attend(look)
        if run.failed is not None:
            raise BenchError(f"state: {run.failed}")
        time.sleep(_LOOK_S)


def moved(run: LocalRun, moves: int) -> list[MoveView]:
    """Ordered moves, one after another, each group to the worker that does not have it."""
    owner = {group: f"worker-{group * 2 // GROUPS}" for group in range(GROUPS)}
    before = len(run.progress.moves)
    for number in range(moves):
        group = number % GROUPS
        owner[group] = "worker-0" if owner[group] == "worker-1" else "worker-1"
        run.move(group, owner[group])
        _until(run, lambda seen=before + number + 1: len(run.progress.moves) >= seen, f"move {number}")  # type: ignore[misc]
    return run.progress.moves[before:]


def pauses(lab: Lab) -> list[Metric]:
    """How long a group stands still when it moves, and whether that grows with the window."""
    found: dict[int, np.ndarray[Any, np.dtype[np.float64]]] = {}
    for factor, moves in ((1, 200), (10, 40)):
        with _loaded(factor, lab.scale) as run:
            done = moved(run, max(4, moves // lab.scale))
        sizes = [move.nbytes for move in done if move.nbytes]
        found[factor] = np.array([(move.pause_ns or 0) / 1e6 for move in done])
        lab.say(
            f"{len(done)} moves of groups of {np.median(sizes) / 1e6:.0f} MB: "
            f"p50 {np.percentile(found[factor], 50):.0f} ms, p99 {np.percentile(found[factor], 99):.0f} ms"
        )
    return [
        Metric("state.pause_p50_ms", float(np.percentile(found[1], 50)), "ms"),
        Metric("state.pause_p99_ms", float(np.percentile(found[1], 99)), "ms"),
        Metric("state.pause_growth", float(np.median(found[10]) / np.median(found[1])), "ratio"),
    ]


def recovery(lab: Lab) -> list[Metric]:
    """From kill -9 of a worker until its groups are served by the others, or by itself again."""
    with _loaded(1, lab.scale) as run:
        before, begun = len(run.progress.moves), time.time()
        os.kill(run.pids["worker-1"], signal.SIGKILL)
        _until(run, lambda: _is_served_again(run, begun), "recovery")
        seconds = time.time() - begun
        lab.say(f"recovery after {seconds:.1f} s, {len(run.progress.moves) - before} groups moved")
    return [Metric("state.recovery_s", seconds, "s")]


def _is_served_again(run: LocalRun, since_s: float) -> bool:
    """Whether results of every group come again: everybody is there, and nothing waits or changes its owner."""
    view = run.progress.last
    if view is None or view.at_ns / 1e9 < since_s + 0.5:
        return False
    return all(one.is_up for one in view.workers) and not view.under_way and view.unsent_bytes < 1_000_000


def overheads(lab: Lab) -> list[Metric]:
    """Throughput with checkpoints, and with the log on disk as well, beside the bare one; in turns."""
    kinds = {"bare": NO_CHECKPOINT, "checkpoints": CHECKPOINTS, "wal": WAL}
    turns = {
        name: (lambda how=how: throughput(lab, "U1", 2, "count", how).tuples_per_s)  # type: ignore[misc]
        for name, how in kinds.items()
    }
    found = in_turns(turns, lab.reps)
    share = {name: found[name].over(found["bare"]) for name in ("checkpoints", "wal")}
    return [
        Metric.rate("service.U1.checkpoints.tuples_per_s", found["checkpoints"]),
        Metric.rate("service.U1.durable.tuples_per_s", found["wal"]),
        Metric("state.checkpoint_overhead", 1 - share["checkpoints"].median, "share"),
        Metric("state.wal_overhead", 1 - found["wal"].over(found["checkpoints"]).median, "share"),
    ]


PAUSE_NAMES: Final = ("state.pause_p50_ms", "state.pause_p99_ms", "state.pause_growth")
RECOVERY_NAMES: Final = ("state.recovery_s",)
OVERHEAD_NAMES: Final = (
    "service.U1.checkpoints.tuples_per_s", "service.U1.durable.tuples_per_s",
    "state.checkpoint_overhead", "state.wal_overhead",
)  # fmt: skip
