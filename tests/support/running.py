"""A query that waits for pushed rows, as real processes, for tests of clients and pipes."""

import gc
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sys import getswitchinterval, setswitchinterval
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import yaml
from typer.testing import CliRunner

from joinery.cli.local import LocalRun
from joinery.cli.main import app
from joinery.cli.run import read_query

SCHEMA = {"k": "int64", "n": "int64", "s": "string", "ts": "int64"}
PAIR = "a.k = b.k and ((a.ts between b.ts - 300 and b.ts) or (b.ts between a.ts - 120 and a.ts))"


def frame(rows: int, seed: int, span_ms: int = 20_000) -> pa.Table:
    """Rows of a stream, in the order of their times."""
    rng = np.random.default_rng(seed)
    keys = pa.array(rng.integers(0, 400, rows), mask=rng.random(rows) < 0.02)
    texts = pa.array([f"row {number}" for number in range(rows)])
    return pa.table({"k": keys, "n": np.arange(rows), "s": texts, "ts": np.sort(rng.integers(0, span_ms, rows))})


def write_query(folder: Path, kind: str = "left", **more: Any) -> Path:
    """A query of two pushed streams a and b."""
    streams = [
        {"name": name, "schema": dict(SCHEMA), "window": f"{window}ms", "time": {"column": "ts", "unit": "ms"}}
        for name, window in (("a", 300), ("b", 120))
    ]
    spec = {
        "streams": streams,
        "join": {"on": ["k"], "type": kind},
        "sinks": [{"count": {}}],
        "checkpoint": {"durability": "memory", "interval": "200ms"},
        **more,
    }
    name = f"pushed-{folder.name.lower().replace('_', '-')}"[:40].strip("-")
    query = {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": name}, "spec": spec}
    path = folder / "query.yaml"
    path.write_text(yaml.safe_dump(query))
    return path


@contextmanager
def running(query: Path, **options: Any) -> Iterator[LocalRun]:
    """The processes of the query."""
    with LocalRun(query.resolve(), read_query(query), **options) as run:
        yield run


def truth(a: pa.Table, b: pa.Table) -> Counter[tuple[Any, ...]]:
    """The left join of both, by DuckDB."""
    with duckdb.connect() as connection:
        connection.register("a", a)
        connection.register("b", b)
        columns = ", ".join(f"{stream}.{column}" for stream in "ab" for column in sorted(SCHEMA))
        return Counter(connection.execute(f"select {columns} from a left join b on {PAIR}").fetchall())


def counted(batches: list[pa.RecordBatch]) -> Counter[tuple[Any, ...]]:
    """Rows and how often each is there."""
    return Counter(tuple(row.values()) for batch in batches for row in batch.to_pylist())


def command(*words: str) -> list[str]:
    """A `joinery` command line."""
    return [sys.executable, "-c", "from joinery.cli.main import app; app()", *words]


def joinery(*words: str, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end."""
    return subprocess.run(command(*words), input=data, capture_output=True, timeout=120, check=False)  # noqa: S603


def called(*words: str) -> subprocess.CompletedProcess[str]:
    """A `joinery` command in this process: without the second that loading takes, for tests of what a query gives.

    What its own processes say is not in what it gives back; what it sets for good in its process is put back.
    """
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers, thresholds, interval = [signal.getsignal(one) for one in numbers], gc.get_threshold(), getswitchinterval()
    try:
        done = CliRunner().invoke(app, words)
    finally:
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        setswitchinterval(interval)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)
