"""Spark Structured Streaming: an inner join of two streams of Parquet files with watermarks, two threads.

State is in memory (the store whose name says HDFS; RocksDB is four times slower here) with Spark's own checkpoints,
which it cannot run without. The clock runs from the start of the query to its end. Pairs are counted by `observe`, so
nothing is shuffled for it, and the sink takes whole rows and drops them.
"""

import os
import shutil
from time import perf_counter
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession  # type: ignore[import-not-found]
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from bench.peers.job import PARTS, Input, Job, Outcome, carry_out

THREADS: Final = 2
HEAP: Final = "12g"
SETTINGS: Final = {
    "spark.driver.memory": HEAP,
    "spark.driver.extraJavaOptions": f"-Xms{HEAP} -XX:+UseParallelGC -XX:+UseTransparentHugePages",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    ),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
FILES_PER_TRIGGER: Final = 20
LOOK_S: Final = 1
"""Spark keeps the progress of the last 100 micro-batches; there are far fewer in a second."""

_SCHEMA: Final = "id long, ts long, key long, payload binary"


class SparkJoin:
    """A session, and the join in it."""

    def __init__(self, job: Job) -> None:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        builder = SparkSession.builder.master(f"local[{THREADS}]").appName("join")
        folders = {"spark.local.dir": "local", "spark.sql.warehouse.dir": "warehouse"}
        kept = {name: f"{job.scratch}/{folder}" for name, folder in folders.items()}
        for name, value in {**SETTINGS, **kept}.items():
            builder = builder.config(name, value)
        self._session = builder.getOrCreate()
        self._session.sparkContext.setLogLevel("ERROR")
        self._checkpoint = f"{job.scratch}/checkpoint"

    def __call__(self, given: Input) -> Outcome:
        shutil.rmtree(self._checkpoint, ignore_errors=True)
        checksum = F.sum((F.col("id1") * 1000003 + F.col("id2") * 7919) % 1000000007)
        counted = self._joined(given).observe("seen", F.count(F.lit(1)).alias("pairs"), checksum.alias("checksum"))
        writer = counted.writeStream.format("noop").option("checkpointLocation", self._checkpoint)
        start = perf_counter()
        query = writer.trigger(availableNow=True).start()
        batches: dict[int, Any] = {}
        done = False
        while not done:
            done = bool(query.awaitTermination(LOOK_S))
            seconds = perf_counter() - start
            batches |= {one["batchId"]: one["observedMetrics"].get("seen") for one in query.recentProgress}
        seen = [row for row in batches.values() if row is not None]
        return Outcome(sum(row["pairs"] for row in seen), sum(row["checksum"] or 0 for row in seen), seconds)

    def _joined(self, given: Input) -> DataFrame:
        window = F.expr(f"INTERVAL {given.window_us} MICROSECONDS")
        first, second = (self._stream(given, stream) for stream in (1, 2))
        near = F.col("time1").between(F.col("time2") - window, F.col("time2") + window)
        joined = first.join(second, (F.col("key1") == F.col("key2")) & near)
        return joined.select("id1", "id2", "key1", "ts1", "ts2", "payload1", "payload2")

    def _stream(self, given: Input, stream: int) -> DataFrame:
        files = self._session.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", FILES_PER_TRIGGER)
        timed = files.parquet(given.path(PARTS, stream)).withColumn("time", F.timestamp_micros("ts"))
        renamed = [F.col(name).alias(f"{name}{stream}") for name in ("id", "ts", "key", "payload", "time")]
        return timed.withWatermark("time", "1 second").select(*renamed)


if __name__ == "__main__":
    carry_out(SparkJoin)
