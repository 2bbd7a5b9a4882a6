"""Flink SQL: an interval join on two task slots, state on the heap; Python only submits the job.

The collector and heap below double Flink's rate against its defaults. Packed records are read and results are counted
by the connectors of `RawTables.java`, whose clock runs from the first record read to the last result taken. Without
checkpoints, or with one every so many seconds, to a folder.
"""

import json
import os
from pathlib import Path
from typing import Final

from pyflink.common import Configuration  # type: ignore[import-not-found]
from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]

from bench.peers.job import RAW, Input, Job, Outcome, carry_out

HEAP: Final = "-Xms14g -Xmx14g -Xmn6g -XX:+UseParallelGC -XX:+UseTransparentHugePages"
PARALLELISM: Final = 2
SETTINGS: Final = {
    "execution.buffer-timeout.interval": "100ms",
    "parallelism.default": str(PARALLELISM),
    "pipeline.auto-watermark-interval": "200ms",
    "pipeline.object-reuse": "true",
    "rest.port": "0",
    "state.backend.type": "hashmap",
    "table.exec.mini-batch.allow-latency": "200ms",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.size": "5000",
    "taskmanager.memory.managed.size": "3gb",
    "taskmanager.memory.network.max": "256mb",
    "taskmanager.numberOfTaskSlots": str(PARALLELISM),
}
_STREAM: Final = """
    CREATE TABLE s{stream} (id BIGINT, ts BIGINT, `key` BIGINT, payload BYTES, moment TIMESTAMP(3),
                            WATERMARK FOR moment AS moment - INTERVAL '1' SECOND)
    WITH ('connector' = 'raw-records', 'path' = '{path}', 'rows' = '{rows}', 'readers' = '{parallelism}')"""
_PAIRS: Final = """
    CREATE TABLE pairs (id1 BIGINT, id2 BIGINT, `key` BIGINT, ts1 BIGINT, ts2 BIGINT, payload1 BYTES, payload2 BYTES)
    WITH ('connector' = 'pair-count', 'path' = '{path}', 'writers' = '{parallelism}')"""
_JOIN: Final = """
    INSERT INTO pairs SELECT s1.id, s2.id, s1.`key`, s1.ts, s2.ts, s1.payload, s2.payload FROM s1, s2
    WHERE s1.`key` = s2.`key` AND s1.ts - s2.ts BETWEEN -{window_us} AND {window_us}
    AND s1.moment BETWEEN s2.moment - INTERVAL '{wider}' SECOND AND s2.moment + INTERVAL '{wider}' SECOND"""
"""Flink's times are milliseconds: the interval is one wider, and the microseconds are compared besides."""


class FlinkJoin:
    """A local cluster in a Java process of its own, and the join in it."""

    def __init__(self, job: Job) -> None:
        os.environ["JVM_ARGS"] = HEAP  # read when the Java process is started, which is at the first use
        self._job = job

    def __call__(self, given: Input) -> Outcome:
        if given.rows % PARALLELISM:
            raise ValueError(f"found {given.rows} rows, wanted as many for each of {PARALLELISM} readers")
        tables, answer = self._tables(), Path(self._job.scratch, "pairs.json")
        answer.unlink(missing_ok=True)
        for stream in (1, 2):
            path = given.path(RAW, stream)
            sql = _STREAM.format(stream=stream, path=path, rows=given.rows, parallelism=PARALLELISM)
            tables.execute_sql(sql)
        tables.execute_sql(_PAIRS.format(path=answer, parallelism=PARALLELISM))
        wider = f"{given.window_us // 1000 / 1000 + 0.001:.3f}"
        tables.execute_sql(_JOIN.format(window_us=given.window_us, wider=wider)).wait()
        return Outcome(**json.loads(answer.read_text()))

    def _tables(self) -> TableEnvironment:
        config = Configuration()
        own = {"pipeline.jars": Path(self._job.connector).as_uri()}
        if self._job.checkpoint_s:
            own["execution.checkpointing.interval"] = f"{self._job.checkpoint_s}s"
            own["execution.checkpointing.dir"] = Path(self._job.scratch, "checkpoints").as_uri()
            own["execution.checkpointing.storage"] = "filesystem"
        for name, value in {**SETTINGS, **own}.items():
            config.set_string(name, value)
        settings = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(config)
        return TableEnvironment.create(settings.build())


if __name__ == "__main__":
    carry_out(FlinkJoin)
