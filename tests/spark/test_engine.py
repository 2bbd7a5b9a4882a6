"""`engine: spark`: the same query file gives the same rows as the service does, or is refused by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.sql import SparkSession

from joinery.cli.checking import verify_output
from joinery.cli.query_file import parsed
from joinery.cli.spark_run import is_for_spark
from joinery.join import fitness
from joinery.model.errors import BadSpec, UserMustAct
from joinery.model.spec import JoinQuery, JoinQuerySpec
from joinery.spark import engine

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
EXAMPLES = Path(__file__).parents[2] / "examples"
SCHEMA = {"k": "int64", "n": "int64", "ts": "timestamp(us)"}


def write_stream(path: Path, seed: int, rows: int = 1_500) -> None:
    """Rows nearly in order, a few of them far behind; some keys are null."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, 20_000_000, rows)) - rng.integers(0, 100_000, rows)
    times[rng.random(rows) < 0.05] -= 3_000_000
    table = pa.table({
        "k": pa.array(rng.integers(0, 60, rows), mask=rng.random(rows) < 0.02),
        "n": np.arange(rows),
        "ts": pa.array(times - 10**7).cast(pa.timestamp("us")),
    })  # fmt: skip
    pq.write_table(table, path)


def query_of(folder: Path, kind: str, **more: Any) -> Path:
    streams = [
        {
            "name": name,
            "schema": dict(SCHEMA),
            "window": window,
            "time": {"column": "ts", "lateness": "200ms"},
            "source": {"file": {"path": f"{name}.parquet"}},
        }
        for name, window in (("a", "900ms"), ("b", "250ms"))
    ]
    spec = {"streams": streams, "join": {"on": ["k"], "type": kind}, "sinks": [{"file": {"path": "out.parquet"}}]}
    spec = {**spec, "checkpoint": {"durability": "memory"}, **more}
    query = {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": "q"}, "spec": spec}
    path = folder / f"{kind}.yaml"
    path.write_text(yaml.safe_dump(query))
    return path


@pytest.mark.parametrize("kind", ["full", "semi"])  # inner, left: the examples
def test_spark_gives_the_rows_that_the_rules_give_late_rows_and_null_keys_included(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    for seed, name in enumerate("ab"):
        write_stream(tmp_path / f"{name}.parquet", seed)
    join = {"on": ["k"], "type": kind, "where": "a.n > 100 or b.n is null or b.n != 7"}
    query = query_of(tmp_path, kind, join=join)
    said: list[str] = []
    done = engine.run(parsed(query), tmp_path, spark)
    assert 0 == verify_output(query, parsed(query), None, said.append), said
    assert all(late > 20 for late in done.late.values()), "late rows were among them"
    assert {"a": 1_500, "b": 1_500} == done.rows


def test_the_example_with_files_is_exact(spark: SparkSession, tmp_path: Path) -> None:
    for path in (EXAMPLES / "01-orders-fulfilments").glob("*s.csv"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    query = tmp_path / "query.yaml"
    query.write_text((EXAMPLES / "01-orders-fulfilments" / "query.yaml").read_text())
    done = engine.run(parsed(query), tmp_path, spark)
    said: list[str] = []
    assert 0 == verify_output(query, parsed(query), None, said.append), said
    assert done.results > 0


@pytest.mark.parametrize("example", ["02-network-links", "03-auction-bids", "04-temperature-humidity"])
def test_examples_with_generators_are_exact(spark: SparkSession, tmp_path: Path, example: str) -> None:
    text = (EXAMPLES / example / "query.yaml").read_text()
    query = tmp_path / "query.yaml"
    query.write_text(text)
    spec = parsed(query)
    engine.run(spec, tmp_path, spark)
    said: list[str] = []
    assert 0 == verify_output(query, spec, None, said.append), said


def refusals(change: dict[str, Any], tmp_path: Path, kind: str = "left") -> str:
    raw = yaml.safe_load(query_of(tmp_path, kind).read_text())["spec"]
    spec = JoinQuerySpec.parse({**raw, **change})
    with pytest.raises(BadSpec) as bad:
        fitness.check(spec)
    return str(bad.value)


def test_what_spark_would_do_otherwise_is_refused_by_name(tmp_path: Path) -> None:
    raw = yaml.safe_load(query_of(tmp_path, "left").read_text())["spec"]
    a, b = raw["streams"]
    counted = [a, {**b, "window": {"count": 5}}]
    assert "count: 5" in refusals({"streams": counted, "join": {"on": ["k"]}}, tmp_path)
    assert "pushed rows" in refusals({"streams": [a, {name: b[name] for name in b if name != "source"}]}, tmp_path)
    assert "anti" in refusals({"join": {"on": ["k"], "type": "anti"}}, tmp_path)
    assert "unbounded" in refusals({"streams": [a, {**b, "window": "unbounded"}]}, tmp_path)
    assert "arithmetic" in refusals({"join": {"on": ["k"], "type": "left", "where": "a.n + b.n > 3"}}, tmp_path)
    assert "uint8" in refusals({"streams": [a, {**b, "schema": {**SCHEMA, "n": "uint8"}}]}, tmp_path)
    assert "stdout" in refusals({"sinks": [{"stdout": {}}]}, tmp_path)
    three = JoinQuery.parse_yaml((EXAMPLES / "05-three-way-trades" / "query.yaml").read_text()).spec
    with pytest.raises(BadSpec, match="3 streams"):
        fitness.check(three)


def test_flags_of_the_service_are_refused_with_spark_and_the_flag_wins_over_the_file(tmp_path: Path) -> None:
    by_file = parsed(query_of(tmp_path, "left", engine="spark"))
    assert is_for_spark(by_file, None, {"--port": 0})
    assert not is_for_spark(by_file, "service", {"--port": 7400})
    with pytest.raises(UserMustAct, match="found --port with engine spark"):
        is_for_spark(by_file, None, {"--port": 7400, "--verify": False})
    with pytest.raises(UserMustAct, match="wanted service or spark"):
        is_for_spark(by_file, "flink", {})
