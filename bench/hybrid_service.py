"""The hybrid join through the service, and the same rows with the same table by Spark, in turns, in one run.

A stream of which 80 % of the rows have a key of the hottest tenth, a stored table of 3.6 times the memory that it is
given, one worker, a counter, rows that may wait for 10 s (with 1 s, every cold segment is read every second). Every row
has one partner; results have the same columns on both sides, and nobody writes them anywhere. The table has 16 groups,
as docs/hybrid.md advises for its size: with 60 a hot tenth of the keys lies in half of all segments. Both are warm: all
rows have gone through once before the clock starts. It starts with the first push after that, and ends when the last
result is committed.

Spark joins the stream's files with the static table, 20 files per micro-batch (`bench.hybrid_spark`), after a whole
turn of each of its plans. Its clock has the reading of both, and the planning of the query, but not its
start; ours has neither the start nor the cutting of the table, which is done once in the life of a query.
"""

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from bench import hybrid_spark
from bench.answer import BenchError
from bench.hybrid_inputs import STREAM_BYTES, TABLE_BYTES, Data, Turn, written
from bench.hybrid_spark import ONE_BATCH
from bench.lab import Lab
from bench.measure import Sample
from bench.report import Metric
from bench.service import Used
from joinery.adapters.tuning import settle
from joinery.cli.local import LocalRun
from joinery.cli.query_file import read_query
from joinery.client import Producer, connect

NAMES: Final = (
    "hybrid.tuples_per_s", "hybrid.spark.tuples_per_s", "hybrid.ratio_to_spark", "hybrid.cpu_us",
    "hybrid.spark.cpu_us", "hybrid.spark.one_batch.tuples_per_s",
)  # fmt: skip
KEYS: Final = 1_000_000
ROWS: Final = 4_000_000
THETA: Final = 1 << 20
MEMORY: Final = 34
"""Of theta, as in the thesis."""
BATCH: Final = 1 << 14
LIMIT_S: Final = 600.0
GROUPS: Final = 16


def hybrid(lab: Lab) -> list[Metric]:
    """Stream rows per second of the service, of Spark, and their ratio."""
    with tempfile.TemporaryDirectory(prefix="joinery-hybrid-") as folder:
        data = written(Path(folder), KEYS // lab.scale, ROWS // lab.scale)
        lab.say(f"hybrid: {data.rows:,} rows, a table of {KEYS // lab.scale:,}")
        ours, theirs = list[Turn](), {plan: list[Turn]() for plan in hybrid_spark.PLANS}
        with hybrid_spark.session(data) as spark:
            for plan in hybrid_spark.PLANS:
                hybrid_spark.turn(spark, data, plan)
            for _ in range(lab.reps):
                ours.append(_told(lab, "service", service(data, lab.scale)))
                for plan, turns in theirs.items():
                    turns.append(_told(lab, f"Spark, {plan}", hybrid_spark.turn(spark, data, plan)))
            whole = {
                plan: [_told(lab, f"Spark, {plan}, one batch", hybrid_spark.turn(spark, data, plan, ONE_BATCH))]
                for plan in hybrid_spark.PLANS
            }
    best, best_whole = hybrid_spark.best(theirs), hybrid_spark.best(whole)
    lab.say(f"hybrid: Spark's best plan is {best}; with all rows in one micro-batch, {best_whole}")
    return _metrics(ours, theirs[best], whole[best_whole])


def _told(lab: Lab, who: str, turn: Turn) -> Turn:
    lab.say(f"hybrid: {who} {turn.tuples_per_s:,.0f} tuples/s, {turn.cpu_us:.2f} us of CPU per tuple")
    return turn


def _metrics(ours: list[Turn], theirs: list[Turn], whole: list[Turn]) -> list[Metric]:
    mine, its, at_once = (Sample(tuple(turn.tuples_per_s for turn in turns)) for turns in (ours, theirs, whole))
    rates = [Metric.rate(NAMES[0], mine), Metric.rate(NAMES[1], its), Metric.ratio(NAMES[2], mine, its)]
    return [*rates, _cpu(NAMES[3], ours), _cpu(NAMES[4], theirs), Metric.rate(NAMES[5], at_once)]


def _cpu(name: str, turns: list[Turn]) -> Metric:
    """Beside other work the clock favours whoever has more processes; this does not."""
    used = Sample(tuple(turn.cpu_us for turn in turns))
    return Metric(name, used.median, "us/tuple", used.low, used.high)


# --- the service


def service(data: Data, scale: int) -> Turn:
    """The service, started anew."""
    path = data.folder / "query.yaml"
    path.write_text(json.dumps(_query(scale)))
    rows = data.stream_rows()
    settle()
    with LocalRun(path, read_query(path)) as run, connect(run.gateway, timeout=LIMIT_S) as client:
        producer = client.producer("s", "bench")
        warming = _pushing(producer, rows, is_end=False)
        _until(run, lambda: _results(run) >= data.rows)
        warming.join()
        used, own = Used(), {"producer": os.getpid()}
        used.look({**run.pids, **own})
        begun = time.time()
        pushing = _pushing(producer, rows, is_end=True)
        ended = run.wait(lambda _: used.look({**run.pids, **own}), 0.02)
        pushing.join()
        if not ended or run.finished_s is None or _results(run) != 2 * data.rows:
            raise BenchError(f"hybrid: found {_results(run)} results ({run.failed}), wanted {2 * data.rows}")
        return Turn(data.rows, run.finished_s - begun, sum(used.cpu_s.values()))


def _pushing(producer: Producer, rows: pa.Table, *, is_end: bool) -> threading.Thread:
    """Rows on their way, beside whoever looks after the processes: a push waits for them."""

    def push() -> None:
        for batch in rows.to_batches(BATCH):
            producer.push(batch)
        if is_end:
            producer.end()

    thread = threading.Thread(target=push, daemon=True)
    thread.start()
    return thread


def _query(scale: int) -> dict[str, Any]:
    table = {
        "path": "table", "theta": f"{THETA // scale // 1024}Ki", "memory": f"{MEMORY * THETA // scale // 1024}Ki",
        "maxWait": "10s",
    }  # fmt: skip
    spec = {
        "streams": [
            {
                "name": "s",
                "schema": {"key": "int64", "ts": "int64", "body": f"binary({STREAM_BYTES})"},
                "time": {"column": "ts", "unit": "us", "lateness": "1h"},
            },
            {"name": "t", "schema": {"key": "int64", "info": f"binary({TABLE_BYTES})"}, "table": table},
        ],
        "join": {"on": ["key"]},
        "select": ["s.key", "s.ts", "s.body", "t.info"],
        "partitions": GROUPS,
        "sinks": [{"count": {}}],
        "scaling": {"mode": "Manual"},
        "checkpoint": {"durability": "memory", "interval": "1h"},
        "worker": {"buffer": "16Mi"},  # messages are a quarter of it
    }
    return {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": "hybrid"}, "spec": spec}


def _results(run: LocalRun) -> int:
    return 0 if run.progress.last is None else run.progress.last.results


def _until(run: LocalRun, is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT_S
    while not is_so():
        if run.failed is not None or time.monotonic() > end:
            raise BenchError(f"hybrid: found no results of the first rows ({run.failed}), wanted them")
        run.attend(lambda _: None)
        time.sleep(0.05)
