"""The lookup application with a real Spark: it cuts and refreshes the table; the service agrees with Spark's join."""

import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from joinery.adapters.lookups import read_rows
from joinery.adapters.recording import read_recording, read_tables
from joinery.cli.query_file import read_query
from joinery.client import connect
from joinery.join.plan import JoinPlan
from joinery.machine.hybrid_module import stored_schema
from joinery.model.errors import UserMustAct
from joinery.spark.lookup import Segmenter
from joinery.spark.segment_files import SegmentFiles
from tests.support.running import running
from tests.support.tables import PATIENCE_S, sales, until, write_query, write_table

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


def rows_of(files: SegmentFiles, version: int, schema: pa.Schema) -> Counter[tuple[object, ...]]:
    """All rows of a version, by its segments."""
    relation = files.relation(version)
    names = zip(relation.stamps.tolist(), relation.cut.numbers.tolist(), strict=True)
    parts = [read_rows(files.path(stamp, number).read_bytes(), schema) for stamp, number in names]
    return Counter(tuple(row.values()) for part in parts for row in part.to_pylist())


def test_the_table_is_cut_and_a_refresh_writes_only_what_changed(spark: SparkSession, tmp_path: Path) -> None:
    query, files = write_query(tmp_path), SegmentFiles(tmp_path / "segments")
    spec = read_query(query)
    segmenter = Segmenter(spark, spec, query, files, tmp_path)
    schema = stored_schema(JoinPlan.of(spec))
    write_table(tmp_path, 2000, "item")
    assert 1 == segmenter.look()
    assert 1 == segmenter.look()
    stored = pq.read_table(tmp_path / "items").filter(pa.compute.field("id").is_valid())
    assert Counter(tuple(row.values()) for row in stored.to_pylist()) == rows_of(files, 1, schema)
    assert 2041 == pq.read_table(tmp_path / "table-1").num_rows
    write_table(tmp_path, 2000, "item")
    assert 1 == segmenter.look(), "other files, the same rows"
    more = pa.table({"id": np.arange(2000, 2300), "name": ["behind"] * 300})
    pq.write_table(more, tmp_path / "items" / "part-1.parquet")
    assert 2 == segmenter.look()
    before, after = files.relation(1), files.relation(2)
    assert int((after.stamps == 1).sum()) >= before.cut.segments // 2, "only the last segment of a group got new keys"
    assert 2340 == rows_of(files, 2, schema).total()
    files.forget(2)
    assert [2] == files.versions()
    assert 2340 == rows_of(files, 2, schema).total()


def test_a_table_that_is_away_for_a_moment_changes_nothing_and_is_told_once(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query, files = write_query(tmp_path), SegmentFiles(tmp_path / "segments")
    segmenter = Segmenter(spark, read_query(query), query, files, None)
    with pytest.raises(UserMustAct, match="wanted the stored table"):
        segmenter.follow()
    write_table(tmp_path, 200, "item")
    segmenter.follow()
    (tmp_path / "items").rename(tmp_path / "away")
    segmenter.follow()
    segmenter.follow()
    assert 1 == capsys.readouterr().err.count("the version before it stays in force")
    (tmp_path / "items").mkdir()
    segmenter.follow()
    assert [1] == files.versions()
    write_table(tmp_path, 300, "item")
    segmenter.follow()
    assert [1, 2] == files.versions()


def test_a_table_without_a_declared_column_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    query = write_query(tmp_path)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "items" / "part-0.parquet")
    segmenter = Segmenter(spark, read_query(query), query, SegmentFiles(tmp_path / "segments"), None)
    with pytest.raises(UserMustAct, match=r"found no column name .* correct the schema"):
        segmenter.look()


def test_results_are_spark_s_join_of_the_recorded_stream_with_the_version_stamped_on_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    query, record = write_query(tmp_path), tmp_path / "recorded"
    write_table(tmp_path, 2000, "old")
    with running(query, record=record) as run, connect(run.gateway, timeout=PATIENCE_S) as client:
        producer = client.producer("sales", "till")
        producer.push(sales(0))
        until(run, lambda: run.progress.last is not None and run.progress.last.streams[0].rows >= 500)
        write_table(tmp_path, 2500, "new")
        until(run, lambda: 2 in read_tables(record).values())
        time.sleep(0.2)
        producer.push(sales(500))
        producer.end()
        assert run.wait(lambda _: None), run.failed
    plan = JoinPlan.of(read_query(query))
    stream, told = read_recording(record, plan)[0], read_tables(record)
    assert stream.records is not None
    records, versions = np.array(sorted(told)), np.array([told[record] for record in sorted(told)])
    met = versions[np.searchsorted(records, stream.records) - 1]
    assert {1, 2} == set(met.tolist())
    pq.write_table(stream.rows.append_column("met", pa.array(met)), tmp_path / "stream.parquet")
    rows = spark.read.parquet(str(tmp_path / "stream.parquet"))
    tables = [spark.read.parquet(str(record / f"table-{version}")) for version in (1, 2)]
    joined = [
        rows.filter(rows.met == version).join(table, rows.item == table.id, "left")
        for version, table in enumerate(tables, start=1)
    ]
    chosen = ("item", "n", "id", "name", "met")
    expected = Counter(tuple(row) for part in joined for row in part.select(*chosen).collect())
    found = pq.read_table(tmp_path / "out.parquet").select(
        ["sales_item", "sales_n", "items_id", "items_name", "items_version"]
    )
    assert expected == Counter(tuple(row.values()) for row in found.to_pylist())
