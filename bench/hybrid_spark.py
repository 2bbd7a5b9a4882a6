"""Spark beside the hybrid join: Structured Streaming joins a stream of files with a static table.

It is set up as in the stream-stream comparison (`bench.peers.spark_join`): two threads, a heap in which all of it fits,
the parallel collector of garbage, 20 files per micro-batch. Spark joins every micro-batch with the table as it
is then, so it reads the table anew for each of them; more rows in a micro-batch cost less, and come later. With all of
them in one (`ONE_BATCH`) it is no stream any more; that is measured too, to be told.

How the join is done is Spark's own choice, by the size of the table, or that of somebody who knows it better: both are
tried, and the faster one counts.
"""

import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from bench.answer import BenchError
from bench.hybrid_inputs import Data, Turn
from bench.service import Used

FILES_PER_TRIGGER: Final = 20
ONE_BATCH: Final = 1 << 20
"""So many files that all are in one micro-batch."""
PLANS: Final = ("broadcast", "own choice")


@contextmanager
def session(data: Data) -> Iterator[Any]:
    """A Spark with the settings of the stream-stream comparison."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - Spark is an extra

    from bench.peers.spark_join import SETTINGS, THREADS  # noqa: PLC0415 - the same

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    building = SparkSession.builder.master(f"local[{THREADS}]").appName("bench")
    folders = {"spark.local.dir": "local", "spark.sql.warehouse.dir": "warehouse"}
    for name, value in {**SETTINGS, **{name: str(data.folder / own) for name, own in folders.items()}}.items():
        building = building.config(name, value)
    one = building.config("spark.log.level", "ERROR").getOrCreate()
    try:
        yield one
    finally:
        one.stop()


def turn(one: Any, data: Data, plan: str, files: int = FILES_PER_TRIGGER) -> Turn:
    """The whole stream, in one way; the clock runs from the start of the query to its end."""
    used, jvm = Used(), {"jvm": one.sparkContext._gateway.proc.pid}
    writer = _joined(one, data, plan, files).writeStream.format("noop").trigger(availableNow=True)
    checkpoint = data.folder / "checkpoint"
    shutil.rmtree(checkpoint, ignore_errors=True)
    used.look(jvm)
    begun = time.monotonic()
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    query.awaitTermination()
    seconds = time.monotonic() - begun
    used.look(jvm)
    found = sum(progress.observedMetrics["told"]["rows"] for progress in query.recentProgress if progress.numInputRows)
    if found != data.rows:
        raise BenchError(f"hybrid: found {found} results of Spark, wanted {data.rows}")
    return Turn(data.rows, seconds, used.cpu_s["jvm"])


def best(turns: Mapping[str, list[Turn]]) -> str:
    """The plan with the best median."""
    return max(turns, key=lambda plan: sorted(turn.tuples_per_s for turn in turns[plan])[len(turns[plan]) // 2])


def _joined(one: Any, data: Data, plan: str, files: int) -> Any:
    from pyspark.sql import functions as F  # noqa: PLC0415, N812 - Spark is an extra

    table = one.read.parquet(str(data.table))
    reader = one.readStream.schema("key long, ts long, body binary").option("maxFilesPerTrigger", files)
    frame = reader.parquet(str(data.stream))
    joined = frame.join(F.broadcast(table) if plan == "broadcast" else table, "key")
    return joined.observe("told", F.count(F.lit(1)).alias("rows"))
