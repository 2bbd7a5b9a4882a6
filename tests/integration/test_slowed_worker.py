"""One worker of three is slowed to a third: it becomes a supplier, its groups leave, the delay comes back; exact."""

import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from joinery.cli.local import LocalRun
from joinery.cli.run import read_query
from joinery.client import Query, connect
from joinery.elastic.classify import Role
from tests.support.faults import until
from tests.support.measuring import measured

SPEED = 200_000.0
"""Comparisons per second: each worker is about half busy."""
ROWS_PER_PUSH, EVERY_S, WINDOW_MS = 60, 0.05, 2000
SLOW = "worker-2"


class Slowed(LocalRun):
    """A run of which one worker reads its speed from a file."""

    def _start_worker(self, ordinal: int) -> None:
        own = ["--speed-file", str(self.query.parent / "speed")] if f"worker-{ordinal}" == SLOW else []
        self._start("worker", f"worker-{ordinal}", "--gateway", self._gateway, "--collector", self._collector, *own)


def write_query(folder: Path) -> Path:
    streams = [
        {
            "name": name,
            "schema": {"k": "int64", "n": "int64", "ts": "int64"},
            "window": f"{WINDOW_MS}ms",
            "time": {"column": "ts", "unit": "ms"},
        }
        for name in "ab"
    ]
    spec: dict[str, Any] = {
        "streams": streams,
        "join": {"on": ["k"], "method": "nested-loop"},
        "sinks": [{"file": {"path": "out.parquet"}}],
        "checkpoint": {"durability": "memory", "interval": "500ms"},
        "epochs": {"distribution": "50ms", "reorganization": "1s"},
        "worker": {"speed": SPEED, "buffer": "16Ki"},
        "scaling": {"mode": "Manual"},
        "replicas": 3,
    }
    query = {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": "slowed"}, "spec": spec}
    path = folder / "query.yaml"
    path.write_text(yaml.safe_dump(query))
    return path


class Pushing(threading.Thread):
    """Both streams at a steady rate, until told to end."""

    def __init__(self, client: Query) -> None:
        super().__init__(daemon=True)
        self._client, self._rng, self._enough = client, np.random.default_rng(5), threading.Event()
        self.sent: dict[str, list[pa.Table]] = {"a": [], "b": []}
        self.start()

    def run(self) -> None:
        begun, number = time.monotonic(), 0
        while not self._enough.wait(max(0.0, begun + number * EVERY_S - time.monotonic())):
            for name, sent in self.sent.items():
                sent.append(self._rows(number))
                self._client.push(name, sent[-1])
            number += 1
        for name in self.sent:
            self._client.end(name)

    def _rows(self, number: int) -> pa.Table:
        first = 1000 * EVERY_S * number
        times = np.sort(self._rng.integers(int(first), int(first + 1000 * EVERY_S), ROWS_PER_PUSH))
        places = np.arange(number * ROWS_PER_PUSH, (number + 1) * ROWS_PER_PUSH)
        return pa.table({"k": self._rng.integers(0, 5000, ROWS_PER_PUSH), "n": places, "ts": times})

    def end(self) -> None:
        self._enough.set()
        self.join(60)


def truth(sent: dict[str, list[pa.Table]]) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name, tables in sent.items():
            connection.register(name, pa.concat_tables(tables))
        near = f"abs(a.ts - b.ts) <= {WINDOW_MS}"
        return Counter(connection.execute(f"select a.*, b.* from a join b on a.k = b.k and {near}").fetchall())


class Look:
    """What the overviews show, one by one, as they come."""

    def __init__(self, run: LocalRun) -> None:
        self._run, self._seen_ns = run, 0
        self.means: list[float] = []
        """Mean production delays, in seconds, between two overviews."""

    def is_new(self) -> bool:
        view = self._run.progress.last
        if view is None or view.at_ns == self._seen_ns or not view.produced.rows:
            return False
        self._seen_ns = view.at_ns
        self.means.append(self._run.progress.recent.mean_ns / 1e9)
        return True

    def worker(self) -> tuple[Role | None, int]:
        """Role and groups of the slow one."""
        view = self._run.progress.last
        return (
            next(((one.role, one.groups) for one in view.workers if one.worker == SLOW), (None, 0))
            if view
            else (None, 0)
        )

    def after(self, overviews: int) -> float:
        """The middle of the next means."""
        first = len(self.means)
        until(lambda: self.is_new() and len(self.means) - first >= overviews, "overviews")
        return float(np.median(self.means[-overviews:]))


@pytest.mark.timeout(600)
@measured
def test_a_worker_slowed_to_a_third_loses_its_groups_and_the_delay_comes_back(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    path = write_query(folder)
    with Slowed(path.resolve(), read_query(path)) as run, connect(run.gateway) as client:
        pushing, look = Pushing(client), Look(run)
        look.after(12)  # windows fill
        old, groups = look.after(6), look.worker()[1]
        (folder / "speed").write_text(str(SPEED / 3))
        story: list[tuple[Role | None, int, float]] = []

        def is_well_again() -> bool:
            if not look.is_new():
                return False
            story.append((*look.worker(), look.means[-1]))
            was_supplier = any(role is Role.SUPPLIER for role, _, _ in story)
            has_left, was_slow = story[-1][1] <= 0.75 * groups, any(mean > 2 * old for _, _, mean in story)
            return was_supplier and has_left and was_slow and float(np.median(look.means[-3:])) < 2 * old

        until(is_well_again, f"few groups, and a delay below twice {old}", seen=story)
        pushing.end()
        ended = run.wait(lambda _: None)
    found = Counter(tuple(row.values()) for row in pq.read_table(folder / "out.parquet").to_pylist())
    if not ended or truth(pushing.sent) != found:  # no measurement: it is not taken again
        pytest.fail(f"the rows are not the true ones, or the run failed: {run.failed}")
