"""`joinery run --sql`: files of a folder, joined by a statement."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, parquet

ENVIRONMENT = {**os.environ, "PYTHONHASHSEED": "0"}


def run(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603
        [str(Path(sys.executable).with_name("joinery")), "run", *words],
        cwd=folder, capture_output=True, text=True, timeout=120, env=ENVIRONMENT, check=False,
    )  # fmt: skip


def test_a_statement_over_files_is_exact_and_written_where_it_is_told(tmp_path: Path) -> None:
    ids = list(range(100))
    parquet.write_table(pa.table({"id": ids, "ts": [n * 10**6 for n in ids]}), tmp_path / "orders.parquet")
    csv.write_csv(
        pa.table({"order_id": ids, "clerk": ["x"] * 100, "at": [n * 10**6 + 5 for n in ids]}), tmp_path / "s.csv"
    )
    sql = "SELECT o.id AS number, clerk FROM orders o JOIN ships s ON o.id = s.order_id AND o.id >= 10 WITHIN 1 MINUTE"
    told = run(
        tmp_path, "--sql", sql, "--source", "ships=s.csv", "--time", "ts", "--time", "ships=at", "--out", "out.parquet",
        "--verify",
    )  # fmt: skip
    assert 0 == told.returncode, told.stderr
    assert "missing 0, extra 0, duplicate 0" in told.stdout
    assert {"number": ids[10:], "clerk": ["x"] * 90} == parquet.read_table(tmp_path / "out.parquet").sort_by(
        "number"
    ).to_pydict()


def test_a_statement_that_cannot_be_run_is_refused_with_its_place(tmp_path: Path) -> None:
    told = run(tmp_path, "--sql", "SELECT * FROM orders JOIN ON x")
    assert 2 == told.returncode
    assert "^" in told.stderr
    told = run(tmp_path, "--sql", "SELECT * FROM orders o JOIN ships s ON o.id = s.id")
    assert 2 == told.returncode
    assert "orders.parquet" in told.stderr


def test_flags_of_a_statement_are_refused_beside_a_file(tmp_path: Path) -> None:
    told = run(tmp_path, "query.yaml", "--out", "x.csv")
    assert 2 == told.returncode
    assert "--out" in told.stderr
