"""The data source `joinery` on a real Spark against a real running query: exact, also when Spark dies in the middle."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from joinery.client import connect
from joinery.model.errors import UserMustAct
from joinery.spark import JoineryDataSource, end_stream
from tests.support.pods import until
from tests.support.running import counted, frame, running, truth, write_query

Rows = Counter[tuple[Any, ...]]
PATIENCE_S = 120
"""How long a test waits for what takes seconds on an idle machine."""
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
    pytest.mark.timeout(5 * PATIENCE_S),
]


def as_frame(spark: SparkSession, folder: Path, table: pa.Table) -> DataFrame:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / "part.parquet")
    return spark.read.parquet(str(folder))


def parts(folder: Path, table: pa.Table, number: int) -> None:
    """The table as so many files, in order, each with a later time of change."""
    folder.mkdir(parents=True)
    step = -(-table.num_rows // number)
    for part in range(number):
        path = folder / f"{part:03}.parquet"
        pq.write_table(table.slice(part * step, step), path)
        os.utime(path, (1_700_000_000 + part, 1_700_000_000 + part))


def rows_of(table: pa.Table) -> Rows:
    return counted(table.to_batches())


def read_back(address: str, found: list[pa.RecordBatch]) -> threading.Thread:
    """Somebody who reads all results."""

    def read() -> None:
        with connect(address) as query:
            found.extend(query.results())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    return reader


def forget_last_commit(checkpoint: Path) -> None:
    """As if Spark had died after the last micro-batch was recorded, and before it had noted that."""
    last = offsets(checkpoint) - 1
    for name in (f"{last}", f".{last}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)


def test_both_streams_written_as_frames_give_the_oracles_results(spark: SparkSession, tmp_path: Path) -> None:
    a, b = frame(6_000, 1), frame(5_000, 2)
    found: list[pa.RecordBatch] = []
    with running(write_query(tmp_path)) as run:
        reader = read_back(run.gateway, found)
        for name, table, producers in (("a", a, 1), ("b", b, 3)):
            rows = as_frame(spark, tmp_path / name, table).repartition(producers, "k").sortWithinPartitions("ts")
            writing = rows.write.format("joinery").option("gateway", run.gateway).option("stream", name)
            writing.option("producers", producers).option("end", True).mode("append").save()
        reader.join(PATIENCE_S)
    assert truth(a, b) == counted(found)


JOB = """
import sys
from pyspark.sql import SparkSession
from joinery.spark import JoineryDataSource
gateway, folder, checkpoint = sys.argv[1:]
building = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
building = building.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
spark = building.config("spark.python.daemon.module", "joinery.spark.daemon").getOrCreate()
spark.dataSource.register(JoineryDataSource)
spark.conf.set("spark.sql.shuffle.partitions", "2")
files = spark.readStream.schema("k bigint, n bigint, s string, ts bigint").option("maxFilesPerTrigger", 1)
rows = files.parquet(folder)
writing = rows.repartition(2, "k").writeStream.format("joinery").option("gateway", gateway).option("stream", "a")
writing.option("producers", 2).option("checkpointLocation", checkpoint).start().awaitTermination()
"""


def offsets(checkpoint: Path) -> int:
    logged = checkpoint / "offsets"
    return len([path for path in logged.iterdir() if path.name.isdecimal()]) if logged.is_dir() else 0


def test_a_spark_job_that_is_killed_and_started_again_loses_and_repeats_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    a, b = frame(4_000, 3), frame(4_000, 4)
    folder, checkpoint = tmp_path / "files", tmp_path / "checkpoint"
    parts(folder, a, 24)
    found: list[pa.RecordBatch] = []
    with running(write_query(tmp_path)) as run, connect(run.gateway) as query:
        reader = read_back(run.gateway, found)
        pushing = threading.Thread(target=lambda: query.push("b", b, end=True), daemon=True)
        pushing.start()
        words = [sys.executable, "-c", JOB, run.gateway, str(folder), str(checkpoint)]
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        job = subprocess.Popen(words, env=environment, start_new_session=True, stderr=subprocess.DEVNULL)  # noqa: S603
        try:
            until(lambda: offsets(checkpoint) >= 3 or job.poll() is not None, PATIENCE_S)
        finally:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
        killed_at = offsets(checkpoint)
        schema = "k bigint, n bigint, s string, ts bigint"
        rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 6).parquet(str(folder)).repartition(2, "k")
        writing = rows.writeStream.format("joinery").option("gateway", run.gateway).option("stream", "a")
        writing = writing.option("producers", 2).option("checkpointLocation", str(checkpoint))
        writing.trigger(availableNow=True).start().awaitTermination(PATIENCE_S)
        forget_last_commit(checkpoint)
        again = writing.trigger(availableNow=True).start()
        again.awaitTermination(PATIENCE_S)
        end_stream(run.gateway, "a", again.id, producers=2)
        pushing.join(PATIENCE_S)
        reader.join(PATIENCE_S)
    assert 3 <= killed_at < 24, "the job was killed in the middle"
    assert truth(a, b) == counted(found)


def matched(a: pa.Table, b: pa.Table) -> Rows:
    """The inner join: rows of the left one that have a partner."""
    return Counter({row: times for row, times in truth(a, b).items() if row[5] is not None})


def test_results_read_as_a_stream_and_gone_on_with_from_a_checkpoint_are_exact(
    spark: SparkSession, tmp_path: Path
) -> None:
    a, b = frame(6_000, 5), frame(6_000, 6)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    with running(write_query(tmp_path, "inner")) as run, connect(run.gateway) as query:
        results = spark.readStream.format("joinery").option("gateway", run.gateway).option("maxBytesPerTrigger", 20_000)
        reading = results.load().writeStream.option("checkpointLocation", str(checkpoint))
        reading = reading.foreachBatch(lambda rows, number: rows.write.mode("overwrite").parquet(f"{out}/{number}"))
        wanted, first = matched(a, b), matched(a.slice(0, 3_000), b.slice(0, 3_000))

        def read_until(rows: Rows) -> None:
            going = reading.start()
            try:
                until(lambda: held(out).total() >= rows.total() or going.exception())
            finally:
                going.stop()
            assert going.exception() is None

        query.push("a", a.slice(0, 3_000))
        query.push("b", b.slice(0, 3_000))
        query.flush()
        read_until(first)
        assert first == held(out)
        forget_last_commit(checkpoint)
        query.push("a", a.slice(3_000))
        query.push("b", b.slice(3_000))
        query.flush()
        read_until(wanted)
        assert wanted == held(out)


def held(out: Path) -> Rows:
    """All rows of finished micro-batches; one that is written again while it is read is not finished."""
    found: Rows = Counter()
    for path in sorted(out.glob("*/_SUCCESS")):
        with suppress(FileNotFoundError):
            found += rows_of(pq.read_table(path.parent))
    return found


def test_a_frame_that_does_not_fit_its_stream_is_refused_in_the_driver_by_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.range(3)
    with running(write_query(tmp_path)) as run:

        def complaint(frame: DataFrame, **options: str) -> str:
            writing = frame.write.format("joinery").option("gateway", run.gateway).mode("append")
            with pytest.raises(PySparkException) as error:
                writing.options(**options).save()
            return str(error.value)

        def direct(frame: DataFrame, *, overwrite: bool = False, **options: str) -> str:
            """The same in this process, where it is cheap."""
            with pytest.raises(UserMustAct) as error:
                JoineryDataSource({"gateway": run.gateway, **options}).writer(frame.schema, overwrite)
            return str(error.value)

        good = rows.selectExpr("id as k", "id as n", "'x' as s", "id as ts")
        assert "a batch that lacks ['k', 'n', 's', 'ts'] and has unknown ['id']" in complaint(rows, stream="a")
        assert "frame.coalesce(1)" in complaint(good.repartition(2), stream="a")
        assert "column k of string" in direct(good.selectExpr("string(k) as k", "n", "s", "ts"), stream="a")
        assert "wanted one of a, b" in direct(good, stream="c")
        assert "did you mean stream?" in direct(good, streem="a")
        assert "found no option stream" in direct(good)
        assert "found mode overwrite, wanted append" in direct(good, overwrite=True, stream="a")
