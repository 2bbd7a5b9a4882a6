"""The hybrid join through the service, and the same rows with the same table by Spark, in one run.

A stream of which 80 % of the rows have a key of the hottest tenth, a stored table of 3.6 times the memory that it is
given, one worker, a counter, rows that may wait for 10 s (with 1 s, every cold segment is read every second). Every row
has one partner; results have the same columns on both sides, and nobody writes them anywhere. The table has 16 groups,
as docs/hybrid.md advises for its size: with 60 a hot tenth of the keys lies in half of all segments. What is timed
begins when the table is cut and the first rows are through: with the first push of the others, and ends when the last
result is committed.

Spark joins the stream's files with the static table (Structured Streaming, all files in one micro-batch, which is its
fastest way), after a smaller query of the same kind has warmed it. It broadcasts the table, whose file is 4 MB, and
has a heap in which that fits: with the gigabyte of a Spark that nobody has told otherwise the second turn fails. Its
clock has the reading of both, and the planning of the query, but not its start; ours has neither the start nor the
cutting of the table, which is done once in the life of a query.
"""

import json
import os
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.answer import BenchError
from bench.lab import Lab
from bench.measure import Sample
from bench.report import Metric
from bench.service import Used
from joinery.adapters.tuning import settle
from joinery.cli.local import LocalRun
from joinery.cli.query_file import read_query
from joinery.client import connect

NAMES: Final = (
    "hybrid.tuples_per_s", "hybrid.spark.tuples_per_s", "hybrid.ratio_to_spark", "hybrid.cpu_us",
    "hybrid.spark.cpu_us",
)  # fmt: skip
KEYS: Final = 1_000_000
ROWS: Final = 2_000_000
THETA: Final = 1 << 20
MEMORY: Final = 34
"""Of theta, as in the thesis."""
HOT_SHARE: Final = 0.8
HOT_KEYS: Final = 0.1
BATCH: Final = 1 << 14
LIMIT_S: Final = 600.0
GROUPS: Final = 16
SPARK_HEAP: Final = "8g"
STREAM_BYTES: Final = 48
TABLE_BYTES: Final = 120


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn took: by the clock, and of the processors, all processes together."""

    tuples: int
    seconds: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Data:
    """Where the rows lie, and how many there are."""

    folder: Path
    rows: int
    warm: int


def hybrid(lab: Lab) -> list[Metric]:
    """Stream rows per second of the service, of Spark, and their ratio."""
    with tempfile.TemporaryDirectory(prefix="joinery-hybrid-") as folder:
        data = written(Path(folder), KEYS // lab.scale, ROWS // lab.scale)
        lab.say(f"hybrid: {data.rows:,} rows, a table of {KEYS // lab.scale:,}")
        turns = [service(data, lab.scale) for _ in range(lab.reps)]
        ours = _rates(turns)
        lab.say(f"hybrid: {ours.median:,.0f} tuples/s")
        their_turns = spark(data, lab.reps)
        theirs = _rates(their_turns)
        lab.say(f"hybrid: Spark {theirs.median:,.0f} tuples/s")
    ratio = Metric.ratio(NAMES[2], ours, theirs)
    rates = [Metric.rate(NAMES[0], ours), Metric.rate(NAMES[1], theirs), ratio]
    return [*rates, _cpu(NAMES[3], turns), _cpu(NAMES[4], their_turns)]


def _rates(turns: list[Turn]) -> Sample:
    return Sample(tuple(turn.tuples / turn.seconds for turn in turns))


def _cpu(name: str, turns: list[Turn]) -> Metric:
    """Beside other work the clock favours whoever has more processes; this does not."""
    used = Sample(tuple(turn.cpu_s / turn.tuples * 1e6 for turn in turns))
    return Metric(name, used.median, "us/tuple", used.low, used.high)


def written(folder: Path, keys: int, rows: int) -> Data:
    """The table and the stream as Parquet files."""
    rng = np.random.default_rng(6)
    (folder / "table").mkdir()
    payload = pa.array([b"x" * TABLE_BYTES], pa.binary()).take(pa.array(np.zeros(keys, np.int64)))
    stored = pa.table({"key": np.arange(keys), "info": payload})
    pq.write_table(stored, folder / "table" / "part-0.parquet")
    hot = rng.integers(0, int(keys * HOT_KEYS), rows)
    chosen = np.where(rng.random(rows) < HOT_SHARE, hot, rng.integers(0, keys, rows))
    body = pa.array([b"y" * STREAM_BYTES], pa.binary()).take(pa.array(np.zeros(rows, np.int64)))
    stream = pa.table({"key": chosen, "ts": np.arange(rows), "body": body})
    warm = rows // 10
    for name, part in (("warm", stream.slice(0, warm)), ("stream", stream)):
        (folder / name).mkdir()
        for place in range(4):
            size = -(-part.num_rows // 4)
            pq.write_table(part.slice(place * size, size), folder / name / f"part-{place}.parquet")
    return Data(folder, rows, warm)


# --- the service


def service(data: Data, scale: int) -> Turn:
    """The service, started anew."""
    path = data.folder / "query.yaml"
    path.write_text(json.dumps(_query(scale)))
    rows, warm = (pq.read_table(data.folder / name).combine_chunks() for name in ("stream", "warm"))
    settle()
    with LocalRun(path, read_query(path)) as run, connect(run.gateway, timeout=LIMIT_S) as client:
        producer = client.producer("s", "bench")
        for batch in warm.to_batches(BATCH):
            producer.push(batch)
        _until(run, lambda: _results(run) >= data.warm)
        used, own = Used(), {"producer": os.getpid()}
        used.look({**run.pids, **own})
        begun = time.time()

        def push() -> None:
            for batch in rows.to_batches(BATCH):
                producer.push(batch)
            producer.end()

        pushing = threading.Thread(target=push)
        pushing.start()
        ended = run.wait(lambda _: used.look({**run.pids, **own}), 0.02)
        pushing.join()
        if not ended or run.finished_s is None or _results(run) != data.rows + data.warm:
            raise BenchError(f"hybrid: found {_results(run)} results ({run.failed}), wanted {data.rows + data.warm}")
        return Turn(data.rows, run.finished_s - begun, sum(used.cpu_s.values()))


def _query(scale: int) -> dict[str, Any]:
    table = {
        "path": "table", "theta": f"{THETA // scale // 1024}Ki", "memory": f"{MEMORY * THETA // scale // 1024}Ki",
        "maxWait": "10s",
    }  # fmt: skip
    spec = {
        "streams": [
            {
                "name": "s",
                "schema": {"key": "int64", "ts": "int64", "body": "binary"},
                "time": {"column": "ts", "unit": "us", "lateness": "1h"},
            },
            {"name": "t", "schema": {"key": "int64", "info": "binary"}, "table": table},
        ],
        "join": {"on": ["key"]},
        "select": ["s.key", "s.ts", "s.body", "t.info"],
        "partitions": GROUPS,
        "sinks": [{"count": {}}],
        "scaling": {"mode": "Manual"},
        "checkpoint": {"durability": "memory", "interval": "1h"},
        "worker": {"buffer": "4Mi"},
    }
    return {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": "hybrid"}, "spec": spec}


def _results(run: LocalRun) -> int:
    return 0 if run.progress.last is None else run.progress.last.results


def _until(run: LocalRun, is_so: Any) -> None:
    end = time.monotonic() + LIMIT_S
    while not is_so():
        if run.failed is not None or time.monotonic() > end:
            raise BenchError(f"hybrid: found no results of the first rows ({run.failed}), wanted them")
        run.attend(lambda _: None)
        time.sleep(0.05)


# --- Spark


def spark(data: Data, reps: int) -> list[Turn]:
    """Spark, warmed up once."""
    from joinery.spark import session  # noqa: PLC0415 - Spark is an extra

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--driver-memory {SPARK_HEAP} pyspark-shell")
    with session.local("bench") as one:
        table = one.read.parquet(str(data.folder / "table"))
        _timed(one, data.folder / "warm", table, data.folder / "checkpoint-warm", data.warm)
        return [
            _timed(one, data.folder / "stream", table, data.folder / f"checkpoint-{turn}", data.rows)
            for turn in range(reps)
        ]


def _timed(one: Any, stream: Path, table: Any, checkpoint: Path, rows: int) -> Turn:
    from pyspark.sql import functions as F  # noqa: PLC0415, N812 - Spark is an extra

    frame = one.readStream.schema("key long, ts long, body binary").parquet(str(stream))
    joined = frame.join(table, "key").observe("told", F.count(F.lit(1)).alias("rows"))
    used, jvm = Used(), {"jvm": one.sparkContext._gateway.proc.pid}
    used.look(jvm)
    begun = time.monotonic()
    query = joined.writeStream.format("noop").trigger(availableNow=True)
    query = query.option("checkpointLocation", str(checkpoint)).start()
    query.awaitTermination()
    seconds = time.monotonic() - begun
    used.look(jvm)
    found = sum(progress.observedMetrics["told"]["rows"] for progress in query.recentProgress if progress.numInputRows)
    if found != rows:
        raise BenchError(f"hybrid: found {found} results of Spark, wanted {rows}")
    return Turn(rows, seconds, used.cpu_s["jvm"])
