"""Figures 6.7 and 6.8 with real processes: gateway, worker, collector, and a lookup application with a slowed disk.

A producer plays the trace of `hybrid_scaled` in real time; rows are stamped by the gateway as they come. Then the
stream ends, all that waits is read, and the number of results is checked. What is measured lies between a sixth of the
run and its last arrival.
"""

import json
import os
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.answer import BenchError
from bench.figures.hybrid_experiments import BUCKETS, RELATION_BYTES, THETA, relation_keys
from bench.figures.hybrid_scaled import SCALE, SPAN, config, read_notes, trace
from bench.figures.rig import side_by_side
from bench.figures.slow_disk import READS
from bench.figures.timed_worker import FOUND
from joinery.cli.local import LocalRun
from joinery.cli.query_file import read_query
from joinery.client import Producer, connect
from joinery.hybrid.costs import R_BYTES, S_BYTES
from joinery.hybrid.replay import Trace

METHODS: Final = ("range", "hash")
RATE_HZ: Final = 1000.0
PUSH_S: Final = 0.02
LIMIT_S: Final = 90.0
MODULES: Final = {"lookup": "bench.figures.slow_disk", "worker": "bench.figures.timed_worker"}
_starting: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class RealPoint:
    """One method at one rate, measured."""

    method: str
    rate_hz: float
    """As it came."""
    delay_s: float
    """Mean over results, from a row's arrival to its join: as the thesis measures it."""
    told_s: float
    """Mean over all results until they left the worker, in the order of the messages."""
    disk_s: float
    """How long the modelled disk was reading, by the clock."""
    reads: int
    results: int
    load: float


@cache
def real_points(rate_hz: float = RATE_HZ) -> dict[str, RealPoint]:
    """Both methods, side by side: their processes mostly sleep."""
    return side_by_side({method: partial(real_point, method, rate_hz) for method in METHODS})


def real_point(method: str, rate_hz: float) -> RealPoint:
    """One run of about half a minute."""
    with tempfile.TemporaryDirectory(prefix="joinery-figure-") as name:
        folder, rows = Path(name), trace(rate_hz)
        path = _written(folder, method)
        run = LocalRun(path, read_query(path))
        run.modules = MODULES
        with _starting:
            run.__enter__()
        try:
            with connect(run.gateway, timeout=LIMIT_S) as client:
                producer = client.producer("s", "figure")
                _first_row(run, producer)
                begun_ns = time.time_ns()
                _play(producer, rows)
                producer.end()
            if not run.wait(lambda _: None, 0.1):
                raise BenchError(f"{method}: found a run that failed ({run.failed}), wanted its end")
            return _point(method, rows, run, folder, begun_ns)
        finally:
            run.close()


def _written(folder: Path, method: str) -> Path:
    """The table and the query."""
    keys = relation_keys(SCALE)
    table = pa.table({"key": keys, "info": _filled(keys.size, R_BYTES - 8)})
    pq.write_table(table, folder / "table.parquet")
    path = folder / "query.yaml"
    path.write_text(json.dumps(_query(method)))
    return path


def _query(method: str) -> dict[str, Any]:
    settings = config()
    theta = THETA / SCALE if method == "range" else RELATION_BYTES / SCALE / BUCKETS / 1.5  # `hash_cut`
    table = {
        "path": "table.parquet", "cut": method, "refresh": "1h", "maxWait": "1h", "theta": _size(theta),
        "memory": _size(settings.memory_bytes), "waitBuffer": _size(settings.wait_bytes),
        "invokeRows": settings.invoke_rows, "epochRows": settings.epoch_rows,
    }  # fmt: skip
    streams = [
        {"name": "s", "schema": {"key": "int64", "body": f"binary({S_BYTES - 8})"}},
        {"name": "r", "schema": {"key": "int64", "info": f"binary({R_BYTES - 8})"}, "table": table},
    ]
    spec = {
        "streams": streams,
        "join": {"on": ["key"]},
        "select": ["s.key"],
        "sinks": [{"count": {}}],
        "partitions": 1,  # the whole table is one group, so that its cut is the thesis'
        "scaling": {"mode": "Manual"},
        "epochs": {"distribution": "20ms", "reorganization": "500ms"},
        "checkpoint": {"durability": "memory", "interval": "1h"},
    }
    name = f"figure-{method}-{os.getpid()}"
    return {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": name}, "spec": spec}


def _size(count: float) -> str:
    return f"{round(count) / 1000:.3f}k"


def _first_row(run: LocalRun, producer: Producer) -> None:
    """Until the table is cut, the worker is there, and a row without a key, which waits for nothing, is through."""
    _push(producer, pa.nulls(1, pa.int64()))
    producer.flush()
    record, end_s = producer.last_record or 0, time.monotonic() + LIMIT_S
    while (view := run.progress.last) is None or view.uncommitted <= record:
        if run.failed is not None or time.monotonic() > end_s:
            raise BenchError(f"found no first row after {LIMIT_S:g} s ({run.failed}), wanted it joined")
        run.attend(lambda _: None)
        time.sleep(0.02)


def _play(producer: Producer, rows: Trace) -> None:
    """Every row when it is due, or a little later."""
    begun_s, pushed = time.monotonic(), 0
    while pushed < rows.arrivals.size:
        time.sleep(PUSH_S)
        due = int(np.searchsorted(rows.arrivals, (time.monotonic() - begun_s) * 1e9, "right"))
        if due > pushed:
            _push(producer, pa.array(rows.keys[pushed:due]))
            pushed = due


def _push(producer: Producer, keys: pa.Array) -> None:
    producer.push(pa.RecordBatch.from_arrays([keys, _filled(len(keys), S_BYTES - 8)], ["key", "body"]))


def _filled(count: int, width: int) -> pa.Array:
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, [None, pa.py_buffer(bytes(count * width))])


def _point(method: str, rows: Trace, run: LocalRun, folder: Path, begun_ns: int) -> RealPoint:
    view, wanted = run.progress.last, int(rows.weights.sum())
    if view is None or view.results != wanted:
        raise BenchError(f"{method}: found {view and view.results} results, wanted {wanted}")
    found, reads = (_within(read_notes(folder, name), begun_ns) for name in (FOUND, READS))
    return RealPoint(
        method=method,
        rate_hz=rows.arrivals.size * 1e9 / SPAN.until_ns,
        delay_s=float((found[:, 0] - found[:, 1]).mean()) / 1e9,
        told_s=view.produced.total_ns / max(1, view.produced.rows) / 1e9,
        disk_s=float(reads[:, 1].sum()) / 1e9,
        reads=len(reads),
        results=len(found),
        load=os.getloadavg()[0],
    )


def _within(notes: Any, begun_ns: int) -> Any:
    """What was noted in the measured part of the run."""
    moments: Sequence[int] = notes[:, 0] - begun_ns
    return notes[(moments >= SPAN.start_ns) & (moments < SPAN.until_ns)]
