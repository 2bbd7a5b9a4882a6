"""`joinery run` with Parquet sources and sink: real processes, real gRPC, real Redis; the truth is DuckDB's."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

ROWS = 4000
WINDOWS_MS = (300, 120)
PAIR = (
    f"a.k = b.k and ((a.ts between b.ts - {WINDOWS_MS[0]} and b.ts) or (b.ts between a.ts - {WINDOWS_MS[1]} and a.ts))"
)
BOTH = "a.k, a.n, a.ts, b.k, b.n, b.ts"
TRUTH = {
    "inner": f"select {BOTH} from a join b on {PAIR}",
    "left": f"select {BOTH} from a left join b on {PAIR}",
    "right": f"select {BOTH} from a right join b on {PAIR}",
    "full": f"select {BOTH} from a full join b on {PAIR}",
    "semi": f"select a.k, a.n, a.ts from a where exists (select 1 from b where {PAIR})",
    "anti": f"select a.k, a.n, a.ts from a where not exists (select 1 from b where {PAIR})",
}
SHAPES: dict[str, dict[str, Any]] = {
    "inner": {"replicas": 1},
    "left": {"replicas": 3, "partitions": 7, "epochs": {"distribution": "20ms", "subgroups": 3}},
    "right": {"replicas": 2, "partitions": 1},
    "full": {"replicas": 2, "epochs": {"distribution": "50ms", "subgroups": 1}, "fineTuning": {"theta": "4Ki"}},
    "semi": {"replicas": 2, "partitions": 30},
    "anti": {"replicas": 3, "fineTuning": {"enabled": False}},
}


def write_input(folder: Path) -> None:
    rng = np.random.default_rng(7)
    for name in ("a", "b"):
        keys = pa.array(rng.integers(0, 400, ROWS), mask=rng.random(ROWS) < 0.02)
        times = np.sort(rng.integers(0, 20_000, ROWS))
        pq.write_table(pa.table({"k": keys, "n": np.arange(ROWS), "ts": times}), folder / f"{name}.parquet")


def write_query(folder: Path, kind: str, **more: Any) -> Path:
    streams = [
        {
            "name": name,
            "schema": {"k": "int64", "n": "int64", "ts": "int64"},
            "window": f"{window}ms",
            "time": {"column": "ts", "unit": "ms"},
            "source": {"file": {"path": f"{name}.parquet"}},
        }
        for name, window in zip("ab", WINDOWS_MS, strict=True)
    ]
    spec = {
        "streams": streams,
        "join": {"on": ["k"], "type": kind},
        "sinks": [{"file": {"path": "out.parquet"}}],
        "checkpoint": {"durability": "memory", "interval": "200ms"},
        **more,
    }
    query = {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": "trial"}, "spec": spec}
    path = folder / "query.yaml"
    path.write_text(yaml.safe_dump(query))
    return path


def joinery(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from joinery.cli.main import app; app()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603


def truth(folder: Path, kind: str) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name in "ab":
            connection.execute(f"create view {name} as select * from '{folder}/{name}.parquet'")
        return Counter(connection.execute(TRUTH[kind]).fetchall())


@pytest.mark.parametrize("kind", TRUTH)
def test_a_run_from_files_to_a_file_is_exact(kind: str, tmp_path: Path) -> None:
    write_input(tmp_path)
    done = joinery("run", str(write_query(tmp_path, kind, **SHAPES[kind])))
    assert 0 == done.returncode, done.stderr
    found = Counter(tuple(row.values()) for row in pq.read_table(tmp_path / "out.parquet").to_pylist())
    assert truth(tmp_path, kind) == found


def test_wal_is_not_yet_there_and_said_so(tmp_path: Path) -> None:
    done = joinery("run", str(write_query(tmp_path, "inner", checkpoint={"durability": "wal"})))
    assert 2 == done.returncode
    assert "wal is not yet there" in done.stderr


def test_a_missing_query_file_is_told(tmp_path: Path) -> None:
    done = joinery("run", str(tmp_path / "nowhere.yaml"))
    assert (2, True) == (done.returncode, "wanted a query file" in done.stderr)


def test_a_sink_that_would_replace_a_source_is_refused(tmp_path: Path) -> None:
    write_input(tmp_path)
    done = joinery("run", str(write_query(tmp_path, "inner", sinks=[{"file": {"path": "a.parquet"}}])))
    assert (2, True) == (done.returncode, "a.parquet, a source" in done.stderr)


def test_a_sink_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    write_input(tmp_path)
    done = joinery("run", str(write_query(tmp_path, "inner", sinks=[{"file": {"path": "a.parquet/out.csv"}}])))
    assert (1, True) == (done.returncode, "Not a directory" in done.stderr)
