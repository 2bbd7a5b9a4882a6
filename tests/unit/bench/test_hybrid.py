"""The hybrid benchmark's rows and what is made of its turns; the engines themselves are not run here."""

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from bench import hybrid_inputs, hybrid_service, hybrid_spark
from bench.hybrid_inputs import FILES, STREAM_BYTES, TABLE_BYTES, Turn
from joinery.join.plan import JoinPlan
from joinery.model.spec import JoinQuerySpec

KEYS, ROWS = 1_000, 4_000


def test_nothing_makes_table_or_stream_smaller_than_they_are(tmp_path: Path) -> None:
    data = hybrid_inputs.written(tmp_path, KEYS, ROWS)
    sizes = [sum(file.stat().st_size for file in folder.iterdir()) for folder in (data.table, data.stream)]
    assert sizes[0] >= KEYS * (8 + TABLE_BYTES)
    assert sizes[1] >= ROWS * (16 + STREAM_BYTES)
    payloads = pq.read_table(data.table).column("info").to_pylist()
    assert KEYS == len(set(payloads))


def test_the_ages_of_the_files_are_in_the_order_of_the_stream(tmp_path: Path) -> None:
    data = hybrid_inputs.written(tmp_path, KEYS, ROWS)
    by_age = sorted(data.stream.iterdir(), key=lambda file: file.stat().st_mtime)
    assert FILES == len(by_age)
    assert list(range(ROWS)) == [ts for file in by_age for ts in pq.read_table(file).column("ts").to_pylist()]
    assert list(range(ROWS)) == data.stream_rows().column("ts").to_pylist()


def test_eight_of_ten_rows_have_a_key_of_the_hottest_tenth_and_every_key_is_stored_once(tmp_path: Path) -> None:
    data = hybrid_inputs.written(tmp_path, KEYS, ROWS)
    keys = data.stream_rows().column("key").to_numpy()
    assert 0.79 < (keys < KEYS // 10).mean() < 0.85
    assert list(range(KEYS)) == pq.read_table(data.table).column("key").to_pylist()


def test_sparks_best_plan_is_the_one_with_the_best_median() -> None:
    turns = {
        "a": [Turn(100, seconds, 1) for seconds in (1.0, 5.0, 5.0)],
        "b": [Turn(100, seconds, 1) for seconds in (4.0, 4.0, 4.0)],
    }
    assert "b" == hybrid_spark.best(turns)


def test_the_query_of_the_benchmark_can_run_and_shows_the_columns_that_spark_shows() -> None:
    plan = JoinPlan.of(JoinQuerySpec.parse(hybrid_service._query(1)["spec"]))
    assert ["s_key", "s_ts", "s_body", "t_info"] == plan.schema.names


def test_a_nursery_loads_grpc_without_handlers_of_forks() -> None:
    code = "import os; from joinery.cli import nursery; nursery._load(); print(os.environ[nursery.NO_FORK_HANDLERS[0]])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - our own words
    assert "0" == found.stdout.strip()
